// RUN: boa-opt %s '--cuda-convert-kernel-to-llvm=tf32' --reconcile-unrealized-casts --canonicalize --split-input-file --verify-diagnostics \
// RUN:   | FileCheck %s --check-prefix=TF32
// RUN: boa-opt %s --cuda-convert-kernel-to-llvm --reconcile-unrealized-casts --canonicalize --split-input-file --verify-diagnostics | FileCheck %s

// A launch passes the queue, the function's number, its extents and its arguments' addresses.

// CHECK-LABEL: boa.kernel @launch
// CHECK-SAME:    (%[[P:.*]]: !llvm.ptr, %[[W:.*]]: !llvm.ptr, %[[Q:.*]]: !llvm.ptr)
// CHECK-DAG:     %[[ONE:.*]] = llvm.mlir.constant(1 : i64) : i64
// CHECK-DAG:     %[[TWO:.*]] = llvm.mlir.constant(2 : i64) : i64
// CHECK-DAG:     %[[EIGHT:.*]] = llvm.mlir.constant(8 : i64) : i64
// CHECK-DAG:     %[[WARP:.*]] = llvm.mlir.constant(32 : i64) : i64
// CHECK-DAG:     %[[BYTES:.*]] = llvm.mlir.constant(1024 : i64) : i64
// CHECK:         %[[ARGS:.*]] = llvm.alloca %[[TWO]] x !llvm.ptr
// CHECK:         llvm.store %[[P]], %[[ARGS]]
// CHECK:         llvm.call @boa_cuda_launch(%[[Q]], %[[ONE]], %[[EIGHT]], %[[ONE]], %[[ONE]], %[[WARP]], %[[TWO]], %[[ONE]], %[[BYTES]], %[[TWO]], %[[ARGS]])
gpu.module @cuda {
  gpu.func @a(%x: memref<8xf32>) kernel { gpu.return }
  gpu.func @b(%x: memref<8xf32>, %y: memref<8xf32>) kernel { gpu.return }
}
boa.kernel @launch(%p: !llvm.ptr, %w: !llvm.ptr, %q: !llvm.ptr) {
  %x = kernel.view %p + 0 : memref<8xf32>
  %y = kernel.view %w + 64 : memref<8xf32>
  kernel.launch_func @cuda::@b grid [8, 1, 1] block [32, 2, 1] shared 1024 (%x, %y) : memref<8xf32>, memref<8xf32>
  boa.return
}

// -----

// TF32-LABEL: boa.kernel @rounded
// TF32:         %[[TF32:.*]] = llvm.mlir.constant(2 : i32) : i32
// TF32:         llvm.call @boa_cuda_gemm(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %[[TF32]],
boa.kernel @rounded(%p: !llvm.ptr, %w: !llvm.ptr, %q: !llvm.ptr) {
  %a = kernel.view %p + 0 : memref<4x4xf32>
  %b = kernel.view %p + 64 : memref<4x4xf32>
  %c = kernel.view %p + 128 : memref<4x4xf32>
  kernel.gemm %a, %b into %c : (memref<4x4xf32>, memref<4x4xf32>, memref<4x4xf32>) -> ()
  boa.return
}

// -----

// A product passes its extents, types and strides, a bias, what is added and scratch where it has
// them. What it accumulates into is both what is added and the result.

