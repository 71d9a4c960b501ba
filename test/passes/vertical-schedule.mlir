// RUN: boa-opt %S/Inputs/tiny.mlir --boa-differentiate --boa-build-step --boa-vertical-schedule \
// RUN:   | FileCheck %s
// RUN: boa-opt %S/Inputs/tiny.mlir --boa-differentiate --boa-build-step \
// RUN:     --boa-vertical-schedule=snake=false | FileCheck %s --check-prefix=PLAIN
// RUN: sed 's/micro_batch = 2/snake = false, micro_batch = 2/' %S/Inputs/tiny.mlir \
// RUN:   | boa-opt --boa-differentiate --boa-build-step --boa-vertical-schedule \
// RUN:   | FileCheck %s --check-prefix=PLAIN
// RUN: boa-opt %S/Inputs/tiny.mlir --boa-differentiate --boa-build-step --boa-vertical-schedule \
// RUN:     --remarks-filter-passed=boa-schedule 2>&1 | FileCheck %s --check-prefix=REMARK
// RUN: sed 's/micro_batch = 2/schedule = "horizontal", micro_batch = 2/' %S/Inputs/tiny.mlir \
// RUN:   | boa-opt --boa-differentiate --boa-build-step --boa-vertical-schedule \
// RUN:     --remarks-filter-missed=boa-schedule 2>&1 | FileCheck %s --check-prefix=HORIZONTAL

// All micro-batches of a layer before the next layer: layers outside. Nests are
// numbered in the order in which they run, a layer counting as one: embedding 0,
// layers 1 to 3, head 4, layers 5 to 7 downward, embedding 8. Odd ones run their
// micro-batches backward. Layer 0 is nest 1, hence `%l + 1`; downward layer 0 is
// nest 7: the same parity.

// CHECK-LABEL: boa.step @step
// CHECK-NEXT:    boa.loop micro_batch %[[M:.*]] = 0 to 4 forward {
// CHECK:           boa.call @embed_forward
// CHECK:         boa.loop layer %[[L:.*]] = 0 to 3 forward {
// CHECK-NEXT:      boa.loop micro_batch %[[M:.*]] = 0 to 4 snake(%[[L]] + 1) {
// CHECK-NEXT:        boa.read @checkpoints[%[[L]], %[[M]]]
// CHECK:             boa.call @block_forward
// CHECK:         boa.loop micro_batch %{{.*}} = 0 to 4 forward {
// CHECK:           boa.call @head_backward
// CHECK:         boa.loop layer %[[L:.*]] = 0 to 3 reverse {
// CHECK-NEXT:      boa.loop micro_batch %[[M:.*]] = 0 to 4 snake(%[[L]] + 1) {
// CHECK:             boa.call @block_backward
// The first contribution is that of the first iteration, whichever micro-batch it is.
// CHECK:             %[[FIRST:.*]] = boa.at_first %[[M]]
// CHECK:             boa.accumulate %{{.*}}, @gradients.block[%[[L]]] initial %[[FIRST]]
// CHECK:         boa.loop micro_batch %{{.*}} = 0 to 4 forward {
// CHECK:           boa.call @embed_backward
// CHECK:         boa.optimizer_update @embed

// Evaluation moves the weights of a layer once, too.

// CHECK-LABEL: boa.step @evaluate
// CHECK:         boa.loop layer %[[L:.*]] = 0 to 3 forward {
// CHECK-NEXT:      boa.loop micro_batch %{{.*}} = 0 to 4 snake(%[[L]] + 1) {

// PLAIN-LABEL: boa.step @step
// PLAIN-NOT:     snake
// PLAIN:         boa.loop layer %{{.*}} = 0 to 3 forward {
// PLAIN-NEXT:      boa.loop micro_batch %{{.*}} = 0 to 4 forward {
// PLAIN-NOT:     snake

// What it did is a remark.

// REMARK: remark: [Passed] vertical-schedule | Category:boa-schedule | Remark="distributed and interchanged the micro_batch loop of @", Remark=step

// A plan in horizontal order stays as it is.

// HORIZONTAL:       left micro-batches outside: the plan's schedule is horizontal
// HORIZONTAL-LABEL: boa.step @step
// HORIZONTAL-NEXT:    boa.loop micro_batch %{{.*}} = 0 to 4 forward {
// HORIZONTAL:           boa.loop layer
