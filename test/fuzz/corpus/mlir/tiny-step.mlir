module {
  boa.config @machine {device_memory = 0 : i64, host_memory = 0 : i64}
  boa.config @model {name = "tiny"}
  boa.config @train {batch = 8 : i64, optimizer = {kind = "adamw"}, weights = "bf16"}
  boa.config @plan {delay = 2.500000e-01 : f64, micro_batch = 2 : i64, place = {boundary_gradients = "ssd", checkpoints = "ssd", gradients = "ssd", optimizer = "ssd", saved = "ssd", weights = "ssd"}, prefetch = 1 : i64}
  boa.group @embed repeat 1 {
    boa.param @wte : tensor<16x8xf32> = "normal" 2.000000e-02
  }
  boa.group @block repeat 3 {
    boa.param @w : tensor<8x8xf32> = "normal" 2.000000e-02
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
  func.func @embed_forward(%arg0: tensor<2x4xi32>, %arg1: tensor<16x8xf32> {boa.param = @embed::@wte}) -> tensor<2x4x8xf32> {
    %0 = boa.embedding %arg1, %arg0 : (tensor<16x8xf32>, tensor<2x4xi32>) -> tensor<2x4x8xf32>
    return %0 : tensor<2x4x8xf32>
  }
  func.func @embed_backward(%arg0: tensor<2x4xi32>, %arg1: tensor<2x4x8xf32>) -> (tensor<16x8xf32> {boa.param = @embed::@wte}) {
    %0 = boa.embedding_grad %arg0, %arg1 : (tensor<2x4xi32>, tensor<2x4x8xf32>) -> tensor<16x8xf32>
    return %0 : tensor<16x8xf32>
  }
  func.func @block_forward(%arg0: tensor<2x4x8xf32>, %arg1: tensor<8x8xf32> {boa.param = @block::@w}, %arg2: tensor<8xf32> {boa.param = @block::@b}) -> tensor<2x4x8xf32> {
    %0 = boa.linear %arg0, %arg1 bias %arg2 : (tensor<2x4x8xf32>, tensor<8x8xf32>, tensor<8xf32>) -> tensor<2x4x8xf32>
    %1 = boa.gelu %0 : tensor<2x4x8xf32>
    %2 = boa.add %arg0, %1 : tensor<2x4x8xf32>, tensor<2x4x8xf32>
    return %2 : tensor<2x4x8xf32>
  }
  func.func @block_backward(%arg0: tensor<2x4x8xf32>, %arg1: tensor<8x8xf32> {boa.param = @block::@w}, %arg2: tensor<8xf32> {boa.param = @block::@b}, %arg3: tensor<2x4x8xf32>) -> (tensor<2x4x8xf32>, tensor<8x8xf32> {boa.param = @block::@w}, tensor<8xf32> {boa.param = @block::@b}) {
    %0 = boa.linear %arg0, %arg1 bias %arg2 : (tensor<2x4x8xf32>, tensor<8x8xf32>, tensor<8xf32>) -> tensor<2x4x8xf32>
    %1 = boa.gelu_grad %0, %arg3 : tensor<2x4x8xf32>
    %2 = boa.linear %1, %arg1 transpose : (tensor<2x4x8xf32>, tensor<8x8xf32>) -> tensor<2x4x8xf32>
    %3 = boa.linear_weight_grad %arg0, %1 : (tensor<2x4x8xf32>, tensor<2x4x8xf32>) -> tensor<8x8xf32>
    %4 = boa.sum_leading %1 : tensor<2x4x8xf32> to tensor<8xf32>
    %5 = boa.add %arg3, %2 : tensor<2x4x8xf32>, tensor<2x4x8xf32>
    return %5, %3, %4 : tensor<2x4x8xf32>, tensor<8x8xf32>, tensor<8xf32>
  }
  func.func @head_forward(%arg0: tensor<2x4x8xf32>, %arg1: tensor<2x4xi32>, %arg2: tensor<8xf32> {boa.param = @head::@ln}, %arg3: tensor<16x8xf32> {boa.param = @embed::@wte}) -> tensor<f32> {
    %0 = boa.rms_norm %arg0, %arg2 : (tensor<2x4x8xf32>, tensor<8xf32>) -> tensor<2x4x8xf32>
    %1 = boa.linear %0, %arg3 transpose : (tensor<2x4x8xf32>, tensor<16x8xf32>) -> tensor<2x4x16xf32>
    %2 = boa.cross_entropy %1, %arg1 : (tensor<2x4x16xf32>, tensor<2x4xi32>) -> tensor<f32>
    return %2 : tensor<f32>
  }
  func.func @head_backward(%arg0: tensor<2x4x8xf32>, %arg1: tensor<2x4xi32>, %arg2: tensor<8xf32> {boa.param = @head::@ln}, %arg3: tensor<16x8xf32> {boa.param = @embed::@wte}) -> (tensor<f32>, tensor<2x4x8xf32>, tensor<8xf32> {boa.param = @head::@ln}, tensor<16x8xf32> {boa.param = @embed::@wte}) {
    %0 = boa.rms_norm %arg0, %arg2 : (tensor<2x4x8xf32>, tensor<8xf32>) -> tensor<2x4x8xf32>
    %1 = boa.linear %0, %arg3 transpose : (tensor<2x4x8xf32>, tensor<16x8xf32>) -> tensor<2x4x16xf32>
    %2 = boa.cross_entropy %1, %arg1 : (tensor<2x4x16xf32>, tensor<2x4xi32>) -> tensor<f32>
    %cst = arith.constant dense<2.500000e-01> : tensor<f32>
    %3 = boa.cross_entropy_grad %1, %arg1, %cst : (tensor<2x4x16xf32>, tensor<2x4xi32>, tensor<f32>) -> tensor<2x4x16xf32>
    %4 = boa.linear %3, %arg3 : (tensor<2x4x16xf32>, tensor<16x8xf32>) -> tensor<2x4x8xf32>
    %5 = boa.linear_weight_grad %0, %3 transpose : (tensor<2x4x8xf32>, tensor<2x4x16xf32>) -> tensor<16x8xf32>
    %dx, %dweight = boa.rms_norm_grad %arg0, %arg2, %4 : (tensor<2x4x8xf32>, tensor<8xf32>, tensor<2x4x8xf32>) -> (tensor<2x4x8xf32>, tensor<8xf32>)
    return %2, %dx, %dweight, %5 : tensor<f32>, tensor<2x4x8xf32>, tensor<8xf32>, tensor<16x8xf32>
  }
  boa.storage @input.tokens[4] : tensor<2x4xi32> on device role input
  boa.storage @input.targets[4] : tensor<2x4xi32> on device role input
  boa.storage @loss[4] : tensor<f32> on device role loss
  boa.storage @checkpoints[4, 4] : tensor<2x4x8xf32> on device role checkpoints
  boa.storage @boundary_gradients[4, 4] : tensor<2x4x8xf32> on device role boundary_gradients
  boa.storage @weights.embed[1] : tensor<2048xbf16> on device role weights persistent
  boa.storage @gradients.embed[1] : tensor<2048xf32> on device role gradients persistent
  boa.storage @low.embed[1] : tensor<2048xi16> on device role master persistent
  boa.storage @momentum.embed[1] : tensor<2048xf32> on device role state persistent
  boa.storage @variance.embed[1] : tensor<2048xf32> on device role state persistent
  boa.storage @weights.block[3] : tensor<2048xbf16> on device role weights persistent
  boa.storage @gradients.block[3] : tensor<2048xf32> on device role gradients persistent
  boa.storage @low.block[3] : tensor<2048xi16> on device role master persistent
  boa.storage @momentum.block[3] : tensor<2048xf32> on device role state persistent
  boa.storage @variance.block[3] : tensor<2048xf32> on device role state persistent
  boa.storage @weights.head[1] : tensor<2048xbf16> on device role weights persistent
  boa.storage @gradients.head[1] : tensor<2048xf32> on device role gradients persistent
  boa.storage @low.head[1] : tensor<2048xi16> on device role master persistent
  boa.storage @momentum.head[1] : tensor<2048xf32> on device role state persistent
  boa.storage @variance.head[1] : tensor<2048xf32> on device role state persistent
  boa.step @step(%arg0, %arg1) {
    boa.loop micro_batch %arg2 = 0 to 4 forward {
      %0 = boa.read @input.tokens[%arg2] : tensor<2x4xi32>
      %c0_1 = arith.constant 0 : index
      %1 = boa.read @weights.embed[%c0_1] : tensor<2048xbf16>
      %2 = boa.call @embed_forward(%0, %1) : (tensor<2x4xi32>, tensor<2048xbf16>) -> tensor<2x4x8xf32>
      %c0_2 = arith.constant 0 : index
      boa.write %2, @checkpoints[%c0_2, %arg2] : tensor<2x4x8xf32>
    }
    boa.loop layer %arg2 = 0 to 3 forward {
      boa.loop micro_batch %arg3 = 0 to 4 snake(%arg2 + 1) {
        %0 = boa.read @checkpoints[%arg2, %arg3] : tensor<2x4x8xf32>
        %1 = boa.read @weights.block[%arg2] : tensor<2048xbf16>
        %2 = boa.call @block_forward(%0, %1) : (tensor<2x4x8xf32>, tensor<2048xbf16>) -> tensor<2x4x8xf32>
        %3 = boa.shift %arg2, 1
        boa.write %2, @checkpoints[%3, %arg3] : tensor<2x4x8xf32>
      }
    }
    boa.loop micro_batch %arg2 = 0 to 4 forward {
      %c3 = arith.constant 3 : index
      %0 = boa.read @checkpoints[%c3, %arg2] : tensor<2x4x8xf32>
      %1 = boa.read @input.targets[%arg2] : tensor<2x4xi32>
      %c0_1 = arith.constant 0 : index
      %2 = boa.read @weights.head[%c0_1] : tensor<2048xbf16>
      %c0_2 = arith.constant 0 : index
      %3 = boa.read @weights.embed[%c0_2] : tensor<2048xbf16>
      %4:4 = boa.call @head_backward(%0, %1, %2, %3) : (tensor<2x4x8xf32>, tensor<2x4xi32>, tensor<2048xbf16>, tensor<2048xbf16>) -> (tensor<f32>, tensor<2x4x8xf32>, tensor<2048xf32>, tensor<2048xf32>)
      boa.write %4#0, @loss[%arg2] : tensor<f32>
      %c3_3 = arith.constant 3 : index
      boa.write %4#1, @boundary_gradients[%c3_3, %arg2] : tensor<2x4x8xf32>
      %c0_4 = arith.constant 0 : index
      %5 = boa.at_first %arg2
      boa.accumulate %4#2, @gradients.head[%c0_4] initial %5 : tensor<2048xf32>
      %c0_5 = arith.constant 0 : index
      %6 = boa.at_first %arg2
      boa.accumulate %4#3, @gradients.embed[%c0_5] initial %6 : tensor<2048xf32>
    }
    %c0 = arith.constant 0 : index
    boa.optimizer_update @head[%c0] chunks 0 to 1 step %arg0
    boa.loop layer %arg2 = 0 to 3 reverse {
      boa.loop micro_batch %arg3 = 0 to 4 snake(%arg2 + 1) {
        %0 = boa.read @checkpoints[%arg2, %arg3] : tensor<2x4x8xf32>
        %1 = boa.shift %arg2, 1
        %2 = boa.read @boundary_gradients[%1, %arg3] : tensor<2x4x8xf32>
        %3 = boa.read @weights.block[%arg2] : tensor<2048xbf16>
        %4:2 = boa.call @block_backward(%0, %2, %3) : (tensor<2x4x8xf32>, tensor<2x4x8xf32>, tensor<2048xbf16>) -> (tensor<2x4x8xf32>, tensor<2048xf32>)
        boa.write %4#0, @boundary_gradients[%arg2, %arg3] : tensor<2x4x8xf32>
        %5 = boa.at_first %arg3
        boa.accumulate %4#1, @gradients.block[%arg2] initial %5 : tensor<2048xf32>
      }
      boa.optimizer_update @block[%arg2] chunks 0 to 1 step %arg0
    }
    boa.loop micro_batch %arg2 = 0 to 4 forward {
      %0 = boa.read @input.tokens[%arg2] : tensor<2x4xi32>
      %c0_1 = arith.constant 0 : index
      %1 = boa.read @boundary_gradients[%c0_1, %arg2] : tensor<2x4x8xf32>
      %2 = boa.call @embed_backward(%0, %1) : (tensor<2x4xi32>, tensor<2x4x8xf32>) -> tensor<2048xf32>
      %c0_2 = arith.constant 0 : index
      %false = arith.constant false
      boa.accumulate %2, @gradients.embed[%c0_2] initial %false : tensor<2048xf32>
    }
    %c0_0 = arith.constant 0 : index
    boa.optimizer_update @embed[%c0_0] chunks 0 to 1 step %arg0
  }
  boa.step @drain(%arg0, %arg1) {
  }
  boa.step @evaluate(%arg0, %arg1) {
    boa.loop micro_batch %arg2 = 0 to 4 forward {
      %0 = boa.read @input.tokens[%arg2] : tensor<2x4xi32>
      %c0 = arith.constant 0 : index
      %1 = boa.read @weights.embed[%c0] : tensor<2048xbf16>
      %2 = boa.call @embed_forward(%0, %1) : (tensor<2x4xi32>, tensor<2048xbf16>) -> tensor<2x4x8xf32>
      %c0_0 = arith.constant 0 : index
      boa.write %2, @checkpoints[%c0_0, %arg2] : tensor<2x4x8xf32>
    }
    boa.loop layer %arg2 = 0 to 3 forward {
      boa.loop micro_batch %arg3 = 0 to 4 snake(%arg2 + 1) {
        %0 = boa.read @checkpoints[%arg2, %arg3] : tensor<2x4x8xf32>
        %1 = boa.read @weights.block[%arg2] : tensor<2048xbf16>
        %2 = boa.call @block_forward(%0, %1) : (tensor<2x4x8xf32>, tensor<2048xbf16>) -> tensor<2x4x8xf32>
        %3 = boa.shift %arg2, 1
        boa.write %2, @checkpoints[%3, %arg3] : tensor<2x4x8xf32>
      }
    }
    boa.loop micro_batch %arg2 = 0 to 4 forward {
      %c3 = arith.constant 3 : index
      %0 = boa.read @checkpoints[%c3, %arg2] : tensor<2x4x8xf32>
      %1 = boa.read @input.targets[%arg2] : tensor<2x4xi32>
      %c0 = arith.constant 0 : index
      %2 = boa.read @weights.head[%c0] : tensor<2048xbf16>
      %c0_0 = arith.constant 0 : index
      %3 = boa.read @weights.embed[%c0_0] : tensor<2048xbf16>
      %4 = boa.call @head_forward(%0, %1, %2, %3) : (tensor<2x4x8xf32>, tensor<2x4xi32>, tensor<2048xbf16>, tensor<2048xbf16>) -> tensor<f32>
      boa.write %4, @loss[%arg2] : tensor<f32>
    }
  }
}

