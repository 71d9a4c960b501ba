// RUN: boa-opt %s --boa-retain-buffers --split-input-file | FileCheck %s
// RUN: boa-opt %s --boa-retain-buffers --split-input-file --remarks-filter=boa-storage \
// RUN:   2>&1 | FileCheck %s --check-prefix=REMARK

// The snake: the last micro-batch of one layer is the first of the next, so its
// activation stays in memory; the others go and come. Layer 1 is odd: it runs 1, 0.

// CHECK-LABEL: boa.step @evaluate
// CHECK:         boa.loop layer %[[L:.*]] = 0 to 2 forward {
// CHECK:           boa.loop micro_batch %[[M:.*]] = 0 to 2 snake(%[[L]]) {
// CHECK:             boa.prefetch @x[%[[L]], %[[M]]]
// CHECK:             %[[Y:.*]] = boa.create @x
// CHECK:             boa.launch
// CHECK:             boa.offload %[[Y]], @x
// CHECK:             %[[IN_M:.*]] = boa.at_last %[[M]]
// CHECK:             boa.release %[[Y]] retain %[[IN_M]]
// CHECK-LABEL: boa.step @predict
// REMARK: remark: [Passed] retain-buffers | Category:boa-storage | {{.*}}Remark=evaluate, {{.*}}retained=1
// REMARK: remark: [Passed] retain-buffers | Category:boa-storage | {{.*}}Remark=predict, {{.*}}retained=0

boa.storage @x[3, 2] : tensor<8xf32> on ssd role checkpoints persistent
boa.step @evaluate(%step, %pending) {
  boa.loop layer %l = 0 to 2 forward {
    %l1 = boa.shift %l, 1
    boa.loop micro_batch %m = 0 to 2 snake(%l) {
      %x = boa.prefetch @x[%l, %m] : <tensor<8xf32>, device>
      %y = boa.create @x[%l1, %m] : <tensor<8xf32>, device>
      boa.launch @k reads(%x : <tensor<8xf32>, device>) writes(%y : <tensor<8xf32>, device>)
      boa.offload %y, @x[%l1, %m] : <tensor<8xf32>, device>
      boa.release %x : <tensor<8xf32>, device>
      boa.release %y : <tensor<8xf32>, device>
    }
  }
  boa.loop micro_batch %m = 0 to 2 forward {
    %c2 = arith.constant 2 : index
    %x = boa.prefetch @x[%c2, %m] : <tensor<8xf32>, device>
    boa.launch @k reads(%x : <tensor<8xf32>, device>)
    boa.release %x : <tensor<8xf32>, device>
  }
}
boa.step @predict(%step, %pending) {
}

// -----

// Without the snake the next layer begins with another micro-batch: nothing to
// retain, as 3 other slots would be taken while a copy waits.

// CHECK-LABEL: boa.step @evaluate
// CHECK-NOT:     retain

boa.storage @x[3, 4] : tensor<8xf32> on ssd role checkpoints persistent
boa.step @evaluate(%step, %pending) {
  boa.loop layer %l = 0 to 2 forward {
    %l1 = boa.shift %l, 1
    boa.loop micro_batch %m = 0 to 4 forward {
      %x = boa.prefetch @x[%l, %m] : <tensor<8xf32>, device>
      %y = boa.create @x[%l1, %m] : <tensor<8xf32>, device>
      boa.launch @k reads(%x : <tensor<8xf32>, device>) writes(%y : <tensor<8xf32>, device>)
      boa.offload %y, @x[%l1, %m] : <tensor<8xf32>, device>
      boa.release %x : <tensor<8xf32>, device>
      boa.release %y : <tensor<8xf32>, device>
    }
  }
}

// -----

// A copy of a whole entry is stale once one of its chunks is updated: it is not
// retained across that, and the second kernel reads the entry again.

// CHECK-LABEL: boa.step @evaluate
// CHECK-NOT:     retain
// CHECK:         boa.loop layer
// CHECK:           boa.prefetch @weights.a
// CHECK:         boa.loop chunk
// CHECK:           boa.offload %{{.*}}, @weights.a
// CHECK-NOT:     retain
// CHECK:         boa.loop layer
// CHECK-NEXT:      boa.prefetch @weights.a

