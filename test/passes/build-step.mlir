// RUN: boa-opt %S/Inputs/tiny.mlir --boa-differentiate --boa-build-step | FileCheck %s
// RUN: sed 's/batch = 8/clip = 1.0, batch = 8/' %S/Inputs/tiny.mlir \
// RUN:   | boa-opt --boa-differentiate --boa-build-step | FileCheck %s --check-prefix=CLIP
// RUN: sed 's/batch = 8/nonfinite = "skip", batch = 8/' %S/Inputs/tiny.mlir \
// RUN:   | boa-opt --boa-differentiate --boa-build-step | FileCheck %s --check-prefix=CLIP
// RUN: sed 's/weights = "bf16"/weights = "f32"/' %S/Inputs/tiny.mlir \
// RUN:   | boa-opt --boa-differentiate --boa-build-step | FileCheck %s --check-prefix=F32
// RUN: sed 's/kind = "adamw"/kind = "sgd", momentum = 0.9, state = "int8"/' %S/Inputs/tiny.mlir \
// RUN:   | boa-opt --boa-differentiate --boa-build-step | FileCheck %s --check-prefix=SGD
// RUN: boa-opt %S/Inputs/tiny.mlir --boa-differentiate=recompute=false --boa-build-step \
// RUN:   | FileCheck %s --check-prefix=SAVE
// RUN: boa-opt %S/Inputs/tiny.mlir --boa-build-step=predict=true | FileCheck %s --check-prefix=PREDICT

// An entry of a checkpoint is one boundary of one micro-batch: 4 boundaries
// (after the embedding and after each of 3 layers) of 4 micro-batches. A group's
// parameters are one packed entry a layer: 512 * 512 + 512 elements, rounded up to
// 15 whole chunks. bf16 weights have the lower halves of their masters beside them.

// CHECK-DAG: boa.storage @checkpoints[4, 4] : tensor<2x16x512xf32> {{.*}} role checkpoints
// CHECK-DAG: boa.storage @boundary_gradients[4, 4] : tensor<2x16x512xf32> {{.*}} role boundary_gradients
// CHECK-DAG: boa.storage @weights.block[3] : tensor<276480xbf16> {{.*}} chunks 15 persistent
// CHECK-DAG: boa.storage @low.block[3] : tensor<276480xi16> {{.*}} role master chunks 15 persistent
// CHECK-DAG: boa.storage @momentum.block[3] : tensor<276480xf32> {{.*}} chunks 15 persistent
// CHECK-DAG: boa.storage @variance.block[3] : tensor<276480xf32> {{.*}} chunks 15 persistent
// Gradients do not outlive the step, until an optimizer is split.
// CHECK-DAG: boa.storage @gradients.block[3] : tensor<276480xf32> on device role gradients chunks 15{{$}}

// The horizontal order: micro-batches outside; forward layers up, backward layers
// down; then the optimizer, a loop for each group.

