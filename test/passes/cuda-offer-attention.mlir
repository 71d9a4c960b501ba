// RUN: boa-opt %s --split-input-file --verify-diagnostics --cuda-offer-attention | FileCheck %s
// RUN: boa-opt %s --split-input-file --cuda-offer-attention --remarks-filter=boa-kernel 2>&1 \
// RUN:   | FileCheck %s --check-prefix=REMARK
// RUN: boa-opt %s --split-input-file --cuda-offer-attention --cuda-emit-attention --canonicalize \
// RUN:   --kernel-assign-workspace | FileCheck %s --check-prefix=EMIT
// RUN: boa-opt %s --split-input-file --cuda-offer-attention --cuda-emit-attention --canonicalize \
// RUN:   --cuda-code-pipeline | FileCheck %s --check-prefix=CODE

// A library may take attention in bf16; the program computes it where it does not.
// CHECK-LABEL: boa.kernel @forward
// CHECK:         %[[SCRATCH:.*]] = memref.alloc() {alignment = 256 : i64} : memref<262144xi8>
// CHECK:         %[[TAKEN:.*]] = kernel.offer_attention %{{.*}}, %{{.*}}, %{{.*}} into %{{.*}}, %{{.*}} scratch %[[SCRATCH]] {causal, heads = 4 : i64, kv_heads = 2 : i64}
// CHECK:         %[[LEFT:.*]] = arith.xori %[[TAKEN]], %true
// CHECK:         scf.if %[[LEFT]] {
// CHECK-NEXT:      kernel.attention %{{.*}} into {{.*}} -> ()
// CHECK-NEXT:    }
// EMIT-LABEL:  boa.kernel @forward
// EMIT-SAME:     workspace 262144 scratch 262144
// EMIT:          kernel.offer_attention
// EMIT:          scf.if
// EMIT:            gpu.launch
// One call, and a launch under a condition.
// CODE-LABEL:  boa.kernel @forward
// CODE-SAME:     %{{.*}}: !llvm.ptr, %[[W:.*]]: !llvm.ptr, %[[Q:.*]]: !llvm.ptr)
// CODE:          %[[TAKEN:.*]] = llvm.call @boa_cuda_attention(%[[Q]], %{{.*}}) : {{.*}} -> i32
// CODE:          %[[IS:.*]] = llvm.icmp "ne" %[[TAKEN]],
// CODE:          llvm.cond_br
// CODE:          llvm.call @boa_cuda_launch(%[[Q]],
// REMARK: Passed] offer-attention | {{.*}} scratch=262144
boa.kernel @forward(%buffers: !llvm.ptr, %workspace: !llvm.ptr, %queue: !llvm.ptr) {
  %q = kernel.view %buffers + 0 : memref<2x50x128xbf16>
  %kv = kernel.view %buffers + 65536 : memref<2x50x128xbf16>
  %k = memref.subview %kv[0, 0, 0] [2, 50, 64] [1, 1, 1] : memref<2x50x128xbf16> to memref<2x50x64xbf16, strided<[6400, 128, 1]>>
  %v = memref.subview %kv[0, 0, 64] [2, 50, 64] [1, 1, 1] : memref<2x50x128xbf16> to memref<2x50x64xbf16, strided<[6400, 128, 1], offset: 64>>
  %y = kernel.view %buffers + 131072 : memref<2x50x128xbf16>
  %lse = kernel.view %buffers + 196608 : memref<2x4x50xf32>
  kernel.attention %q, %k, %v into %y, %lse {causal, heads = 4 : i64, kv_heads = 2 : i64}
      : (memref<2x50x128xbf16>, memref<2x50x64xbf16, strided<[6400, 128, 1]>>, memref<2x50x64xbf16, strided<[6400, 128, 1], offset: 64>>,
         memref<2x50x128xbf16>, memref<2x4x50xf32>) -> ()
  boa.return
}

// -----

