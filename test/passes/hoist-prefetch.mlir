// RUN: boa-opt %s --boa-hoist-prefetch --split-input-file | FileCheck %s
// RUN: boa-opt %s --boa-hoist-prefetch --split-input-file --remarks-filter=boa-storage \
// RUN:   2>&1 | FileCheck %s --check-prefix=REMARK

// In the vertical order the weights of a layer are the same for all micro-batches:
// they move once. The activation is not, and stays. Nothing leaves the layer loop,
// whose weights differ.

// CHECK-LABEL: boa.step @evaluate
// CHECK:         boa.loop layer %[[L:.*]] = 0 to 3 forward {
// CHECK-NEXT:      %[[W:.*]] = boa.prefetch @w[%[[L]]]
// CHECK-NEXT:      boa.loop micro_batch %[[M:.*]] = 0 to 4 forward {
// CHECK-NOT:         @w
// CHECK:             boa.prefetch @x[%[[L]], %[[M]]]
// CHECK:             boa.launch @k reads(%{{.*}}, %[[W]] :
// CHECK:           }
// CHECK-NEXT:      boa.release %[[W]]
// CHECK-NEXT:    }
// REMARK: remark: [Passed] hoist-prefetch | Category:boa-storage | Remark="in @", Remark=evaluate, Remark=": ", hoisted=1

boa.storage @w[3] : tensor<8xf32> on ssd role weights persistent
boa.storage @x[4, 4] : tensor<4xf32> on ssd role checkpoints
boa.step @evaluate(%step, %pending) {
  boa.loop layer %l = 0 to 3 forward {
    boa.loop micro_batch %m = 0 to 4 forward {
      %x = boa.prefetch @x[%l, %m] : <tensor<4xf32>, device>
      %w = boa.prefetch @w[%l] : <tensor<8xf32>, device>
      boa.launch @k reads(%x, %w : <tensor<4xf32>, device>, <tensor<8xf32>, device>)
      boa.release %x : <tensor<4xf32>, device>
      boa.release %w : <tensor<8xf32>, device>
    }
  }
}

// -----

// An accumulator leaves the loop with its offload; zero in the first iteration is
// zero before the loop.

// CHECK-LABEL: boa.step @evaluate
// CHECK:         %[[TRUE:.*]] = arith.constant true
// CHECK:         %[[G:.*]] = boa.prefetch @g[%{{.*}}] zero %[[TRUE]]
// CHECK-NEXT:    boa.loop micro_batch
// CHECK:           boa.launch @k updates(%[[G]] :
// CHECK-NOT:       boa.offload
// CHECK:         }
// CHECK-NEXT:    boa.offload %[[G]], @g
// CHECK-NEXT:    boa.release %[[G]]

boa.storage @g[1] : tensor<8xf32> on ssd role gradients
boa.step @evaluate(%step, %pending) {
  boa.loop micro_batch %m = 0 to 4 forward {
    %c0 = arith.constant 0 : index
    %first = boa.at_first %m
    %g = boa.prefetch @g[%c0] zero %first : <tensor<8xf32>, device>
    boa.launch @k updates(%g : <tensor<8xf32>, device>)
    boa.offload %g, @g[%c0] : <tensor<8xf32>, device>
    boa.release %g : <tensor<8xf32>, device>
  }
}

// -----

// What the loop also writes through another buffer must be read again each time.

// CHECK-LABEL: boa.step @evaluate
// CHECK-NOT:     boa.prefetch
// CHECK:         boa.loop micro_batch
// CHECK-NEXT:      boa.prefetch @s
// REMARK: :[[#@LINE+3]]:1: remark: {{.*}}Remark=evaluate, Remark=": ", hoisted=0

boa.storage @s[1] : tensor<8xf32> on ssd role checkpoints persistent
boa.step @evaluate(%step, %pending) {
  %c0 = arith.constant 0 : index
  boa.loop micro_batch %m = 0 to 4 forward {
    %old = boa.prefetch @s[%c0] : <tensor<8xf32>, device>
    %new = boa.create @s[%c0] : <tensor<8xf32>, device>
    boa.launch @k reads(%old : <tensor<8xf32>, device>) writes(%new : <tensor<8xf32>, device>)
    boa.offload %new, @s[%c0] : <tensor<8xf32>, device>
    boa.release %old : <tensor<8xf32>, device>
    boa.release %new : <tensor<8xf32>, device>
  }
}

