//===- KernelPasses.td - Compute bodies to groups -----------*- tablegen -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In the order in which KernelPipeline.cpp and the pipelines of targets run them.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_PASSES_KERNEL_PASSES_TD
#define BOA_PASSES_KERNEL_PASSES_TD

include "mlir/Pass/PassBase.td"

def WidenArithmetic : Pass<"kernel-widen-arithmetic"> {
  let summary = "ops on bf16 to ops on f32; each result is rounded";
  let description = [{
    Only three lowerings see bf16: of `boa.cast`; of attention, which is a call for bf16,
    too; and of `boa.rotary`, since casts are not fused with its slices. All other
    arithmetic on bf16 is done in f32. Later, casts are fused with elementwise ops, and a
    product takes its operands before the cast.

    Before:
    ```mlir before
    boa.kernel @k(%x: tensor<2x4x8xbf16>) -> tensor<2x4x8xbf16> {
      %y = boa.gelu %x : tensor<2x4x8xbf16>
      boa.return %y : tensor<2x4x8xbf16>
    }
    ```
    After:
    ```mlir after
      %0 = boa.cast %x : tensor<2x4x8xbf16> to tensor<2x4x8xf32>
      %1 = boa.gelu %0 : tensor<2x4x8xf32>
      %y = boa.cast %1 : tensor<2x4x8xf32> to tensor<2x4x8xbf16>
      boa.return %y : tensor<2x4x8xbf16>
    ```
  }];
  let dependentDialects = ["::boa::BoaDialect"];
}

def ConvertBoaToBlas : Pass<"convert-boa-to-blas"> {
  let summary = "matrix products, attention and scatter to library calls";
  let description = [{
    Matrix products are the vendor's business, and attention is a blocked
    routine of the runtime. A product is accumulated into the matrix that
    is added to it: a bias, a residual, another product, or a gradient that is summed
    over micro-batches. So none of these costs a pass over memory of its own, and no
    temporary holds a weight's gradient.

    Before:
    ```mlir before
    !m = tensor<4x4xf32>
    boa.kernel @k(%x: !m, %w: !m, %b: tensor<4xf32>, %g: !m) -> (!m, !m) {
      %0 = boa.linear %x, %w bias %b : (!m, !m, tensor<4xf32>) -> !m
      %y = boa.add %x, %0 : !m, !m
      %1 = boa.linear_weight_grad %x, %y : (!m, !m) -> !m
      %sum = boa.add %g, %1 : !m, !m
      boa.return %y, %sum : !m, !m
    }
    ```
    After:
    ```mlir after
      %y = kernel.gemm %x, %w bias %b into %x {accumulate} : ...
      %sum = kernel.gemm %x, %y into %g {accumulate, transpose_a} : ...
      boa.return %y, %sum : ...
    ```
  }];
  let dependentDialects = ["::boa::kernel::KernelDialect",
      "::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect",
      "::mlir::tensor::TensorDialect"];
}

def ConvertBoaToLinalg : Pass<"convert-boa-to-linalg"> {
  let summary = "everything that is not a library call to linalg on tensors";
  let description = [{
    Elementwise ops, norms, softmax-cross-entropy, rotary embedding and their
    gradients become `linalg.generic` over [batch, time, width]: reductions over
    a row, elementwise work with the row's statistics, and sums over rows. A sum
    over rows that is added to a tensor starts from that tensor. So a norm becomes a sum of squares
    by row, its inverse root, and the product.

    Before:
    ```mlir before
    boa.kernel @k(%x: tensor<2x4x8xf32>, %w: tensor<8xf32>) -> tensor<2x4x8xf32> {
      %y = boa.rms_norm %x, %w : (tensor<2x4x8xf32>, tensor<8xf32>) -> tensor<2x4x8xf32>
      boa.return %y : tensor<2x4x8xf32>
    }
    ```
    After:
    ```mlir after
      %sum = linalg.generic {indexing_maps = ..., iterator_types = ["parallel", "parallel", "reduction"]} ins(%x : tensor<2x4x8xf32>) outs(%zeros : tensor<2x4xf32>) {
      ^bb0(%in: f32, %out: f32):
        %square = arith.mulf %in, %in : f32
        %next = arith.addf %out, %square fastmath<reassoc> : f32
        linalg.yield %next : f32
      } -> tensor<2x4xf32>
    ...
      %inverse = linalg.generic {indexing_maps = ..., iterator_types = ["parallel", "parallel"]} ins(%sum : tensor<2x4xf32>) outs(...) {
    ...
      %y = linalg.generic {indexing_maps = ..., iterator_types = ["parallel", "parallel", "parallel"]} ins(%x, %inverse, %w : ...) outs(...) {
    ```
  }];
  let dependentDialects = ["::boa::kernel::KernelDialect", "::mlir::arith::ArithDialect",
      "::mlir::linalg::LinalgDialect", "::mlir::math::MathDialect",
      "::mlir::tensor::TensorDialect"];
}

