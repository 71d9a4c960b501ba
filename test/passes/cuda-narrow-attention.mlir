// RUN: boa-opt %s --split-input-file --cuda-emit-attention --canonicalize --cse | FileCheck %s

// Of bf16, on tensor cores. A block of four warps owns 64 queries of a head; tiles of 32 keys and
// values are in shared memory twice, with rows of an odd number of 16 bytes. Blocks of later queries
// have more keys, and come first.
// CHECK-LABEL: boa.kernel @forward
// CHECK: gpu.launch blocks(%[[X:[a-z0-9]+]], {{.*}}) in ({{.*}} = %c4, {{.*}} = %c4, {{.*}} = %c2) threads({{.*}}) in ({{.*}} = %c128, {{.*}} = %c1, {{.*}} = %c1)
// CHECK-SAME: workgroup({{.*}} : memref<64x40xbf16, #gpu.address_space<workgroup>>, {{.*}} : memref<64x40xbf16, #gpu.address_space<workgroup>>)
// CHECK: %[[OWN:.*]] = arith.muli %[[X]], %c64
// CHECK: %[[FIRST:.*]] = arith.subi %c192, %[[OWN]]
// Fragments of q stay in registers: its rows are read once.
// CHECK-COUNT-16: memref.load {{.*}} : memref<2x256x128xbf16>
// CHECK-NOT: memref.load {{.*}} : memref<2x256x128xbf16>
// The first tile, then in each turn the next one.
// CHECK: gpu.barrier
// CHECK: nvgpu.device_async_copy {{.*}}, 8 {{.*}}: memref<2x256x64xbf16, strided<[16384, 64, 1]>> to memref<64x40xbf16
// CHECK: nvgpu.device_async_copy {{.*}}, 8 {{.*}}: memref<2x256x64xbf16, strided<[16384, 64, 1], offset: 32768>> to memref<64x40xbf16
// CHECK: nvgpu.device_async_create_group
// Up to the diagonal nothing is hidden.
// CHECK: scf.for
// CHECK: nvgpu.device_async_wait {{.*}} {numGroups = 0 : i32}
// CHECK-NEXT: gpu.barrier
// CHECK: nvgpu.device_async_copy
// CHECK: nvgpu.device_async_create_group
// CHECK: nvgpu.ldmatrix {{.*}} {numTiles = 4 : i32, transpose = false}
// CHECK: nvvm.mma.sync
// CHECK-NOT: arith.cmpi ule
// CHECK: gpu.shuffle xor
// CHECK: math.exp2
// CHECK: arith.truncf {{.*}} to bf16
// CHECK: nvgpu.ldmatrix {{.*}} {numTiles = 4 : i32, transpose = true}
// CHECK: nvvm.mma.sync
// CHECK: scf.yield
// On it, keys after a query have a weight of zero.
// CHECK: scf.for
// CHECK: nvvm.mma.sync
// CHECK: arith.cmpi ule
// CHECK: arith.select {{.*}}, {{.*}}, %{{.*}} : f32
// CHECK: math.exp2
// CHECK: scf.yield
// CHECK: math.log
// CHECK: memref.store {{.*}} : memref<2x4x256xf32>
// CHECK: memref.store {{.*}} : memref<2x256x128xbf16>
boa.kernel @forward(%buffers: !llvm.ptr, %workspace: !llvm.ptr, %queue: !llvm.ptr) {
  %q = kernel.view %buffers + 0 : memref<2x256x128xbf16>
  %kv = kernel.view %buffers + 262144 : memref<2x2x256x64xbf16>
  %k = memref.subview %kv[0, 0, 0, 0] [1, 2, 256, 64] [1, 1, 1, 1] : memref<2x2x256x64xbf16> to memref<2x256x64xbf16, strided<[16384, 64, 1]>>
  %v = memref.subview %kv[1, 0, 0, 0] [1, 2, 256, 64] [1, 1, 1, 1] : memref<2x2x256x64xbf16> to memref<2x256x64xbf16, strided<[16384, 64, 1], offset: 32768>>
  %y = kernel.view %workspace + 0 : memref<2x256x128xbf16>
  %lse = kernel.view %workspace + 262144 : memref<2x4x256xf32>
  kernel.attention %q, %k, %v into %y, %lse {causal, heads = 4 : i64, kv_heads = 2 : i64}
      : (memref<2x256x128xbf16>, memref<2x256x64xbf16, strided<[16384, 64, 1]>>, memref<2x256x64xbf16, strided<[16384, 64, 1], offset: 32768>>,
         memref<2x256x128xbf16>, memref<2x4x256xf32>) -> ()
  boa.return
}

