// RUN: boa-opt %s | boa-opt | FileCheck %s

// Every op of the kernel dialect, on tensors or on memory.

// CHECK-LABEL: func.func @tensors
func.func @tensors(%x: tensor<1x8x4xf32>, %w: tensor<4x4xf32>, %l: tensor<1x2x8xf32>, %i: tensor<1x8xi32>) {
  // CHECK: kernel.gemm %{{.*}}, %{{.*}} into %{{.*}} {accumulate} : (tensor<1x8x4xf32>, tensor<4x4xf32>, tensor<1x8x4xf32>) -> tensor<1x8x4xf32>
  %0 = kernel.gemm %x, %w into %x {accumulate} : (tensor<1x8x4xf32>, tensor<4x4xf32>, tensor<1x8x4xf32>) -> tensor<1x8x4xf32>
  // CHECK: kernel.gemm %{{.*}}, %{{.*}} bias %{{.*}} into %{{.*}} {transpose_b}
  %b = tensor.empty() : tensor<4xf32>
  %g = kernel.gemm %x, %w bias %b into %x {transpose_b} : (tensor<1x8x4xf32>, tensor<4x4xf32>, tensor<4xf32>, tensor<1x8x4xf32>) -> tensor<1x8x4xf32>
  // CHECK: kernel.attention %{{.*}}, %{{.*}}, %{{.*}} into %{{.*}}, %{{.*}} {causal, heads = 2 : i64, kv_heads = 2 : i64}
  %1:2 = kernel.attention %x, %x, %x into %x, %l {causal, heads = 2 : i64, kv_heads = 2 : i64}
      : (tensor<1x8x4xf32>, tensor<1x8x4xf32>, tensor<1x8x4xf32>, tensor<1x8x4xf32>, tensor<1x2x8xf32>) -> (tensor<1x8x4xf32>, tensor<1x2x8xf32>)
  // CHECK: kernel.attention %{{.*}}, %{{.*}}, %{{.*}} documents %{{.*}} into %{{.*}}, %{{.*}} {heads = 2 : i64, kv_heads = 2 : i64}
  %d:2 = kernel.attention %x, %x, %x documents %i into %x, %l {heads = 2 : i64, kv_heads = 2 : i64}
      : (tensor<1x8x4xf32>, tensor<1x8x4xf32>, tensor<1x8x4xf32>, tensor<1x8xi32>, tensor<1x8x4xf32>, tensor<1x2x8xf32>) -> (tensor<1x8x4xf32>, tensor<1x2x8xf32>)
  // CHECK: kernel.cached_attention %{{.*}}, %{{.*}}, %{{.*}} at %{{.*}} into %{{.*}}, %{{.*}}, %{{.*}} {heads = 2 : i64, kv_heads = 2 : i64, window = 3 : i64}
  %c:3 = kernel.cached_attention %x, %x, %x at %i into %x, %x, %x {heads = 2 : i64, kv_heads = 2 : i64, window = 3 : i64}
      : (tensor<1x8x4xf32>, tensor<1x8x4xf32>, tensor<1x8x4xf32>, tensor<1x8xi32>, tensor<1x8x4xf32>, tensor<1x8x4xf32>, tensor<1x8x4xf32>) -> (tensor<1x8x4xf32>, tensor<1x8x4xf32>, tensor<1x8x4xf32>)
  // CHECK: kernel.attention_grad %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} into %{{.*}}, %{{.*}}, %{{.*}} {heads = 2 : i64, kv_heads = 2 : i64}
  %2:3 = kernel.attention_grad %x, %x, %x, %x, %l, %x into %x, %x, %x {heads = 2 : i64, kv_heads = 2 : i64}
      : (tensor<1x8x4xf32>, tensor<1x8x4xf32>, tensor<1x8x4xf32>, tensor<1x8x4xf32>, tensor<1x2x8xf32>, tensor<1x8x4xf32>, tensor<1x8x4xf32>, tensor<1x8x4xf32>, tensor<1x8x4xf32>) -> (tensor<1x8x4xf32>, tensor<1x8x4xf32>, tensor<1x8x4xf32>)
  // CHECK: kernel.scatter_rows %{{.*}}, %{{.*}} into %{{.*}} :
  %3 = kernel.scatter_rows %i, %x into %w : (tensor<1x8xi32>, tensor<1x8x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return
}

// CHECK-LABEL: func.func @memory
func.func @memory(%buffers: !llvm.ptr, %workspace: !llvm.ptr) {
  // CHECK: %[[P:.*]] = kernel.argument %{{.*}}[2]
  %p = kernel.argument %buffers[2]
  // CHECK: %[[V:.*]] = kernel.view %[[P]] + 64 : memref<8x4xf32>
  %v = kernel.view %p + 64 : memref<8x4xf32>
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %q = kernel.view %p + 0 : memref<1x8x16xbf16>
  %l = kernel.view %p + 0 : memref<1x2x8xf32>
  %s = kernel.view %p + 0 : memref<64xi8>
  // CHECK: kernel.offer_attention %{{.*}}, %{{.*}}, %{{.*}} into %{{.*}}, %{{.*}} scratch %{{.*}} {causal, heads = 2 : i64, kv_heads = 2 : i64}
  %t0 = kernel.offer_attention %q, %q, %q into %q, %l scratch %s {causal, heads = 2 : i64, kv_heads = 2 : i64}
      : (memref<1x8x16xbf16>, memref<1x8x16xbf16>, memref<1x8x16xbf16>, memref<1x8x16xbf16>, memref<1x2x8xf32>, memref<64xi8>) -> i1
  // CHECK: kernel.offer_attention_grad %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} into %{{.*}}, %{{.*}}, %{{.*}} scratch %{{.*}}, %{{.*}} {heads = 2 : i64, kv_heads = 2 : i64}
  %t1 = kernel.offer_attention_grad %q, %q, %q, %q, %l, %q into %q, %q, %q scratch %l, %s {heads = 2 : i64, kv_heads = 2 : i64}
      : (memref<1x8x16xbf16>, memref<1x8x16xbf16>, memref<1x8x16xbf16>, memref<1x8x16xbf16>, memref<1x2x8xf32>, memref<1x8x16xbf16>,
         memref<1x8x16xbf16>, memref<1x8x16xbf16>, memref<1x8x16xbf16>, memref<1x2x8xf32>, memref<64xi8>) -> i1
  // CHECK: kernel.gemm %{{.*}}, %{{.*}} into %[[V]] plus %{{.*}} : (memref<8x2xf32>, memref<2x4xf32>, memref<8x4xf32>, memref<8x4xf32>) -> ()
  %ga = kernel.view %p + 256 : memref<8x2xf32>
  %gb = kernel.view %p + 512 : memref<2x4xf32>
  %gc = kernel.view %p + 1024 : memref<8x4xf32>
  kernel.gemm %ga, %gb into %v plus %gc : (memref<8x2xf32>, memref<2x4xf32>, memref<8x4xf32>, memref<8x4xf32>) -> ()
  // CHECK: kernel.angles cosine [1.000000e+00, 1.000000e-02] : tensor<8x2xf32>
  %cos = kernel.angles cosine [1.0, 0.01] : tensor<8x2xf32>
  // CHECK: kernel.angles sine [0.33333333333333331] : tensor<8x1xf64>
  %sin = kernel.angles sine [0.33333333333333331] : tensor<8x1xf64>
  // CHECK: kernel.parallel 8 grain 2 {
  // CHECK-NEXT: ^bb0(%[[BEGIN:.*]]: index, %{{.*}}: index):
  // CHECK-NEXT: memref.store %{{.*}}, %{{.*}}[%[[BEGIN]], %{{.*}}]
  kernel.parallel 8 grain 2 {
  ^bb0(%begin: index, %end: index):
    memref.store %zero, %v[%begin, %c0] : memref<8x4xf32>
  }
  // CHECK: kernel.group rows [8] {
  // CHECK-NEXT: %[[T:.*]] = memref.alloc() : memref<8xf32>
  // CHECK-NEXT: linalg.fill {{.*}} outs(%[[T]]
  kernel.group rows [8] {
    %t = memref.alloc() : memref<8xf32>
    linalg.fill ins(%zero : f32) outs(%t : memref<8xf32>)
  }
  // CHECK: kernel.group columns [4] {
  // CHECK-NEXT: kernel.scatter_rows
  %i = memref.alloc() : memref<8xi32>
  kernel.group columns [4] {
    kernel.scatter_rows %i, %v into %v : (memref<8xi32>, memref<8x4xf32>, memref<8x4xf32>) -> ()
  }
  // CHECK: kernel.group rows [] {
  kernel.group rows [] {
    linalg.fill ins(%zero : f32) outs(%v : memref<8x4xf32>)
  }
  // CHECK: kernel.gemm %{{.*}}, %{{.*}} into %{{.*}} scratch %{{.*}} :
  %square = kernel.view %p + 0 : memref<8x8xf32>
  %scratch = kernel.view %p + 4096 : memref<64xi8>
  kernel.gemm %square, %v into %v scratch %scratch : (memref<8x8xf32>, memref<8x4xf32>, memref<8x4xf32>, memref<64xi8>) -> ()
  // CHECK: kernel.launch_func @cuda::@f grid [2, 1, 1] block [32, 1, 1] shared 64(%{{.*}}, %{{.*}}) : memref<8x8xf32>, memref<8x4xf32>
  kernel.launch_func @cuda::@f grid [2, 1, 1] block [32, 1, 1] shared 64 (%square, %v) : memref<8x8xf32>, memref<8x4xf32>
  return
}