boa.group @a repeat 1 {
  boa.param @w : tensor<16384xf32> = "ones"
}
boa.storage @weights.a[1] : tensor<16384xf32> on ssd role weights chunks 4 persistent
boa.storage @gradients.a[1] : tensor<16384xf32> on device role gradients chunks 4
boa.step @evaluate(%step, %pending) {
  %c0 = arith.constant 0 : index
  boa.loop layer %l = 0 to 1 forward {
    %w = boa.prefetch @weights.a[%l] : <tensor<16384xf32>, device>
    boa.launch @k reads(%w : <tensor<16384xf32>, device>)
    boa.release %w : <tensor<16384xf32>, device>
  }
  boa.loop chunk %c = 3 to 4 forward {
    %3 = boa.prefetch @gradients.a[%c0] chunk %c count 1 : <tensor<16384xf32>, host>
    %5 = boa.prefetch @weights.a[%c0] chunk %c count 1 : <tensor<16384xf32>, host>
    boa.update @a chunk %c step %step weights(%5 : <tensor<16384xf32>, host>) gradient(%3 : <tensor<16384xf32>, host>)
    boa.offload %5, @weights.a[%c0] chunk %c count 1 : <tensor<16384xf32>, host>
    boa.release %3 : <tensor<16384xf32>, host>
    boa.release %5 : <tensor<16384xf32>, host>
  }
  boa.loop layer %l = 0 to 1 forward {
    %w = boa.prefetch @weights.a[%l] : <tensor<16384xf32>, device>
    boa.launch @k reads(%w : <tensor<16384xf32>, device>)
    boa.release %w : <tensor<16384xf32>, device>
  }
}

// -----

// What was updated and not written home is thrown away by its release: the next
// kernel reads what is at home, so the copy is not retained.

// CHECK-LABEL: boa.step @evaluate
// CHECK:         boa.prefetch @s
// CHECK:         boa.launch @k updates
// CHECK-NOT:     retain
// CHECK:         boa.prefetch @s
// CHECK:         boa.launch @k2 reads

boa.storage @s[1] : tensor<8xf32> on ssd role checkpoints persistent
boa.step @evaluate(%step, %pending) {
  %c0 = arith.constant 0 : index
  %x = boa.prefetch @s[%c0] : <tensor<8xf32>, device>
  boa.launch @k updates(%x : <tensor<8xf32>, device>)
  boa.release %x : <tensor<8xf32>, device>
  %y = boa.prefetch @s[%c0] : <tensor<8xf32>, device>
  boa.launch @k2 reads(%y : <tensor<8xf32>, device>)
  boa.release %y : <tensor<8xf32>, device>
}
boa.step @predict(%step, %pending) {
  %c0 = arith.constant 0 : index
  %x = boa.prefetch @s[%c0] : <tensor<8xf32>, device>
  boa.launch @k updates(%x : <tensor<8xf32>, device>)
  boa.offload %x, @s[%c0] : <tensor<8xf32>, device>
  boa.release %x : <tensor<8xf32>, device>
  %y = boa.prefetch @s[%c0] : <tensor<8xf32>, device>
  boa.launch @k2 reads(%y : <tensor<8xf32>, device>)
  boa.release %y : <tensor<8xf32>, device>
}

// -----

// Steps follow one another. What the last layer to be visited leaves is what the
// next step begins with: retained there, in each step, and nowhere else.
// CHECK-LABEL: boa.step @step
// CHECK:         boa.loop layer %{{.*}} = 0 to 3 forward
// CHECK:           boa.release %{{.*}} retain
// CHECK:         boa.loop layer %[[L:.*]] = 0 to 3 reverse
// CHECK:           %[[FIRST:.*]] = boa.at_last %[[L]]
// CHECK-NEXT:      boa.release %{{.*}} retain %[[FIRST]]
// The same program, but not one that repeats.
// CHECK-LABEL: boa.step @evaluate
// CHECK:         boa.release %{{.*}} retain
// CHECK-NOT:       retain

module {
  boa.storage @w[3] : tensor<1024xf32> on ssd role weights chunks 1 persistent
  boa.step @step(%step, %pending) {
    boa.loop layer %l = 0 to 3 forward {
      %x = boa.prefetch @w[%l] : <tensor<1024xf32>, device>
      boa.launch @forward reads(%x : <tensor<1024xf32>, device>)
      boa.release %x : <tensor<1024xf32>, device>
    }
    boa.loop layer %l = 0 to 3 reverse {
      %x = boa.prefetch @w[%l] : <tensor<1024xf32>, device>
      boa.launch @backward updates(%x : <tensor<1024xf32>, device>)
      boa.offload %x, @w[%l] : <tensor<1024xf32>, device>
      boa.release %x : <tensor<1024xf32>, device>
    }
  }
  boa.step @evaluate(%step, %pending) {
    boa.loop layer %l = 0 to 3 forward {
      %x = boa.prefetch @w[%l] : <tensor<1024xf32>, device>
      boa.launch @forward reads(%x : <tensor<1024xf32>, device>)
      boa.release %x : <tensor<1024xf32>, device>
    }
    boa.loop layer %l = 0 to 3 reverse {
      %x = boa.prefetch @w[%l] : <tensor<1024xf32>, device>
      boa.launch @forward reads(%x : <tensor<1024xf32>, device>)
      boa.release %x : <tensor<1024xf32>, device>
    }
  }
}
