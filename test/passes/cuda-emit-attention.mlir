// RUN: boa-opt %s --split-input-file --cuda-emit-attention --canonicalize --verify-diagnostics | FileCheck %s

// Forward: a block of four warps for each 32 queries of a head, with q in shared memory, k and v
// streamed by tiles of 32 keys as far as the diagonal.
// CHECK-LABEL: boa.kernel @forward
// CHECK: gpu.launch blocks({{.*}}) in ({{.*}} = %c2, {{.*}} = %c4, {{.*}} = %c2) threads({{.*}}) in ({{.*}} = %c128, {{.*}} = %c1, {{.*}} = %c1)
// CHECK-SAME: workgroup({{.*}} : memref<32x33xf32, #gpu.address_space<workgroup>>, {{.*}} : memref<32x33xf32, #gpu.address_space<workgroup>>, {{.*}} : memref<32x33xf32, #gpu.address_space<workgroup>>)
// CHECK: memref.load {{.*}} : memref<2x50x128xf32>
// Heads 0 and 1 read the first head of k, and so on.
// CHECK: arith.divui %{{.*}}, %c2
// CHECK: arith.minui
// CHECK: scf.for
// CHECK: gpu.barrier
// CHECK: memref.load {{.*}} : memref<2x50x64xf32, strided<[6400, 128, 1]>>
// CHECK: memref.load {{.*}} : memref<2x50x64xf32, strided<[6400, 128, 1], offset: 64>>
// CHECK: gpu.barrier
// A dot product is a lane's; its maximum is everybody's.
// CHECK: math.fma
// CHECK: gpu.shuffle xor
// CHECK: math.exp
// What a lane weighs is handed to all.
// CHECK: gpu.shuffle idx
// CHECK: math.fma
// CHECK: math.log
// CHECK: memref.store {{.*}} : memref<2x4x50xf32>
// CHECK: memref.store {{.*}} : memref<2x50x128xf32>
// CHECK-NOT: kernel.attention
boa.kernel @forward(%buffers: !llvm.ptr, %workspace: !llvm.ptr, %queue: !llvm.ptr) {
  %q = kernel.view %buffers + 0 : memref<2x50x128xf32>
  %kv = kernel.view %buffers + 65536 : memref<2x50x128xf32>
  %k = memref.subview %kv[0, 0, 0] [2, 50, 64] [1, 1, 1] : memref<2x50x128xf32> to memref<2x50x64xf32, strided<[6400, 128, 1]>>
  %v = memref.subview %kv[0, 0, 64] [2, 50, 64] [1, 1, 1] : memref<2x50x128xf32> to memref<2x50x64xf32, strided<[6400, 128, 1], offset: 64>>
  %y = kernel.view %workspace + 0 : memref<2x50x128xf32>
  %lse = kernel.view %workspace + 65536 : memref<2x4x50xf32>
  kernel.attention %q, %k, %v into %y, %lse {causal, heads = 4 : i64, kv_heads = 2 : i64}
      : (memref<2x50x128xf32>, memref<2x50x64xf32, strided<[6400, 128, 1]>>, memref<2x50x64xf32, strided<[6400, 128, 1], offset: 64>>,
         memref<2x50x128xf32>, memref<2x4x50xf32>) -> ()
  boa.return
}

// -----