def FuseKernelElementwise : Pass<"kernel-fuse-elementwise", "::boa::KernelOp"> {
  let summary = "fuses elementwise producers into their consumers";
  let description = [{
    Upstream's fusion of linalg on tensors, with a rule. A producer with one consumer is fused.
    A producer with several is kept, since most of them become one group and read it in
    registers; only a cast is computed again in each. A body has at most 256 ops, which keeps a
    long chain from growing with the square of its length.

    Before:
    ```mlir before
    #elements = {indexing_maps = [affine_map<(r, c) -> (r, c)>, affine_map<(r, c) -> (r, c)>], iterator_types = ["parallel", "parallel"]}
    boa.kernel @k(%x: tensor<8x4xf32>, %e: tensor<8x4xf32>) -> tensor<8x4xf32> {
      %0 = linalg.generic #elements ins(%x : tensor<8x4xf32>) outs(%e : tensor<8x4xf32>) {
      ^bb0(%a: f32, %out: f32):
        %2 = math.exp %a : f32
        linalg.yield %2 : f32
      } -> tensor<8x4xf32>
      %1 = linalg.generic #elements ins(%0 : tensor<8x4xf32>) outs(%e : tensor<8x4xf32>) {
      ^bb0(%a: f32, %out: f32):
        %2 = arith.addf %a, %a : f32
        linalg.yield %2 : f32
      } -> tensor<8x4xf32>
      boa.return %1 : tensor<8x4xf32>
    }
    ```
    After:
    ```mlir after
      %0 = linalg.generic {...} ins(%x : tensor<8x4xf32>) outs(... : tensor<8x4xf32>) {
      ^bb0(%a: f32, %out: f32):
        %1 = math.exp %a : f32
        %2 = arith.addf %1, %1 : f32
        linalg.yield %2 : f32
      } -> tensor<8x4xf32>
      boa.return %0 : tensor<8x4xf32>
    ```
  }];
}

def BlockRows : Pass<"kernel-block-rows", "::boa::KernelOp"> {
  let summary = "a wide product and the reductions of its rows, in blocks of rows";
  let description = [{
    The logits of a large vocabulary, and their gradient, would be the largest tensors of
    a training by far. The training needs only a number for each row of them, and two
    products. So if a product is wider than its operands, the pass computes it and all ops
    on its rows for one block of rows, then for the next. Tensors as wide as the product
    then exist only for one block. Sums over rows (gradients of weights and biases)
    continue from block to block; all other results stay the same to the bit. The pass
    matches any product, and linalg over the same rows, whatever they mean in the model.

    There are at most 64 blocks, since each is code. Each has at least `least` rows, since
    small products are slow. Within these limits, a block of a tensor as wide as the
    product takes at most `bytes`. A product that fits one block, or is too small for two,
    stays whole.

    Remarks of category `boa-kernel` name the products that were divided, and the reasons
    why other large ones were not.

    Before:
    ```mlir before Inputs/head.mlir --convert-boa-to-blas --convert-boa-to-linalg --kernel-fuse-elementwise --canonicalize --cse
      %logits = kernel.gemm %x, %w into ... : (tensor<2x24x4xf32>, tensor<4x32xf32>, tensor<2x24x32xf32>) -> tensor<2x24x32xf32>
    ...
      %max = linalg.generic {... "reduction"]} ins(%logits : tensor<2x24x32xf32>) ...
    ```
    After, with `rows=16`:
    ```mlir after rows=16
      %x0 = tensor.extract_slice %x[0, 0, 0] [1, 16, 4] [1, 1, 1] : ...
      %e0 = tensor.empty() : tensor<1x16x32xf32>
      %logits0 = kernel.gemm %x0, %w into %e0 : (tensor<1x16x4xf32>, tensor<4x32xf32>, tensor<1x16x32xf32>) -> tensor<1x16x32xf32>
    ...
      %max0 = linalg.generic {... "reduction"]} ins(%logits0 : tensor<1x16x32xf32>) ...
    ...
      %x1 = tensor.extract_slice %x[0, 16, 0] [1, 8, 4] [1, 1, 1] : ...
      %e1 = tensor.empty() : tensor<1x8x32xf32>
      %logits1 = kernel.gemm %x1, %w into %e1 : (tensor<1x8x4xf32>, tensor<4x32xf32>, tensor<1x8x32xf32>) -> tensor<1x8x32xf32>
    ```
  }];
  let options = [
    Option<"bytes", "bytes", "int64_t", /*default=*/"33554432",
           "bytes of a block of a tensor as wide as the product">,
    Option<"least", "least", "int64_t", /*default=*/"128", "the fewest rows of a block">,
    Option<"rows", "rows", "int64_t", /*default=*/"0",
           "the most rows of a block, whatever its bytes; 0: no such limit">];
  let dependentDialects = ["::boa::kernel::KernelDialect", "::mlir::linalg::LinalgDialect",
      "::mlir::tensor::TensorDialect"];
}

