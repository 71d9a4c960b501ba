//===- CudaPasses.td - Groups to code for CUDA --------------*- tablegen -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In the order in which CudaPipeline.cpp runs them.
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
    ```mlir
    linalg.generic {copy} ins(%x) outs(%h)
    kernel.gemm %a, %w into %h {accumulate} : ...
    ```
    After:
    ```mlir
    kernel.gemm %a, %w into %h plus %x : ...
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
    ```mlir
    kernel.gemm %x, %w into %y : (memref<64x384xf32>, memref<384x384xbf16>, memref<64x384xf32>)
    ```
    After:
    ```mlir
    %wide = memref.alloc() : memref<384x384xf32>
    linalg.generic {arith.extf} ins(%w) outs(%wide)
    %scratch = memref.alloc() : memref<33554432xi8>
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
    ```mlir
    %logits = memref.alloc() : memref<512x50257xbf16>
    ```
    After:
    ```mlir
    %padded = memref.alloc() : memref<512x50264xbf16>
    %logits = memref.subview %padded[0, 0] [512, 50257] [1, 1] : ... to memref<512x50257xbf16, strided<[50264, 1]>>
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
    ```mlir
    kernel.gemm %x, %w into %logits {transpose_b} : (memref<512x768xbf16>, memref<50257x768xbf16>,
        memref<512x50257xbf16, strided<[50264, 1]>>) -> ()
    ```
    After:
    ```mlir
    %w1 = memref.subview %w[50256, 0] [1, 768] [1, 1]
    %logits1 = memref.subview %logits[0, 50256] [512, 1] [1, 1]
    kernel.gemm %x, %w1 into %logits1 {transpose_b}
    %w0 = memref.subview %w[0, 0] [50256, 768] [1, 1]
    %logits0 = memref.subview %logits[0, 0] [512, 50256] [1, 1]
    kernel.gemm %x, %w0 into %logits0 {transpose_b}
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

    Before: a norm over rows. After:
    ```mlir
    gpu.launch blocks(%bx, %by, %bz) in (%gx = %c128, ...) threads(%tx, %ty, %tz) in (%sx = %c32, %sy = %c8, ...) {
      %row = ...                            // 8 rows a block, one a warp
      %x0 = memref.load %x[%row, %c]        // four side by side, and so on
      %s0 = arith.addf ...
      %s1, %valid = gpu.shuffle xor %s0, %c16_i32, %c32_i32 : f32
      ...
      memref.store %y0, %y[%row, %c]
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
    ```mlir
    kernel.attention %q, %k, %v into %y, %lse {heads = 4 : i64, kv_heads = 4 : i64} : (memref<2x64x128xbf16>, ...) -> ()
    ```
    After:
    ```mlir
    %scratch = memref.alloc() : memref<262144xi8>
    %taken = kernel.offer_attention %q, %k, %v into %y, %lse scratch %scratch {...}
    %left = arith.xori %taken, %true : i1
    scf.if %left {
      kernel.attention %q, %k, %v into %y, %lse {...}
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
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::gpu::GPUDialect",
      "::mlir::LLVM::LLVMDialect", "::mlir::math::MathDialect", "::mlir::memref::MemRefDialect",
      "::mlir::nvgpu::NVGPUDialect", "::mlir::NVVM::NVVMDialect", "::mlir::scf::SCFDialect",
      "::mlir::vector::VectorDialect"];
}

def CudaOutlineLaunches : Pass<"cuda-outline-launches", "::mlir::ModuleOp"> {
  let summary = "bodies of gpu.launch to functions of the device's module";
  let description = [{
    Each `gpu.launch` becomes a `gpu.func` in `gpu.module @cuda` and a `kernel.launch`. The
    arguments of the function are the views that the launch used, or rows of them. They
    carry the alignment of their offsets, and `noalias` unless a launch with a barrier
    writes them. Grid and block are known; the device's code is compiled for them.
    Constants that it reads move to the device's module. `boa.memory` is the number of
    bytes of all arguments.

    Before:
    ```mlir
    %x = kernel.view %p + 64 : memref<8x32xf32>
    gpu.launch blocks(%b, %b1, %b2) in (%g = %c8, %g1 = %c1, %g2 = %c1)
               threads(%t, %t1, %t2) in (%s = %c32, %s1 = %c1, %s2 = %c1) {
      %0 = memref.load %x[%b, %t] : memref<8x32xf32>
    ```
    After:
    ```mlir
    gpu.module @cuda {
      gpu.func @k_launch0(%x: memref<8x32xf32> {llvm.noalias, llvm.align = 64 : i64})
          kernel attributes {boa.memory = 1024 : i64}
    }
    kernel.launch @cuda::@k_launch0 grid [8, 1, 1] block [32, 1, 1] shared 0 (%x) : memref<8x32xf32>
    ```
  }];
  let dependentDialects = ["::boa::kernel::KernelDialect",
      "::mlir::arith::ArithDialect", "::mlir::gpu::GPUDialect"];
}

def CudaPrintWork : Pass<"cuda-print-work", "::mlir::ModuleOp"> {
  let summary = "prints the work of kernels on a GPU";
  let description = [{
    Prints a table of each kernel's calls in order, on standard output. The calls are
    launches, launches that only copy, products, and attention that a library is offered.
    Each has the bytes that it reads and writes, counting every operand once; products and
    attention have their operations. `=` marks an operand that a launch only writes, `+`
    one that it also reads. The pass changes nothing.

    ```
    block_forward
      call                     read        written       operations  what
      launch                4194304        2097152                   1x64x256xf32 256xf32 =1x64x256xf32
      product               ...
      total launch          ...
    ```
  }];
}

