// The names under which values are printed. Other tests capture names: only this one pins them.

// RUN: boa-opt %S/Inputs/tiny.mlir --boa-differentiate=recompute=false > %t.model
// RUN: FileCheck %s --check-prefix=MODEL < %t.model
// RUN: boa-opt %t.model | diff %t.model -
// RUN: boa-opt %S/Inputs/tiny.mlir --boa-differentiate --boa-build-step --boa-vertical-schedule \
// RUN:   > %t.step
// RUN: FileCheck %s --check-prefix=STEP < %t.step
// RUN: boa-opt %t.step | diff %t.step -
// RUN: boa-opt %t.step --boa-split-optimizer=delay=0.25 --boa-insert-offload \
// RUN:   --boa-assign-buffers > %t.storage
// RUN: FileCheck %s --check-prefix=STORAGE < %t.storage
// RUN: boa-opt %t.storage | diff %t.storage -
// RUN: boa-opt %s | FileCheck %s

// An argument that is a parameter has its name. The last activation of a backward function is
// the gradient of the stage's output; the last stage has none.

// MODEL-DAG: func.func @embed_forward(%tokens: tensor<2x16xi32>, %wte: tensor<64x512xf32> {{.*}}) ->
// MODEL-DAG: func.func @embed_backward(%tokens: tensor<2x16xi32>, %dy: tensor<2x16x512xf32>) ->
// MODEL-DAG: func.func @block_forward_saving(%x: tensor<2x16x512xf32>, %w: tensor<512x512xf32> {{.*}}, %b: tensor<512xf32> {{.*}}) ->
// MODEL-DAG: func.func @block_backward(%x: tensor<2x16x512xf32>, %w: tensor<512x512xf32> {{.*}}, %dy: tensor<2x16x512xf32>, %saved: tensor<2x16x512xf32> {boa.saved}) ->
// MODEL-DAG: func.func @head_backward(%x: tensor<2x16x512xf32>, %targets: tensor<2x16xi32>, %ln: tensor<512xf32> {{.*}}, %wte: tensor<64x512xf32> {{.*}}) ->

// A value of the step is named after the role of its storage. Inside the loop over layers that is
// all; outside, the name adds the stage or the layer.

// STEP-LABEL: boa.step @step(%step, %pending) {
// STEP:         boa.loop micro_batch %m = 0 to 4 forward {
// STEP:           %tokens = boa.read @input.tokens[%m]
// STEP:           %w.embed = boa.read @weights.embed[%{{.*}}]
// STEP:           %y.0 = boa.call @embed_forward(%tokens, %w.embed)
// STEP:         boa.loop layer %l = 0 to 3 forward {
// STEP-NEXT:      boa.loop micro_batch %m = 0 to 4 snake(%l + 1) {
// STEP:             %x = boa.read @checkpoints[%l, %m]
// STEP:             %w = boa.read @weights.block[%l]
// STEP:             %y = boa.call @block_forward(%x, %w)
// STEP:             %next = boa.shift %l, 1
// STEP:           %loss, %dx.3, %g.head, %g.embed = boa.call @head_backward(%x.3, %targets, %dloss, %w.head, %w.embed)
// STEP:           %first = boa.at_first %m
// STEP:         boa.loop layer %l = 0 to 3 reverse {
// STEP:             %dy = boa.read @boundary_gradients[%next, %m]
// STEP:             %dx, %g = boa.call @block_backward(%x, %dy, %w)

// Buffers of single chunks end in `.c`.

// STORAGE-LABEL: boa.step @step(%step, %pending) traffic {
// STORAGE:         boa.loop chunk %c = 6 to 8 forward if %pending {
// STORAGE:           %g.embed.c = boa.prefetch @gradients.embed[%{{.*}}] chunk %c count 1 :
// STORAGE:           %w.embed.c = boa.prefetch @weights.embed[%{{.*}}] chunk %c count 1 :
// STORAGE:         boa.loop layer %l = 0 to 3 forward {
// STORAGE:           boa.loop chunk %c = {{[0-9]+}} to 15 forward if %pending {
// STORAGE:             %g.c = boa.prefetch @gradients.block[%l] chunk %c count 1 :
// STORAGE:             %w.c = boa.prefetch @weights.block[%l] chunk %c count 1 :
// STORAGE:             %low.c = boa.prefetch @low.block[%l] chunk %c count 1 :
// STORAGE:             %momentum.c = boa.prefetch @momentum.block[%l] chunk %c count 1 :
// STORAGE:             %variance.c = boa.prefetch @variance.block[%l] chunk %c count 1 :
// STORAGE:           boa.loop micro_batch %m = 0 to 4 snake(%l + 1) {
// STORAGE:             %x = boa.prefetch @checkpoints[%l, %m] :
// STORAGE:             %y = boa.create @checkpoints[%next, %m] :
// STORAGE:         boa.loop micro_batch %m = 0 to 4 forward {
// STORAGE:           %dx.3 = boa.create @boundary_gradients[%{{.*}}, %m] :

// Indices and conditions: at the ends of the layers, and of the other loops.

// CHECK-LABEL: boa.step @evaluate(%step, %pending) {
// CHECK-NEXT:    boa.loop layer %l = 0 to 3 forward {
// CHECK-NEXT:      %begin = boa.at_first %l
// CHECK-NEXT:      %end = boa.at_last %l
// CHECK-NEXT:      %previous = boa.shift %l, -1
// CHECK-NEXT:      %0 = boa.shift %l, 0
// CHECK-NEXT:      boa.loop chunk %c = 0 to 3 forward {
// CHECK-NEXT:        %first = boa.at_first %c
// CHECK-NEXT:        %last = boa.at_last %c
// CHECK-NEXT:        boa.loop chunk %c_0 = 0 to 3 forward {
boa.step @evaluate(%a, %b) {
  boa.loop layer %i = 0 to 3 forward {
    %0 = boa.at_first %i
    %1 = boa.at_last %i
    %2 = boa.shift %i, -1
    %3 = boa.shift %i, 0
    boa.loop chunk %j = 0 to 3 forward {
      %4 = boa.at_first %j
      %5 = boa.at_last %j
      boa.loop chunk %k = 0 to 3 forward {
      }
    }
  }
}

// A sum takes gradients. The sum of a second result has its number.

boa.input @tokens from data : tensor<2xi32>
// CHECK: func.func @a_sum(%dy: tensor<2xf32>, %dy_0: tensor<2xf32>)
// CHECK: func.func @a.1_sum(%dy: tensor<3xf32>, %dy_0: tensor<3xf32>)
boa.stage @a_forward(@tokens)
func.func @a_forward(%t: tensor<2xi32>) -> (tensor<2xf32>, tensor<3xf32>) {
  %0 = arith.constant dense<0.0> : tensor<2xf32>
  %1 = arith.constant dense<0.0> : tensor<3xf32>
  return %0, %1 : tensor<2xf32>, tensor<3xf32>
}
func.func @a_sum(%a: tensor<2xf32>, %b: tensor<2xf32>) -> tensor<2xf32> {
  return %a : tensor<2xf32>
}
func.func @a.1_sum(%a: tensor<3xf32>, %b: tensor<3xf32>) -> tensor<3xf32> {
  return %a : tensor<3xf32>
}
