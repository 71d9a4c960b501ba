// A model with a name that no spec can hold, equal ops, casts and an op that nothing uses.
module @odd {
  boa.config @model {context = 3 : i64, name = "odd", vocab = 7 : i64}
  boa.config @train {batch = 2 : i64, data = "none", steps = 1 : i64}
  boa.config @plan {micro_batch = 2 : i64}
  boa.config @machine {
    device = "cpu"
  }
  boa.group @params.embed repeat 1 {
    boa.param @"odd\0A\22name" : tensor<7x4xf32> = "zeros"
  }
  boa.group @params.head repeat 1 {
    boa.param @w : tensor<4xf32> = "ones"
  }
  boa.input @tokens from data : tensor<2x3xi32>
  boa.input @targets from data : tensor<2x3xi32>
  boa.stage @embed_forward(@tokens)
  boa.stage @head_forward(@embed_forward, @targets)
  func.func @embed_forward(%tokens: tensor<2x3xi32>,
      %table: tensor<7x4xf32> {boa.param = @params.embed::@"odd\0A\22name"}) -> tensor<2x3x4xbf16> {
    %narrow = boa.cast %table : tensor<7x4xf32> to tensor<7x4xbf16>
    %y = boa.embedding %narrow, %tokens : (tensor<7x4xbf16>, tensor<2x3xi32>) -> tensor<2x3x4xbf16>
    return %y : tensor<2x3x4xbf16>
  }
  func.func @head_forward(%x: tensor<2x3x4xbf16>, %targets: tensor<2x3xi32>,
      %w: tensor<4xf32> {boa.param = @params.head::@w},
      %table: tensor<7x4xf32> {boa.param = @params.embed::@"odd\0A\22name"}) -> tensor<f32> {
    %wn = boa.cast %w : tensor<4xf32> to tensor<4xbf16>
    %tn = boa.cast %table : tensor<7x4xf32> to tensor<7x4xbf16>
    %unused = boa.gelu %x : tensor<2x3x4xbf16>
    %a = boa.rms_norm %x, %wn : (tensor<2x3x4xbf16>, tensor<4xbf16>) -> tensor<2x3x4xbf16>
    %b = boa.rms_norm %x, %wn {eps = 1.0e-5 : f64} : (tensor<2x3x4xbf16>, tensor<4xbf16>) -> tensor<2x3x4xbf16>
    %sum = boa.add %b, %a : tensor<2x3x4xbf16>, tensor<2x3x4xbf16>
    %logits = boa.linear %sum, %tn transpose : (tensor<2x3x4xbf16>, tensor<7x4xbf16>) -> tensor<2x3x7xbf16>
    %loss = boa.cross_entropy %logits, %targets : (tensor<2x3x7xbf16>, tensor<2x3xi32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}
