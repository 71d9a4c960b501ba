// RUN: boa-opt %s --split-input-file --verify-diagnostics --boa-block-vocabulary

boa.config @plan {micro_batch = 2 : i64, vocabulary_blocks = 3 : i64}
boa.group @params.embed repeat 1 {
  boa.param @w : tensor<12x8xf32> = "normal" 2.0e-02
}
boa.group @params.head repeat 1 {
  boa.param @w : tensor<8x16xf32> = "normal" 2.0e-02
}
boa.input @tokens from data : tensor<2x4xi32>
boa.input @targets from data : tensor<2x4xi32>
boa.stage @embed_forward(@tokens)
boa.stage @head_forward(@embed_forward, @targets)
func.func @embed_forward(%x: tensor<2x4xi32>,
                         %w: tensor<12x8xf32> {boa.param = @params.embed::@w}) -> tensor<2x4x8xf32> {
  %y = boa.embedding %w, %x : (tensor<12x8xf32>, tensor<2x4xi32>) -> tensor<2x4x8xf32>
  return %y : tensor<2x4x8xf32>
}
func.func @head_forward(%x: tensor<2x4x8xf32>, %targets: tensor<2x4xi32>,
                        %w: tensor<8x16xf32> {boa.param = @params.head::@w}) -> tensor<f32> {
  // expected-error @+1 {{cannot stream the vocabulary in 3 blocks: they do not divide its 16 tokens, as 2 or 4 would}}
  %z = boa.linear %x, %w : (tensor<2x4x8xf32>, tensor<8x16xf32>) -> tensor<2x4x16xf32>
  %l = boa.cross_entropy %z, %targets : (tensor<2x4x16xf32>, tensor<2x4xi32>) -> tensor<f32>
  return %l : tensor<f32>
}

// -----

boa.config @plan {micro_batch = 2 : i64, vocabulary_blocks = 4 : i64}
boa.group @params.embed repeat 1 {
  boa.param @w : tensor<8x8xf32> = "normal" 2.0e-02
}
boa.input @tokens from data : tensor<2x4xi32>
boa.input @targets from data : tensor<2x4xi32>
boa.stage @embed_forward(@tokens)
boa.stage @head_forward(@embed_forward, @targets)
func.func @embed_forward(%x: tensor<2x4xi32>,
                         %w: tensor<8x8xf32> {boa.param = @params.embed::@w}) -> tensor<2x4x8xf32> {
  %y = boa.embedding %w, %x : (tensor<8x8xf32>, tensor<2x4xi32>) -> tensor<2x4x8xf32>
  return %y : tensor<2x4x8xf32>
}
// Its columns are not what the embedding has in blocks.
func.func @head_forward(%x: tensor<2x4x8xf32>, %targets: tensor<2x4xi32>,
                        %w: tensor<8x8xf32> {boa.param = @params.embed::@w}) -> tensor<f32> {
  // expected-error @+1 {{cannot stream the vocabulary in 4 blocks: @head_forward takes @params.embed::@w, too, as a whole}}
  %z = boa.linear %x, %w : (tensor<2x4x8xf32>, tensor<8x8xf32>) -> tensor<2x4x8xf32>
  %l = boa.cross_entropy %z, %targets : (tensor<2x4x8xf32>, tensor<2x4xi32>) -> tensor<f32>
  return %l : tensor<f32>
}

// -----

boa.config @plan {micro_batch = 2 : i64, vocabulary_blocks = 4 : i64}
boa.group @params.embed repeat 1 {
  boa.param @w : tensor<8x8xf32> = "normal" 2.0e-02
}
boa.input @tokens from data : tensor<2x4xi32>
boa.input @targets from data : tensor<2x4xi32>
boa.stage @embed_forward(@tokens)
boa.stage @head_forward(@embed_forward, @targets)
// expected-error @+1 {{cannot stream the vocabulary in 4 blocks: expected the first stage to use its tokens in one embedding}}
func.func @embed_forward(%x: tensor<2x4xi32>,
                         %w: tensor<8x8xf32> {boa.param = @params.embed::@w}) -> tensor<2x4x8xf32> {
  %y = boa.embedding %w, %x : (tensor<8x8xf32>, tensor<2x4xi32>) -> tensor<2x4x8xf32>
  %z = boa.embedding %w, %x : (tensor<8x8xf32>, tensor<2x4xi32>) -> tensor<2x4x8xf32>
  %s = boa.add %y, %z : tensor<2x4x8xf32>, tensor<2x4x8xf32>
  return %s : tensor<2x4x8xf32>
}
func.func @head_forward(%x: tensor<2x4x8xf32>, %targets: tensor<2x4xi32>,
                        %w: tensor<8x8xf32> {boa.param = @params.embed::@w}) -> tensor<f32> {
  %z = boa.linear %x, %w transpose : (tensor<2x4x8xf32>, tensor<8x8xf32>) -> tensor<2x4x8xf32>
  %l = boa.cross_entropy %z, %targets : (tensor<2x4x8xf32>, tensor<2x4xi32>) -> tensor<f32>
  return %l : tensor<f32>
}

// -----

boa.config @plan {micro_batch = 2 : i64, vocabulary_blocks = 4 : i64}
boa.group @params.embed repeat 1 {
  boa.param @w : tensor<12x8xf32> = "normal" 2.0e-02
}
boa.group @params.head repeat 1 {
  boa.param @w : tensor<8x16xf32> = "normal" 2.0e-02
}
boa.input @tokens from data : tensor<2x4xi32>
boa.input @targets from data : tensor<2x4xi32>
boa.stage @embed_forward(@tokens)
boa.stage @head_forward(@embed_forward, @targets)
func.func @embed_forward(%x: tensor<2x4xi32>,
                         %w: tensor<12x8xf32> {boa.param = @params.embed::@w}) -> tensor<2x4x8xf32> {
  %y = boa.embedding %w, %x : (tensor<12x8xf32>, tensor<2x4xi32>) -> tensor<2x4x8xf32>
  return %y : tensor<2x4x8xf32>
}
func.func @head_forward(%x: tensor<2x4x8xf32>, %targets: tensor<2x4xi32>,
                        %w: tensor<8x16xf32> {boa.param = @params.head::@w}) -> tensor<f32> {
  %z = boa.linear %x, %w : (tensor<2x4x8xf32>, tensor<8x16xf32>) -> tensor<2x4x16xf32>
  %s = boa.scale %z by 0.5 : tensor<2x4x16xf32>
  // expected-error @+1 {{cannot stream the vocabulary in 4 blocks: expected the last stage to return cross_entropy(linear(x, w), targets), and to use neither the product nor the targets elsewhere}}
  %l = boa.cross_entropy %s, %targets : (tensor<2x4x16xf32>, tensor<2x4xi32>) -> tensor<f32>
  return %l : tensor<f32>
}

// -----

// expected-error @+2 {{expected split in a group of parts, @blocks.NAME, and only there}}
boa.group @params.head repeat 2 {
  boa.param @w : tensor<8x16xf32> = "normal" 2.0e-02 split 1
}

// -----

// expected-error @+2 {{expected to be split along one of its dimensions but found 2}}
boa.group @blocks.head repeat 2 {
  boa.param @w : tensor<8x16xf32> = "normal" 2.0e-02 split 2
}
