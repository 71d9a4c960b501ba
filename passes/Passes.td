//===- Passes.td - From the model to calls of the runtime --*- tablegen -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The passes of each phase, in the order in which Pipeline.cpp runs them, then those that turn a
// program into code. (The passes that turn compute bodies into code are in KernelPasses.td.)
//
//===----------------------------------------------------------------------===//
include "mlir/Pass/PassBase.td"

class BoaPass<string flag> : Pass<flag, "::mlir::ModuleOp"> {
  let dependentDialects = ["::boa::BoaDialect", "::mlir::arith::ArithDialect",
                           "::mlir::func::FuncDialect"];
}

include "passes/model/ModelPasses.td"
include "passes/schedule/StepPasses.td"
include "passes/storage/StoragePasses.td"

def OutlineKernels : BoaPass<"boa-outline-kernels"> {
  let summary = "stage functions as kernels on packed buffers";
  let description = [{
    Makes a `boa.kernel` of each launched function. Gives its arguments and results their places:
    `boa.buffer` and `boa.offset`. Turns gradients into accumulators: arguments tied to results.
    Widens weights stored as bf16. Adds up what its ops cost. All layers share one kernel.

    Before:
    ```mlir before Inputs/tiny.mlir --boa-differentiate --boa-build-step --boa-insert-offload
    func.func @block_forward(%x: tensor<2x16x512xf32>, %w: tensor<512x512xf32> {boa.param = @block::@w}, %b: tensor<512xf32> {boa.param = @block::@b}) -> tensor<2x16x512xf32> {
      %0 = boa.linear %x, %w bias %b : ...
    ```
    After:
    ```mlir after
    boa.kernel @block_forward(%x: tensor<2x16x512xf32> {boa.buffer = 0 : i32, boa.offset = 0 : i64}, %w: tensor<512x512xbf16> {boa.buffer = 1 : i32, boa.offset = 0 : i64}, %b: tensor<512xbf16> {boa.buffer = 1 : i32, boa.offset = 524288 : i64}) -> (tensor<2x16x512xf32> {boa.buffer = 2 : i32, boa.offset = 0 : i64}) reads [tensor<2x16x512xf32>, tensor<276480xbf16>] writes [tensor<2x16x512xf32>] costs {f32 = #boa.cost<...>} {
      %0 = boa.cast %w : tensor<512x512xbf16> to tensor<512x512xf32>
      %1 = boa.cast %b : tensor<512xbf16> to tensor<512xf32>
      %2 = boa.linear %x, %0 bias %1 : ...
    ```
  }];
}

def ConvertBoaToRuntime : BoaPass<"convert-boa-to-runtime"> {
  let summary = "entry points to functions that call the runtime's C ABI";
  let description = [{
    Each op of the storage phase becomes a call of runtime/abi/calls.def. Storages, groups and kernels
    become their numbers, in the order in which they stand; loops stay loops. The settings, the
    storages and the groups are in the descriptor, the JSON text of @boa_program.

    Before:
    ```mlir before
    module attributes {boa.arena = 0 : i64, boa.workspace = 0 : i64} {
      boa.storage @x[2] : tensor<1024xf32> on ssd role checkpoints slots device 1 x 1
      boa.step @evaluate(%step, %pending) traffic {
        each read
        each written
      } {
        boa.loop layer %l = 0 to 2 forward {
          %x = boa.create @x[%l] : <tensor<1024xf32>, device>
          boa.offload %x, @x[%l] : <tensor<1024xf32>, device>
          boa.release %x : <tensor<1024xf32>, device>
        }
      }
    }
    ```
    After:
    ```mlir after
    func.func @boa_evaluate(%context: !llvm.ptr, %step: i64, %pending: i64) {
    ...
      scf.for %l = %c0 to %c2 step %c1 {
    ...
        %x = func.call @boa_rt_create(%context, %storage, %entry, %first, %count, %space) : ...
    ...
        func.call @boa_rt_offload(%context, %x, ...
    ...
        func.call @boa_rt_release(%context, %x, %retain) : ...
      }
      return
    }
    ...
    llvm.mlir.global external constant @boa_program("{...
    ```
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect", "::mlir::scf::SCFDialect",
                           "::mlir::arith::ArithDialect", "::mlir::func::FuncDialect"];
}
