//===- KernelPasses.td - Compute bodies to groups -----------*- tablegen -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In the order in which KernelPipeline.cpp and the pipelines of targets run them. Each
// works on functions marked `boa.kernel` and leaves others alone.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_PASSES_KERNEL_PASSES_TD
#define BOA_PASSES_KERNEL_PASSES_TD

include "mlir/Pass/PassBase.td"

def WidenArithmetic : Pass<"kernel-widen-arithmetic", "::mlir::func::FuncOp"> {
  let summary = "ops on bf16 to ops on f32, of which each result is rounded";
  let description = [{
    No lowering hears of bf16 but that of `boa.cast`, of attention, which is a call
    for bf16, too, and of `boa.rotary`, which reads and writes slices, with which casts
    are not fused: what else is computed of bf16 is computed in f32. Casts are fused
    with what else is elementwise; a product takes its operands as they were.

    Before:
    ```mlir
    %y = boa.gelu %x : tensor<8x256x384xbf16>
    ```
    After:
    ```mlir
    %0 = boa.cast %x : tensor<8x256x384xbf16> to tensor<8x256x384xf32>
    %1 = boa.gelu %0 : tensor<8x256x384xf32>
    %y = boa.cast %1 : tensor<8x256x384xf32> to tensor<8x256x384xbf16>
    ```
  }];
  let dependentDialects = ["::boa::BoaDialect"];
}

def ConvertBoaToBlas : Pass<"convert-boa-to-blas", "::mlir::func::FuncOp"> {
  let summary = "matrix products, attention and scatter to library calls";
  let description = [{
    Matrix products are the vendor's business, and attention is a blocked
    routine of the runtime. What is added to a product becomes the matrix that
    the product is accumulated into: a bias, a residual, another product, or a
    gradient that is summed over micro-batches. So none of these costs a pass
    over memory of its own, and no temporary holds a weight's gradient.

    Before:
    ```mlir
    %0 = boa.linear %h, %w bias %b : ...
    %y = boa.add %x, %0 : tensor<8x256x384xf32>, tensor<8x256x384xf32>
    %1 = boa.linear_weight_grad %h, %dy : ...
    %g = boa.add %g0, %1 : tensor<384x384xf32>, tensor<384x384xf32>
    ```
    After:
    ```mlir
    %0 = boa.add %x, %b : tensor<8x256x384xf32>, tensor<384xf32>
    %y = kernel.gemm %h, %w into %0 {accumulate} : ...
    %g = kernel.gemm %h, %dy into %g0 {accumulate, transpose_a} : ...
    ```
  }];
  let dependentDialects = ["::boa::kernel::KernelDialect",
      "::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect",
      "::mlir::tensor::TensorDialect"];
}

def ConvertBoaToLinalg : Pass<"convert-boa-to-linalg", "::mlir::func::FuncOp"> {
  let summary = "everything that is not a library call to linalg on tensors";
  let description = [{
    Elementwise ops, norms, softmax-cross-entropy, rotary embedding and their
    gradients become `linalg.generic` over [batch, time, width]: reductions over
    a row, elementwise work with the row's statistics, and sums over rows. A sum
    over rows that is added to a tensor starts from that tensor.

    Before:
    ```mlir
    %y = boa.rms_norm %x, %w : tensor<8x256x384xf32>, tensor<384xf32> -> tensor<8x256x384xf32>
    ```
    After: the sum of squares by row, its reciprocal root, and the product:
    ```mlir
    %s = linalg.generic {iterator_types = ["parallel", "parallel", "reduction"]} ins(%x) ...
    %r = linalg.generic {iterator_types = ["parallel", "parallel"]} ins(%s) ...
    %y = linalg.generic {iterator_types = ["parallel", "parallel", "parallel"]} ins(%x, %r, %w) ...
    ```
  }];
  let dependentDialects = ["::boa::kernel::KernelDialect", "::mlir::arith::ArithDialect",
      "::mlir::linalg::LinalgDialect", "::mlir::math::MathDialect",
      "::mlir::tensor::TensorDialect"];
}

