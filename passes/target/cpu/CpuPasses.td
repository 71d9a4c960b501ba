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

    Before: a group of two ops over rows. After:
    ```mlir
    kernel.parallel (%begin, %end) of 2048 grain 22 {
      scf.for %r = %begin to %end step %c1 {
        scf.for %c = %c0 to %c384 step %c1 { ... }
        scf.for %c = %c0 to %c384 step %c1 { ... }
    ```
  }];
  let dependentDialects = ["::boa::kernel::KernelDialect", "::mlir::affine::AffineDialect",
      "::mlir::arith::ArithDialect", "::mlir::memref::MemRefDialect",
      "::mlir::scf::SCFDialect"];
}

def CpuOutlineLoops : Pass<"cpu-outline-loops", "::mlir::ModuleOp"> {
  let summary = "bodies of kernel.parallel to functions that the pool calls";
  let description = [{
    Each `kernel.parallel` becomes a call of `boa_rt_parallel_for` with a function
    that loads the addresses it needs and calls the loop itself. The loop's
    function takes every view as a `noalias`, aligned pointer: that is what lets
    LLVM vectorise it without run-time checks. Loops that differ in their memory alone
    share one function, also across kernels.
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
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect"];
}

def CpuConvertKernelToLLVM : Pass<"cpu-convert-kernel-to-llvm", "::mlir::ModuleOp"> {
  let summary = "kernels from memref and kernel ops to the LLVM dialect";
  let description = [{
    Library calls become calls of the runtime's C functions (runtime/kernels),
    named by element type; rows of operands must be evenly spaced. Annotations of loops
    move to the branches that LLVM reads them from.
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect"];
}

#endif // BOA_PASSES_CPU_PASSES_TD