// A gradient has scratch for the gradients of all scores, and for those of keys by head: of each
// of two sequences' two heads 64 x 64, in whole tiles of 128, twice 64 x 128 beside them.
// CHECK-LABEL: boa.kernel @gradient
// CHECK-DAG:     %[[SCRATCH:.*]] = memref.alloc() {alignment = 256 : i64} : memref<266240xi8>
// CHECK-DAG:     %[[DELTA:.*]] = memref.alloc() : memref<2x2x64xf32>
// CHECK:         kernel.offer_attention_grad {{.*}} scratch %[[DELTA]], %[[SCRATCH]] {heads = 2 : i64, kv_heads = 1 : i64}
// CHECK:         scf.if
// CHECK-NEXT:      kernel.attention_grad
// What the program's own launches need is elsewhere in time; without the library it would be that alone.
// EMIT-LABEL:  boa.kernel @gradient
// EMIT-SAME:     workspace 267264 scratch 266240
// EMIT:          kernel.offer_attention_grad
// EMIT:          scf.if
// EMIT-COUNT-3:    gpu.launch
// CODE-LABEL:  boa.kernel @gradient
// CODE:          llvm.call @boa_cuda_attention_grad(
// CODE:          llvm.cond_br
// CODE-COUNT-3:  llvm.call @boa_cuda_launch(
boa.kernel @gradient(%buffers: !llvm.ptr, %workspace: !llvm.ptr, %queue: !llvm.ptr) {
  %q = kernel.view %buffers + 0 : memref<2x64x256xbf16>
  %k = kernel.view %buffers + 65536 : memref<2x64x128xbf16>
  %v = kernel.view %buffers + 131072 : memref<2x64x128xbf16>
  %y = kernel.view %buffers + 196608 : memref<2x64x256xbf16>
  %lse = kernel.view %buffers + 262144 : memref<2x2x64xf32>
  %dy = kernel.view %buffers + 327680 : memref<2x64x256xbf16>
  %dq = kernel.view %buffers + 393216 : memref<2x64x256xbf16>
  %dk = kernel.view %buffers + 458752 : memref<2x64x128xbf16>
  %dv = kernel.view %buffers + 524288 : memref<2x64x128xbf16>
  kernel.attention_grad %q, %k, %v, %y, %lse, %dy into %dq, %dk, %dv {heads = 2 : i64, kv_heads = 1 : i64}
      : (memref<2x64x256xbf16>, memref<2x64x128xbf16>, memref<2x64x128xbf16>, memref<2x64x256xbf16>, memref<2x2x64xf32>,
         memref<2x64x256xbf16>, memref<2x64x256xbf16>, memref<2x64x128xbf16>, memref<2x64x128xbf16>) -> ()
  boa.return
}

// -----

