module {
  boa.config @model {context = 16 : i64, name = "bfloat", vocab = 256 : i64}
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
    weights = "bf16"
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
    boa.param @n : tensor<64xf32> = "ones"
    boa.param @b : tensor<64xf32> = "zeros"
    boa.param @w : tensor<64x64xf32> = "normal" 0.02
    boa.param @v : tensor<64x64xf32> = "normal" 0.02
  }
  boa.group @params.head repeat 1 {
    boa.param @n : tensor<64xf32> = "ones"
  }
  boa.input @tokens from data : tensor<2x16xi32>
  boa.input @targets from data : tensor<2x16xi32>
  boa.stage @embed_forward(@tokens)
  boa.stage @block_forward(@embed_forward) repeat 3
  boa.stage @head_forward(@block_forward, @targets)

  // Activations are bf16, also between layers; parameters, what is known of a row and
  // the loss are f32.
  func.func @embed_forward(%tokens: tensor<2x16xi32>, %wte: tensor<256x64xf32> {boa.param = @params.embed::@wte}) -> tensor<2x16x64xbf16> {
    %0 = boa.cast %wte : tensor<256x64xf32> to tensor<256x64xbf16>
    %1 = boa.embedding %0, %tokens : (tensor<256x64xbf16>, tensor<2x16xi32>) -> tensor<2x16x64xbf16>
    return %1 : tensor<2x16x64xbf16>
  }
  func.func @block_forward(%x: tensor<2x16x64xbf16>, %n: tensor<64xf32> {boa.param = @params.block::@n}, %b: tensor<64xf32> {boa.param = @params.block::@b}, %w: tensor<64x64xf32> {boa.param = @params.block::@w}, %v: tensor<64x64xf32> {boa.param = @params.block::@v}) -> tensor<2x16x64xbf16> {
    %n16 = boa.cast %n : tensor<64xf32> to tensor<64xbf16>
    %b16 = boa.cast %b : tensor<64xf32> to tensor<64xbf16>
    %w16 = boa.cast %w : tensor<64x64xf32> to tensor<64x64xbf16>
    %v16 = boa.cast %v : tensor<64x64xf32> to tensor<64x64xbf16>
    %0 = boa.layer_norm %x, %n16, %b16 : (tensor<2x16x64xbf16>, tensor<64xbf16>, tensor<64xbf16>) -> tensor<2x16x64xbf16>
    %1 = boa.linear %0, %w16 bias %b16 : (tensor<2x16x64xbf16>, tensor<64x64xbf16>, tensor<64xbf16>) -> tensor<2x16x64xbf16>
    %2 = boa.rotary %1 heads 4 : tensor<2x16x64xbf16>
    %y, %lse = boa.attention %2, %2, %1 heads 4, 4 causal : (tensor<2x16x64xbf16>, tensor<2x16x64xbf16>, tensor<2x16x64xbf16>) -> (tensor<2x16x64xbf16>, tensor<2x4x16xf32>)
    %3 = boa.gelu %y : tensor<2x16x64xbf16>
    %4 = boa.linear %3, %v16 : (tensor<2x16x64xbf16>, tensor<64x64xbf16>) -> tensor<2x16x64xbf16>
    %5 = boa.add %x, %4 : tensor<2x16x64xbf16>, tensor<2x16x64xbf16>
    return %5 : tensor<2x16x64xbf16>
  }
  func.func @head_forward(%x: tensor<2x16x64xbf16>, %targets: tensor<2x16xi32>, %n: tensor<64xf32> {boa.param = @params.head::@n}, %wte: tensor<256x64xf32> {boa.param = @params.embed::@wte}) -> tensor<f32> {
    %n16 = boa.cast %n : tensor<64xf32> to tensor<64xbf16>
    %t16 = boa.cast %wte : tensor<256x64xf32> to tensor<256x64xbf16>
    %0 = boa.rms_norm %x, %n16 : (tensor<2x16x64xbf16>, tensor<64xbf16>) -> tensor<2x16x64xbf16>
    %1 = boa.linear %0, %t16 transpose : (tensor<2x16x64xbf16>, tensor<256x64xbf16>) -> tensor<2x16x256xbf16>
    %2 = boa.cross_entropy %1, %targets : (tensor<2x16x256xbf16>, tensor<2x16xi32>) -> tensor<f32>
    return %2 : tensor<f32>
  }
}
