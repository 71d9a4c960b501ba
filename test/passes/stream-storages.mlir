// RUN: boa-opt %s --boa-hoist-prefetch --split-input-file | FileCheck %s --check-prefix=HELD
// RUN: boa-opt %s --boa-hoist-prefetch=stream=weights.a,gradients.a --split-input-file \
// RUN:   | FileCheck %s --check-prefix=STREAM
// RUN: boa-opt %s --boa-elide-transfers --split-input-file | FileCheck %s --check-prefix=SHARED
// RUN: boa-opt %s --boa-elide-transfers=stream=weights.a,gradients.a --split-input-file \
// RUN:   | FileCheck %s --check-prefix=APART
// RUN: boa-opt %s --boa-retain-buffers --split-input-file | FileCheck %s --check-prefix=RETAINED
// RUN: boa-opt %s --boa-retain-buffers=stream=weights.a,gradients.a --split-input-file \
// RUN:   | FileCheck %s --check-prefix=DROPPED

// A streamed storage holds no buffer while kernels of others run. It stays in a loop with them, and
// below them. Others leave it.

// HELD-LABEL:   boa.step @evaluate
// HELD-DAG:       boa.prefetch @weights.a
// HELD-DAG:       boa.prefetch @weights.b
// HELD:           boa.loop micro_batch
// HELD-NOT:         boa.prefetch
// HELD:         }
// STREAM-LABEL: boa.step @evaluate
// STREAM:         %[[B:.*]] = boa.prefetch @weights.b
// STREAM:         boa.loop micro_batch
// STREAM:           boa.launch @b reads(%[[B]] :
// STREAM:           %[[A:.*]] = boa.prefetch @weights.a
// STREAM:           boa.launch @a reads(%[[A]] :
// STREAM-NEXT:      boa.release %[[A]]
// STREAM-LABEL: boa.step @predict
// Alone in its loop it leaves, as a layer's weights do.
// STREAM:         boa.prefetch @weights.a
// STREAM:         boa.loop micro_batch
// STREAM-NOT:       boa.prefetch
// STREAM:         }

boa.storage @weights.a[1] : tensor<8xf32> on ssd role weights persistent
boa.storage @weights.b[1] : tensor<8xf32> on ssd role weights persistent
boa.step @evaluate(%step, %pending) {
  boa.loop micro_batch %m = 0 to 4 forward {
    %c0 = arith.constant 0 : index
    %b = boa.prefetch @weights.b[%c0] : <tensor<8xf32>, device>
    boa.launch @b reads(%b : <tensor<8xf32>, device>)
    boa.release %b : <tensor<8xf32>, device>
    %a = boa.prefetch @weights.a[%c0] : <tensor<8xf32>, device>
    boa.launch @a reads(%a : <tensor<8xf32>, device>)
    boa.release %a : <tensor<8xf32>, device>
  }
}
boa.step @predict(%step, %pending) {
  boa.loop micro_batch %m = 0 to 4 forward {
    %c0 = arith.constant 0 : index
    %a = boa.prefetch @weights.a[%c0] : <tensor<8xf32>, device>
    boa.launch @a reads(%a : <tensor<8xf32>, device>)
    boa.release %a : <tensor<8xf32>, device>
  }
}

// -----

// Its accesses share a buffer only if nobody computes between them.

// SHARED:       boa.storage @weights.b[2]
// SHARED:         boa.prefetch @weights.a
// SHARED-NOT:     boa.prefetch @weights.a
// SHARED:       boa.step @predict
// APART:        boa.storage @weights.b[2]
// APART-COUNT-2: boa.prefetch @weights.a
// APART:        boa.step @predict
// APART:          boa.prefetch @weights.a
// APART-NOT:      boa.prefetch @weights.a
// Nor is it retained, unless at most one slot of its role is taken meanwhile.
// RETAINED:       boa.storage @weights.b[2]
// RETAINED:         boa.release {{.*}} retain
// RETAINED:       boa.step @predict
// DROPPED:        boa.storage @weights.b[2]
// DROPPED-NOT:      retain
// DROPPED:        boa.step @predict
// DROPPED:          boa.release {{.*}} retain

boa.storage @weights.a[1] : tensor<8xf32> on ssd role weights persistent
boa.storage @weights.b[2] : tensor<8xf32> on ssd role weights persistent
boa.step @evaluate(%step, %pending) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %a = boa.prefetch @weights.a[%c0] : <tensor<8xf32>, device>
  boa.launch @a reads(%a : <tensor<8xf32>, device>)
  boa.release %a : <tensor<8xf32>, device>
  %b = boa.prefetch @weights.b[%c0] : <tensor<8xf32>, device>
  boa.launch @b reads(%b : <tensor<8xf32>, device>)
  boa.release %b : <tensor<8xf32>, device>
  %d = boa.prefetch @weights.b[%c1] : <tensor<8xf32>, device>
  boa.launch @b reads(%d : <tensor<8xf32>, device>)
  boa.release %d : <tensor<8xf32>, device>
  %e = boa.prefetch @weights.a[%c0] : <tensor<8xf32>, device>
  boa.launch @a reads(%e : <tensor<8xf32>, device>)
  boa.release %e : <tensor<8xf32>, device>
}
boa.step @predict(%step, %pending) {
  %c0 = arith.constant 0 : index
  %a = boa.prefetch @weights.a[%c0] : <tensor<8xf32>, device>
  boa.launch @a reads(%a : <tensor<8xf32>, device>)
  boa.release %a : <tensor<8xf32>, device>
  %e = boa.prefetch @weights.a[%c0] : <tensor<8xf32>, device>
  boa.launch @a reads(%e : <tensor<8xf32>, device>)
  boa.release %e : <tensor<8xf32>, device>
}