// The gradient: sums of y * dy by row, then queries, then keys, with two own tiles each; of
// heads of 128 columns an own tile has 8 rows.
// CHECK-LABEL: boa.kernel @gradient
// CHECK: %[[DELTA:.*]] = memref.alloc() : memref<1x2x64xf32>
// CHECK: gpu.launch blocks({{.*}}) in ({{.*}} = %c16, {{.*}} = %c2, {{.*}} = %c1)
// CHECK-NOT: workgroup
// CHECK: memref.store {{.*}}, %[[DELTA]]
// CHECK: gpu.launch blocks({{.*}}) in ({{.*}} = %c8, {{.*}} = %c2, {{.*}} = %c1)
// CHECK-SAME: memref<8x129xf32, {{.*}}memref<8x129xf32, {{.*}}memref<32x129xf32, {{.*}}memref<32x129xf32,
// CHECK: memref.load %[[DELTA]]
// CHECK: memref.store {{.*}}, %[[DQ:[0-9]+]][{{.*}}] : memref<1x64x256xf32>
// One head of keys, whose two heads of queries follow one another.
// CHECK: gpu.launch blocks({{.*}}) in ({{.*}} = %c8, {{.*}} = %c1, {{.*}} = %c1)
// CHECK: scf.for {{.*}} to %c2
// CHECK: memref.load %[[DELTA]]
// CHECK: memref.store {{.*}} : memref<1x64x128xf32>
// CHECK-NOT: kernel.attention_grad
boa.kernel @gradient(%buffers: !llvm.ptr, %workspace: !llvm.ptr, %queue: !llvm.ptr) {
  %q = kernel.view %buffers + 0 : memref<1x64x256xf32>
  %k = kernel.view %buffers + 65536 : memref<1x64x128xf32>
  %v = kernel.view %buffers + 131072 : memref<1x64x128xf32>
  %y = kernel.view %buffers + 196608 : memref<1x64x256xf32>
  %lse = kernel.view %buffers + 262144 : memref<1x2x64xf32>
  %dy = kernel.view %buffers + 327680 : memref<1x64x256xf32>
  %dq = kernel.view %workspace + 0 : memref<1x64x256xf32>
  %dk = kernel.view %workspace + 65536 : memref<1x64x128xf32>
  %dv = kernel.view %workspace + 131072 : memref<1x64x128xf32>
  kernel.attention_grad %q, %k, %v, %y, %lse, %dy into %dq, %dk, %dv {heads = 2 : i64, kv_heads = 1 : i64}
      : (memref<1x64x256xf32>, memref<1x64x128xf32>, memref<1x64x128xf32>, memref<1x64x256xf32>, memref<1x2x64xf32>,
         memref<1x64x256xf32>, memref<1x64x256xf32>, memref<1x64x128xf32>, memref<1x64x128xf32>) -> ()
  boa.return
}

// -----

boa.kernel @wide(%buffers: !llvm.ptr, %workspace: !llvm.ptr, %queue: !llvm.ptr) {
  %q = kernel.view %buffers + 0 : memref<1x8x192xf32>
  %y = kernel.view %workspace + 0 : memref<1x8x192xf32>
  %lse = kernel.view %workspace + 65536 : memref<1x1x8xf32>
  // expected-error @+1 {{'kernel.attention' op expected heads of at most 160 columns, not 192}}
  kernel.attention %q, %q, %q into %y, %lse {heads = 1 : i64, kv_heads = 1 : i64}
      : (memref<1x8x192xf32>, memref<1x8x192xf32>, memref<1x8x192xf32>, memref<1x8x192xf32>, memref<1x1x8xf32>) -> ()
  boa.return
}

// -----

boa.kernel @wider(%buffers: !llvm.ptr, %workspace: !llvm.ptr, %queue: !llvm.ptr) {
  %q = kernel.view %buffers + 0 : memref<1x8x32xf64>
  %y = kernel.view %workspace + 0 : memref<1x8x32xf64>
  %lse = kernel.view %workspace + 65536 : memref<1x1x8xf64>
  // expected-error @+1 {{expected memrefs of f32 or bf16 and of static shape, not 'memref<1x8x32xf64>'}}
  kernel.attention %q, %q, %q into %y, %lse {heads = 1 : i64, kv_heads = 1 : i64}
      : (memref<1x8x32xf64>, memref<1x8x32xf64>, memref<1x8x32xf64>, memref<1x8x32xf64>, memref<1x1x8xf64>) -> ()
  boa.return
}