// CHECK-LABEL: boa.kernel @gemm
// CHECK-SAME:    (%[[P:.*]]: !llvm.ptr, %[[W:.*]]: !llvm.ptr, %[[Q:.*]]: !llvm.ptr)
// CHECK-DAG:     %[[NO:.*]] = llvm.mlir.constant(0 : i32) : i32
// CHECK-DAG:     %[[YES:.*]] = llvm.mlir.constant(1 : i32) : i32
// CHECK-DAG:     %[[ROWS:.*]] = llvm.mlir.constant(6 : i64) : i64
// CHECK-DAG:     %[[DEEP:.*]] = llvm.mlir.constant(4 : i64) : i64
// CHECK-DAG:     %[[COLUMNS:.*]] = llvm.mlir.constant(5 : i64) : i64
// CHECK-DAG:     %[[NULL:.*]] = llvm.mlir.zero : !llvm.ptr
// CHECK:         llvm.call @boa_cuda_gemm(%[[Q]], %[[NO]], %[[YES]], %[[ROWS]], %[[COLUMNS]], %[[DEEP]], %[[YES]], %{{.*}}, %[[DEEP]], %{{.*}}, %[[DEEP]], %{{.*}}, %[[NULL]], %[[NO]], %{{.*}}, %[[COLUMNS]], %[[W]])
// CHECK:         llvm.call @boa_cuda_gemm(%[[Q]], %{{.*}}, %[[NULL]], %[[D:.*]], %[[YES]], %[[D]], %{{.*}}, %[[NULL]])
// CHECK:         llvm.call @boa_cuda_gemm(%[[Q]], %{{.*}}, %[[NULL]], %[[E:.*]], %[[YES]], %[[D]], %{{.*}}, %[[NULL]])
// TF32 is of f32 alone.
// TF32-LABEL: boa.kernel @gemm
// TF32:         %[[BF16:.*]] = llvm.mlir.constant(1 : i32) : i32
// TF32:         llvm.call @boa_cuda_gemm(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %[[BF16]],
boa.kernel @gemm(%p: !llvm.ptr, %w: !llvm.ptr, %q: !llvm.ptr) {
  %a = kernel.view %p + 0 : memref<2x3x4xbf16>
  %b = kernel.view %p + 64 : memref<5x4xbf16>
  %c = kernel.view %p + 256 : memref<2x3x5xf32>
  %bias = kernel.view %p + 512 : memref<5xf32>
  %d = kernel.view %p + 1024 : memref<2x3x5xbf16>
  %s = kernel.view %w + 0 : memref<128xi8>
  kernel.gemm %a, %b bias %bias into %c scratch %s {transpose_b} : (memref<2x3x4xbf16>, memref<5x4xbf16>, memref<5xf32>, memref<2x3x5xf32>, memref<128xi8>) -> ()
  %e = kernel.view %p + 2048 : memref<2x3x5xbf16>
  kernel.gemm %a, %b into %d {transpose_b, accumulate} : (memref<2x3x4xbf16>, memref<5x4xbf16>, memref<2x3x5xbf16>) -> ()
  kernel.gemm %a, %b into %d plus %e {transpose_b} : (memref<2x3x4xbf16>, memref<5x4xbf16>, memref<2x3x5xbf16>, memref<2x3x5xbf16>) -> ()
  boa.return
}

// -----

// An offer passes what attention is of, rows with their strides, and scratch with its size;
// what comes back is a condition.

