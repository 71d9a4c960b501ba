// RUN: boa-opt %s --boa-hoist-prefetch --boa-elide-transfers --boa-retain-buffers \
// RUN:   --boa-assign-buffers | FileCheck %s

// All layers take one weight. Its prefetch leaves the layer loops, but does not rise above
// the release before it: one slot is enough, and the second prefetch takes up the copy
// that the first buffer retains, without a read.

// CHECK:       boa.storage @w[1] : {{.*}} slots device 1 x 1
// CHECK-LABEL: boa.step @step
// CHECK:         %[[FIRST:.*]] = boa.prefetch @w[
// CHECK-NOT:     boa.prefetch @w[
// CHECK:         boa.loop layer
// CHECK:         boa.release %[[FIRST]] retain
// CHECK:         %[[SECOND:.*]] = boa.prefetch @w[
// CHECK-NOT:     boa.prefetch @w[
// CHECK:         boa.loop layer
// CHECK:         boa.release %[[SECOND]]

module {
  boa.config @plan {prefetch = 0 : i64}
  boa.storage @w[1] : tensor<8xf32> on ssd role weights persistent
  boa.step @step(%step, %pending) {
    %c0 = arith.constant 0 : index
    boa.loop layer %l = 0 to 3 forward {
      %w = boa.prefetch @w[%c0] : <tensor<8xf32>, device>
      boa.launch @forward reads(%w : <tensor<8xf32>, device>)
      boa.release %w : <tensor<8xf32>, device>
    }
    boa.loop layer %l = 0 to 3 reverse {
      %w = boa.prefetch @w[%c0] : <tensor<8xf32>, device>
      boa.launch @backward reads(%w : <tensor<8xf32>, device>)
      boa.release %w : <tensor<8xf32>, device>
    }
  }
}
