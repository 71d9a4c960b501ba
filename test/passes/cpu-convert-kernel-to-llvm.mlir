// RUN: boa-opt %s --cpu-convert-kernel-to-llvm --reconcile-unrealized-casts --canonicalize --split-input-file --verify-diagnostics | FileCheck %s
// RUN: not boa-opt %s --cpu-convert-kernel-to-llvm --split-input-file 2>/dev/null | FileCheck %s --check-prefix=AROUND

// A product passes rows, columns and the strides of rows; the leading dimensions
// together are rows.

// CHECK-LABEL: boa.kernel @gemm
// CHECK-DAG:     %[[ROWS:.*]] = llvm.mlir.constant(6 : i64) : i64
// CHECK-DAG:     %[[DEEP:.*]] = llvm.mlir.constant(4 : i64) : i64
// CHECK-DAG:     %[[COLUMNS:.*]] = llvm.mlir.constant(5 : i64) : i64
// CHECK-DAG:     %[[STRIDE:.*]] = llvm.mlir.constant(10 : i64) : i64
// CHECK-DAG:     %[[NULL:.*]] = llvm.mlir.zero : !llvm.ptr
// CHECK:         llvm.call @boa_gemm_f32(%{{.*}}, %{{.*}}, %[[ROWS]], %[[COLUMNS]], %[[DEEP]], %{{.*}}, %[[DEEP]], %{{.*}}, %[[COLUMNS]], %[[NULL]], %{{.*}}, %{{.*}}, %[[STRIDE]], %[[NULL]], %{{.*}})
boa.kernel @gemm(%p: !llvm.ptr, %w: !llvm.ptr) {
  %a = kernel.view %p + 0 : memref<2x3x4xf32>
  %b = kernel.view %p + 128 : memref<4x5xf32>
  %c = kernel.view %w + 0 : memref<2x3x10xf32>
  %y = memref.reinterpret_cast %c to offset: [5], sizes: [2, 3, 5], strides: [30, 10, 1] : memref<2x3x10xf32> to memref<2x3x5xf32, strided<[30, 10, 1], offset: 5>>
  kernel.gemm %a, %b into %y : (memref<2x3x4xf32>, memref<4x5xf32>, memref<2x3x5xf32, strided<[30, 10, 1], offset: 5>>) -> ()
  boa.return
}

// -----

// Offsets of any size, of the view and within it.

// CHECK-LABEL: boa.kernel @far
// CHECK-DAG:     %[[IN:.*]] = llvm.mlir.constant(600000000 : i64)
// CHECK-DAG:     %[[VIEW:.*]] = llvm.mlir.constant(5000000000 : i64)
// CHECK-DAG:     %[[BASE:.*]] = llvm.getelementptr %arg0[%[[VIEW]]] : (!llvm.ptr, i64) -> !llvm.ptr, i8
// CHECK:         llvm.getelementptr %[[BASE]][%[[IN]]] : (!llvm.ptr, i64) -> !llvm.ptr, f32
boa.kernel @far(%p: !llvm.ptr, %w: !llvm.ptr) {
  %a = kernel.view %p + 5000000000 : memref<600000016xf32>
  %b = memref.reinterpret_cast %a to offset: [600000000], sizes: [4, 4], strides: [4, 1] : memref<600000016xf32> to memref<4x4xf32, strided<[4, 1], offset: 600000000>>
  %c = kernel.view %w + 0 : memref<4x4xf32>
  kernel.gemm %b, %b into %c : (memref<4x4xf32, strided<[4, 1], offset: 600000000>>, memref<4x4xf32, strided<[4, 1], offset: 600000000>>, memref<4x4xf32>) -> ()
  boa.return
}

// -----

// CHECK-LABEL: boa.kernel @double
// CHECK:         llvm.call @boa_gemm_f64
boa.kernel @double(%p: !llvm.ptr, %w: !llvm.ptr) {
  %a = kernel.view %p + 0 : memref<4x4xf64>
  kernel.gemm %a, %a into %a {transpose_a} : (memref<4x4xf64>, memref<4x4xf64>, memref<4x4xf64>) -> ()
  boa.return
}

// -----

// CHECK-LABEL: boa.kernel @narrow
// CHECK:         llvm.call @boa_gemm_bf16(
boa.kernel @narrow(%p: !llvm.ptr, %w: !llvm.ptr) {
  %a = kernel.view %p + 0 : memref<4x4xf32>
  %b = kernel.view %p + 64 : memref<4x4xbf16>
  %c = kernel.view %p + 128 : memref<4xf32>
  kernel.gemm %a, %b bias %c into %a : (memref<4x4xf32>, memref<4x4xbf16>, memref<4xf32>, memref<4x4xf32>) -> ()
  boa.return
}

// -----

// CHECK-LABEL: boa.kernel @narrower
// CHECK:         llvm.call @boa_gemm_bf16_bf16(
boa.kernel @narrower(%p: !llvm.ptr, %w: !llvm.ptr) {
  %a = kernel.view %p + 0 : memref<4x4xbf16>
  %b = kernel.view %p + 64 : memref<4x4xf32>
  kernel.gemm %a, %a into %b : (memref<4x4xbf16>, memref<4x4xbf16>, memref<4x4xf32>) -> ()
  boa.return
}

