// RUN: boa-opt %S/Inputs/tiny.mlir --boa-differentiate --boa-build-step --boa-vertical-schedule \
// RUN:     --boa-split-optimizer | FileCheck %s
// RUN: boa-opt %S/Inputs/tiny.mlir --boa-differentiate --boa-build-step --boa-vertical-schedule \
// RUN:     --boa-split-optimizer=delay=0 | FileCheck %s --check-prefix=NONE
// RUN: boa-opt %S/Inputs/tiny.mlir --boa-differentiate --boa-build-step --boa-vertical-schedule \
// RUN:     --boa-split-optimizer=delay=1 | FileCheck %s --check-prefix=WHOLE
// RUN: boa-opt %S/Inputs/tiny.mlir --boa-differentiate --boa-build-step \
// RUN:     --boa-split-optimizer=delay=0.25 | FileCheck %s --check-prefix=HORIZONTAL
// RUN: sed 's/batch = 8/clip = 1.0, batch = 8/' %S/Inputs/tiny.mlir \
// RUN:   | boa-opt --boa-differentiate --boa-build-step --boa-vertical-schedule \
// RUN:     --boa-split-optimizer=delay=1 | FileCheck %s --check-prefix=CLIP

// The delay is that of the plan; the option wins over it.

// A gradient of which a part waits for the next step is no part of a commit: that
// comes after the drain.

// CHECK: boa.storage @gradients.block[3] {{.*}} chunks 15{{$}}

// A quarter of each layer's 15 chunks is left to the next step. There it comes
// before the first use of the layer's weights, with the step count of the step
// that made the gradient. The rest follows the layer's backward at once.

// CHECK-LABEL: boa.step @step
// CHECK-SAME:    (%[[STEP:.*]], %[[PENDING:.*]]) {
// CHECK:         boa.optimizer_update @embed[%{{.*}}] chunks 6 to 8 step %[[PENDING]]
// CHECK:         boa.call @embed_forward
// CHECK:         boa.loop layer %[[L:.*]] = 0 to 3 forward {
// CHECK-NEXT:      boa.optimizer_update @block[%[[L]]] chunks 11 to 15 step %[[PENDING]]
// CHECK-NEXT:      boa.loop micro_batch
// CHECK:             boa.call @block_forward
// CHECK:         boa.call @head_backward
// A group of one chunk is not divided.
// CHECK:         boa.optimizer_update @head[%{{.*}}] chunks 0 to 1 step %[[STEP]]
// CHECK:         boa.loop layer %[[L:.*]] = 0 to 3 reverse {
// CHECK-NEXT:      boa.loop micro_batch
// CHECK:             boa.accumulate %{{.*}}, @gradients.block[%[[L]]]
// CHECK-NEXT:      }
// CHECK-NEXT:      boa.optimizer_update @block[%[[L]]] chunks 0 to 11 step %[[STEP]]
// CHECK-NEXT:    }
// The embedding is tied to the head: complete only after its own backward.
// CHECK:         boa.call @embed_backward
// CHECK:         boa.optimizer_update @embed[%{{.*}}] chunks 0 to 6 step %[[STEP]]
// CHECK-NOT:     boa.optimizer_update

// The epilogue: what is pending before a save, an evaluation, the end.

// CHECK-LABEL: boa.step @drain
// CHECK-SAME:    (%{{.*}}, %[[PENDING:.*]]) {
// CHECK:         boa.optimizer_update @embed[%{{.*}}] chunks 6 to 8 step %[[PENDING]]
// CHECK:         boa.loop layer %[[L:.*]] = 0 to 3 forward {
// CHECK-NEXT:      boa.optimizer_update @block[%[[L]]] chunks 11 to 15 step %[[PENDING]]
// CHECK-NOT:     boa.optimizer_update
// CHECK-LABEL: boa.step @evaluate

// Without delay nothing is pending: the drain is empty.

// NONE:       boa.storage @gradients.block[3] {{.*}} chunks 15{{$}}
// NONE-LABEL: boa.step @step
// NONE-SAME:    (%[[STEP:.*]], %[[PENDING:.*]]) {
// NONE-NOT:     step %[[PENDING]]
// NONE:         boa.optimizer_update @block[%{{.*}}] chunks 0 to 15 step %[[STEP]]
// NONE-LABEL: boa.step @drain
// NONE-SAME:    (%{{.*}}, %{{.*}}) {
// NONE-NEXT:  }

// The whole update one step later: none of it in the step that makes the gradient.

// WHOLE-LABEL: boa.step @step
// WHOLE-SAME:    (%[[STEP:.*]], %[[PENDING:.*]]) {
// WHOLE-NOT:     step %[[STEP]]
// WHOLE:         boa.optimizer_update @block[%{{.*}}] chunks 0 to 15 step %[[PENDING]]
// WHOLE-NOT:     step %[[STEP]]
// WHOLE-LABEL: boa.step @drain
// WHOLE:         boa.optimizer_update @block[%{{.*}}] chunks 0 to 15

// In the horizontal order gradients are complete only after the last micro-batch.

// HORIZONTAL-LABEL: boa.step @step
// HORIZONTAL-SAME:    (%[[STEP:.*]], %[[PENDING:.*]]) {
// HORIZONTAL:         boa.loop layer %[[L:.*]] = 0 to 3 forward {
// HORIZONTAL-NEXT:      boa.optimizer_update @block[%[[L]]] chunks 11 to 15 step %[[PENDING]]
// HORIZONTAL-NEXT:    }
// HORIZONTAL:         boa.loop micro_batch
// HORIZONTAL-NOT:     boa.optimizer_update
// HORIZONTAL:         boa.call @embed_backward
// HORIZONTAL:         boa.optimizer_update @block[%{{.*}}] chunks 0 to 11 step %[[STEP]]

// Clipping with the whole step delayed is legal: the norm of all gradients is
// complete at the end of the step that made them, before any update.

// CLIP-LABEL: boa.step @step
// CLIP-SAME:    (%[[STEP:.*]], %[[PENDING:.*]]) {
// CLIP:         boa.optimizer_update @block[%{{.*}}] chunks 0 to 15 step %[[PENDING]]
// A layer's gradient is measured while it is in memory.
// CLIP:         boa.loop layer %[[L:.*]] = 0 to 3 reverse {
// CLIP:           boa.gradient_norm @block[%[[L]]]
// CLIP:         boa.finish_norm %[[STEP]]
// CLIP-NOT:     boa.optimizer_update {{.*}} step %[[STEP]]
// CLIP-LABEL: boa.step @drain
