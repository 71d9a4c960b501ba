// RUN: boa-opt %S/Inputs/tiny.mlir --boa-differentiate | FileCheck %s
// RUN: boa-opt %S/Inputs/tiny.mlir --boa-differentiate=recompute=false | FileCheck %s --check-prefix=SAVE

// The first stage takes indices, which have no gradient: only the table has one.
// The table itself is not needed, so the function does not take it.

// CHECK-LABEL: func.func @embed_backward
// CHECK-SAME:    (%[[TOKENS:.*]]: tensor<2x16xi32>, %[[DY:.*]]: tensor<2x16x512xf32>)
// CHECK-SAME:    -> (tensor<64x512xf32> {boa.param = @embed::@wte})
// CHECK-NEXT:    %[[DTABLE:.*]] = boa.embedding_grad %[[TOKENS]], %[[DY]]
// CHECK-NEXT:    return %[[DTABLE]]

// The layer computes what it needs again from its boundary activation %x: the
// linear, but neither the activation function nor the residual, whose results no
// gradient uses. The gradient of x has two parts, which are added up.

// CHECK-LABEL: func.func @block_backward
// CHECK-SAME:    (%[[X:[a-z0-9]+]]: tensor<2x16x512xf32>, %[[W:[a-z0-9]+]]: tensor<512x512xf32> {boa.param = @block::@w}, %[[B:[a-z0-9]+]]: tensor<512xf32> {boa.param = @block::@b}, %[[DY:[a-z0-9]+]]: tensor<2x16x512xf32>)
// CHECK-SAME:    -> (tensor<2x16x512xf32>, tensor<512x512xf32> {boa.param = @block::@w}, tensor<512xf32> {boa.param = @block::@b})
// CHECK-NOT:     boa.gelu %
// CHECK:         %[[H:.*]] = boa.linear %[[X]], %[[W]] bias %[[B]]
// CHECK-NOT:     boa.gelu %
// CHECK:         %[[DH:.*]] = boa.gelu_grad %[[H]], %[[DY]]
// CHECK:         %[[DX:.*]] = boa.linear %[[DH]], %[[W]] transpose
// CHECK:         %[[DW:.*]] = boa.linear_weight_grad %[[X]], %[[DH]]
// CHECK:         %[[DB:.*]] = boa.sum_leading %[[DH]]
// CHECK:         %[[SUM:.*]] = boa.add %[[DY]], %[[DX]]
// CHECK-NEXT:    return %[[SUM]], %[[DW]], %[[DB]]

// The last stage's backward is fused with its forward: it returns the loss too, and
// takes the gradient of the step's loss.

// CHECK-LABEL: func.func @head_backward
// CHECK-SAME:    (%[[X:[a-z0-9]+]]: tensor<2x16x512xf32>, %[[TARGETS:[a-z0-9]+]]: tensor<2x16xi32>, %{{[a-z0-9]+}}: tensor<512xf32> {boa.param = @head::@ln}, %[[WTE:[a-z0-9]+]]: tensor<64x512xf32> {boa.param = @embed::@wte}, %[[DLOSS:dloss]]: tensor<f32>)
// CHECK-SAME:    -> (tensor<f32>, tensor<2x16x512xf32>, tensor<512xf32> {boa.param = @head::@ln}, tensor<64x512xf32> {boa.param = @embed::@wte})
// CHECK:         %[[N:.*]] = boa.rms_norm %[[X]]
// CHECK:         %[[LOGITS:.*]] = boa.linear %[[N]], %[[WTE]] transpose
// CHECK:         %[[LOSS:.*]] = boa.cross_entropy %[[LOGITS]], %[[TARGETS]]
// CHECK:         %[[DLOGITS:.*]] = boa.cross_entropy_grad %[[LOGITS]], %[[TARGETS]], %[[DLOSS]]
// CHECK:         %[[DN:.*]] = boa.linear %[[DLOGITS]], %[[WTE]] :
// CHECK:         %[[DWTE:.*]] = boa.linear_weight_grad %[[N]], %[[DLOGITS]] transpose
// CHECK:         %[[DX:.*]], %[[DLN:.*]] = boa.rms_norm_grad %[[X]], %{{.*}}, %[[DN]]
// CHECK:         return %[[LOSS]], %[[DX]], %[[DLN]], %[[DWTE]]

// Without recomputation the forward function returns what the backward one needs,
// marked boa.saved, and the backward function computes no forward op again; nor
// does it take the bias, which only those needed.

// SAVE-LABEL: func.func @block_forward_saving
// SAVE-SAME:    -> (tensor<2x16x512xf32>, tensor<2x16x512xf32> {boa.saved})
// SAVE:         %[[H:.*]] = boa.linear
// SAVE-NEXT:    %[[A:.*]] = boa.gelu %[[H]]
// SAVE-NEXT:    %[[Y:.*]] = boa.add %{{.*}}, %[[A]]
// SAVE-NEXT:    return %[[Y]], %[[H]]
// SAVE-LABEL: func.func @block_backward
// SAVE-NOT:     %{{[a-z0-9]+}}: tensor<512xf32>
// SAVE-SAME:    %[[SAVED:[a-z0-9]+]]: tensor<2x16x512xf32> {boa.saved})
// SAVE-NOT:     bias
// SAVE:         boa.gelu_grad %[[SAVED]]

// Stages that are no layers hold little: they recompute all the same.

// SAVE-NOT: @embed_forward_saving
// SAVE-NOT: @head_forward_saving