def BindKernelArguments : Pass<"kernel-bind-arguments", "::boa::KernelOp"> {
  let summary = "gives a kernel the signature of the runtime";
  let description = [{
    Arguments and results marked `boa.buffer`, `boa.offset` become views of the
    buffers that the runtime passes; a result that accumulates into an argument
    (`boa.result`) is the same view. All later results then have
    definite memory. Tables (`kernel.angles`) are views of pointers that the runtime
    passes behind the buffers; `tables` lists them. A separate device takes its work
    from the queue; code for a CPU ignores it.

    Before:
    ```mlir before
    boa.kernel @k(%x: tensor<8xf32> {boa.buffer = 0 : i32, boa.offset = 0 : i64})
        -> (tensor<8xf32> {boa.buffer = 1 : i32, boa.offset = 64 : i64})
        reads [tensor<8xf32>] writes [tensor<24xf32>] {
      %y = boa.gelu %x : tensor<8xf32>
      boa.return %y : tensor<8xf32>
    }
    ```
    After:
    ```mlir after
    boa.kernel @k(%buffers: !llvm.ptr, %workspace: !llvm.ptr, %queue: !llvm.ptr) reads [tensor<8xf32>] writes [tensor<24xf32>] {
      %p0 = kernel.argument %buffers[0]
      %m0 = kernel.view %p0 + 0 : memref<8xf32>
      %x = bufferization.to_tensor %m0 restrict : memref<8xf32> to tensor<8xf32>
      %p1 = kernel.argument %buffers[1]
      %m1 = kernel.view %p1 + 64 : memref<8xf32>
      %y = boa.gelu %x : tensor<8xf32>
      bufferization.materialize_in_destination %y in restrict writable %m1 : ...
    ```
  }];
  let dependentDialects = ["::boa::kernel::KernelDialect",
      "::mlir::bufferization::BufferizationDialect",
      "::mlir::LLVM::LLVMDialect", "::mlir::memref::MemRefDialect"];
}

def BufferizeKernels : Pass<"kernel-bufferize", "::mlir::ModuleOp"> {
  let summary = "one-shot bufferization of a kernel";
  let description = [{
    Upstream's empty-tensor elimination (so that results are computed where they
    belong) and one-shot bufferization, on kernels only. The elimination is not told that
    an accumulator and its result are one memory, nor that two results are not. So it may
    not use the place of a result before the accumulator is read, or for another result.
    Elementwise ops write over an operand that is dead after them, but at most 32 in a row
    over one tensor. A tensor that is made of parts, and then only read, gets its memory first,
    and parts are computed in their places. A sum of more than 32 terms is cut into parts that
    lie in one place. Upstream's analysis takes too long for many accesses to one tensor.
    Copies that could be saved may be left.
    Constants become globals; the module says how many bytes they and the tables of its
    kernels take (`boa.constants`).

    Before:
    ```mlir before Inputs/norm.mlir --convert-boa-to-linalg --kernel-bind-arguments
      %m = kernel.view ... + 0 : memref<2x64x256xf32>
    ...
      %y = linalg.generic {...} ins(...) outs(... : tensor<2x64x256xf32>) {
    ...
      bufferization.materialize_in_destination %y in restrict writable %m : ...
    ```
    After:
    ```mlir after
      %m = kernel.view ... + 0 : memref<2x64x256xf32>
    ...
      %sum = memref.alloc() {alignment = 64 : i64} : memref<2x64xf32>
      linalg.fill ins(...) outs(%sum : memref<2x64xf32>)
    ...
      linalg.generic {...} ins(%sum : memref<2x64xf32>) outs(%sum : memref<2x64xf32>) {
    ...
      linalg.generic {...} ins(...) outs(%m : memref<2x64x256xf32>) {
    ```
  }];
  let dependentDialects = ["::mlir::bufferization::BufferizationDialect",
      "::mlir::linalg::LinalgDialect", "::mlir::memref::MemRefDialect"];
}

