module {
  boa.config @machine {device = "cpu", device_memory = 268435456 : i64, host_memory = 536870912 : i64, name = "laptop", ssd = [{path = "state", read = 0 : i64, write = 0 : i64}], threads = 0 : i64}
  boa.config @model {context = 4 : i64, name = "llama", vocab = 16 : i64}
  boa.config @train {batch = 32 : i64, clip = 0.000000e+00 : f64, commit_every = 0 : i64, commit_keep = 1 : i64, commit_seconds = 3.000000e+02 : f64, data = "examples/data/kjv.txt", evaluate_batches = 1 : i64, evaluate_every = 0 : i64, mask_probability = 1.500000e-01 : f64, mask_token = 0 : i64, nonfinite = "stop", objective = "next_token", optimizer = {beta1 = 9.000000e-01 : f64, beta2 = 0.94999999999999996 : f64, eps = 1.000000e-08 : f64, floor = 3.000000e-04 : f64, kind = "adamw", momentum = 0.000000e+00 : f64, peak = 3.000000e-03 : f64, rate = "cosine", warmup = 30 : i64, weight_decay = 1.000000e-01 : f64}, seed = 1 : i64, steps = 400 : i64, weights = "bf16"}
  boa.config @plan {delay = 0.000000e+00 : f64, micro_batch = 8 : i64, place = {boundary_gradients = "device", checkpoints = "device", gradients = "device", optimizer = "device", saved = "device", weights = "device"}, prefetch = 1 : i64, recompute = true, schedule = "horizontal"}
  boa.group @embed repeat 1 {
    boa.param @table : tensor<16x8xf32> = "normal" 2.000000e-02
  }
  boa.group @block repeat 2 {
    boa.param @norm1 : tensor<8xf32> = "ones"
    boa.param @q_w : tensor<8x8xf32> = "normal" 2.000000e-02
    boa.param @k_w : tensor<8x4xf32> = "normal" 2.000000e-02
    boa.param @v_w : tensor<8x4xf32> = "normal" 2.000000e-02
    boa.param @o_w : tensor<8x8xf32> = "normal" 1.000000e-02
    boa.param @norm2 : tensor<8xf32> = "ones"
    boa.param @gate_w : tensor<8x704xf32> = "normal" 2.000000e-02
    boa.param @up_w : tensor<8x704xf32> = "normal" 2.000000e-02
    boa.param @down_w : tensor<704x8xf32> = "normal" 1.000000e-02
  }
  boa.group @head repeat 1 {
    boa.param @norm : tensor<8xf32> = "ones"
    boa.param @w : tensor<8x16xf32> = "normal" 2.000000e-02
  }
  boa.input @tokens from data : tensor<8x4xi32>
  boa.input @targets from data : tensor<8x4xi32>
  boa.stage @embed_forward(@tokens)
  boa.stage @block_forward(@embed_forward) repeat 2
  boa.stage @head_forward(@block_forward, @targets)
  func.func @embed_forward(%arg0: tensor<8x4xi32>, %arg1: tensor<16x8xf32> {boa.param = @embed::@table}) -> tensor<8x4x8xf32> {
    %0 = boa.embedding %arg1, %arg0 : (tensor<16x8xf32>, tensor<8x4xi32>) -> tensor<8x4x8xf32>
    return %0 : tensor<8x4x8xf32>
  }
  func.func @block_forward(%arg0: tensor<8x4x8xf32>, %arg1: tensor<8xf32> {boa.param = @block::@norm1}, %arg2: tensor<8x8xf32> {boa.param = @block::@q_w}, %arg3: tensor<8x4xf32> {boa.param = @block::@k_w}, %arg4: tensor<8x4xf32> {boa.param = @block::@v_w}, %arg5: tensor<8x8xf32> {boa.param = @block::@o_w}, %arg6: tensor<8xf32> {boa.param = @block::@norm2}, %arg7: tensor<8x704xf32> {boa.param = @block::@gate_w}, %arg8: tensor<8x704xf32> {boa.param = @block::@up_w}, %arg9: tensor<704x8xf32> {boa.param = @block::@down_w}) -> tensor<8x4x8xf32> {
    %0 = boa.rms_norm %arg0, %arg1 : (tensor<8x4x8xf32>, tensor<8xf32>) -> tensor<8x4x8xf32>
    %1 = boa.linear %0, %arg2 : (tensor<8x4x8xf32>, tensor<8x8xf32>) -> tensor<8x4x8xf32>
    %2 = boa.rotary %1 heads 2 : tensor<8x4x8xf32>
    %3 = boa.linear %0, %arg3 : (tensor<8x4x8xf32>, tensor<8x4xf32>) -> tensor<8x4x4xf32>
    %4 = boa.rotary %3 heads 1 : tensor<8x4x4xf32>
    %5 = boa.linear %0, %arg4 : (tensor<8x4x8xf32>, tensor<8x4xf32>) -> tensor<8x4x4xf32>
    %y, %lse = boa.attention %2, %4, %5 heads 2, 1 causal : (tensor<8x4x8xf32>, tensor<8x4x4xf32>, tensor<8x4x4xf32>) -> (tensor<8x4x8xf32>, tensor<8x2x4xf32>)
    %6 = boa.linear %y, %arg5 : (tensor<8x4x8xf32>, tensor<8x8xf32>) -> tensor<8x4x8xf32>
    %7 = boa.add %arg0, %6 : tensor<8x4x8xf32>, tensor<8x4x8xf32>
    %8 = boa.rms_norm %7, %arg6 : (tensor<8x4x8xf32>, tensor<8xf32>) -> tensor<8x4x8xf32>
    %9 = boa.linear %8, %arg7 : (tensor<8x4x8xf32>, tensor<8x704xf32>) -> tensor<8x4x704xf32>
    %10 = boa.silu %9 : tensor<8x4x704xf32>
    %11 = boa.linear %8, %arg8 : (tensor<8x4x8xf32>, tensor<8x704xf32>) -> tensor<8x4x704xf32>
    %12 = boa.mul %10, %11 : tensor<8x4x704xf32>, tensor<8x4x704xf32>
    %13 = boa.linear %12, %arg9 : (tensor<8x4x704xf32>, tensor<704x8xf32>) -> tensor<8x4x8xf32>
    %14 = boa.add %7, %13 : tensor<8x4x8xf32>, tensor<8x4x8xf32>
    return %14 : tensor<8x4x8xf32>
  }
  func.func @head_forward(%arg0: tensor<8x4x8xf32>, %arg1: tensor<8x4xi32>, %arg2: tensor<8xf32> {boa.param = @head::@norm}, %arg3: tensor<8x16xf32> {boa.param = @head::@w}) -> tensor<f32> {
    %0 = boa.rms_norm %arg0, %arg2 : (tensor<8x4x8xf32>, tensor<8xf32>) -> tensor<8x4x8xf32>
    %1 = boa.linear %0, %arg3 : (tensor<8x4x8xf32>, tensor<8x16xf32>) -> tensor<8x4x16xf32>
    %2 = boa.cross_entropy %1, %arg1 : (tensor<8x4x16xf32>, tensor<8x4xi32>) -> tensor<f32>
    return %2 : tensor<f32>
  }
}

