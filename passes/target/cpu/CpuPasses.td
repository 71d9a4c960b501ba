//===- CpuPasses.td - Groups to code for a CPU --------------*- tablegen -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In the order in which CpuPipeline.cpp runs them.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_PASSES_CPU_PASSES_TD
#define BOA_PASSES_CPU_PASSES_TD

include "mlir/Pass/PassBase.td"

def CpuEmitGroups : Pass<"cpu-emit-groups", "::boa::KernelOp"> {
  let summary = "groups to loops on the pool";
  let description = [{
    Each `kernel.group` becomes a `kernel.parallel` over its rows or columns, with the
    loops of its ops inside. Inner loops are left for LLVM to vectorise; reductions
    are carried in registers and may be reassociated.

    Before:
    ```mlir before Inputs/norm.mlir --convert-boa-to-linalg --kernel-bind-arguments --kernel-bufferize --canonicalize --kernel-form-groups
      kernel.group rows [2, 64] {
        %sum = memref.alloc() {alignment = 64 : i64} : memref<2x64xf32>
        linalg.fill ins(%zero : f32) outs(%sum : memref<2x64xf32>)
        linalg.generic {... "reduction"]} ins(%x : memref<2x64x256xf32>) outs(%sum : memref<2x64xf32>) {
    ```
    After:
    ```mlir after
      %sum = memref.alloc() {alignment = 64 : i64} : memref<2x64xf32>
      kernel.parallel 128 grain 32 {
      ^bb0(%begin: index, %end: index):
        %c1 = arith.constant 1 : index
        scf.for %r = %begin to %end step %c1 {
    ...
          memref.store %zero, %sum[%b, %t] : memref<2x64xf32>
    ...
          scf.for %c = %c0 to %c256 step %c1_3 {
    ...
            %element = memref.load %x[...] : memref<2x64x256xf32>
    ```
  }];
  let dependentDialects = ["::boa::kernel::KernelDialect", "::mlir::affine::AffineDialect",
      "::mlir::arith::ArithDialect", "::mlir::memref::MemRefDialect",
      "::mlir::scf::SCFDialect"];
}

