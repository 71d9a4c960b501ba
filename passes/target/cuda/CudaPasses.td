//===- CudaPasses.td - Groups to code for CUDA --------------*- tablegen -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In the order in which CudaPipeline.cpp runs them, up to launches; CudaCodePasses.td has the
// others.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_PASSES_CUDA_PASSES_TD
#define BOA_PASSES_CUDA_PASSES_TD

include "mlir/Pass/PassBase.td"

def CudaReadAddendsInPlace : Pass<"cuda-read-addends-in-place", "::boa::KernelOp"> {
  let summary = "reads the addend of a product in place";
  let description = [{
    cuBLASLt computes d = a b + c with c in other memory than d. So a residual that is
    needed later is not copied to the place of the sum: the product reads it. This needs
    three conditions: only the product reads the copy; nothing writes the residual in
    between; both have the same strides and share no element.

    Before:
    ```mlir before
    !m = memref<8x8xf32>
    #copy = {indexing_maps = [affine_map<(r, c) -> (r, c)>, affine_map<(r, c) -> (r, c)>], iterator_types = ["parallel", "parallel"]}
    boa.kernel @k(%p: !llvm.ptr, %q: !llvm.ptr) {
      %x = kernel.view %p + 0 : !m
      %w = kernel.view %p + 256 : !m
      %h = kernel.view %q + 0 : !m
      linalg.generic #copy ins(%x : !m) outs(%h : !m) {
      ^bb0(%in: f32, %out: f32):
        linalg.yield %in : f32
      }
      kernel.gemm %w, %w into %h {accumulate} : (!m, !m, !m) -> ()
      boa.return
    }
    ```
    After:
    ```mlir after
      %h = kernel.view %arg1 + 0 : memref<8x8xf32>
      kernel.gemm %w, %w into %h plus %x : ...
    ```
  }];
  let dependentDialects = ["::boa::kernel::KernelDialect"];
}

