// RUN: boa-opt %s --boa-block-vocabulary --boa-verify-model | FileCheck %s
// RUN: boa-opt %s --boa-block-vocabulary --boa-differentiate --boa-build-step --boa-verify-step \
// RUN:   | FileCheck %s --check-prefix=STEP
// One block changes nothing.
// RUN: sed 's/vocabulary_blocks = 4/vocabulary_blocks = 1/' %s | boa-opt --boa-block-vocabulary \
// RUN:   | FileCheck %s --check-prefix=ONE

boa.config @model {vocab = 16 : i64, context = 4 : i64}
boa.config @plan {micro_batch = 2 : i64, vocabulary_blocks = 4 : i64}
boa.config @train {batch = 4 : i64}

// CHECK: boa.group @params.embed repeat 1 {
// CHECK-NEXT: boa.param @position : tensor<4x8xf32> = "zeros" number 1
// CHECK: boa.group @blocks.embed repeat 4 {
// CHECK-NEXT: boa.param @table : tensor<4x8xf32> = "normal" 2.000000e-02 split 0
boa.group @params.embed repeat 1 {
  boa.param @table : tensor<16x8xf32> = "normal" 2.0e-02
  boa.param @position : tensor<4x8xf32> = "zeros"
}
// Initial values follow from the numbers, which stay.
// CHECK: boa.group @params.head repeat 1 {
// CHECK-NEXT: boa.param @norm : tensor<8xf32> = "ones" number 1
// CHECK: boa.group @blocks.head repeat 4 {
// CHECK-NEXT: boa.param @w : tensor<8x4xf32> = "normal" 2.000000e-02 number 2 lr_scale 5.000000e-01 split 1
// CHECK-NEXT: boa.param @b : tensor<4xf32> = "zeros" number 0 split 0
// ONE-NOT: @blocks
boa.group @params.head repeat 1 {
  boa.param @b : tensor<16xf32> = "zeros"
  boa.param @norm : tensor<8xf32> = "ones"
  boa.param @w : tensor<8x16xf32> = "normal" 2.0e-02 lr_scale 5.0e-01
}

boa.input @tokens from data : tensor<2x4xi32>
boa.input @targets from data : tensor<2x4xi32>
// CHECK: boa.stage @embed.begin_forward(@tokens)
// CHECK-NEXT: boa.stage @embed.blocks_forward(@embed.begin_forward, @embed.begin_forward[1]) repeat 4
// CHECK-NEXT: boa.stage @embed_forward(@embed.blocks_forward)
// CHECK-NEXT: boa.stage @head_forward(@embed_forward)
// CHECK-NEXT: boa.stage @head.begin_forward(@targets)
// CHECK-NEXT: boa.stage @head.blocks_forward(@head.begin_forward, @head.begin_forward[1], @head.begin_forward[2], @head_forward) repeat 4
// CHECK-NEXT: boa.stage @head.loss_forward(@head.blocks_forward, @head.blocks_forward[1], @targets)
boa.stage @embed_forward(@tokens)
boa.stage @head_forward(@embed_forward, @targets)

// CHECK: func.func @embed.begin_forward(%[[T:.*]]: tensor<2x4xi32>) -> (tensor<2x4x8xf32>, tensor<2x4xi32>)
// CHECK-NEXT: %[[Y:.*]] = arith.constant dense<0.000000e+00> : tensor<2x4x8xf32>
// CHECK-NEXT: return %[[Y]], %[[T]]
// CHECK: func.func @embed.blocks_forward(%[[Y:.*]]: tensor<2x4x8xf32>, %[[T:.*]]: tensor<2x4xi32>, %[[W:.*]]: tensor<4x8xf32> {boa.param = @blocks.embed::@table}) -> (tensor<2x4x8xf32>, tensor<2x4xi32>)
// CHECK-NEXT: %[[ROWS:.*]] = boa.embedding %[[W]], %[[T]] partial
// CHECK-NEXT: %[[NEXT:.*]] = boa.add %[[Y]], %[[ROWS]]
// CHECK-NEXT: %[[REST:.*]] = boa.rebase %[[T]] by 4
// CHECK-NEXT: return %[[NEXT]], %[[REST]]
// CHECK: func.func @embed_forward(%[[Y:.*]]: tensor<2x4x8xf32>, %[[P:.*]]: tensor<4x8xf32> {boa.param = @params.embed::@position}) -> tensor<2x4x8xf32>
// CHECK-NEXT: boa.add %[[Y]], %[[P]]
func.func @embed_forward(%tokens: tensor<2x4xi32>,
                         %table: tensor<16x8xf32> {boa.param = @params.embed::@table},
                         %p: tensor<4x8xf32> {boa.param = @params.embed::@position})
    -> tensor<2x4x8xf32> {
  %y = boa.embedding %table, %tokens : (tensor<16x8xf32>, tensor<2x4xi32>) -> tensor<2x4x8xf32>
  %z = boa.add %y, %p : tensor<2x4x8xf32>, tensor<4x8xf32>
  return %z : tensor<2x4x8xf32>
}

