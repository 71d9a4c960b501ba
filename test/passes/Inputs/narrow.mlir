module {
  boa.config @model {context = 16 : i64, name = "narrow", vocab = 256 : i64}
  boa.config @train {
    batch = 8 : i64,
    clip = 0.0 : f64,
    commit_every = 0 : i64,
    commit_keep = 1 : i64,
    commit_seconds = 0.0 : f64,
    data = "kjv.txt",
    evaluate_batches = 1 : i64,
    evaluate_every = 0 : i64,
    nonfinite = "stop",
    objective = "next_token",
    optimizer = {beta1 = 0.9 : f64, beta2 = 0.95 : f64, eps = 1.0e-08 : f64, floor = 0.0 : f64, kind = "adamw", momentum = 0.0 : f64, peak = 1.0e-03 : f64, rate = "constant", warmup = 0 : i64, weight_decay = 0.1 : f64},
    seed = 1 : i64,
    steps = 3 : i64,
    weights = "f32"
  }
  boa.config @plan {
    delay = 0.0 : f64,
    micro_batch = 2 : i64,
    place = {boundary_gradients = "ssd", checkpoints = "ssd", gradients = "ssd", optimizer = "ssd", saved = "ssd", weights = "ssd"},
    prefetch = 1 : i64,
    recompute = false,
    schedule = "vertical"
  }
  boa.config @machine {
    device = "cpu", device_memory = 67108864 : i64, host_memory = 67108864 : i64,
    memory = "unified", name = "laptop",
    ssd = [{path = "state", read = 0 : i64, write = 0 : i64}], threads = 0 : i64
  }
  boa.group @params.embed repeat 1 {
    boa.param @wte : tensor<256x64xf32> = "normal" 0.02
  }
  boa.group @params.block repeat 3 {
    boa.param @w : tensor<64x64xf32> = "normal" 0.02
    boa.param @v : tensor<64x64xf32> = "normal" 0.02
  }
  boa.group @params.head repeat 1 {
    boa.param @ln : tensor<64xf32> = "ones"
  }
  boa.input @tokens from data : tensor<2x16xi32>
  boa.input @targets from data : tensor<2x16xi32>
  boa.stage @embed_forward(@tokens)
  boa.stage @block_forward(@embed_forward) repeat 3
  boa.stage @head_forward(@block_forward, @targets)

  func.func @embed_forward(%tokens: tensor<2x16xi32>, %wte: tensor<256x64xf32> {boa.param = @params.embed::@wte}) -> tensor<2x16x64xf32> {
    %0 = boa.embedding %wte, %tokens : (tensor<256x64xf32>, tensor<2x16xi32>) -> tensor<2x16x64xf32>
    return %0 : tensor<2x16x64xf32>
  }
  // What the activation function takes is rounded; what it gives is not.
  func.func @block_forward(%x: tensor<2x16x64xf32>, %w: tensor<64x64xf32> {boa.param = @params.block::@w}, %v: tensor<64x64xf32> {boa.param = @params.block::@v}) -> tensor<2x16x64xf32> {
    %0 = boa.linear %x, %w : (tensor<2x16x64xf32>, tensor<64x64xf32>) -> tensor<2x16x64xf32>
    %1 = boa.cast %0 : tensor<2x16x64xf32> to tensor<2x16x64xbf16>
    %2 = boa.cast %1 : tensor<2x16x64xbf16> to tensor<2x16x64xf32>
    %3 = boa.gelu %2 : tensor<2x16x64xf32>
    %4 = boa.linear %3, %v : (tensor<2x16x64xf32>, tensor<64x64xf32>) -> tensor<2x16x64xf32>
    %5 = boa.add %x, %4 : tensor<2x16x64xf32>, tensor<2x16x64xf32>
    return %5 : tensor<2x16x64xf32>
  }
  func.func @head_forward(%x: tensor<2x16x64xf32>, %targets: tensor<2x16xi32>, %ln: tensor<64xf32> {boa.param = @params.head::@ln}, %wte: tensor<256x64xf32> {boa.param = @params.embed::@wte}) -> tensor<f32> {
    %0 = boa.rms_norm %x, %ln : (tensor<2x16x64xf32>, tensor<64xf32>) -> tensor<2x16x64xf32>
    %1 = boa.linear %0, %wte transpose : (tensor<2x16x64xf32>, tensor<256x64xf32>) -> tensor<2x16x256xf32>
    %2 = boa.cross_entropy %1, %targets : (tensor<2x16x256xf32>, tensor<2x16xi32>) -> tensor<f32>
    return %2 : tensor<f32>
  }
}