// -----

// CHECK-LABEL: boa.kernel @narrowest
// CHECK:         llvm.call @boa_gemm_bf16_bf16_bf16(
boa.kernel @narrowest(%p: !llvm.ptr, %w: !llvm.ptr) {
  %a = kernel.view %p + 0 : memref<4x4xbf16>
  kernel.gemm %a, %a into %a {accumulate} : (memref<4x4xbf16>, memref<4x4xbf16>, memref<4x4xbf16>) -> ()
  boa.return
}

// -----

boa.kernel @half(%p: !llvm.ptr, %w: !llvm.ptr) {
  %a = kernel.view %p + 0 : memref<4x4xbf16>
  %b = kernel.view %p + 64 : memref<4x4xf32>
  // expected-error @below {{'kernel.gemm' op expected operands of one type, or f32 with b, or a and b, or all three in bf16}}
  // expected-error @below {{failed to legalize operation 'kernel.gemm'}}
  kernel.gemm %a, %b into %b : (memref<4x4xbf16>, memref<4x4xf32>, memref<4x4xf32>) -> ()
  boa.return
}

// -----

boa.kernel @bias(%p: !llvm.ptr, %w: !llvm.ptr) {
  %a = kernel.view %p + 0 : memref<4x4xbf16>
  %b = kernel.view %p + 64 : memref<4xbf16>
  // expected-error @below {{'kernel.gemm' op expected operands of one type, or f32 with b, or a and b, or all three in bf16}}
  // expected-error @below {{failed to legalize operation 'kernel.gemm'}}
  kernel.gemm %a, %a bias %b into %a : (memref<4x4xbf16>, memref<4x4xbf16>, memref<4xbf16>, memref<4x4xbf16>) -> ()
  boa.return
}

// -----

boa.kernel @statistics(%p: !llvm.ptr, %w: !llvm.ptr) {
  %q = kernel.view %p + 0 : memref<1x4x8xbf16>
  %lse = kernel.view %p + 64 : memref<1x2x4xbf16>
  // expected-error @below {{'kernel.attention' op expected operands of one type, and lse in that of sums}}
  // expected-error @below {{failed to legalize operation 'kernel.attention'}}
  kernel.attention %q, %q, %q into %q, %lse {heads = 2 : i64, kv_heads = 2 : i64} : (memref<1x4x8xbf16>, memref<1x4x8xbf16>, memref<1x4x8xbf16>, memref<1x4x8xbf16>, memref<1x2x4xbf16>) -> ()
  boa.return
}

// -----

boa.kernel @types(%p: !llvm.ptr, %w: !llvm.ptr) {
  %a = kernel.view %p + 0 : memref<4x4xf64>
  %b = kernel.view %p + 128 : memref<4x4xbf16>
  // expected-error @below {{'kernel.gemm' op expected operands of one type, or f32 with b, or a and b, or all three in bf16}}
  // expected-error @below {{failed to legalize operation 'kernel.gemm'}}
  kernel.gemm %a, %b into %a : (memref<4x4xf64>, memref<4x4xbf16>, memref<4x4xf64>) -> ()
  boa.return
}

// -----

boa.kernel @gaps(%p: !llvm.ptr, %w: !llvm.ptr) {
  %c = kernel.view %w + 0 : memref<100xf32>
  %x = memref.reinterpret_cast %c to offset: [0], sizes: [2, 3, 6], strides: [40, 10, 1] : memref<100xf32> to memref<2x3x6xf32, strided<[40, 10, 1]>>
  // expected-error @below {{'kernel.gemm' op expected operands with evenly spaced rows, not 'memref<2x3x6xf32, strided<[40, 10, 1]>>'}}
  // expected-error @below {{failed to legalize operation 'kernel.gemm'}}
  kernel.gemm %x, %x into %x {transpose_b} : (memref<2x3x6xf32, strided<[40, 10, 1]>>, memref<2x3x6xf32, strided<[40, 10, 1]>>, memref<2x3x6xf32, strided<[40, 10, 1]>>) -> ()
  boa.return
}

// -----

// The program around the kernels is left alone.

// AROUND-LABEL: boa.step @step
// AROUND:         arith.constant 3 : i64
boa.step @step(%step, %pending) {
  %0 = arith.constant 3 : i64
}

// -----

// What a product is added to on a CPU is what its result holds.

boa.kernel @plus(%p: !llvm.ptr, %w: !llvm.ptr, %q: !llvm.ptr) {
  %a = kernel.view %p + 0 : memref<8x4xf32>
  %b = kernel.view %p + 256 : memref<4x4xf32>
  %c = kernel.view %p + 512 : memref<8x4xf32>
  // expected-error @below {{'kernel.gemm' op expected c to be the addend}}
  // expected-error @below {{failed to legalize operation 'kernel.gemm'}}
  kernel.gemm %a, %b into %c plus %a : (memref<8x4xf32>, memref<4x4xf32>, memref<8x4xf32>, memref<8x4xf32>) -> ()
  boa.return
}
