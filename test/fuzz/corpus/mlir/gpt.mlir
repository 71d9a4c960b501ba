module {
  boa.config @machine {device = "cpu", device_memory = 67108864 : i64, host_memory = 67108864 : i64, name = "laptop", ssd = [{path = "state", read = 0 : i64, write = 0 : i64}], threads = 0 : i64}
  boa.config @model {context = 4 : i64, name = "gpt", vocab = 16 : i64}
  boa.config @train {batch = 8 : i64, clip = 0.000000e+00 : f64, commit_every = 0 : i64, commit_keep = 1 : i64, commit_seconds = 3.000000e+02 : f64, data = "test/driver/Inputs/../../../examples/data/kjv.txt", evaluate_batches = 1 : i64, evaluate_every = 0 : i64, mask_probability = 1.500000e-01 : f64, mask_token = 0 : i64, nonfinite = "stop", objective = "next_token", optimizer = {beta1 = 9.000000e-01 : f64, beta2 = 0.94999999999999996 : f64, eps = 1.000000e-08 : f64, floor = 0.000000e+00 : f64, kind = "adamw", momentum = 0.000000e+00 : f64, peak = 1.000000e-03 : f64, rate = "constant", warmup = 0 : i64, weight_decay = 1.000000e-01 : f64}, seed = 1 : i64, steps = 3 : i64, weights = "bf16"}
  boa.config @plan {delay = 2.500000e-01 : f64, micro_batch = 2 : i64, place = {boundary_gradients = "ssd", checkpoints = "ssd", gradients = "ssd", optimizer = "ssd", saved = "ssd", weights = "ssd"}, prefetch = 1 : i64, recompute = true, schedule = "vertical"}
  boa.group @embed repeat 1 {
    boa.param @wte : tensor<16x8xf32> = "normal" 2.000000e-02
    boa.param @wpe : tensor<4x8xf32> = "normal" 2.000000e-02
  }
  boa.group @block repeat 2 {
    boa.param @ln1_w : tensor<8xf32> = "ones"
    boa.param @ln1_b : tensor<8xf32> = "zeros"
    boa.param @qkv_w : tensor<8x24xf32> = "normal" 2.000000e-02
    boa.param @qkv_b : tensor<24xf32> = "zeros"
    boa.param @out_w : tensor<8x8xf32> = "normal" 1.000000e-02
    boa.param @out_b : tensor<8xf32> = "zeros"
    boa.param @ln2_w : tensor<8xf32> = "ones"
    boa.param @ln2_b : tensor<8xf32> = "zeros"
    boa.param @up_w : tensor<8x32xf32> = "normal" 2.000000e-02
    boa.param @up_b : tensor<32xf32> = "zeros"
    boa.param @down_w : tensor<32x8xf32> = "normal" 1.000000e-02
    boa.param @down_b : tensor<8xf32> = "zeros"
  }
  boa.group @head repeat 1 {
    boa.param @lnf_w : tensor<8xf32> = "ones"
    boa.param @lnf_b : tensor<8xf32> = "zeros"
  }
  boa.input @tokens from data : tensor<2x4xi32>
  boa.input @targets from data : tensor<2x4xi32>
  boa.stage @embed_forward(@tokens)
  boa.stage @block_forward(@embed_forward) repeat 2
  boa.stage @head_forward(@block_forward, @targets)
  func.func @embed_forward(%arg0: tensor<2x4xi32>, %arg1: tensor<16x8xf32> {boa.param = @embed::@wte}, %arg2: tensor<4x8xf32> {boa.param = @embed::@wpe}) -> tensor<2x4x8xf32> {
    %0 = boa.embedding %arg1, %arg0 : (tensor<16x8xf32>, tensor<2x4xi32>) -> tensor<2x4x8xf32>
    %1 = boa.add %0, %arg2 : tensor<2x4x8xf32>, tensor<4x8xf32>
    return %1 : tensor<2x4x8xf32>
  }
  func.func @block_forward(%arg0: tensor<2x4x8xf32>, %arg1: tensor<8xf32> {boa.param = @block::@ln1_w}, %arg2: tensor<8xf32> {boa.param = @block::@ln1_b}, %arg3: tensor<8x24xf32> {boa.param = @block::@qkv_w}, %arg4: tensor<24xf32> {boa.param = @block::@qkv_b}, %arg5: tensor<8x8xf32> {boa.param = @block::@out_w}, %arg6: tensor<8xf32> {boa.param = @block::@out_b}, %arg7: tensor<8xf32> {boa.param = @block::@ln2_w}, %arg8: tensor<8xf32> {boa.param = @block::@ln2_b}, %arg9: tensor<8x32xf32> {boa.param = @block::@up_w}, %arg10: tensor<32xf32> {boa.param = @block::@up_b}, %arg11: tensor<32x8xf32> {boa.param = @block::@down_w}, %arg12: tensor<8xf32> {boa.param = @block::@down_b}) -> tensor<2x4x8xf32> {
    %0 = boa.layer_norm %arg0, %arg1, %arg2 : (tensor<2x4x8xf32>, tensor<8xf32>, tensor<8xf32>) -> tensor<2x4x8xf32>
    %1 = boa.linear %0, %arg3 bias %arg4 : (tensor<2x4x8xf32>, tensor<8x24xf32>, tensor<24xf32>) -> tensor<2x4x24xf32>
    %2:3 = boa.split %1 : (tensor<2x4x24xf32>) -> (tensor<2x4x8xf32>, tensor<2x4x8xf32>, tensor<2x4x8xf32>)
    %y, %lse = boa.attention %2#0, %2#1, %2#2 heads 4, 4 causal : (tensor<2x4x8xf32>, tensor<2x4x8xf32>, tensor<2x4x8xf32>) -> (tensor<2x4x8xf32>, tensor<2x4x4xf32>)
    %3 = boa.linear %y, %arg5 bias %arg6 : (tensor<2x4x8xf32>, tensor<8x8xf32>, tensor<8xf32>) -> tensor<2x4x8xf32>
    %4 = boa.add %arg0, %3 : tensor<2x4x8xf32>, tensor<2x4x8xf32>
    %5 = boa.layer_norm %4, %arg7, %arg8 : (tensor<2x4x8xf32>, tensor<8xf32>, tensor<8xf32>) -> tensor<2x4x8xf32>
    %6 = boa.linear %5, %arg9 bias %arg10 : (tensor<2x4x8xf32>, tensor<8x32xf32>, tensor<32xf32>) -> tensor<2x4x32xf32>
    %7 = boa.gelu %6 : tensor<2x4x32xf32>
    %8 = boa.linear %7, %arg11 bias %arg12 : (tensor<2x4x32xf32>, tensor<32x8xf32>, tensor<8xf32>) -> tensor<2x4x8xf32>
    %9 = boa.add %4, %8 : tensor<2x4x8xf32>, tensor<2x4x8xf32>
    return %9 : tensor<2x4x8xf32>
  }
  func.func @head_forward(%arg0: tensor<2x4x8xf32>, %arg1: tensor<2x4xi32>, %arg2: tensor<8xf32> {boa.param = @head::@lnf_w}, %arg3: tensor<8xf32> {boa.param = @head::@lnf_b}, %arg4: tensor<16x8xf32> {boa.param = @embed::@wte}) -> tensor<f32> {
    %0 = boa.layer_norm %arg0, %arg2, %arg3 : (tensor<2x4x8xf32>, tensor<8xf32>, tensor<8xf32>) -> tensor<2x4x8xf32>
    %1 = boa.linear %0, %arg4 transpose : (tensor<2x4x8xf32>, tensor<16x8xf32>) -> tensor<2x4x16xf32>
    %2 = boa.cross_entropy %1, %arg1 : (tensor<2x4x16xf32>, tensor<2x4xi32>) -> tensor<f32>
    return %2 : tensor<f32>
  }
}

