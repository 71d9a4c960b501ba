// RUN: boa-opt %s --boa-block-vocabulary --boa-verify-model | FileCheck %s
// RUN: boa-opt %s --boa-block-vocabulary --boa-differentiate --boa-build-step \
// RUN:   --boa-vertical-schedule --boa-split-optimizer --boa-verify-step \
// RUN:   | FileCheck %s --check-prefix=STEP

// Embedding and head take one table: the same parts.

boa.config @model {vocab = 16 : i64, context = 4 : i64}
boa.config @plan {micro_batch = 2 : i64, vocabulary_blocks = 4 : i64}
boa.config @train {batch = 4 : i64}

// CHECK-NOT: @params
// CHECK: boa.group @blocks.embed repeat 4 {
// CHECK-NEXT: boa.param @table : tensor<4x8xf32> = "normal" 2.000000e-02 split 0
// CHECK-NEXT: }
// CHECK-NOT: boa.group
boa.group @params.embed repeat 1 {
  boa.param @table : tensor<16x8xf32> = "normal" 2.0e-02
}
boa.input @tokens from data : tensor<2x4xi32>
boa.input @targets from data : tensor<2x4xi32>
boa.stage @embed_forward(@tokens)
boa.stage @head_forward(@embed_forward, @targets)

// CHECK: func.func @embed.blocks_forward({{.*}} tensor<4x8xf32> {boa.param = @blocks.embed::@table}) -> (tensor<2x4x8xbf16>, tensor<2x4xi32>)
func.func @embed_forward(%tokens: tensor<2x4xi32>,
                         %table: tensor<16x8xf32> {boa.param = @params.embed::@table})
    -> tensor<2x4x8xbf16> {
  // Rows go from block to block as the embedding gives them.
  // CHECK-NEXT: boa.cast %{{.*}} : tensor<4x8xf32> to tensor<4x8xbf16>
  // CHECK: func.func @embed_forward(%[[Y:.*]]: tensor<2x4x8xbf16>) -> tensor<2x4x8xbf16>
  // CHECK-NEXT: return %[[Y]]
  %0 = boa.cast %table : tensor<16x8xf32> to tensor<16x8xbf16>
  %y = boa.embedding %0, %tokens : (tensor<16x8xbf16>, tensor<2x4xi32>) -> tensor<2x4x8xbf16>
  return %y : tensor<2x4x8xbf16>
}
// CHECK: func.func @head.blocks_forward({{.*}} tensor<4x8xf32> {boa.param = @blocks.embed::@table}) -> (tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xi32>)
func.func @head_forward(%x: tensor<2x4x8xbf16>, %targets: tensor<2x4xi32>,
                        %w: tensor<16x8xf32> {boa.param = @params.embed::@table}) -> tensor<f32> {
  %0 = boa.cast %w : tensor<16x8xf32> to tensor<16x8xbf16>
  %z = boa.linear %x, %0 transpose
      : (tensor<2x4x8xbf16>, tensor<16x8xbf16>) -> tensor<2x4x16xbf16>
  %l = boa.cross_entropy %z, %targets : (tensor<2x4x16xbf16>, tensor<2x4xi32>) -> tensor<f32>
  return %l : tensor<f32>
}

// The gradient of a block is the sum of what both give, and its update comes after that.
// STEP: boa.loop layer %[[L:.*]] = 0 to 4 reverse {
// STEP: boa.call @head.blocks_backward
// STEP: boa.accumulate %{{.*}}, @gradients.blocks.embed[%[[L]]] initial %
// STEP-NOT: boa.optimizer_update
// STEP: boa.loop layer %[[L:.*]] = 0 to 4 reverse {
// STEP: boa.call @embed.blocks_backward
// STEP: boa.accumulate %{{.*}}, @gradients.blocks.embed[%[[L]]] initial %false
// STEP: boa.optimizer_update @blocks.embed