// What no library takes is not offered: f32, heads that are not of whole 16 bytes, windows,
// documents.
// CHECK-LABEL: boa.kernel @own
// CHECK-NOT:     kernel.offer_attention
// CHECK-COUNT-4: kernel.attention
// EMIT-LABEL:  boa.kernel @own
// CODE-LABEL:  boa.kernel @own
boa.kernel @own(%buffers: !llvm.ptr, %workspace: !llvm.ptr, %queue: !llvm.ptr) {
  %q = kernel.view %buffers + 0 : memref<1x8x32xf32>
  %y = kernel.view %buffers + 65536 : memref<1x8x32xf32>
  %lse = kernel.view %buffers + 131072 : memref<1x1x8xf32>
  kernel.attention %q, %q, %q into %y, %lse {heads = 1 : i64, kv_heads = 1 : i64}
      : (memref<1x8x32xf32>, memref<1x8x32xf32>, memref<1x8x32xf32>, memref<1x8x32xf32>, memref<1x1x8xf32>) -> ()
  %r = kernel.view %buffers + 196608 : memref<1x8x12xbf16>
  %z = kernel.view %buffers + 262144 : memref<1x8x12xbf16>
  // expected-warning @below {{a head has 12 columns, which are not whole 16 bytes}}
  kernel.attention %r, %r, %r into %z, %lse {heads = 1 : i64, kv_heads = 1 : i64}
      : (memref<1x8x12xbf16>, memref<1x8x12xbf16>, memref<1x8x12xbf16>, memref<1x8x12xbf16>, memref<1x1x8xf32>) -> ()
  %s = kernel.view %buffers + 327680 : memref<1x8x16xbf16>
  %t = kernel.view %buffers + 393216 : memref<1x8x16xbf16>
  // expected-warning @below {{cuDNN is not asked for this attention, which is slower by the program's own kernels: it has a window}}
  kernel.attention %s, %s, %s into %t, %lse {causal, heads = 1 : i64, kv_heads = 1 : i64, window = 4 : i64}
      : (memref<1x8x16xbf16>, memref<1x8x16xbf16>, memref<1x8x16xbf16>, memref<1x8x16xbf16>, memref<1x1x8xf32>) -> ()
  %starts = kernel.view %buffers + 458752 : memref<1x8xi32>
  // expected-warning @below {{it is within documents, of which several share a sequence; with document_mask = false it is across them}}
  kernel.attention %s, %s, %s documents %starts into %t, %lse {causal, heads = 1 : i64, kv_heads = 1 : i64}
      : (memref<1x8x16xbf16>, memref<1x8x16xbf16>, memref<1x8x16xbf16>, memref<1x8xi32>, memref<1x8x16xbf16>, memref<1x1x8xf32>) -> ()
  boa.return
}

// -----

// Of long sequences gradients are taken part by part, here four of eight heads; of very long ones
// not at all: one head of these would be 2 x 65536 x 65536 bytes.
// CHECK-LABEL: boa.kernel @long
// CHECK:         memref.alloc() {alignment = 256 : i64} : memref<536875008xi8>
// CHECK:         kernel.offer_attention_grad {{.*}} : (memref<1x8192x64xbf16>,
// CHECK-NOT:     kernel.offer_attention_grad
// EMIT-LABEL:  boa.kernel @long
// CODE-LABEL:  boa.kernel @long
boa.kernel @long(%buffers: !llvm.ptr, %workspace: !llvm.ptr, %queue: !llvm.ptr) {
  %x = kernel.view %buffers + 0 : memref<1x8192x64xbf16>
  %lse = kernel.view %buffers + 1048576 : memref<1x8x8192xf32>
  %dx = kernel.view %buffers + 2097152 : memref<1x8192x64xbf16>
  kernel.attention_grad %x, %x, %x, %x, %lse, %x into %dx, %dx, %dx {heads = 8 : i64, kv_heads = 8 : i64}
      : (memref<1x8192x64xbf16>, memref<1x8192x64xbf16>, memref<1x8192x64xbf16>, memref<1x8192x64xbf16>, memref<1x8x8192xf32>,
         memref<1x8192x64xbf16>, memref<1x8192x64xbf16>, memref<1x8192x64xbf16>, memref<1x8192x64xbf16>) -> ()
  %y = kernel.view %buffers + 4194304 : memref<1x65536x64xbf16>
  %sum = kernel.view %buffers + 16777216 : memref<1x4x65536xf32>
  %dy = kernel.view %buffers + 33554432 : memref<1x65536x64xbf16>
  // expected-warning @below {{cuDNN is not asked for this attention, which is slower by the program's own kernels: gradients of the scores of one head of keys take more than 2 GiB, or parts of them are not aligned}}
  kernel.attention_grad %y, %y, %y, %y, %sum, %y into %dy, %dy, %dy {heads = 4 : i64, kv_heads = 4 : i64}
      : (memref<1x65536x64xbf16>, memref<1x65536x64xbf16>, memref<1x65536x64xbf16>, memref<1x65536x64xbf16>, memref<1x4x65536xf32>,
         memref<1x65536x64xbf16>, memref<1x65536x64xbf16>, memref<1x65536x64xbf16>, memref<1x65536x64xbf16>) -> ()
  boa.return
}