def FuseKernelElementwise : Pass<"kernel-fuse-elementwise", "::mlir::func::FuncOp"> {
  let summary = "fuses elementwise producers into their consumers";
  let description = [{
    Upstream's fusion of linalg on tensors, with a rule for when: a producer with
    one consumer is always fused; one with several is computed again in each
    where that is a few additions and multiplications, and kept where it calls
    exp or the like. So a value is written to memory only where a library call,
    a reduction of another shape or an expensive recomputation wants it there.
  }];
}

def BlockRows : Pass<"kernel-block-rows", "::mlir::func::FuncOp"> {
  let summary = "a wide product and what reduces its rows, by blocks of rows";
  let description = [{
    The logits of a large vocabulary, and their gradient, would be the largest tensors of
    a training by far, and nothing is wanted of them but a number for each row and two
    products. So where a product is wider than what it is made of, all that looks at its
    rows is computed for a block of rows, then for the next: tensors as wide as the
    product exist for a block alone. Sums over rows (gradients of weights and biases) go
    on from block to block; nothing else is computed otherwise than it was. It is
    recognised by what the ops do, not by what they are for: products, and linalg that
    goes over the same rows.

    There are at most 64 blocks, since each is code, and each has at least `least` rows,
    which products need to be worth their name. Within that, a block has at most so many
    rows that a tensor as wide as the product takes `bytes`: more where blocks would be too
    many, or too small. What fits one block, or is too small for two, is left as it is.

    Before:
    ```mlir
    %logits = kernel.gemm %x, %w into %e0 : ... -> tensor<8x256x32000xf32>
    %max = linalg.generic {["parallel", "parallel", "reduction"]} ins(%logits) ...
    ...
    %d = linalg.generic {["parallel", "parallel", "parallel"]} ins(%logits, %lse, %targets) ...
    %dx = kernel.gemm %d, %w into %e1 {transpose_b} : ... -> tensor<8x256x384xf32>
    %dw = kernel.gemm %x, %d into %acc {accumulate, transpose_a} : ...
    ```
    After, for rows 0 to 255 and so on:
    ```mlir
    %x0 = tensor.extract_slice %x[0, 0, 0] [1, 256, 384] [1, 1, 1] ...
    %logits0 = kernel.gemm %x0, %w into %e0 : ... -> tensor<1x256x32000xf32>
    ...
    %part0 = kernel.gemm %d0, %w into %e1 {transpose_b} : ... -> tensor<1x256x384xf32>
    %dx0 = tensor.insert_slice %part0 into %e2[0, 0, 0] [1, 256, 384] [1, 1, 1] ...
    %dw0 = kernel.gemm %x0, %d0 into %acc {accumulate, transpose_a} : ...
    ```
    Remarks of category `boa-kernel` say what was divided, and what kept a large product
    from it.
  }];
  let options = [
    Option<"bytes", "bytes", "int64_t", /*default=*/"33554432",
           "what a tensor as wide as the product is to take">,
    Option<"least", "least", "int64_t", /*default=*/"128", "rows that a block has at least">,
    Option<"rows", "rows", "int64_t", /*default=*/"0",
           "rows that a block has at most, whatever it takes; 0: as the others say">];
  let dependentDialects = ["::boa::kernel::KernelDialect", "::mlir::linalg::LinalgDialect",
      "::mlir::tensor::TensorDialect"];
}