def ElideKernelCopies : Pass<"kernel-elide-copies", "::boa::KernelOp"> {
  let summary = "computes results at the target of their copy";
  let description = [{
    Bufferization analyses one slice at a time. So if one op computes several parts of a
    concatenation, it computes temporaries and copies them. Here the memory is definite:
    the slice replaces a temporary that is only copied to it.

    Before:
    ```mlir before
    !m = memref<8x8xf32>
    #copy = {indexing_maps = [affine_map<(r, c) -> (r, c)>, affine_map<(r, c) -> (r, c)>], iterator_types = ["parallel", "parallel"]}
    boa.kernel @k(%p: !llvm.ptr, %w: !llvm.ptr) {
      %x = kernel.view %p + 0 : !m
      %y = kernel.view %w + 0 : !m
      %temporary = memref.alloc() : !m
      kernel.gemm %x, %x into %temporary : (!m, !m, !m) -> ()
      linalg.generic #copy ins(%temporary : !m) outs(%y : !m) {
      ^bb0(%in: f32, %out: f32):
        linalg.yield %in : f32
      }
      boa.return
    }
    ```
    After:
    ```mlir after
      %y = kernel.view %arg1 + 0 : memref<8x8xf32>
    ...
      kernel.gemm %x, %x into %y : ...
      boa.return
    ```
  }];
  let dependentDialects = ["::mlir::memref::MemRefDialect"];
}

def FormKernelGroups : Pass<"kernel-form-groups", "::boa::KernelOp"> {
  let summary = "linalg on memrefs to groups that are computed together";
  let description = [{
    Puts ops over the same rows (leading parallel dimensions) into one `kernel.group`, if
    each reads only its own row of the others' results. A row then stays in the innermost
    memory from the first reduction of a norm to the last elementwise op. Sums over rows
    are grouped by columns instead, so that each sum has one owner and one order.
    A group has at most 64 ops. Temporaries of only one group are allocated in it. Afterwards
    a kernel consists of groups and library calls; a target lowers the groups.

    Remarks of category `boa-kernel` say what each group holds and what kept an op
    from the group before it.

    Before:
    ```mlir before Inputs/norm.mlir --convert-boa-to-linalg --kernel-bind-arguments --kernel-bufferize --canonicalize
      %sum = memref.alloc() {alignment = 64 : i64} : memref<2x64xf32>
      linalg.fill ins(...) outs(%sum : memref<2x64xf32>)
      linalg.generic {... "reduction"]} ins(%x : ...) outs(%sum : memref<2x64xf32>) {
    ...
      linalg.generic {...} ins(%sum : memref<2x64xf32>) outs(%sum : memref<2x64xf32>) {
    ...
      linalg.generic {...} ins(%x, %sum, %w : ...) outs(%y : memref<2x64x256xf32>) {
    ```
    After:
    ```mlir after
      kernel.group rows [2, 64] {
        %sum = memref.alloc() {alignment = 64 : i64} : memref<2x64xf32>
        linalg.fill ins(...) outs(%sum : memref<2x64xf32>)
        linalg.generic {... "reduction"]} ins(%x : ...) outs(%sum : memref<2x64xf32>) {
    ...
        linalg.generic {...} ins(%sum : memref<2x64xf32>) outs(%sum : memref<2x64xf32>) {
    ...
        linalg.generic {...} ins(%x, %sum, %w : ...) outs(%y : memref<2x64x256xf32>) {
    ```
  }];
  let dependentDialects = ["::boa::kernel::KernelDialect"];
}

//===----------------------------------------------------------------------===//
// After groups and calls are emitted: for every target
//===----------------------------------------------------------------------===//

