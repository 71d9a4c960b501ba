// RUN: boa-opt %s --cuda-code-pipeline | FileCheck %s
// RUN: boa-opt %s --cuda-code-pipeline=code=emulated | FileCheck %s --check-prefix=EMULATED
// RUN: boa-opt %s --cuda-code-pipeline=code=none | FileCheck %s --check-prefix=NONE

// The device's code is PTX in the program: what a kernel only reads is loaded as such, memory is
// in its spaces, bf16 is rounded in one instruction, no function of a library is called.

// CHECK-LABEL: boa.kernel @k
// CHECK:         llvm.call @boa_cuda_launch
// CHECK:       llvm.mlir.global internal constant @k_launch0_name("k_launch0\00")
// CHECK:       llvm.mlir.global internal constant @boa_device_names()
// CHECK:         llvm.mlir.addressof @k_launch0_name
// CHECK:       llvm.mlir.global external constant @boa_device_bytes() {{.*}} : !llvm.array<1 x i64>
// CHECK:         llvm.mlir.constant(2560 : i64)
// CHECK:       llvm.mlir.global internal constant @boa_device_module("
// CHECK-SAME:    .version 8.0\0A.target sm_80
// CHECK-SAME:    .visible .entry k_launch0(
// CHECK-SAME:    .ptr .align 64 k_launch0_param_0
// CHECK-SAME:    .maxntid 32, 1, 1
// CHECK-NOT:     call
// CHECK-SAME:    ld.global.nc.b32
// CHECK-SAME:    sqrt.rn.f32
// CHECK-SAME:    st.shared
// CHECK-SAME:    bar.sync
// CHECK-SAME:    shfl.sync.bfly
// CHECK-SAME:    cvt.rn.bf16.f32
// CHECK-SAME:    \00")
// CHECK:       llvm.mlir.global external constant @boa_device_image() {{.*}} : !llvm.struct<(ptr, i64, ptr, i64)>
// CHECK:         llvm.mlir.addressof @boa_device_module
// CHECK:         llvm.mlir.addressof @boa_device_names
// CHECK-NOT:   gpu.module

// Emulated, it is a table of functions of the host.

// EMULATED:      llvm.func @k_launch0(%{{.*}}: !llvm.ptr, %{{.*}}: !llvm.ptr)
// EMULATED:      llvm.mlir.global internal constant @boa_device_functions() {{.*}} : !llvm.array<1 x struct<(ptr, ptr, i64, i64)>>
// EMULATED-DAG:    llvm.mlir.addressof @k_launch0_name
// EMULATED-DAG:    llvm.mlir.addressof @k_launch0 :
// EMULATED-DAG:    llvm.mlir.constant(128 : i64)
// EMULATED:      llvm.mlir.global internal constant @boa_device_module()
// EMULATED:        llvm.mlir.constant("boa-emulated-1\00\00")
// EMULATED-NOT:  gpu.module

// For a simulation what runs on the host is all there is.

// NONE-LABEL:    boa.kernel @k
// NONE:            llvm.call @boa_cuda_launch
// NONE-NOT:      boa_device_image
// NONE-NOT:      gpu.module

boa.kernel @k(%p: !llvm.ptr, %w: !llvm.ptr, %q: !llvm.ptr) {
  %a = kernel.argument %p[0]
  %x = kernel.view %a + 64 : memref<8x64xf32>
  %b = kernel.argument %p[1]
  %y = kernel.view %b + 512 : memref<8x32xbf16>
  %half = memref.subview %x[0, 32] [8, 32] [1, 1] : memref<8x64xf32> to memref<8x32xf32, strided<[64, 1], offset: 32>>
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %c31 = arith.constant 31 : index
  %c32 = arith.constant 32 : index
  %sixteen = arith.constant 16 : i32
  %warp = arith.constant 32 : i32
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c8, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c32, %sy = %c1, %sz = %c1)
             workgroup(%s : memref<32xf32, #gpu.address_space<workgroup>>) {
    %0 = memref.load %half[%bx, %tx] : memref<8x32xf32, strided<[64, 1], offset: 32>>
    %1 = math.exp %0 : f32
    %2 = math.sqrt %1 : f32
    memref.store %2, %s[%tx] : memref<32xf32, #gpu.address_space<workgroup>>
    gpu.barrier
    %from = arith.subi %c31, %tx : index
    %3 = memref.load %s[%from] : memref<32xf32, #gpu.address_space<workgroup>>
    %4, %valid = gpu.shuffle xor %3, %sixteen, %warp : f32
    %5 = arith.truncf %4 : f32 to bf16
    memref.store %5, %y[%bx, %tx] : memref<8x32xbf16>
    gpu.terminator
  }
  boa.return
}
