//===- CudaCodePasses.td - Launches to code for CUDA -------*- tablegen -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// CudaPasses.td includes this file. The passes are in the order in which CudaPipeline.cpp runs them.
//
//===----------------------------------------------------------------------===//

def CudaOutlineLaunches : Pass<"cuda-outline-launches", "::mlir::ModuleOp"> {
  let summary = "bodies of gpu.launch to functions of the device's module";
  let description = [{
    Each `gpu.launch` becomes a `gpu.func` in `gpu.module @cuda` and a `kernel.launch_func`. The
    arguments of the function are the views that the launch used, or rows of them. They
    carry the alignment of their offsets, and `noalias` unless a launch with a barrier
    writes them. Grid and block are known; the device's code is compiled for them.
    Constants that it reads move to the device's module. `boa.memory` is the number of
    bytes of all arguments.

    Before:
    ```mlir before
    boa.kernel @k(%p: !llvm.ptr) {
      %x = kernel.view %p + 64 : memref<8x32xf32>
      %zero = arith.constant 0.0 : f32
      %c1 = arith.constant 1 : index
      %c8 = arith.constant 8 : index
      %c32 = arith.constant 32 : index
      gpu.launch blocks(%b, %b1, %b2) in (%g = %c8, %g1 = %c1, %g2 = %c1)
                 threads(%t, %t1, %t2) in (%s = %c32, %s1 = %c1, %s2 = %c1) {
        memref.store %zero, %x[%b, %t] : memref<8x32xf32>
        gpu.terminator
      }
      boa.return
    }
    ```
    After:
    ```mlir after
    boa.kernel @k(%p: !llvm.ptr) {
      %x = kernel.view %p + 64 : memref<8x32xf32>
      kernel.launch_func @cuda::@k_launch0 grid [8, 1, 1] block [32, 1, 1] shared 0(%x) : memref<8x32xf32>
      boa.return
    }
    gpu.module @cuda {
      gpu.func @k_launch0(%x: memref<8x32xf32> {llvm.align = 64 : i64, llvm.noalias}) kernel attributes {boa.memory = 1024 : i64, known_block_size = array<i32: 32, 1, 1>, known_grid_size = array<i32: 8, 1, 1>} {
    ...
        memref.store %zero, %x[%b, %t] : memref<8x32xf32>
        gpu.return
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

    Before:
    ```mlir before
    !m = memref<8x8xf32>
    boa.kernel @k(%p: !llvm.ptr) {
      %x = kernel.view %p + 0 : !m
      %y = kernel.view %p + 256 : !m
      kernel.gemm %x, %x into %y : (!m, !m, !m) -> ()
      boa.return
    }
    ```
    Printed:
    ```text after
    k
      call                     read        written       operations  what
      product                   512            256             1024  8 x 8 x 8 to 8x8xf32
      total launch                0              0                   0 calls
      total copy                  0              0                   0 calls
      total product             512            256             1024  1 calls
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

    Before:
    ```mlir before
    boa.config @machine {device = "cuda", memory = "separate", direct = true}
    boa.storage @weights[2] : tensor<4096xf32> on ssd role weights chunks 2 persistent
    gpu.module @cuda {
    }
    ```
    After:
    ```mlir after
      gpu.func @sums_8192(%data: memref<32768xi64> {...}, %keys: memref<40xi64> {...}, %lanes: memref<256xi64> {...}) workgroup(%parts : memref<128xi64, #gpu.address_space<workgroup>> {...}, %sums : memref<8xi64, #gpu.address_space<workgroup>> {...}) kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
    ...
          %word = memref.load %data[%at] : memref<32768xi64>
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

    Before:
    ```mlir before Inputs/sgd.mlir --cuda-outline-launches
    boa.config @plan {
      update = "device"
    }
    boa.optimizer @sgd {} states {} prepare {
    ...
    ^bb0(%w: f32, %g: f32, %rate: f32, %weight_decay: f32):
      %change = arith.mulf %rate, %g : f32
      %next = arith.subf %w, %change : f32
      boa.yield %next : f32
    }
    boa.group @a repeat 1 {
    ```
    After:
    ```mlir after
    gpu.module @cuda {
      gpu.func @update_a(%constants: memref<4xf32> {...}, %flag: memref<1xi32> {...}, %weights: memref<2048xf32> {...}, %gradient: memref<2048xf32> {...}) kernel attributes {...} {
    ...
        %change = arith.mulf %rate, %g : f32
        %next = arith.subf %w, %change : f32
    ...
        memref.store %next, %weights[%i] : memref<2048xf32>
    ...
      gpu.func @norm_a(...
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

    Before:
    ```mlir before
    gpu.module @cuda {
      gpu.func @k(%x: memref<32xf32>) kernel {
        %t = gpu.thread_id x
        %0 = memref.load %x[%t] : memref<32xf32>
        %1 = math.sqrt %0 : f32
        memref.store %1, %x[%t] : memref<32xf32>
        gpu.return
      }
    }
    ```
    After:
    ```mlir after
      llvm.func @k(%x: !llvm.ptr) attributes {gpu.kernel, nvvm.kernel} {
    ...
        %9 = nvvm.read.ptx.sreg.tid.x : i32
        %t = llvm.sext %9 : i32 to i64
    ...
        %0 = llvm.load %address : !llvm.ptr -> f32
        %1 = llvm.intr.sqrt(%0) : (f32) -> f32
    ...
        llvm.store %1, ...
        llvm.return
    ```
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
    ```mlir before
    gpu.module @cuda {
      gpu.func @k(%x: memref<8x32xf32>) kernel {
        %b = gpu.block_id x
        %t = gpu.thread_id x
        %0 = memref.load %x[%b, %t] : memref<8x32xf32>
        memref.store %0, %x[%b, %t] : memref<8x32xf32>
        gpu.return
      }
    }
    ```
    After:
    ```mlir after
      func.func @k(%thread: !llvm.ptr, %arguments: !llvm.ptr) attributes {boa.arguments = 1 : i64, boa.shared_bytes = 0 : i64} {
    ...
        %x = kernel.view %address + 0 : memref<8x32xf32>
    ...
        %outside = arith.ori %row, %column : i1
        scf.if %outside {
    ...
          llvm.call %fault(%thread, %words) : !llvm.ptr, (!llvm.ptr, !llvm.ptr) -> ()
        }
        %0 = memref.load %x[%b, %t] : memref<8x32xf32>
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

    Before:
    ```mlir before
    gpu.module @cuda {
      gpu.func @f(%x: memref<8xf32>) kernel { gpu.return }
    }
    boa.kernel @k(%p: !llvm.ptr, %workspace: !llvm.ptr, %queue: !llvm.ptr) {
      %x = kernel.view %p + 64 : memref<8xf32>
      kernel.launch_func @cuda::@f grid [8, 1, 1] block [32, 1, 1] shared 0 (%x) : memref<8xf32>
      boa.return
    }
    ```
    After:
    ```mlir after
    boa.kernel @k(%p: !llvm.ptr, %workspace: !llvm.ptr, %queue: !llvm.ptr) {
      %offset = llvm.mlir.constant(64 : i64) : i64
      %x = llvm.getelementptr %p[%offset] : (!llvm.ptr, i64) -> !llvm.ptr, i8
    ...
      llvm.call @boa_cuda_launch(%queue, %function, %grid_x, %grid_y, %grid_z, %block_x, %block_y, %block_z, %shared, %count, %addresses) : ...
      boa.return
    ```
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

    Before:
    ```mlir before
    gpu.module @cuda {
      llvm.func @k(%x: !llvm.ptr) attributes {gpu.kernel, nvvm.kernel} {
        %0 = llvm.mlir.zero : i32
        llvm.store %0, %x : i32, !llvm.ptr
        llvm.return
      }
    }
    ```
    After:
    ```mlir after
    llvm.mlir.global internal constant @k_name("k\00") {addr_space = 0 : i32}
    ...
    llvm.mlir.global internal constant @boa_device_module("...version 8.0\0A.target sm_80...visible .entry k(...st.global...\00") {addr_space = 0 : i32}
    llvm.mlir.global external constant @boa_device_image() {addr_space = 0 : i32} : !llvm.struct<(ptr, i64, ptr, i64)> {
      %0 = llvm.mlir.addressof @boa_device_module : !llvm.ptr
    ```
  }];
  let options = [Option<"emulated", "emulated", "bool", /*default=*/"false",
                        "functions of the host, as --cuda-emulate leaves them">];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect"];
}
