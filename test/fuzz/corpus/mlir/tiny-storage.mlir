module attributes {boa.arena = 249856 : i64, boa.workspace = 4096 : i64} {
  boa.config @machine {device_memory = 0 : i64, host_memory = 0 : i64}
  boa.config @train {batch = 8 : i64, delay = 2.500000e-01 : f64, micro_batch = 2 : i64, model = "tiny", optimizer = {kind = "adamw"}, place = {boundary_gradients = "ssd", checkpoints = "ssd", gradients = "ssd", optimizer = "ssd", saved = "ssd", weights = "ssd"}, prefetch = 1 : i64, weights = "bf16"}
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
  boa.stage @embed_forward
  boa.stage @block_forward repeat 3
  boa.stage @head_forward
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
    %0 = boa.rms_norm %arg0, %arg2 : tensor<2x4x8xf32>, tensor<8xf32> -> tensor<2x4x8xf32>
    %1 = boa.linear %0, %arg3 transpose : (tensor<2x4x8xf32>, tensor<16x8xf32>) -> tensor<2x4x16xf32>
    %2 = boa.cross_entropy %1, %arg1 : (tensor<2x4x16xf32>, tensor<2x4xi32>) -> tensor<f32>
    return %2 : tensor<f32>
  }
  func.func @head_backward(%arg0: tensor<2x4x8xf32>, %arg1: tensor<2x4xi32>, %arg2: tensor<8xf32> {boa.param = @head::@ln}, %arg3: tensor<16x8xf32> {boa.param = @embed::@wte}) -> (tensor<f32>, tensor<2x4x8xf32>, tensor<8xf32> {boa.param = @head::@ln}, tensor<16x8xf32> {boa.param = @embed::@wte}) {
    %0 = boa.rms_norm %arg0, %arg2 : tensor<2x4x8xf32>, tensor<8xf32> -> tensor<2x4x8xf32>
    %1 = boa.linear %0, %arg3 transpose : (tensor<2x4x8xf32>, tensor<16x8xf32>) -> tensor<2x4x16xf32>
    %2 = boa.cross_entropy %1, %arg1 : (tensor<2x4x16xf32>, tensor<2x4xi32>) -> tensor<f32>
    %cst = arith.constant dense<2.500000e-01> : tensor<f32>
    %3 = boa.cross_entropy_grad %1, %arg1, %cst : (tensor<2x4x16xf32>, tensor<2x4xi32>, tensor<f32>) -> tensor<2x4x16xf32>
    %4 = boa.linear %3, %arg3 : (tensor<2x4x16xf32>, tensor<16x8xf32>) -> tensor<2x4x8xf32>
    %5 = boa.linear_weight_grad %0, %3 transpose : (tensor<2x4x8xf32>, tensor<2x4x16xf32>) -> tensor<16x8xf32>
    %dx, %dweight = boa.rms_norm_grad %arg0, %arg2, %4 : (tensor<2x4x8xf32>, tensor<8xf32>, tensor<2x4x8xf32>) -> (tensor<2x4x8xf32>, tensor<8xf32>)
    return %2, %dx, %dweight, %5 : tensor<f32>, tensor<2x4x8xf32>, tensor<8xf32>, tensor<16x8xf32>
  }
  boa.storage @tokens[4] : tensor<2x4xi32> on device role tokens
  boa.storage @targets[4] : tensor<2x4xi32> on device role targets
  boa.storage @loss[4] : tensor<f32> on device role loss
  boa.storage @checkpoints[4, 4] : tensor<2x4x8xf32> on ssd role checkpoints slots device 4 x 1
  boa.storage @boundary_gradients[4, 4] : tensor<2x4x8xf32> on ssd role boundary_gradients slots device 4 x 1
  boa.storage @weights.embed[1] : tensor<2048xbf16> on ssd role weights persistent slots device 1 x 1
  boa.storage @gradients.embed[1] : tensor<2048xf32> on ssd role gradients persistent slots device 1 x 1
  boa.storage @low.embed[1] : tensor<2048xi16> on ssd role master persistent slots device 1 x 1
  boa.storage @momentum.embed[1] : tensor<2048xf32> on ssd role momentum persistent slots device 1 x 1
  boa.storage @variance.embed[1] : tensor<2048xf32> on ssd role variance persistent slots device 1 x 1
  boa.storage @weights.block[3] : tensor<2048xbf16> on ssd role weights persistent slots device 3 x 1
  boa.storage @gradients.block[3] : tensor<2048xf32> on ssd role gradients persistent slots device 3 x 1
  boa.storage @low.block[3] : tensor<2048xi16> on ssd role master persistent slots device 3 x 1
  boa.storage @momentum.block[3] : tensor<2048xf32> on ssd role momentum persistent slots device 3 x 1
  boa.storage @variance.block[3] : tensor<2048xf32> on ssd role variance persistent slots device 3 x 1
  boa.storage @weights.head[1] : tensor<2048xbf16> on ssd role weights persistent slots device 1 x 1
  boa.storage @gradients.head[1] : tensor<2048xf32> on ssd role gradients persistent slots device 1 x 1
  boa.storage @low.head[1] : tensor<2048xi16> on ssd role master persistent slots device 1 x 1
  boa.storage @momentum.head[1] : tensor<2048xf32> on ssd role momentum persistent slots device 1 x 1
  boa.storage @variance.head[1] : tensor<2048xf32> on ssd role variance persistent slots device 1 x 1
  boa.step @step(%arg0, %arg1) attributes {boa.first_traffic = {read = {boundary_gradients = 49152 : i64, checkpoints = 98304 : i64, master = 20480 : i64, momentum = 40960 : i64, variance = 40960 : i64, weights = 28672 : i64}, written = {boundary_gradients = 65536 : i64, checkpoints = 65536 : i64, master = 20480 : i64, momentum = 40960 : i64, variance = 40960 : i64, weights = 20480 : i64}}, boa.resumed_traffic = {read = {boundary_gradients = 49152 : i64, checkpoints = 98304 : i64, master = 20480 : i64, momentum = 40960 : i64, variance = 40960 : i64, weights = 28672 : i64}, written = {boundary_gradients = 65536 : i64, checkpoints = 65536 : i64, master = 20480 : i64, momentum = 40960 : i64, variance = 40960 : i64, weights = 20480 : i64}}, boa.traffic = {read = {boundary_gradients = 49152 : i64, checkpoints = 98304 : i64, master = 12288 : i64, momentum = 24576 : i64, variance = 24576 : i64, weights = 16384 : i64}, written = {boundary_gradients = 65536 : i64, checkpoints = 65536 : i64, master = 20480 : i64, momentum = 40960 : i64, variance = 40960 : i64, weights = 20480 : i64}}} {
    %c0 = arith.constant 0 : index
    %c0_0 = arith.constant 0 : index
    %1 = boa.prefetch @weights.embed[%c0_0] : <tensor<2048xbf16>, device>
    boa.loop micro_batch %arg2 = 0 to 4 forward {
      %13 = boa.prefetch @tokens[%arg2] : <tensor<2x4xi32>, device>
      %14 = boa.create @checkpoints[%c0, %arg2] : <tensor<2x4x8xf32>, device>
      boa.launch @embed_forward reads(%13, %1 : !boa.buffer<tensor<2x4xi32>, device>, !boa.buffer<tensor<2048xbf16>, device>) writes(%14 : !boa.buffer<tensor<2x4x8xf32>, device>)
      boa.offload %14, @checkpoints[%c0, %arg2] : <tensor<2x4x8xf32>, device>
      boa.release %13 : <tensor<2x4xi32>, device>
      %16 = boa.at_last %arg2
      boa.release %14 retain %16 : <tensor<2x4x8xf32>, device>
    }
    %true = arith.constant true
    boa.release %1 retain %true : <tensor<2048xbf16>, device>
    boa.loop layer %arg2 = 0 to 3 forward {
      %14 = boa.prefetch @weights.block[%arg2] : <tensor<2048xbf16>, device>
      %13 = boa.shift %arg2, 1
      boa.loop micro_batch %arg3 = 0 to 4 snake(%arg2 + 1) {
        %17 = boa.prefetch @checkpoints[%arg2, %arg3] : <tensor<2x4x8xf32>, host>
        %18 = boa.create @checkpoints[%13, %arg3] : <tensor<2x4x8xf32>, host>
        boa.launch @block_forward reads(%17, %14 : !boa.buffer<tensor<2x4x8xf32>, device>, !boa.buffer<tensor<2048xbf16>, device>) writes(%18 : !boa.buffer<tensor<2x4x8xf32>, device>)
        boa.offload %18, @checkpoints[%13, %arg3] : <tensor<2x4x8xf32>, host>
        boa.release %17 : <tensor<2x4x8xf32>, host>
        %20 = boa.at_last %arg3
        boa.release %18 retain %20 : <tensor<2x4x8xf32>, host>
      }
      %15 = boa.at_last %arg2
      boa.release %14 retain %15 : <tensor<2048xbf16>, device>
    }
    %c0_1 = arith.constant 0 : index
    %c0_2 = arith.constant 0 : index
    %c3 = arith.constant 3 : index
    %c3_3 = arith.constant 3 : index
    %c0_4 = arith.constant 0 : index
    %4 = boa.prefetch @weights.head[%c0_4] : <tensor<2048xbf16>, host>
    %c0_5 = arith.constant 0 : index
    %5 = boa.prefetch @weights.embed[%c0_5] : <tensor<2048xbf16>, device>
    %true_6 = arith.constant true
    %7 = boa.prefetch @gradients.head[%c0_2] zero %true_6 : <tensor<2048xf32>, host>
    %true_7 = arith.constant true
    %9 = boa.prefetch @gradients.embed[%c0_1] zero %true_7 : <tensor<2048xf32>, device>
    boa.loop micro_batch %arg2 = 0 to 4 forward {
      %16 = boa.prefetch @checkpoints[%c3_3, %arg2] : <tensor<2x4x8xf32>, host>
      %17 = boa.prefetch @targets[%arg2] : <tensor<2x4xi32>, host>
      %14 = boa.at_first %arg2
      %15 = boa.at_first %arg2
      %18 = boa.create @loss[%arg2] : <tensor<f32>, host>
      %19 = boa.create @boundary_gradients[%c3, %arg2] : <tensor<2x4x8xf32>, host>
      boa.launch @head_backward reads(%16, %17, %4, %5 : !boa.buffer<tensor<2x4x8xf32>, device>, !boa.buffer<tensor<2x4xi32>, device>, !boa.buffer<tensor<2048xbf16>, device>, !boa.buffer<tensor<2048xbf16>, device>) updates(%7, %9 : !boa.buffer<tensor<2048xf32>, device>, !boa.buffer<tensor<2048xf32>, device>) writes(%18, %19 : !boa.buffer<tensor<f32>, device>, !boa.buffer<tensor<2x4x8xf32>, device>)
      boa.offload %19, @boundary_gradients[%c3, %arg2] : <tensor<2x4x8xf32>, host>
      boa.release %16 : <tensor<2x4x8xf32>, host>
      boa.release %17 : <tensor<2x4xi32>, host>
      boa.release %18 : <tensor<f32>, host>
      %21 = boa.at_last %arg2
      boa.release %19 retain %21 : <tensor<2x4x8xf32>, host>
    }
    %true_8 = arith.constant true
    boa.release %9 retain %true_8 : <tensor<2048xf32>, device>
    %true_9 = arith.constant true
    boa.release %5 retain %true_9 : <tensor<2048xbf16>, device>
    %c0_10 = arith.constant 0 : index
    boa.loop chunk %arg2 = 0 to 1 forward {
      %15 = boa.prefetch @low.head[%c0_10] chunk %arg2 count 1 : <tensor<2048xi16>, host>
      %16 = boa.prefetch @momentum.head[%c0_10] chunk %arg2 count 1 : <tensor<2048xf32>, host>
      %17 = boa.prefetch @variance.head[%c0_10] chunk %arg2 count 1 : <tensor<2048xf32>, host>
      boa.update @head chunk %arg2 step %arg0 weights(%4 : <tensor<2048xbf16>, host>) gradient(%7 : <tensor<2048xf32>, host>) low(%15 : !boa.buffer<tensor<2048xi16>, host>) momentum(%16 : !boa.buffer<tensor<2048xf32>, host>) variance(%17 : !boa.buffer<tensor<2048xf32>, host>)
      boa.offload %4, @weights.head[%c0_10] chunk %arg2 count 1 : <tensor<2048xbf16>, host>
      boa.offload %15, @low.head[%c0_10] chunk %arg2 count 1 : <tensor<2048xi16>, host>
      boa.offload %16, @momentum.head[%c0_10] chunk %arg2 count 1 : <tensor<2048xf32>, host>
      boa.offload %17, @variance.head[%c0_10] chunk %arg2 count 1 : <tensor<2048xf32>, host>
      %true_16 = arith.constant true
      boa.release %15 retain %true_16 : <tensor<2048xi16>, host>
      %true_17 = arith.constant true
      boa.release %16 retain %true_17 : <tensor<2048xf32>, host>
      %true_18 = arith.constant true
      boa.release %17 retain %true_18 : <tensor<2048xf32>, host>
    }
    boa.release %7 : <tensor<2048xf32>, host>
    %true_11 = arith.constant true
    boa.release %4 retain %true_11 : <tensor<2048xbf16>, host>
    %true_12 = arith.constant true
    boa.loop layer %arg2 = 0 to 3 reverse {
      %15 = boa.prefetch @weights.block[%arg2] : <tensor<2048xbf16>, host>
      %16 = boa.prefetch @gradients.block[%arg2] zero %true_12 : <tensor<2048xf32>, host>
      %14 = boa.shift %arg2, 1
      boa.loop micro_batch %arg3 = 0 to 4 snake(%arg2 + 1) {
        %21 = boa.prefetch @checkpoints[%arg2, %arg3] : <tensor<2x4x8xf32>, host>
        %22 = boa.prefetch @boundary_gradients[%14, %arg3] : <tensor<2x4x8xf32>, host>
        %20 = boa.at_first %arg3
        %23 = boa.create @boundary_gradients[%arg2, %arg3] : <tensor<2x4x8xf32>, host>
        boa.launch @block_backward reads(%21, %22, %15 : !boa.buffer<tensor<2x4x8xf32>, device>, !boa.buffer<tensor<2x4x8xf32>, device>, !boa.buffer<tensor<2048xbf16>, device>) updates(%16 : !boa.buffer<tensor<2048xf32>, device>) writes(%23 : !boa.buffer<tensor<2x4x8xf32>, device>)
        boa.offload %23, @boundary_gradients[%arg2, %arg3] : <tensor<2x4x8xf32>, host>
        boa.release %21 : <tensor<2x4x8xf32>, host>
        boa.release %22 : <tensor<2x4x8xf32>, host>
        %25 = boa.at_last %arg3
        boa.release %23 retain %25 : <tensor<2x4x8xf32>, host>
      }
      boa.loop chunk %arg3 = 0 to 1 forward {
        %21 = boa.prefetch @low.block[%arg2] chunk %arg3 count 1 : <tensor<2048xi16>, host>
        %22 = boa.prefetch @momentum.block[%arg2] chunk %arg3 count 1 : <tensor<2048xf32>, host>
        %23 = boa.prefetch @variance.block[%arg2] chunk %arg3 count 1 : <tensor<2048xf32>, host>
        boa.update @block chunk %arg3 step %arg0 weights(%15 : <tensor<2048xbf16>, host>) gradient(%16 : <tensor<2048xf32>, host>) low(%21 : !boa.buffer<tensor<2048xi16>, host>) momentum(%22 : !boa.buffer<tensor<2048xf32>, host>) variance(%23 : !boa.buffer<tensor<2048xf32>, host>)
        boa.offload %15, @weights.block[%arg2] chunk %arg3 count 1 : <tensor<2048xbf16>, host>
        boa.offload %21, @low.block[%arg2] chunk %arg3 count 1 : <tensor<2048xi16>, host>
        boa.offload %22, @momentum.block[%arg2] chunk %arg3 count 1 : <tensor<2048xf32>, host>
        boa.offload %23, @variance.block[%arg2] chunk %arg3 count 1 : <tensor<2048xf32>, host>
        boa.release %21 : <tensor<2048xi16>, host>
        boa.release %22 : <tensor<2048xf32>, host>
        boa.release %23 : <tensor<2048xf32>, host>
      }
      boa.release %16 : <tensor<2048xf32>, host>
      %17 = boa.at_last %arg2
      boa.release %15 retain %17 : <tensor<2048xbf16>, host>
    }
    %false = arith.constant false
    %c0_13 = arith.constant 0 : index
    %11 = boa.prefetch @gradients.embed[%c0_13] zero %false : <tensor<2048xf32>, host>
    %c0_14 = arith.constant 0 : index
    boa.loop micro_batch %arg2 = 0 to 4 forward {
      %14 = boa.prefetch @tokens[%arg2] : <tensor<2x4xi32>, device>
      %15 = boa.prefetch @boundary_gradients[%c0_14, %arg2] : <tensor<2x4x8xf32>, host>
      boa.launch @embed_backward reads(%14, %15 : !boa.buffer<tensor<2x4xi32>, device>, !boa.buffer<tensor<2x4x8xf32>, device>) updates(%11 : !boa.buffer<tensor<2048xf32>, device>)
      boa.release %14 : <tensor<2x4xi32>, device>
      boa.release %15 : <tensor<2x4x8xf32>, host>
    }
    %c0_15 = arith.constant 0 : index
    boa.loop chunk %arg2 = 0 to 1 forward {
      %16 = boa.prefetch @weights.embed[%c0_15] chunk %arg2 count 1 : <tensor<2048xbf16>, host>
      %17 = boa.prefetch @low.embed[%c0_15] chunk %arg2 count 1 : <tensor<2048xi16>, host>
      %18 = boa.prefetch @momentum.embed[%c0_15] chunk %arg2 count 1 : <tensor<2048xf32>, host>
      %19 = boa.prefetch @variance.embed[%c0_15] chunk %arg2 count 1 : <tensor<2048xf32>, host>
      boa.update @embed chunk %arg2 step %arg0 weights(%16 : <tensor<2048xbf16>, host>) gradient(%11 : <tensor<2048xf32>, host>) low(%17 : !boa.buffer<tensor<2048xi16>, host>) momentum(%18 : !boa.buffer<tensor<2048xf32>, host>) variance(%19 : !boa.buffer<tensor<2048xf32>, host>)
      boa.offload %16, @weights.embed[%c0_15] chunk %arg2 count 1 : <tensor<2048xbf16>, host>
      boa.offload %17, @low.embed[%c0_15] chunk %arg2 count 1 : <tensor<2048xi16>, host>
      boa.offload %18, @momentum.embed[%c0_15] chunk %arg2 count 1 : <tensor<2048xf32>, host>
      boa.offload %19, @variance.embed[%c0_15] chunk %arg2 count 1 : <tensor<2048xf32>, host>
      %true_16 = arith.constant true
      boa.release %16 retain %true_16 : <tensor<2048xbf16>, host>
      %true_17 = arith.constant true
      boa.release %17 retain %true_17 : <tensor<2048xi16>, host>
      %true_18 = arith.constant true
      boa.release %18 retain %true_18 : <tensor<2048xf32>, host>
      %true_19 = arith.constant true
      boa.release %19 retain %true_19 : <tensor<2048xf32>, host>
    }
    boa.release %11 : <tensor<2048xf32>, host>
  }
  boa.step @drain(%arg0, %arg1) attributes {boa.first_traffic = {read = {}, written = {}}, boa.traffic = {read = {}, written = {}}} {
  }
  boa.step @evaluate(%arg0, %arg1) attributes {boa.first_traffic = {read = {checkpoints = 49152 : i64, weights = 20480 : i64}, written = {checkpoints = 65536 : i64}}, boa.traffic = {read = {checkpoints = 49152 : i64, weights = 20480 : i64}, written = {checkpoints = 65536 : i64}}} {
    %c0 = arith.constant 0 : index
    %c0_0 = arith.constant 0 : index
    %1 = boa.prefetch @weights.embed[%c0_0] : <tensor<2048xbf16>, device>
    boa.loop micro_batch %arg2 = 0 to 4 forward {
      %7 = boa.prefetch @tokens[%arg2] : <tensor<2x4xi32>, host>
      %8 = boa.create @checkpoints[%c0, %arg2] : <tensor<2x4x8xf32>, device>
      boa.launch @embed_forward reads(%7, %1 : !boa.buffer<tensor<2x4xi32>, device>, !boa.buffer<tensor<2048xbf16>, device>) writes(%8 : !boa.buffer<tensor<2x4x8xf32>, device>)
      boa.offload %8, @checkpoints[%c0, %arg2] : <tensor<2x4x8xf32>, device>
      boa.release %7 : <tensor<2x4xi32>, host>
      %10 = boa.at_last %arg2
      boa.release %8 retain %10 : <tensor<2x4x8xf32>, device>
    }
    %true = arith.constant true
    boa.release %1 retain %true : <tensor<2048xbf16>, device>
    boa.loop layer %arg2 = 0 to 3 forward {
      %8 = boa.prefetch @weights.block[%arg2] : <tensor<2048xbf16>, device>
      %7 = boa.shift %arg2, 1
      boa.loop micro_batch %arg3 = 0 to 4 snake(%arg2 + 1) {
        %10 = boa.prefetch @checkpoints[%arg2, %arg3] : <tensor<2x4x8xf32>, device>
        %11 = boa.create @checkpoints[%7, %arg3] : <tensor<2x4x8xf32>, host>
        boa.launch @block_forward reads(%10, %8 : !boa.buffer<tensor<2x4x8xf32>, device>, !boa.buffer<tensor<2048xbf16>, device>) writes(%11 : !boa.buffer<tensor<2x4x8xf32>, device>)
        boa.offload %11, @checkpoints[%7, %arg3] : <tensor<2x4x8xf32>, host>
        boa.release %10 : <tensor<2x4x8xf32>, device>
        %13 = boa.at_last %arg3
        boa.release %11 retain %13 : <tensor<2x4x8xf32>, host>
      }
      boa.release %8 : <tensor<2048xbf16>, device>
    }
    %c3 = arith.constant 3 : index
    %c0_1 = arith.constant 0 : index
    %4 = boa.prefetch @weights.head[%c0_1] : <tensor<2048xbf16>, host>
    %c0_2 = arith.constant 0 : index
    %5 = boa.prefetch @weights.embed[%c0_2] : <tensor<2048xbf16>, device>
    boa.loop micro_batch %arg2 = 0 to 4 forward {
      %8 = boa.prefetch @checkpoints[%c3, %arg2] : <tensor<2x4x8xf32>, device>
      %9 = boa.prefetch @targets[%arg2] : <tensor<2x4xi32>, device>
      %10 = boa.create @loss[%arg2] : <tensor<f32>, device>
      boa.launch @head_forward reads(%8, %9, %4, %5 : !boa.buffer<tensor<2x4x8xf32>, device>, !boa.buffer<tensor<2x4xi32>, device>, !boa.buffer<tensor<2048xbf16>, device>, !boa.buffer<tensor<2048xbf16>, device>) writes(%10 : !boa.buffer<tensor<f32>, device>)
      boa.offload %10, @loss[%arg2] : <tensor<f32>, device>
      boa.release %8 : <tensor<2x4x8xf32>, device>
      boa.release %9 : <tensor<2x4xi32>, device>
      boa.release %10 : <tensor<f32>, device>
    }
    boa.release %5 : <tensor<2048xbf16>, device>
    boa.release %4 : <tensor<2048xbf16>, host>
  }
}