def CudaLegalizeProducts : Pass<"cuda-legalize-products", "::boa::KernelOp"> {
  let summary = "products as cuBLASLt takes them";
  let description = [{
    cuBLASLt multiplies matrices of one type, adds a bias of the type of its result, and
    needs scratch memory. So the narrower of two operands is widened into a temporary, and
    a bias in f32 of a product in bf16 is rounded to bf16. Each product has scratch of its
    own while it runs. Consecutive products of one operand, as of a head in blocks of
    rows, share its widened copy. The pass runs before groups are formed, which take the
    casts.

    Before:
    ```mlir before
    boa.kernel @k(%p: !llvm.ptr) {
      %x = kernel.view %p + 0 : memref<8x16xf32>
      %w = kernel.view %p + 512 : memref<16x8xbf16>
      %y = kernel.view %p + 1024 : memref<8x8xf32>
      kernel.gemm %x, %w into %y : (memref<8x16xf32>, memref<16x8xbf16>, memref<8x8xf32>) -> ()
      boa.return
    }
    ```
    After:
    ```mlir after
      %wide = memref.alloc() : memref<16x8xf32>
      linalg.generic {...} ins(%w : memref<16x8xbf16>) outs(%wide : memref<16x8xf32>) {
    ...
      %scratch = memref.alloc() {alignment = 256 : i64} : memref<33554432xi8>
      kernel.gemm %x, %wide into %y scratch %scratch : ...
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
      "::mlir::linalg::LinalgDialect", "::mlir::memref::MemRefDialect"];
}

def CudaPadRows : Pass<"cuda-pad-rows", "::boa::KernelOp"> {
  let summary = "rows of products' temporaries begin at multiples of 16 bytes";
  let description = [{
    Temporaries that products read or write, such as logits, get rows of whole 16 bytes.
    The padding is never touched. A temporary stays dense if a user may need dense rows.
    Results and weights keep their layout in storage.

    Before:
    ```mlir before
    !logits = memref<16x50257xbf16>
    boa.kernel @k(%p: !llvm.ptr) {
      %x = kernel.view %p + 0 : memref<16x64xbf16>
      %w = kernel.view %p + 2048 : memref<50257x64xbf16>
      %logits = memref.alloc() : !logits
      kernel.gemm %x, %w into %logits {transpose_b} : (memref<16x64xbf16>, memref<50257x64xbf16>, !logits) -> ()
      boa.return
    }
    ```
    After:
    ```mlir after
      %padded = memref.alloc() : memref<16x50264xbf16>
      %logits = memref.subview %padded[0, 0] [16, 50257] [1, 1] : memref<16x50264xbf16> to memref<16x50257xbf16, strided<[50264, 1]>>
      kernel.gemm %x, %w into %logits {transpose_b} : ...
    ```
  }];
  let dependentDialects = ["::mlir::memref::MemRefDialect"];
}

def CudaSplitProducts : Pass<"cuda-split-products", "::boa::KernelOp"> {
  let summary = "sizes of products that are no whole 16 bytes in two parts";
  let description = [{
    cuBLASLt has no fast kernel in bf16 where a row is no multiple of 16 bytes, wherever it begins.
    A large product becomes one of the largest multiple and one of what remains.
    Products in f32 stay, and rows that begin at other addresses.

    Before:
    ```mlir before
    !logits = memref<1024x4099xbf16, strided<[4104, 1]>>
    boa.kernel @k(%p: !llvm.ptr, %logits: !logits) {
      %x = kernel.view %p + 0 : memref<1024x256xbf16>
      %w = kernel.view %p + 524288 : memref<4099x256xbf16>
      kernel.gemm %x, %w into %logits {transpose_b} : (memref<1024x256xbf16>, memref<4099x256xbf16>, !logits) -> ()
      boa.return
    }
    ```
    After:
    ```mlir after
      %w1 = memref.subview %w[4096, 0] [3, 256] [1, 1] : ...
      %logits1 = memref.subview %logits[0, 4096] [1024, 3] [1, 1] : ...
      kernel.gemm %x, %w1 into %logits1 {transpose_b} : ...
      %w0 = memref.subview %w[0, 0] [4096, 256] [1, 1] : ...
      %logits0 = memref.subview %logits[0, 0] [1024, 4096] [1, 1] : ...
      kernel.gemm %x, %w0 into %logits0 {transpose_b} : ...
    ```
  }];
  let dependentDialects = ["::mlir::memref::MemRefDialect"];
}

def CudaEmitGroups : Pass<"cuda-emit-groups", "::boa::KernelOp"> {
  let summary = "groups to launches of threads";
  let description = [{
    Each `kernel.group` becomes a `gpu.launch` of static size (sums over rows of
    different shapes one each). How its ops are dealt out to threads:

    - All elementwise, alike: a thread for each 16 bytes.
    - Rows with sums in them: a team of threads for each row, a warp if the row is
      narrow, several rows a block. A thread holds its elements of a row, and
      statistics of the row, in registers from op to op. Shuffles combine sums of a warp;
      workgroup memory combines sums of several warps. Values that only the group reads
      are never written.
    - Columns: blocks of some columns by some slices of the rows, whose sums are
      combined in workgroup memory. Scattered rows: a warp for each, the first of
      a place takes the others of it in order.

    Sums are always added up in the same order. There is a barrier only before a thread
    reads a value that another one wrote.

    Before:
    ```mlir before Inputs/norm.mlir --convert-boa-to-linalg --kernel-bind-arguments --kernel-bufferize --canonicalize --kernel-form-groups
      kernel.group rows [2, 64] {
    ...
        linalg.generic {... "reduction"]} ins(%x : memref<2x64x256xf32>) outs(%sum : memref<2x64xf32>) {
    ...
        linalg.generic {...} ins(%x, %sum, %w : ...) outs(%y : memref<2x64x256xf32>) {
    ```
    After:
    ```mlir after
      gpu.launch blocks(%block, ...) in (%gx = %c16, ...) threads(%lane, %warp, ...) in (%sx = %c32, %sy = %c8, ...) {
    ...
        %row = arith.addi %first, %warp : index
    ...
        %x0 = memref.load %x[%b, %t, %c0] : memref<2x64x256xf32>
        %x1 = memref.load %x[%b, %t, %c1] : memref<2x64x256xf32>
    ...
        %other, %valid = gpu.shuffle  xor %s0, ...
    ...
        memref.store %y0, %y[%b, %t, %c0] : memref<2x64x256xf32>
    ...
        gpu.terminator
      }
    ```
  }];
  let dependentDialects = ["::boa::kernel::KernelDialect", "::mlir::affine::AffineDialect",
      "::mlir::arith::ArithDialect", "::mlir::gpu::GPUDialect", "::mlir::math::MathDialect",
      "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect"];
}

def CudaOfferAttention : Pass<"cuda-offer-attention", "::boa::KernelOp"> {
  let summary = "offers attention to a library first";
  let description = [{
    cuDNN computes attention in bf16 if the machine that runs the program has it and it
    supports the shape. The program contains both ways: it offers the op to the runtime,
    and computes it itself if the runtime declines. The library gets scratch memory:
    256 KiB for the forward pass. For gradients cuDNN keeps scores, so that it can add up
    in one order: of as many heads as fit into 512 MiB, and of one head of keys up to
    2 GiB. If attention in bf16 cannot be offered, the pass warns.

    Before:
    ```mlir before
    !x = memref<2x64x128xbf16>
    boa.kernel @k(%p: !llvm.ptr, %lse: memref<2x4x64xf32>) {
      %q = kernel.view %p + 0 : !x
      %k = kernel.view %p + 32768 : !x
      %y = kernel.view %p + 65536 : !x
      kernel.attention %q, %k, %k into %y, %lse {heads = 4 : i64, kv_heads = 4 : i64} : (!x, !x, !x, !x, memref<2x4x64xf32>) -> ()
      boa.return
    }
    ```
    After:
    ```mlir after
      %scratch = memref.alloc() {alignment = 256 : i64} : memref<262144xi8>
      %taken = kernel.offer_attention %q, %k, %k into %y, %lse scratch %scratch {heads = 4 : i64, kv_heads = 4 : i64} : ...
      %true = arith.constant true
      %left = arith.xori %taken, %true : i1
      scf.if %left {
        kernel.attention %q, %k, %k into %y, %lse {heads = 4 : i64, kv_heads = 4 : i64} : ...
      }
    ```
  }];
  let dependentDialects = ["::boa::kernel::KernelDialect", "::mlir::arith::ArithDialect",
      "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect"];
}

def CudaEmitAttention : Pass<"cuda-emit-attention", "::boa::KernelOp"> {
  let summary = "attention to blocked kernels";
  let description = [{
    `kernel.attention` becomes one `gpu.launch`, `kernel.attention_grad` three and a
    temporary of [batch, heads, time]: the sums of y * dy by row; dq; dk and dv. Tiles of
    rows in shared memory, scores in registers, nothing of time x time; sums in f32 and in
    one order. Of bf16 it multiplies on tensor cores, and rounds weights and gradients of
    scores to bf16 before; of f32 by multiply-adds. Heads of more than 160 columns are
    refused.

    Before:
    ```mlir before
    !x = memref<2x64x128xf32>
    boa.kernel @k(%q: !x, %k: !x, %y: !x, %lse: memref<2x4x64xf32>) {
      kernel.attention %q, %k, %k into %y, %lse {heads = 4 : i64, kv_heads = 4 : i64} : (!x, !x, !x, !x, memref<2x4x64xf32>) -> ()
      boa.return
    }
    ```
    After:
    ```mlir after
      gpu.launch blocks(%bx, %by, %bz) in (%gx = %c2, %gy = %c4, ...) threads(%thread, ...) in (%sx = %c128, ...) workgroup(%own : memref<32x33xf32, #gpu.address_space<workgroup>>, %keys : memref<32x33xf32, #gpu.address_space<workgroup>>, %values : ...) {
    ...
          memref.store %element, %own[...] : memref<32x33xf32, #gpu.address_space<workgroup>>
    ...
          gpu.barrier
    ...
        memref.store ..., %lse[...] : memref<2x4x64xf32>
    ...
        memref.store ..., %y[...] : memref<2x64x128xf32>
    ...
        gpu.terminator
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::gpu::GPUDialect",
      "::mlir::LLVM::LLVMDialect", "::mlir::math::MathDialect", "::mlir::memref::MemRefDialect",
      "::mlir::nvgpu::NVGPUDialect", "::mlir::NVVM::NVVMDialect", "::mlir::scf::SCFDialect",
      "::mlir::vector::VectorDialect"];
}

def CudaEmitProducts : Pass<"cuda-emit-products", "::boa::KernelOp"> {
  let summary = "products to blocked kernels";
  let description = [{
    Each `kernel.gemm` becomes a `gpu.launch`. A block owns a square of the result and
    streams strips of both operands through shared memory. Of bf16 it multiplies on tensor
    cores (`nvvm.mma.sync`), of f32 by multiply-adds. Sums are in f32 and in one order.
    Operands whose rows begin at whole 16 bytes are copied while another strip is
    multiplied; others are loaded element by element.

    Before:
    ```mlir before
    boa.kernel @k(%a: memref<128x96xbf16>, %b: memref<96x64xbf16>, %c: memref<128x64xbf16>) {
      kernel.gemm %a, %b into %c : (memref<128x96xbf16>, memref<96x64xbf16>, memref<128x64xbf16>) -> ()
      boa.return
    }
    ```
    After:
    ```mlir after
      gpu.launch blocks(%bx, %by, %bz) in (%gx = %c2, ...) threads(%thread, ...) in (%sx = %c128, ...) workgroup(%a_strips : memref<192x32xbf16, #gpu.address_space<workgroup>>, %b_strips : memref<96x64xbf16, #gpu.address_space<workgroup>>) {
    ...
          gpu.barrier
    ...
          %product = nvvm.mma.sync ...
    ...
        memref.store %rounded, %c[...] : memref<128x64xbf16>
    ...
        gpu.terminator
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::gpu::GPUDialect",
      "::mlir::LLVM::LLVMDialect", "::mlir::math::MathDialect", "::mlir::memref::MemRefDialect",
      "::mlir::nvgpu::NVGPUDialect", "::mlir::NVVM::NVVMDialect", "::mlir::scf::SCFDialect",
      "::mlir::vector::VectorDialect"];
}

include "passes/target/cuda/CudaCodePasses.td"

#endif // BOA_PASSES_CUDA_PASSES_TD
