// RUN: boa-opt %s --boa-verify-model --boa-differentiate=recompute=false | FileCheck %s

// What backward needs more than once is saved once, and what costs nothing is not saved. The norm is read by
// the gradients of two products. Both parts of the split lie in the first product, which is saved instead.
// Weights are where they are: a rounded one is rounded again.

// CHECK-LABEL: func.func @block_forward_saving
// CHECK-SAME:    -> (tensor<2x4x8xbf16>, tensor<2x4x8xbf16> {boa.saved}, tensor<2x4x16xbf16> {boa.saved}, tensor<2x4x8xbf16> {boa.saved})
// CHECK:         %[[N:.*]] = boa.rms_norm
// CHECK:         %[[P:.*]] = boa.linear %[[N]], %{{.*}} -> tensor<2x4x16xbf16>
// CHECK-DAG:     boa.split %[[P]]
// CHECK-DAG:     %[[Q:.*]] = boa.linear %[[N]], %{{.*}} -> tensor<2x4x8xbf16>
// CHECK:         return %{{.*}}, %[[N]], %[[P]], %[[Q]] :
// CHECK-LABEL: func.func @block_backward
// CHECK-SAME:    %[[N:saved]]: tensor<2x4x8xbf16> {boa.saved}, %[[P:[a-z0-9_]+]]: tensor<2x4x16xbf16> {boa.saved}
// CHECK-DAG:     boa.split %[[P]]
// CHECK-DAG:     boa.cast %{{.*}} : tensor<8x16xf32> to tensor<8x16xbf16>
// CHECK-DAG:     boa.linear_weight_grad %[[N]], %{{.*}} -> tensor<8x16xf32>
// CHECK-DAG:     boa.linear_weight_grad %[[N]], %{{.*}} -> tensor<8x8xf32>

boa.config @train {batch = 2 : i64, compute = "bf16"}
boa.group @embed repeat 1 {
  boa.param @wte : tensor<16x8xf32> = "ones"
}
boa.group @block repeat 2 {
  boa.param @norm : tensor<8xf32> = "ones"
  boa.param @up : tensor<8x16xf32> = "ones"
  boa.param @gate : tensor<8x8xf32> = "ones"
}
boa.input @tokens from data : tensor<2x4xi32>
boa.input @targets from data : tensor<2x4xi32>
boa.stage @embed_forward(@tokens)
boa.stage @block_forward(@embed_forward) repeat 2
boa.stage @head_forward(@block_forward, @targets)
func.func @embed_forward(%tokens: tensor<2x4xi32>, %wte: tensor<16x8xf32> {boa.param = @embed::@wte}) -> tensor<2x4x8xbf16> {
  %w = boa.cast %wte : tensor<16x8xf32> to tensor<16x8xbf16>
  %0 = boa.embedding %w, %tokens : (tensor<16x8xbf16>, tensor<2x4xi32>) -> tensor<2x4x8xbf16>
  return %0 : tensor<2x4x8xbf16>
}
func.func @block_forward(%x: tensor<2x4x8xbf16>, %norm: tensor<8xf32> {boa.param = @block::@norm}, %up: tensor<8x16xf32> {boa.param = @block::@up}, %gate: tensor<8x8xf32> {boa.param = @block::@gate}) -> tensor<2x4x8xbf16> {
  %0 = boa.cast %norm : tensor<8xf32> to tensor<8xbf16>
  %n = boa.rms_norm %x, %0 : (tensor<2x4x8xbf16>, tensor<8xbf16>) -> tensor<2x4x8xbf16>
  %1 = boa.cast %up : tensor<8x16xf32> to tensor<8x16xbf16>
  %p = boa.linear %n, %1 : (tensor<2x4x8xbf16>, tensor<8x16xbf16>) -> tensor<2x4x16xbf16>
  %s:2 = boa.split %p : (tensor<2x4x16xbf16>) -> (tensor<2x4x8xbf16>, tensor<2x4x8xbf16>)
  %2 = boa.cast %gate : tensor<8x8xf32> to tensor<8x8xbf16>
  %q = boa.linear %n, %2 : (tensor<2x4x8xbf16>, tensor<8x8xbf16>) -> tensor<2x4x8xbf16>
  %g = boa.gelu %q : tensor<2x4x8xbf16>
  %m = boa.mul %s#0, %s#1 : tensor<2x4x8xbf16>, tensor<2x4x8xbf16>
  %y = boa.add %m, %g : tensor<2x4x8xbf16>, tensor<2x4x8xbf16>
  return %y : tensor<2x4x8xbf16>
}
func.func @head_forward(%x: tensor<2x4x8xbf16>, %targets: tensor<2x4xi32>, %wte: tensor<16x8xf32> {boa.param = @embed::@wte}) -> tensor<f32> {
  %w = boa.cast %wte : tensor<16x8xf32> to tensor<16x8xbf16>
  %0 = boa.linear %x, %w transpose : (tensor<2x4x8xbf16>, tensor<16x8xbf16>) -> tensor<2x4x16xbf16>
  %1 = boa.cross_entropy %0, %targets : (tensor<2x4x16xbf16>, tensor<2x4xi32>) -> tensor<f32>
  return %1 : tensor<f32>
}
