// RUN: boa-opt %S/Inputs/bfloat.mlir --boa-verify-model --boa-differentiate=recompute=false | FileCheck %s
// RUN: boa-opt %S/Inputs/bfloat.mlir --boa-differentiate=recompute=false --boa-build-step \
// RUN:   | FileCheck %s --check-prefix=STEP
// RUN: boa-opt %S/Inputs/bfloat.mlir --boa-build-step=predict=true | FileCheck %s --check-prefix=PREDICT

// Of a table that is rounded the gradient is not: it is summed in f32.

// CHECK-LABEL: func.func @embed_backward
// CHECK-SAME:    %[[DY:[a-z0-9]+]]: tensor<2x16x64xbf16>) -> (tensor<256x64xf32> {boa.param = @params.embed::@wte})
// CHECK-NOT:     boa.cast
// CHECK:         return

// Activations are saved in bf16, the sums of attention's rows in f32; rounded parameters
// are not saved but rounded again.

// CHECK-LABEL: func.func @block_forward_saving
// CHECK-SAME:    -> (tensor<2x16x64xbf16>, tensor<2x16x64xbf16> {boa.saved}, tensor<2x16x64xbf16> {boa.saved}, tensor<2x16x64xbf16> {boa.saved}, tensor<2x16x64xbf16> {boa.saved}, tensor<2x4x16xf32> {boa.saved}, tensor<2x16x64xbf16> {boa.saved})
// CHECK-LABEL: func.func @block_backward
// CHECK-SAME:    %[[W:[a-z0-9]+]]: tensor<64x64xf32> {boa.param = @params.block::@w}
// CHECK:         boa.cast %[[W]] : tensor<64x64xf32> to tensor<64x64xbf16>
// CHECK:         boa.linear_weight_grad {{.*}} -> tensor<64x64xf32>

// The bias is used twice, and both parts of its gradient are sums.

// CHECK:         %[[ONE:.*]] = boa.sum_leading %{{.*}} : tensor<2x16x64xbf16> to tensor<64xf32>
// CHECK:         %[[DX:.*]], %[[DN:.*]], %[[OTHER:.*]] = boa.layer_norm_grad {{.*}} -> (tensor<2x16x64xbf16>, tensor<64xf32>, tensor<64xf32>)
// CHECK:         %[[DB:.*]] = boa.add %[[ONE]], %[[OTHER]] : tensor<64xf32>
// CHECK:         return %{{.*}}, %[[DN]], %[[DB]],

// STEP-DAG: boa.storage @loss[4] : tensor<f32>
// STEP-DAG: boa.storage @checkpoints[4, 4] : tensor<2x16x64xbf16>
// STEP-DAG: boa.storage @boundary_gradients[4, 4] : tensor<2x16x64xbf16>
// STEP-DAG: boa.storage @weights.block[3] : tensor<{{[0-9]+}}xbf16>
// STEP-DAG: boa.storage @gradients.block[3] : tensor<{{[0-9]+}}xf32>
// STEP-DAG: boa.storage @saved.block.bf16[3, 4] : tensor<10240xbf16>
// STEP-DAG: boa.storage @saved.block[3, 4] : tensor<128xf32>

// Whoever picks a token takes f32.

// PREDICT-LABEL: func.func @head_logits
// PREDICT:         %[[LOGITS:.*]] = boa.linear {{.*}} -> tensor<2x16x256xbf16>
// PREDICT:         %[[WIDE:.*]] = boa.cast %[[LOGITS]] : tensor<2x16x256xbf16> to tensor<2x16x256xf32>
// PREDICT-NEXT:    return %[[WIDE]] : tensor<2x16x256xf32>
// PREDICT:       boa.storage @logits[4] : tensor<2x16x256xf32>