def CpuPrepareProducts : Pass<"cpu-prepare-products", "::mlir::ModuleOp"> {
  let summary = "kernels ask for their large weights as products take them";
  let description = [{
    A product packs its second operand into panels first. If that is a parameter of at least `least`
    elements, the kernel asks for the panels instead (#boa.prepared), and a kernel `NAME.prepare`
    makes them. Without them, as --boa-prepare-operands decides, the product packs as before. Both
    compute the same bits. Smaller matrices are packed in a cache, at the cost of a launch.

    Before:
    ```mlir before
    boa.kernel @k(%buffers: !llvm.ptr, %workspace: !llvm.ptr, %queue: !llvm.ptr) reads [tensor<4x1024xf32>, tensor<1048576xf32>] writes [tensor<4x1024xf32>] {
      %0 = kernel.argument %buffers[0]
      %1 = kernel.argument %buffers[1]
      %2 = kernel.argument %buffers[2]
      %x = kernel.view %0 + 0 : memref<4x1024xf32>
      %w = kernel.view %1 + 0 : memref<1024x1024xf32>
      %y = kernel.view %2 + 0 : memref<4x1024xf32>
      kernel.gemm %x, %w into %y {transpose_b} : (memref<4x1024xf32>, memref<1024x1024xf32>, memref<4x1024xf32>) -> ()
      boa.return
    }
    ```
    After:
    ```mlir after
    boa.kernel @k(%buffers: !llvm.ptr, ...) reads [...] prepared #boa.prepared<tensor<1048576xf32> by @k.prepare of [1]> {
      %panels = kernel.argument %buffers[3]
    ...
      kernel.gemm %x, %w into %y prepared %panels + 0 {transpose_b} : ...
      boa.return
    }
    boa.kernel @k.prepare(%buffers: !llvm.ptr, ...) reads [tensor<1048576xf32>] writes [tensor<1048576xf32>] costs {f32 = #boa.cost<flops = 0, bytes = 8388608, elementwise_bytes = 8388608>} {
      %form = kernel.argument %buffers[1]
      %0 = kernel.argument %buffers[0]
      %w = kernel.view %0 + 0 : memref<1024x1024xf32>
      %panels = kernel.view %form + 0 : memref<1048576xf32>
      kernel.prepare %w into %panels {transpose_b} : ...
      boa.return
    }
    ```
  }];
  let options = [Option<"least", "least", "int64_t", /*default=*/"1 << 20",
                        "elements of a matrix that is prepared">];
  let dependentDialects = ["::boa::BoaDialect", "::boa::kernel::KernelDialect"];
}

def CpuOutlineLoops : Pass<"cpu-outline-loops", "::mlir::ModuleOp"> {
  let summary = "bodies of kernel.parallel to functions that the pool calls";
  let description = [{
    Each `kernel.parallel` becomes a call of `boa_rt_parallel_for` with a function
    that loads the addresses it needs and calls the loop itself. The loop's
    function takes every view as a `noalias`, aligned pointer: that is what lets
    LLVM vectorise it without run-time checks. Loops that differ in their memory alone
    share one function, also across kernels.

    Before:
    ```mlir before
    boa.kernel @k(%p: !llvm.ptr) {
      %x = kernel.view %p + 0 : memref<16xf32>
      %zero = arith.constant 0.0 : f32
      kernel.parallel 16 grain 16 {
      ^bb0(%begin: index, %end: index):
        memref.store %zero, %x[%begin] : memref<16xf32>
      }
      boa.return
    }
    ```
    After:
    ```mlir after
    func.func private @k_loop0(%x: !llvm.ptr {llvm.align = 64 : i64, llvm.noalias, llvm.noundef}, %begin: index, %end: index) attributes {llvm.linkage = #llvm.linkage<internal>} {
      %view = kernel.view %x + 0 : memref<16xf32>
      %zero = arith.constant 0.000000e+00 : f32
      memref.store %zero, %view[%begin] : memref<16xf32>
      return
    }
    func.func private @k_part0(%addresses: !llvm.ptr, %begin: i64, %end: i64) attributes {llvm.linkage = #llvm.linkage<internal>} {
    ...
      call @k_loop0(...
    ...
    boa.kernel @k(%p: !llvm.ptr) {
    ...
      %f = func.constant @k_part0 : (!llvm.ptr, i64, i64) -> ()
    ...
      func.call @boa_rt_parallel_for(...
    ```
  }];
  let dependentDialects = ["::boa::kernel::KernelDialect",
      "::mlir::func::FuncDialect", "::mlir::LLVM::LLVMDialect"];
}

def CpuKeepOuterLoops : Pass<"cpu-keep-outer-loops"> {
  let summary = "forbids LLVM to unroll loops around loops";
  let description = [{
    Each copy of an unrolled outer loop would hold all of its inner loops. That doubles
    the code and the time to compile it, and no step becomes faster. Innermost loops are
    left to LLVM.

    Before:
    ```mlir before
    boa.kernel @k(%x: memref<4x8xf32>, %zero: f32) {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c4 = arith.constant 4 : index
      scf.for %i = %c0 to %c4 step %c1 {
        scf.for %j = %c0 to %c4 step %c1 {
          memref.store %zero, %x[%i, %j] : memref<4x8xf32>
        }
      }
      boa.return
    }
    ```
    After:
    ```mlir after
    #loop_unroll = #llvm.loop_unroll<disable = true>
    #loop_annotation = #llvm.loop_annotation<unroll = #loop_unroll>
    ...
        }
      } {llvm.loop_annotation = #loop_annotation}
    ```
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect"];
}

def CpuConvertKernelToLLVM : Pass<"cpu-convert-kernel-to-llvm", "::mlir::ModuleOp"> {
  let summary = "kernels from memref and kernel ops to the LLVM dialect";
  let description = [{
    Library calls become calls of the runtime's C functions (runtime/kernels),
    named by element type; rows of operands must be evenly spaced. Annotations of loops
    move to the branches that LLVM reads them from.

    Before:
    ```mlir before
    !m = memref<8x8xf32>
    boa.kernel @k(%p: !llvm.ptr, %workspace: !llvm.ptr) {
      %x = kernel.view %p + 0 : !m
      %y = kernel.view %p + 256 : !m
      kernel.gemm %x, %x into %y : (!m, !m, !m) -> ()
      boa.return
    }
    ```
    After:
    ```mlir after
    llvm.func @boa_gemm_f32(i32, i32, i64, i64, i64, !llvm.ptr, i64, !llvm.ptr, i64, !llvm.ptr, i32, !llvm.ptr, i64, !llvm.ptr, i64)
    boa.kernel @k(%p: !llvm.ptr, %workspace: !llvm.ptr) {
    ...
      %null = llvm.mlir.zero : !llvm.ptr
    ...
      llvm.call @boa_gemm_f32(%transpose_a, %transpose_b, %m, %n, %k, %a, %a_stride, %b, %b_stride, %null, %accumulate, %y, %y_stride, %no_form, %offset) : ...
      boa.return
    ```
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect"];
}

#endif // BOA_PASSES_CPU_PASSES_TD