def CudaEmitChecksums : Pass<"cuda-emit-checksums", "::mlir::ModuleOp"> {
  let summary = "checksums as functions of the device's module";
  let description = [{
    If `direct` in `boa.config @machine` is true, adds a function for each size of chunk on
    SSD. It computes the lanes of the checksums of chunks. The runtime launches it by name
    (runtime/abi/cuda_sums.h), with a block for each chunk. Data from an SSD is
    verified in the device's memory before any command uses it.

    After, for storages with chunks of 8192 bytes:
    ```mlir
    gpu.func @sums_8192(%data: memref<32768xi64>, %keys: memref<40xi64>, %lanes: memref<256xi64>)
        workgroup(%parts: memref<128xi64, #gpu.address_space<workgroup>>,
                  %sums: memref<8xi64, #gpu.address_space<workgroup>>) kernel
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::gpu::GPUDialect",
      "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect"];
}

def CudaEmitUpdates : Pass<"cuda-emit-updates", "::mlir::ModuleOp"> {
  let summary = "the optimizer as functions of the device's module";
  let description = [{
    If `update` in `boa.config @plan` is device, adds two functions for each trained group:
    one updates a chunk, one adds up the squares of its gradient. The runtime launches them
    by name (runtime/abi/cuda_updates.h). A thread updates four elements side by
    side, 16 bytes of each tensor in f32. The operations are those of the host, in its
    order: the results are the same bits.

    After, for `boa.group @params.block` with weights in bf16:
    ```mlir
    gpu.func @update_block(%constants: memref<11xf32>, %flag: memref<1xi32>,
                           %high: memref<8192xi16>, %low: memref<8192xi16>, %m: memref<8192xf32>,
                           %v: memref<8192xf32>, %g: memref<8192xf32>) kernel
    gpu.func @norm_block(%g: memref<65536xf32>, %sums: memref<9xf64>)
        workgroup(%lanes: memref<128xf64, #gpu.address_space<workgroup>>) kernel
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::gpu::GPUDialect",
      "::mlir::math::MathDialect", "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect"];
}

def CudaConvertDeviceToNVVM : Pass<"cuda-convert-device-to-nvvm", "::mlir::gpu::GPUModuleOp"> {
  let summary = "the device's functions to the LLVM and NVVM dialects";
  let description = [{
    A memref is passed as the pointer to its beginning: its shape is static. Remaining math
    ops become intrinsics of LLVM for which PTX has instructions. An op without one is
    refused.
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect", "::mlir::NVVM::NVVMDialect"];
}

def CudaEmulate : Pass<"cuda-emulate", "::mlir::ModuleOp"> {
  let summary = "the device's functions as functions for the host, a thread at a time";
  let description = [{
    For tests without a GPU: each `gpu.func` becomes a function of one thread, which
    asks the emulator (test/fake_cuda/emulated.h) for its place, for barriers and
    shuffles. Every load and store is checked against the shape of its memref, and every
    argument against its attributes: alignment, and `noalias`.

    Before:
    ```mlir
    gpu.func @k_launch0(%x: memref<8x32xf32>) kernel {
      %t = gpu.thread_id x
    ```
    After:
    ```mlir
    func.func @k_launch0(%thread: !llvm.ptr, %args: !llvm.ptr) {
      %t = llvm.load %thread : !llvm.ptr -> i64
    ```
  }];
  let dependentDialects = ["::boa::kernel::KernelDialect",
      "::mlir::arith::ArithDialect", "::mlir::func::FuncDialect",
      "::mlir::LLVM::LLVMDialect", "::mlir::scf::SCFDialect"];
}

def CudaConvertKernelToLLVM : Pass<"cuda-convert-kernel-to-llvm", "::mlir::ModuleOp"> {
  let summary = "the host's half of kernels to the LLVM dialect";
  let description = [{
    Launches and products become calls of runtime/abi/cuda_calls.h, which enqueue.
    The functions of `gpu.module @cuda` are numbered in their order.
  }];
  let options = [Option<"dropDevice", "drop-device", "bool", /*default=*/"false",
                        "without the device's module: nothing will run the kernels">,
                 Option<"tf32", "tf32", "bool", /*default=*/"false",
                        "products of f32 round their operands to TF32">];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect"];
}

def CudaEmbedImage : Pass<"cuda-embed-image", "::mlir::ModuleOp"> {
  let summary = "gpu.module @cuda to the global boa_device_image";
  let description = [{
    The module, in the LLVM dialect, becomes PTX that a driver compiles for its device
    (sm_80 or later), or, emulated, a table of functions of the host. It and the
    functions' names are constants of the program (runtime/abi/abi.h). PTX that calls an
    undefined function is refused here, since a driver would refuse it at the user's. The
    global boa_device_bytes has the number of bytes of all arguments of each function
    (0: unknown), for measurements of launches (test/gpu).
  }];
  let options = [Option<"emulated", "emulated", "bool", /*default=*/"false",
                        "functions of the host, as --cuda-emulate leaves them">];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect"];
}

#endif // BOA_PASSES_CUDA_PASSES_TD