// -----

// Chunks stream: their loop is there to bound memory, so nothing leaves it.

// CHECK-LABEL: boa.step @evaluate
// CHECK:         boa.loop chunk
// CHECK-NEXT:      boa.prefetch @gradients.a

boa.group @a repeat 1 {
  boa.param @w : tensor<16384xf32> = "ones"
}
boa.storage @gradients.a[1] : tensor<16384xf32> on ssd role gradients chunks 4
boa.step @evaluate(%step, %pending) {
  %c0 = arith.constant 0 : index
  boa.loop chunk %c = 0 to 4 forward {
    %g = boa.prefetch @gradients.a[%c0] : <tensor<16384xf32>, host>
    boa.norm @a gradient %g : <tensor<16384xf32>, host>
    boa.release %g : <tensor<16384xf32>, host>
  }
}

// -----

// Within a block all transfers start before the first is used, but none before
// an offload of the same storage.

// CHECK-LABEL: boa.step @evaluate
// CHECK:         boa.prefetch @x[
// CHECK-NEXT:    boa.prefetch @w[
// CHECK:         boa.launch @k
// CHECK:         boa.offload %{{.*}}, @x[
// CHECK-NEXT:    boa.prefetch @x[
// CHECK:         boa.launch @k

boa.storage @w[1] : tensor<8xf32> on ssd role weights persistent
boa.storage @x[2] : tensor<8xf32> on ssd role checkpoints
boa.step @evaluate(%step, %pending) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %x = boa.prefetch @x[%c0] : <tensor<8xf32>, device>
  %w = boa.prefetch @w[%c0] : <tensor<8xf32>, device>
  boa.launch @k reads(%w : <tensor<8xf32>, device>) updates(%x : <tensor<8xf32>, device>)
  boa.offload %x, @x[%c1] : <tensor<8xf32>, device>
  boa.release %x : <tensor<8xf32>, device>
  %y = boa.prefetch @x[%c1] : <tensor<8xf32>, device>
  boa.launch @k reads(%w, %y : <tensor<8xf32>, device>, <tensor<8xf32>, device>)
  boa.release %y : <tensor<8xf32>, device>
  boa.release %w : <tensor<8xf32>, device>
}

// -----

// Zero in every iteration is not zero once,

// CHECK-LABEL: boa.step @evaluate
// CHECK:         boa.loop micro_batch
// CHECK-NEXT:      boa.prefetch @g[%{{.*}}] zero

boa.storage @g[1] : tensor<8xf32> on ssd role gradients
boa.step @evaluate(%step, %pending) {
  %c0 = arith.constant 0 : index
  %true = arith.constant true
  boa.loop micro_batch %m = 0 to 4 forward {
    %g = boa.prefetch @g[%c0] zero %true : <tensor<8xf32>, device>
    boa.launch @k updates(%g : <tensor<8xf32>, device>)
    boa.offload %g, @g[%c0] : <tensor<8xf32>, device>
    boa.release %g : <tensor<8xf32>, device>
  }
}

// -----

// but a condition that never holds zeroes nothing: this accumulates,

// CHECK-LABEL: boa.step @evaluate
// CHECK:         boa.prefetch @g[%{{.*}}] zero
// CHECK:         boa.loop micro_batch
// CHECK-NEXT:      boa.launch @k

boa.storage @g[1] : tensor<8xf32> on ssd role gradients persistent
boa.step @evaluate(%step, %pending) {
  %c0 = arith.constant 0 : index
  %false = arith.constant false
  boa.loop micro_batch %m = 0 to 4 forward {
    %g = boa.prefetch @g[%c0] zero %false : <tensor<8xf32>, device>
    boa.launch @k updates(%g : <tensor<8xf32>, device>)
    boa.offload %g, @g[%c0] : <tensor<8xf32>, device>
    boa.release %g : <tensor<8xf32>, device>
  }
}

// -----

// and what goes home before it is updated, or not at all, is not carried from one
// iteration to the next.

// CHECK-LABEL: boa.step @evaluate
// CHECK:         boa.loop micro_batch
// CHECK:           boa.prefetch @g
// CHECK:           boa.launch @k
// CHECK:         boa.loop micro_batch
// CHECK:           boa.prefetch @g
// CHECK:           boa.offload
// CHECK:           boa.launch @k