def BindKernelArguments : Pass<"kernel-bind-arguments", "::mlir::func::FuncOp"> {
  let summary = "gives a kernel the signature of the runtime";
  let description = [{
    Arguments and results marked `boa.buffer`, `boa.offset` become views of the
    buffers that the runtime passes; a result that accumulates into an argument
    (`boa.result`) is the same view. Everything that follows then has definite
    memory to be computed in. Tables (`kernel.angles`) are views of what the runtime
    passes behind the buffers; `boa.tables` says which. The queue is where a device of
    its own takes its work from; code for a CPU does not look at it.

    Before:
    ```mlir
    func.func @k(%x: tensor<8xf32> {boa.buffer = 0 : i32, boa.offset = 0 : i64})
        -> (tensor<8xf32> {boa.buffer = 1 : i32, boa.offset = 64 : i64}) attributes {boa.kernel}
    ```
    After:
    ```mlir
    func.func @k(%buffers: !llvm.ptr, %workspace: !llvm.ptr, %queue: !llvm.ptr) attributes {boa.kernel} {
      %p = kernel.argument %buffers[0]
      %m = kernel.view %p + 0 : memref<8xf32>
      %x = bufferization.to_tensor %m restrict : memref<8xf32> to tensor<8xf32>
      ...
      bufferization.materialize_in_destination %y in restrict writable %dest : ...
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
    belong) and one-shot bufferization, on kernels only. Elementwise ops write over
    an operand that is dead after them. Copies that could be saved may be left.
    Constants become globals; the module says how many bytes they and the tables of its
    kernels take (`boa.constants`).
  }];
  let dependentDialects = ["::mlir::bufferization::BufferizationDialect",
      "::mlir::linalg::LinalgDialect", "::mlir::memref::MemRefDialect"];
}

def ElideKernelCopies : Pass<"kernel-elide-copies", "::mlir::func::FuncOp"> {
  let summary = "computes in place what would be copied there";
  let description = [{
    Bufferization is correct first: the parts of a concatenation that one op
    computes together are copied into it, since its analysis takes one slice at
    a time. Here the memory is definite and a temporary that is only copied
    gives way to the slice that it is copied to.

    Before:
    ```mlir
    kernel.attention_grad ... into %dq, %dk, %dv
    linalg.generic {copy} ins(%dk) outs(%slice)
    ```
    After:
    ```mlir
    kernel.attention_grad ... into %dq, %slice, %dv
    ```
  }];
  let dependentDialects = ["::mlir::memref::MemRefDialect"];
}

def FormKernelGroups : Pass<"kernel-form-groups", "::mlir::func::FuncOp"> {
  let summary = "linalg on memrefs to groups that are computed together";
  let description = [{
    Ops that go over the same rows (leading parallel dimensions) and touch only their
    own row of what the others write are put into one `kernel.group`: a row stays in
    the innermost memory from the first reduction of a norm to the last elementwise
    op. Sums over rows are grouped by columns instead, so that each sum has one owner
    and one order. What only one group uses is allocated in it. After it a kernel is
    groups and library calls; how a group is carried out is the target's business.

    Before:
    ```mlir
    %sum = memref.alloc() : memref<8x256xf32>
    linalg.generic {["parallel", "parallel", "reduction"]} ins(%x) outs(%sum)
    linalg.generic {["parallel", "parallel", "parallel"]} ins(%x, %sum) outs(%y)
    ```
    After:
    ```mlir
    kernel.group rows [8, 256] {
      %sum = memref.alloc() : memref<8x256xf32>
      linalg.generic {["parallel", "parallel", "reduction"]} ins(%x) outs(%sum)
      linalg.generic {["parallel", "parallel", "parallel"]} ins(%x, %sum) outs(%y)
    }
    ```
    Remarks of category `boa-kernel` say what each group holds and what kept an op
    from the group before it.
  }];
  let dependentDialects = ["::boa::kernel::KernelDialect"];
}

//===----------------------------------------------------------------------===//
// What every target does with groups and calls once they are emitted
//===----------------------------------------------------------------------===//

def AssignWorkspace : Pass<"kernel-assign-workspace", "::mlir::func::FuncOp"> {
  let summary = "static offsets in the workspace for all temporaries";
  let description = [{
    Every `memref.alloc` becomes a view of the workspace at a fixed offset,
    64-byte aligned, or as `memref.alloc` says; temporaries that are not live at once share
    memory. The bytes needed are written on the function as `boa.workspace`; and what they
    would be without what is there for a library that may take attention, where that is less,
    as `boa.own_workspace`. An alloc of a size that is not static is an error.
  }];
  let dependentDialects = ["::boa::kernel::KernelDialect"];
}

def ExpandKernelMath : Pass<"kernel-expand-math"> {
  let summary = "polynomials for f32 exp, log and tanh; integer code for bf16";
  let description = [{
    In f32 the approximations (to about 1e-7) vectorise, and need no library on a
    device; in f64, which only gradient tests use, the functions become calls of the
    math library. Works on any function, of the host or of a device.
  }];
  let options = [Option<"bfloat", "bfloat", "bool", /*default=*/"true",
                        "whether bf16 is expanded, too">];
  let dependentDialects = ["::mlir::arith::ArithDialect",
      "::mlir::math::MathDialect", "::mlir::vector::VectorDialect"];
}

#endif // BOA_PASSES_KERNEL_PASSES_TD