// CHECK: func.func @head_forward(%{{.*}}: tensor<2x4x8xf32>, %{{.*}}: tensor<8xf32> {boa.param = @params.head::@norm}) -> tensor<2x4x8xf32>
// CHECK-NEXT: boa.rms_norm
// CHECK-NEXT: return
// CHECK: func.func @head.begin_forward(%[[T:.*]]: tensor<2x4xi32>) -> (tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xi32>)
// CHECK-NEXT: %[[L:.*]] = arith.constant dense<-1.000000e+30> : tensor<2x4xf32>
// CHECK-NEXT: %[[G:.*]] = arith.constant dense<0.000000e+00> : tensor<2x4xf32>
// CHECK-NEXT: return %[[L]], %[[G]], %[[T]]
// The product is computed again, whatever the plan keeps.
// CHECK: func.func @head.blocks_forward(%[[L:.*]]: tensor<2x4xf32>, %[[G:.*]]: tensor<2x4xf32>, %[[T:.*]]: tensor<2x4xi32>, %[[X:.*]]: tensor<2x4x8xf32>, %[[W:.*]]: tensor<8x4xf32> {boa.param = @blocks.head::@w}, %[[B:.*]]: tensor<4xf32> {boa.param = @blocks.head::@b}) -> (tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xi32>)
// CHECK-NEXT: %[[Z:.*]] = boa.linear %[[X]], %[[W]] bias %[[B]] {boa.activation = {save = false}}
// CHECK-NEXT: boa.cross_entropy_block %[[L]], %[[G]], %[[T]], %[[Z]]
// CHECK-NEXT: boa.rebase %[[T]] by 4
// CHECK: func.func @head.loss_forward(%[[L:.*]]: tensor<2x4xf32>, %[[G:.*]]: tensor<2x4xf32>, %[[T:.*]]: tensor<2x4xi32>) -> tensor<f32>
// CHECK-NEXT: boa.cross_entropy_end %[[L]], %[[G]], %[[T]]
func.func @head_forward(%x: tensor<2x4x8xf32>, %targets: tensor<2x4xi32>,
                        %norm: tensor<8xf32> {boa.param = @params.head::@norm},
                        %w: tensor<8x16xf32> {boa.param = @params.head::@w},
                        %b: tensor<16xf32> {boa.param = @params.head::@b}) -> tensor<f32> {
  %n = boa.rms_norm %x, %norm : (tensor<2x4x8xf32>, tensor<8xf32>) -> tensor<2x4x8xf32>
  %z = boa.linear %n, %w bias %b
      : (tensor<2x4x8xf32>, tensor<8x16xf32>, tensor<16xf32>) -> tensor<2x4x16xf32>
  %l = boa.cross_entropy %z, %targets : (tensor<2x4x16xf32>, tensor<2x4xi32>) -> tensor<f32>
  return %l : tensor<f32>
}

// Each block has weights and gradients of its own, and adds to the gradient of what all take.
// STEP: boa.storage @weights.blocks.embed[4]
// STEP: boa.storage @weights.blocks.head[4]
// STEP: boa.step @step
// STEP: boa.call @embed.begin_forward
// STEP: boa.loop layer %[[L:.*]] = 0 to 4 forward {
// STEP: boa.read @weights.blocks.embed[%[[L]]]
// STEP: boa.call @embed.blocks_forward
// STEP: boa.loop layer %[[L:.*]] = 0 to 4 forward {
// STEP: boa.read @weights.blocks.head[%[[L]]]
// STEP: boa.call @head.blocks_forward
// STEP: boa.call @head.loss_backward
// STEP: boa.loop layer %[[L:.*]] = 0 to 4 reverse {
// STEP: boa.call @head.blocks_backward
// STEP: boa.accumulate %{{.*}}, @boundary_gradients.head.sum
// STEP: boa.accumulate %{{.*}}, @gradients.blocks.head[%[[L]]]
// STEP: boa.loop layer %[[L:.*]] = 0 to 4 reverse {
// The table is not needed for its gradient, and tokens have none.
// STEP-NOT: @weights.blocks.embed
// STEP: boa.call @embed.blocks_backward
// STEP: boa.accumulate %{{.*}}, @gradients.blocks.embed[%[[L]]]
// STEP-NOT: @embed.begin_backward
// STEP: boa.optimizer_update