// CHECK-LABEL: boa.kernel @offer
// CHECK-SAME:    (%[[P:.*]]: !llvm.ptr, %[[W:.*]]: !llvm.ptr, %[[Q:.*]]: !llvm.ptr)
// CHECK-DAG:     %[[NO:.*]] = llvm.mlir.constant(0 : i32) : i32
// CHECK-DAG:     %[[YES:.*]] = llvm.mlir.constant(1 : i32) : i32
// CHECK-DAG:     %[[BATCH:.*]] = llvm.mlir.constant(2 : i64) : i64
// CHECK-DAG:     %[[TIME:.*]] = llvm.mlir.constant(5 : i64) : i64
// CHECK-DAG:     %[[HEADS:.*]] = llvm.mlir.constant(4 : i64) : i64
// CHECK-DAG:     %[[COLUMNS:.*]] = llvm.mlir.constant(8 : i64) : i64
// CHECK-DAG:     %[[WIDE:.*]] = llvm.mlir.constant(64 : i64) : i64
// CHECK-DAG:     %[[NARROW:.*]] = llvm.mlir.constant(32 : i64) : i64
// CHECK-DAG:     %[[BYTES:.*]] = llvm.mlir.constant(128 : i64) : i64
// CHECK:         %[[FIRST:.*]] = llvm.call @boa_cuda_attention(%[[Q]], %[[YES]], %[[BATCH]], %[[TIME]], %[[HEADS]], %[[BATCH]], %[[COLUMNS]], %[[P]], %[[WIDE]], %{{.*}}, %[[WIDE]], %{{.*}}, %[[WIDE]], %{{.*}}, %[[NARROW]], %{{.*}}, %[[W]], %[[BYTES]])
// CHECK:         %[[IS:.*]] = llvm.icmp "ne" %[[FIRST]], %[[NO]]
// CHECK:         llvm.cond_br %[[IS]]
// CHECK:         llvm.call @boa_cuda_attention_grad(%[[Q]], %[[NO]], %[[BATCH]], %[[TIME]], %[[HEADS]], %[[BATCH]], %[[COLUMNS]], %[[P]], %[[WIDE]],
// CHECK-SAME:      %[[WIDE]], %{{.*}}, %[[WIDE]], %{{.*}}, %[[NARROW]], %{{.*}}, %{{.*}}, %[[NARROW]], %{{.*}}, %[[WIDE]], %{{.*}}, %[[WIDE]], %{{.*}}, %[[WIDE]], %{{.*}}, %[[W]], %[[BYTES]])
boa.kernel @offer(%p: !llvm.ptr, %w: !llvm.ptr, %queue: !llvm.ptr) {
  %qkv = kernel.view %p + 0 : memref<2x5x64xbf16>
  %q = memref.reinterpret_cast %qkv to offset: [0], sizes: [2, 5, 32], strides: [320, 64, 1] : memref<2x5x64xbf16> to memref<2x5x32xbf16, strided<[320, 64, 1]>>
  %k = memref.reinterpret_cast %qkv to offset: [32], sizes: [2, 5, 16], strides: [320, 64, 1] : memref<2x5x64xbf16> to memref<2x5x16xbf16, strided<[320, 64, 1], offset: 32>>
  %v = memref.reinterpret_cast %qkv to offset: [48], sizes: [2, 5, 16], strides: [320, 64, 1] : memref<2x5x64xbf16> to memref<2x5x16xbf16, strided<[320, 64, 1], offset: 48>>
  %y = kernel.view %p + 2048 : memref<2x5x32xbf16>
  %lse = kernel.view %p + 4096 : memref<2x4x5xf32>
  %delta = kernel.view %p + 8192 : memref<2x4x5xf32>
  %s = kernel.view %w + 0 : memref<128xi8>
  %0 = kernel.offer_attention %q, %k, %v into %y, %lse scratch %s {causal, heads = 4 : i64, kv_heads = 2 : i64}
      : (memref<2x5x32xbf16, strided<[320, 64, 1]>>, memref<2x5x16xbf16, strided<[320, 64, 1], offset: 32>>, memref<2x5x16xbf16, strided<[320, 64, 1], offset: 48>>,
         memref<2x5x32xbf16>, memref<2x4x5xf32>, memref<128xi8>) -> i1
  cf.cond_br %0, ^end, ^gradient
^gradient:
  %1 = kernel.offer_attention_grad %q, %k, %v, %y, %lse, %y into %q, %k, %v scratch %delta, %s {heads = 4 : i64, kv_heads = 2 : i64}
      : (memref<2x5x32xbf16, strided<[320, 64, 1]>>, memref<2x5x16xbf16, strided<[320, 64, 1], offset: 32>>, memref<2x5x16xbf16, strided<[320, 64, 1], offset: 48>>,
         memref<2x5x32xbf16>, memref<2x4x5xf32>, memref<2x5x32xbf16>,
         memref<2x5x32xbf16, strided<[320, 64, 1]>>, memref<2x5x16xbf16, strided<[320, 64, 1], offset: 32>>, memref<2x5x16xbf16, strided<[320, 64, 1], offset: 48>>,
         memref<2x4x5xf32>, memref<128xi8>) -> i1
  cf.br ^end
^end:
  boa.return
}

// -----

boa.kernel @unknown(%p: !llvm.ptr, %w: !llvm.ptr, %q: !llvm.ptr) {
  // expected-error @below {{'kernel.launch_func' op expected a function of the device's module, not @cuda::@b}}
  // expected-error @below {{failed to legalize operation 'kernel.launch_func'}}
  kernel.launch_func @cuda::@b grid [8, 1, 1] block [32, 2, 1] shared 0 ()
  boa.return
}

// -----

boa.kernel @mixed(%p: !llvm.ptr, %w: !llvm.ptr, %q: !llvm.ptr) {
  %a = kernel.view %p + 0 : memref<4x4xf32>
  %b = kernel.view %p + 64 : memref<4x4xbf16>
  // expected-error @below {{'kernel.gemm' op expected a and b in f32 or bf16, the result in f32, or bf16 as they are, and a bias of its type}}
  // expected-error @below {{failed to legalize operation 'kernel.gemm'}}
  kernel.gemm %a, %b into %a : (memref<4x4xf32>, memref<4x4xbf16>, memref<4x4xf32>) -> ()
  boa.return
}

// -----

boa.kernel @double(%p: !llvm.ptr, %w: !llvm.ptr, %q: !llvm.ptr) {
  %a = kernel.view %p + 0 : memref<4x4xf64>
  // expected-error @below {{'kernel.gemm' op expected a and b in f32 or bf16, the result in f32, or bf16 as they are, and a bias of its type}}
  // expected-error @below {{failed to legalize operation 'kernel.gemm'}}
  kernel.gemm %a, %a into %a : (memref<4x4xf64>, memref<4x4xf64>, memref<4x4xf64>) -> ()
  boa.return
}
