module {
  boa.config @train {model = "narrow", batch = 8 : i64, micro_batch = 2 : i64, context = 16 : i64,
               optimizer = {kind = "adamw"},
               place = {weights = "ssd", gradients = "ssd", optimizer = "ssd", checkpoints = "ssd",
                        boundary_gradients = "ssd", saved = "ssd"}}
  boa.group @params.embed repeat 1 {
    boa.param @wte : tensor<256x32xf32> = "normal" 0.02
  }
  boa.group @params.block repeat 3 {
    boa.param @w : tensor<32x32xf32> = "normal" 0.02
    boa.param @v : tensor<32x32xf32> = "normal" 0.02
  }
  boa.group @params.head repeat 1 {
    boa.param @ln : tensor<32xf32> = "ones"
  }
  boa.stage @embed_forward
  boa.stage @block_forward repeat 3
  boa.stage @head_forward

  func.func @embed_forward(%tokens: tensor<2x16xi32>, %wte: tensor<256x32xf32> {boa.param = @params.embed::@wte}) -> tensor<2x16x32xf32> {
    %0 = boa.embedding %wte, %tokens : (tensor<256x32xf32>, tensor<2x16xi32>) -> tensor<2x16x32xf32>
    return %0 : tensor<2x16x32xf32>
  }
  // What the activation function takes is rounded; what it gives is not.
  func.func @block_forward(%x: tensor<2x16x32xf32>, %w: tensor<32x32xf32> {boa.param = @params.block::@w}, %v: tensor<32x32xf32> {boa.param = @params.block::@v}) -> tensor<2x16x32xf32> {
    %0 = boa.linear %x, %w : (tensor<2x16x32xf32>, tensor<32x32xf32>) -> tensor<2x16x32xf32>
    %1 = boa.cast %0 : tensor<2x16x32xf32> to tensor<2x16x32xbf16>
    %2 = boa.cast %1 : tensor<2x16x32xbf16> to tensor<2x16x32xf32>
    %3 = boa.gelu %2 : tensor<2x16x32xf32>
    %4 = boa.linear %3, %v : (tensor<2x16x32xf32>, tensor<32x32xf32>) -> tensor<2x16x32xf32>
    %5 = boa.add %x, %4 : tensor<2x16x32xf32>, tensor<2x16x32xf32>
    return %5 : tensor<2x16x32xf32>
  }
  func.func @head_forward(%x: tensor<2x16x32xf32>, %targets: tensor<2x16xi32>, %ln: tensor<32xf32> {boa.param = @params.head::@ln}, %wte: tensor<256x32xf32> {boa.param = @params.embed::@wte}) -> tensor<f32> {
    %0 = boa.rms_norm %x, %ln : tensor<2x16x32xf32>, tensor<32xf32> -> tensor<2x16x32xf32>
    %1 = boa.linear %0, %wte transpose : (tensor<2x16x32xf32>, tensor<256x32xf32>) -> tensor<2x16x256xf32>
    %2 = boa.cross_entropy %1, %targets : (tensor<2x16x256xf32>, tensor<2x16xi32>) -> tensor<f32>
    return %2 : tensor<f32>
  }
}
