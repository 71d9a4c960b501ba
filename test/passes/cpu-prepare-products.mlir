// RUN: boa-opt %s --cpu-prepare-products=least=128 | FileCheck %s
// RUN: boa-opt %s --cpu-prepare-products=least=128 --cpu-convert-kernel-to-llvm | FileCheck %s --check-prefix=CALLS
// RUN: boa-opt %s --cpu-prepare-products=least=128 --remarks-filter=boa-kernel 2>&1 \
// RUN:   | FileCheck %s --check-prefix=REMARK
// RUN: boa-opt %s --cpu-prepare-products | FileCheck %s --check-prefix=SMALL

// A matrix in two orientations has two forms, and in one orientation one, whatever the number of
// products. The bias and the activations are no matrices of parameters, and @u is too small. The
// table lies behind the prepared buffer.

// CHECK-LABEL: boa.kernel @k(
// CHECK-SAME: prepared #boa.prepared<tensor<1024xf32> by @k.prepare of [1, 2]>
// CHECK-DAG: %[[FORMS:.*]] = kernel.argument %arg0[5]
// CHECK-DAG: kernel.argument %arg0[6]
// CHECK: kernel.gemm {{.*}} prepared %[[FORMS]] + 0 {transpose_b}
// CHECK: kernel.gemm {{.*}} prepared %[[FORMS]] + 0 {transpose_b}
// CHECK: kernel.gemm {{.*}} prepared %[[FORMS]] + 1024 : (
// CHECK: kernel.gemm {{.*}} prepared %[[FORMS]] + 2048 {transpose_b} :
// CHECK-NOT: prepared
// CHECK: boa.return
// CHECK: boa.kernel @k.prepare(
// CHECK-SAME: reads [tensor<500xf32>, tensor<256xbf16>] writes [tensor<1024xf32>]
// CHECK-SAME: costs {f32 = #boa.cost<flops = 0, bytes = 6656, elementwise_bytes = 6656>}
// CHECK: kernel.argument %arg0[2]
// CHECK: kernel.argument %arg0[0]
// CHECK: kernel.prepare %{{.*}} into %{{.*}} {transpose_b} : memref<16x16xf32>, memref<256xf32>
// CHECK: kernel.prepare %{{.*}} into %{{.*}} : memref<16x16xf32>, memref<256xf32>
// CHECK: kernel.argument %arg0[1]
// CHECK: kernel.prepare %{{.*}} into %{{.*}} {narrow_a, transpose_b} : memref<8x32xbf16>, memref<512xf32>

// CALLS: llvm.call @boa_gemm_f32({{.*}}, %[[FORMS:[0-9]+]], %{{[0-9]+}})
// CALLS: llvm.call @boa_gemm_f32({{.*}}, %[[FORMS]], %{{[0-9]+}})
// CALLS: llvm.call @boa_gemm_f32({{.*}}, %[[FORMS]], %{{[0-9]+}})
// CALLS: llvm.call @boa_gemm_bf16_bf16({{.*}}, %[[FORMS]], %{{[0-9]+}})
// CALLS-NOT: llvm.call @boa_gemm_f32({{.*}}, %[[FORMS]],
// CALLS: llvm.call @boa_gemm_prepare_f32(
// CALLS: llvm.call @boa_gemm_prepare_bf16_bf16(

// REMARK: [Analysis] cpu-prepare-products {{.*}}Remark=k, {{.*}}bytes=4096, forms=3
// SMALL-NOT: prepare
boa.kernel @k(%buffers: !llvm.ptr, %workspace: !llvm.ptr, %queue: !llvm.ptr)
    reads [tensor<16x16xf32>, tensor<500xf32>, tensor<256xbf16>, tensor<16x32xbf16>]
    updates [tensor<16x16xf32>] {
  %0 = kernel.argument %buffers[0]
  %1 = kernel.argument %buffers[1]
  %2 = kernel.argument %buffers[2]
  %3 = kernel.argument %buffers[3]
  %4 = kernel.argument %buffers[4]
  %5 = kernel.argument %buffers[5]
  %x = kernel.view %0 + 0 : memref<16x16xf32>
  %w = kernel.view %1 + 64 : memref<16x16xf32>
  %u = kernel.view %1 + 1088 : memref<4x16xf32>
  %v = kernel.view %2 + 0 : memref<8x32xbf16>
  %n = kernel.view %3 + 0 : memref<16x32xbf16>
  %y = kernel.view %4 + 0 : memref<16x16xf32>
  %t = kernel.view %5 + 0 : memref<16x16xf32>
  %p = kernel.view %workspace + 0 : memref<16x8xf32>
  %q = kernel.view %workspace + 512 : memref<16x4xf32>
  kernel.gemm %x, %w into %y {transpose_b} : (memref<16x16xf32>, memref<16x16xf32>, memref<16x16xf32>) -> ()
  kernel.gemm %t, %w into %y {transpose_b} : (memref<16x16xf32>, memref<16x16xf32>, memref<16x16xf32>) -> ()
  kernel.gemm %x, %w into %y : (memref<16x16xf32>, memref<16x16xf32>, memref<16x16xf32>) -> ()
  kernel.gemm %n, %v into %p {transpose_b} : (memref<16x32xbf16>, memref<8x32xbf16>, memref<16x8xf32>) -> ()
  kernel.gemm %x, %u into %q {transpose_b} : (memref<16x16xf32>, memref<4x16xf32>, memref<16x4xf32>) -> ()
  kernel.gemm %w, %x into %y : (memref<16x16xf32>, memref<16x16xf32>, memref<16x16xf32>) -> ()
  boa.return
}
