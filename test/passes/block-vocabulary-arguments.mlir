// RUN: boa-opt %s --boa-block-vocabulary --boa-verify-model | FileCheck %s

// The first stage returns its tokens, too. The product of the last one takes a parameter.

boa.config @model {vocab = 16 : i64, context = 4 : i64}
boa.config @plan {micro_batch = 2 : i64, vocabulary_blocks = 4 : i64}
boa.config @train {batch = 4 : i64}
boa.group @params.embed repeat 1 {
  boa.param @table : tensor<16x8xf32> = "normal" 2.0e-02
}
boa.group @params.head repeat 1 {
  boa.param @p : tensor<2x4x8xf32> = "normal" 2.0e-02
  boa.param @w : tensor<8x16xf32> = "normal" 2.0e-02
}

boa.input @tokens from data : tensor<2x4xi32>
boa.input @targets from data : tensor<2x4xi32>
// CHECK: boa.stage @embed_forward(@embed.blocks_forward, @tokens)
// CHECK: boa.stage @head_forward(@embed_forward)
// CHECK: boa.stage @head.blocks_forward(@head.begin_forward, @head.begin_forward[1], @head.begin_forward[2], @head_forward) repeat 4
boa.stage @embed_forward(@tokens)
boa.stage @head_forward(@embed_forward, @targets)

// CHECK: func.func @embed_forward(%[[Y:.*]]: tensor<2x4x8xf32>, %[[T:.*]]: tensor<2x4xi32>) -> (tensor<2x4x8xf32>, tensor<2x4xi32>)
// CHECK-NEXT: return %[[Y]], %[[T]]
func.func @embed_forward(%tokens: tensor<2x4xi32>,
                         %table: tensor<16x8xf32> {boa.param = @params.embed::@table})
    -> (tensor<2x4x8xf32>, tensor<2x4xi32>) {
  %y = boa.embedding %table, %tokens : (tensor<16x8xf32>, tensor<2x4xi32>) -> tensor<2x4x8xf32>
  return %y, %tokens : tensor<2x4x8xf32>, tensor<2x4xi32>
}
// CHECK: func.func @head_forward(%{{.*}}: tensor<2x4x8xf32>, %[[P:.*]]: tensor<2x4x8xf32> {boa.param = @params.head::@p}) -> tensor<2x4x8xf32>
// CHECK-NEXT: return %[[P]]
func.func @head_forward(%x: tensor<2x4x8xf32>, %targets: tensor<2x4xi32>,
                        %p: tensor<2x4x8xf32> {boa.param = @params.head::@p},
                        %w: tensor<8x16xf32> {boa.param = @params.head::@w}) -> tensor<f32> {
  %z = boa.linear %p, %w : (tensor<2x4x8xf32>, tensor<8x16xf32>) -> tensor<2x4x16xf32>
  %l = boa.cross_entropy %z, %targets : (tensor<2x4x16xf32>, tensor<2x4xi32>) -> tensor<f32>
  return %l : tensor<f32>
}