// -----

// The gradient: sums of y * dy, then dq, then dk and dv. Heads of 20 columns are filled up to 32, and their
// rows, which begin anywhere, are loaded element by element. Behind the sequence rows are zeros.
// CHECK-LABEL: boa.kernel @gradient
// CHECK: %[[DELTA:.*]] = memref.alloc() : memref<1x2x100xf32>
// CHECK: gpu.launch
// CHECK: memref.store {{.*}}, %[[DELTA]]
// CHECK: gpu.launch blocks({{.*}}) in ({{.*}} = %c2, {{.*}} = %c2, {{.*}} = %c1)
// CHECK-SAME: memref<64x40xbf16
// CHECK-NOT: nvgpu.device_async_copy
// CHECK: memref.load %[[DELTA]]
// CHECK: scf.for
// CHECK: math.exp2
// CHECK: memref.store {{.*}} : memref<1x100x40xbf16>
// One head of keys, whose two heads of queries follow one another.
// CHECK: gpu.launch blocks({{.*}}) in ({{.*}} = %c2, {{.*}} = %c1, {{.*}} = %c1)
// CHECK: scf.for {{.*}} to %c2
// CHECK: memref.load %[[DELTA]]
// CHECK: memref.store {{.*}} : memref<1x100x20xbf16>
// CHECK-NOT: gpu.launch
// CHECK-NOT: kernel.attention_grad
boa.kernel @gradient(%buffers: !llvm.ptr, %workspace: !llvm.ptr, %queue: !llvm.ptr) {
  %q = kernel.view %buffers + 0 : memref<1x100x40xbf16>
  %k = kernel.view %buffers + 65536 : memref<1x100x20xbf16>
  %v = kernel.view %buffers + 131072 : memref<1x100x20xbf16>
  %y = kernel.view %buffers + 196608 : memref<1x100x40xbf16>
  %lse = kernel.view %buffers + 262144 : memref<1x2x100xf32>
  %dy = kernel.view %buffers + 327680 : memref<1x100x40xbf16>
  %dq = kernel.view %workspace + 0 : memref<1x100x40xbf16>
  %dk = kernel.view %workspace + 65536 : memref<1x100x20xbf16>
  %dv = kernel.view %workspace + 131072 : memref<1x100x20xbf16>
  kernel.attention_grad %q, %k, %v, %y, %lse, %dy into %dq, %dk, %dv {heads = 2 : i64, kv_heads = 1 : i64}
      : (memref<1x100x40xbf16>, memref<1x100x20xbf16>, memref<1x100x20xbf16>, memref<1x100x40xbf16>, memref<1x2x100xf32>,
         memref<1x100x40xbf16>, memref<1x100x40xbf16>, memref<1x100x20xbf16>, memref<1x100x20xbf16>) -> ()
  boa.return
}

// -----

// Of heads of more than 128 columns dv and dk have a launch each: a thread's registers hold the sums of one.
// CHECK-LABEL: boa.kernel @long
// CHECK-COUNT-4: gpu.launch
// CHECK-NOT: gpu.launch
boa.kernel @long(%buffers: !llvm.ptr, %workspace: !llvm.ptr, %queue: !llvm.ptr) {
  %q = kernel.view %buffers + 0 : memref<1x64x144xbf16>
  %lse = kernel.view %buffers + 65536 : memref<1x1x64xf32>
  %dq = kernel.view %workspace + 0 : memref<1x64x144xbf16>
  kernel.attention_grad %q, %q, %q, %q, %lse, %q into %dq, %dq, %dq {heads = 1 : i64, kv_heads = 1 : i64}
      : (memref<1x64x144xbf16>, memref<1x64x144xbf16>, memref<1x64x144xbf16>, memref<1x64x144xbf16>, memref<1x1x64xf32>,
         memref<1x64x144xbf16>, memref<1x64x144xbf16>, memref<1x64x144xbf16>, memref<1x64x144xbf16>) -> ()
  boa.return
}