// CHECK-LABEL: boa.step @step
// CHECK-SAME:    (%[[STEP:.*]], %{{.*}}) {
// CHECK-NEXT:    boa.loop micro_batch %[[M:.*]] = 0 to 4 forward {
// CHECK:           boa.call @embed_forward
// CHECK:           boa.write %{{.*}}, @checkpoints[%{{.*}}, %[[M]]]
// CHECK-NEXT:      boa.loop layer %[[L:.*]] = 0 to 3 forward {
// CHECK-NEXT:        %[[X:.*]] = boa.read @checkpoints[%[[L]], %[[M]]]
// CHECK-NEXT:        %[[W:.*]] = boa.read @weights.block[%[[L]]]
// CHECK-NEXT:        %[[Y:.*]] = boa.call @block_forward(%[[X]], %[[W]])
// CHECK-NEXT:        %[[NEXT:.*]] = boa.shift %[[L]], 1
// CHECK-NEXT:        boa.write %[[Y]], @checkpoints[%[[NEXT]], %[[M]]]
// CHECK-NEXT:      }
// The last stage runs once: its backward function holds its forward.
// CHECK-NOT:       @head_forward
// CHECK:           boa.call @head_backward
// CHECK:           boa.write %{{.*}}, @loss[%[[M]]]
// The first contribution to a gradient sets it: that of the first micro-batch,
// and of the head before the embedding, whose table is tied.
// CHECK:           boa.accumulate %{{.*}}, @gradients.head[
// CHECK-NEXT:      %[[FIRST:.*]] = boa.at_first %[[M]]
// CHECK:           boa.accumulate %{{.*}}, @gradients.embed[%{{.*}}] initial %[[FIRST]]
// CHECK-NEXT:      boa.loop layer %[[L:.*]] = 0 to 3 reverse {
// CHECK-NEXT:        %[[X:.*]] = boa.read @checkpoints[%[[L]], %[[M]]]
// CHECK-NEXT:        %[[NEXT:.*]] = boa.shift %[[L]], 1
// CHECK-NEXT:        %[[DY:.*]] = boa.read @boundary_gradients[%[[NEXT]], %[[M]]]
// CHECK-NEXT:        %[[W:.*]] = boa.read @weights.block[%[[L]]]
// CHECK-NEXT:        %[[DX:.*]], %[[G:.*]] = boa.call @block_backward(%[[X]], %[[DY]], %[[W]])
// CHECK-NEXT:        boa.write %[[DX]], @boundary_gradients[%[[L]], %[[M]]]
// CHECK-NEXT:        %[[FIRST:.*]] = boa.at_first %[[M]]
// CHECK-NEXT:        boa.accumulate %[[G]], @gradients.block[%[[L]]] initial %[[FIRST]]
// CHECK-NEXT:      }
// CHECK:           boa.call @embed_backward
// CHECK:           %[[FALSE:.*]] = arith.constant false
// CHECK:           boa.accumulate %{{.*}}, @gradients.embed[%{{.*}}] initial %[[FALSE]]
// CHECK-NEXT:    }
// CHECK-NEXT:    boa.loop layer %[[L:.*]] = 0 to 1 forward {
// CHECK-NEXT:      boa.optimizer_update @embed[%[[L]]] chunks 0 to 8 step %[[STEP]]
// CHECK-NEXT:    }
// CHECK-NEXT:    boa.loop layer %[[L:.*]] = 0 to 3 forward {
// CHECK-NEXT:      boa.optimizer_update @block[%[[L]]] chunks 0 to 15 step %[[STEP]]
// CHECK-NEXT:    }
// CHECK-NEXT:    boa.loop layer %[[L:.*]] = 0 to 1 forward {
// CHECK-NEXT:      boa.optimizer_update @head[%[[L]]] chunks 0 to 1 step %[[STEP]]

// Evaluation is forward only, and changes no weight.

// CHECK-LABEL: boa.step @evaluate
// CHECK-NOT:     _backward
// CHECK-NOT:     boa.accumulate
// CHECK-NOT:     boa.optimizer_update
// CHECK:         boa.call @head_forward
// CHECK-NOT:     boa.optimizer_update

// Clipping measures all gradients before the first update.

// CLIP-LABEL: boa.step @step
// CLIP-SAME:    (%[[STEP:.*]], %{{.*}}) {
// CLIP:         boa.call @embed_backward
// CLIP:         boa.gradient_norm @embed
// CLIP:         boa.gradient_norm @block
// CLIP:         boa.gradient_norm @head
// CLIP:         boa.finish_norm %[[STEP]]
// CLIP:         boa.optimizer_update @embed

// f32 weights are their own masters.

// F32:     boa.storage @weights.block[3] : tensor<276480xf32>
// F32-NOT: boa.storage @low.block

// SGD has momentum, and no variance. In 8 bits a chunk of 18432 codes has 72 scales behind them,
// and fills whole blocks of 4096 bytes.

// SGD:     boa.optimizer @sgd {momentum = 9.000000e-01 : f64} states {momentum = si8} prepare {
// SGD:     } update {
// SGD:     boa.storage @momentum.block[3] : tensor<307200xi8> {{.*}} role state chunks 15 persistent
// SGD-NOT: boa.storage @variance
// SGD:     boa.optimizer_update @block

// What the forward pass saves is stored by layer and micro-batch, and read by the
// backward pass.

// SAVE:       boa.storage @saved.block[3, 4] : {{.*}} role saved
// SAVE-LABEL: boa.step @step
// SAVE:         %{{.*}}, %[[SAVED:.*]] = boa.call @block_forward_saving
// SAVE:         boa.write %[[SAVED]], @saved.block[%{{.*}}, %{{.*}}]
// SAVE:         %[[KEPT:.*]] = boa.read @saved.block[%{{.*}}, %{{.*}}]
// SAVE:         boa.call @block_backward(%{{.*}}, %[[KEPT]]
// SAVE-LABEL: boa.step @evaluate
// SAVE-NOT:     _saving

// Prediction is one entry point, whose result is the logits; no training state.

// PREDICT-LABEL: func.func @head_logits
// PREDICT-NOT:     boa.cross_entropy
// PREDICT:         return %{{.*}} : tensor<2x16x64xf32>
// PREDICT-NOT:   boa.storage @gradients
// PREDICT-NOT:   boa.storage @momentum
// PREDICT-NOT:   boa.step @step
// PREDICT-LABEL: boa.step @predict
// PREDICT:         boa.call @head_logits
// PREDICT:         boa.write %{{.*}}, @logits
// PREDICT-NOT:   boa.step @evaluate