def AssignWorkspace : Pass<"kernel-assign-workspace", "::boa::KernelOp"> {
  let summary = "static offsets in the workspace for all temporaries";
  let description = [{
    Every `memref.alloc` becomes a view of the workspace at a fixed offset. It is aligned
    to 64 bytes, or as `memref.alloc` says. Temporaries that are not live at once share
    memory. `workspace` of the kernel is the number of bytes needed. `scratch` is how many of them
    would not be needed without a library's attention. An alloc of a size that is not static is an
    error.

    Before:
    ```mlir before
    !m = memref<8x8xf32>
    boa.kernel @k(%p: !llvm.ptr, %workspace: !llvm.ptr) {
      %x = kernel.view %p + 0 : !m
      %a = memref.alloc() : !m
      %b = memref.alloc() : !m
      %c = memref.alloc() : !m
      kernel.gemm %x, %x into %a : (!m, !m, !m) -> ()
      kernel.gemm %x, %a into %b : (!m, !m, !m) -> ()
      kernel.gemm %x, %b into %c : (!m, !m, !m) -> ()
      kernel.gemm %c, %c into %x : (!m, !m, !m) -> ()
      boa.return
    }
    ```
    After:
    ```mlir after
    boa.kernel @k(%p: !llvm.ptr, %workspace: !llvm.ptr) workspace 512 {
      %x = kernel.view %p + 0 : memref<8x8xf32>
      %a = kernel.view %workspace + 0 : memref<8x8xf32>
      %b = kernel.view %workspace + 256 : memref<8x8xf32>
      %c = kernel.view %workspace + 0 : memref<8x8xf32>
    ```
  }];
  let dependentDialects = ["::boa::kernel::KernelDialect"];
}

def ExpandKernelMath : Pass<"kernel-expand-math"> {
  let summary = "polynomials for f32 exp, exp2, log and tanh; integer code for bf16";
  let description = [{
    In f32 the approximations (to about 1e-7) vectorise, and need no library on a
    device; exp2 becomes exp. In f64, which only gradient tests use, the functions become calls of the
    math library. Works on any function, of the host or of a device.

    Before:
    ```mlir before
    func.func @k(%x: f32) -> f32 {
      %y = math.exp %x : f32
      return %y : f32
    }
    ```
    After:
    ```mlir after
      %4 = arith.mulf %x, %log2e : f32
      %5 = arith.addf %4, %magic : f32
      %6 = arith.subf %5, %magic : f32
      %7 = math.fma %6, %high, %x : f32
      %8 = math.fma %6, %low, %7 : f32
      %9 = math.fma %c5, %8, %c4 : f32
    ...
      %18 = arith.shli %17, %c23_i32 : i32
      %19 = arith.addi %18, %one : i32
      %20 = arith.bitcast %19 : i32 to f32
      %y = arith.mulf %16, %20 : f32
      return %y : f32
    ```
  }];
  let options = [Option<"device", "device", "bool", /*default=*/"false",
                        "leaves bf16 and powers of two, for which a GPU has instructions">];
  let dependentDialects = ["::mlir::arith::ArithDialect",
      "::mlir::math::MathDialect", "::mlir::vector::VectorDialect"];
}

def EmitOptimizer : Pass<"kernel-emit-optimizer", "::mlir::ModuleOp"> {
  let summary = "boa.optimizer as functions of the host";
  let description = [{
    If the program updates weights, adds the functions of runtime/abi/optimizer.h: one for the
    scalars of a step, one that updates a part of a chunk. They contain the regions of
    `boa.optimizer`, and the forms in which weights and states are stored.

    Before:
    ```mlir before Inputs/sgd.mlir
    boa.optimizer @sgd {} states {} prepare {
    ...
    ^bb0(%w: f32, %g: f32, %rate: f32, %weight_decay: f32):
      %change = arith.mulf %rate, %g : f32
      %next = arith.subf %w, %change : f32
      boa.yield %next : f32
    ```
    After:
    ```mlir after
    func.func private @boa_update_elements(%weights: !llvm.ptr {llvm.noalias}, ...
    ...
      %flags = scf.for %i = %begin to %end step %c1 iter_args(%flag = %c0) -> (i32)  : i64 {
    ...
        %change = arith.mulf %rate, %g : f32
        %next = arith.subf %w, %change : f32
    ...
        %address = llvm.getelementptr %weights[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f32
        llvm.store %next, %address : f32, !llvm.ptr
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::func::FuncDialect",
      "::mlir::LLVM::LLVMDialect", "::mlir::math::MathDialect", "::mlir::scf::SCFDialect"];
}

#endif // BOA_PASSES_KERNEL_PASSES_TD