boa.storage @g[1] : tensor<8xf32> on ssd role checkpoints persistent
boa.step @evaluate(%step, %pending) {
  %c0 = arith.constant 0 : index
  boa.loop micro_batch %m = 0 to 4 forward {
    %g = boa.prefetch @g[%c0] : <tensor<8xf32>, device>
    boa.launch @k updates(%g : <tensor<8xf32>, device>)
    boa.release %g : <tensor<8xf32>, device>
  }
  boa.loop micro_batch %m = 0 to 4 forward {
    %g = boa.prefetch @g[%c0] : <tensor<8xf32>, device>
    boa.offload %g, @g[%c0] : <tensor<8xf32>, device>
    boa.launch @k updates(%g : <tensor<8xf32>, device>)
    boa.release %g : <tensor<8xf32>, device>
  }
}

// -----

// In memory a zeroed prefetch empties the entry at once: not before its last use.

// CHECK-LABEL: boa.step @evaluate
// CHECK:         boa.launch @k reads
// CHECK:         boa.prefetch @g[%{{.*}}] zero

boa.storage @g[1] : tensor<8xf32> on device role gradients persistent
boa.step @evaluate(%step, %pending) {
  %c0 = arith.constant 0 : index
  %true = arith.constant true
  %g = boa.prefetch @g[%c0] : <tensor<8xf32>, device>
  boa.launch @k reads(%g : <tensor<8xf32>, device>)
  boa.release %g : <tensor<8xf32>, device>
  %z = boa.prefetch @g[%c0] zero %true : <tensor<8xf32>, device>
  boa.launch @k updates(%z : <tensor<8xf32>, device>)
  boa.release %z : <tensor<8xf32>, device>
}

// -----

// The release stays with the condition that it retains by.

// CHECK-LABEL: boa.step @evaluate
// CHECK:         boa.loop micro_batch
// CHECK:           boa.prefetch @s
// CHECK:           boa.release %{{.*}} retain

boa.storage @s[1] : tensor<8xf32> on ssd role checkpoints persistent
boa.step @evaluate(%step, %pending) {
  %c0 = arith.constant 0 : index
  boa.loop micro_batch %m = 0 to 4 forward {
    %x = boa.prefetch @s[%c0] : <tensor<8xf32>, device>
    boa.launch @k reads(%x : <tensor<8xf32>, device>)
    %first = boa.at_first %m
    boa.release %x retain %first : <tensor<8xf32>, device>
  }
}

// -----

// One bad move does not cost the good ones. This gradient would be zeroed, and go
// home, also in a step in which the loop does not run; the weights leave their loop.

// REMARK: remark: [Missed] hoist-prefetch | Category:boa-storage | Remark="left a transfer of ", Remark=@g, Remark=" in @", Remark=step, Remark=" as it was: the program would compute something else"
// REMARK: remark: [Passed] hoist-prefetch | Category:boa-storage | {{.*}}Remark=step, {{.*}}hoisted=1

// CHECK-LABEL: boa.step @step
// CHECK:         boa.loop micro_batch %{{.*}} = 0 to 2 forward if
// CHECK:           boa.prefetch @g
// CHECK:           boa.offload %{{.*}}, @g
// CHECK:         boa.prefetch @w
// CHECK:         boa.loop micro_batch
// CHECK-NOT:       boa.prefetch
// CHECK:         }

boa.storage @w[1] : tensor<8xf32> on ssd role weights persistent
boa.storage @g[1] : tensor<8xf32> on ssd role checkpoints persistent
boa.step @step(%step, %pending) {
  %c0 = arith.constant 0 : index
  boa.loop micro_batch %m = 0 to 2 forward if %pending {
    %first = boa.at_first %m
    %g = boa.prefetch @g[%c0] zero %first : <tensor<8xf32>, device>
    boa.launch @k updates(%g : <tensor<8xf32>, device>)
    boa.offload %g, @g[%c0] : <tensor<8xf32>, device>
    boa.release %g : <tensor<8xf32>, device>
  }
  boa.loop micro_batch %m = 0 to 2 forward {
    %w = boa.prefetch @w[%c0] : <tensor<8xf32>, device>
    boa.launch @k reads(%w : <tensor<8xf32>, device>)
    boa.release %w : <tensor<8xf32>, device>
  }
}
