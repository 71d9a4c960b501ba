module {
  boa.config @machine {device_memory = 0 : i64, host_memory = 0 : i64}
  boa.config @model {name = "tiny"}
  boa.config @train {batch = 8 : i64, weights = "bf16", optimizer = {kind = "adamw"}}
  boa.config @plan {
    micro_batch = 2 : i64,
    delay = 0.25,
    prefetch = 1 : i64,
    place = {weights = "ssd", gradients = "ssd", optimizer = "ssd", checkpoints = "ssd", boundary_gradients = "ssd", saved = "ssd"}
  }
  boa.group @embed repeat 1 {
    boa.param @wte : tensor<16x8xf32> = "normal" 0.02
  }
  boa.group @block repeat 3 {
    boa.param @w : tensor<8x8xf32> = "normal" 0.02
    boa.param @b : tensor<8xf32> = "zeros"
  }
  boa.group @head repeat 1 {
    boa.param @ln : tensor<8xf32> = "ones"
  }
  boa.input @tokens from data : tensor<2x4xi32>
  boa.input @targets from data : tensor<2x4xi32>
  boa.stage @embed_forward(@tokens)
  boa.stage @block_forward(@embed_forward) repeat 3
  boa.stage @head_forward(@block_forward, @targets)

  func.func @embed_forward(%tokens: tensor<2x4xi32>, %wte: tensor<16x8xf32> {boa.param = @embed::@wte}) -> tensor<2x4x8xf32> {
    %0 = boa.embedding %wte, %tokens : (tensor<16x8xf32>, tensor<2x4xi32>) -> tensor<2x4x8xf32>
    return %0 : tensor<2x4x8xf32>
  }
  func.func @block_forward(%x: tensor<2x4x8xf32>, %w: tensor<8x8xf32> {boa.param = @block::@w}, %b: tensor<8xf32> {boa.param = @block::@b}) -> tensor<2x4x8xf32> {
    %0 = boa.linear %x, %w bias %b : (tensor<2x4x8xf32>, tensor<8x8xf32>, tensor<8xf32>) -> tensor<2x4x8xf32>
    %1 = boa.gelu %0 : tensor<2x4x8xf32>
    %2 = boa.add %x, %1 : tensor<2x4x8xf32>, tensor<2x4x8xf32>
    return %2 : tensor<2x4x8xf32>
  }
  func.func @head_forward(%x: tensor<2x4x8xf32>, %targets: tensor<2x4xi32>, %ln: tensor<8xf32> {boa.param = @head::@ln}, %wte: tensor<16x8xf32> {boa.param = @embed::@wte}) -> tensor<f32> {
    %0 = boa.rms_norm %x, %ln : (tensor<2x4x8xf32>, tensor<8xf32>) -> tensor<2x4x8xf32>
    %1 = boa.linear %0, %wte transpose : (tensor<2x4x8xf32>, tensor<16x8xf32>) -> tensor<2x4x16xf32>
    %2 = boa.cross_entropy %1, %targets : (tensor<2x4x16xf32>, tensor<2x4xi32>) -> tensor<f32>
    return %2 : tensor<f32>
  }
}
