module attributes {boa.arena = 249856 : i64, boa.machine = {device_memory = 0 : i64, host_memory = 0 : i64}, boa.train = {batch = 8 : i64, delay = 2.500000e-01 : f64, micro_batch = 2 : i64, model = "tiny", optimizer = {kind = "adamw"}, place = {boundary_gradients = "ssd", checkpoints = "ssd", gradients = "ssd", optimizer = "ssd", saved = "ssd", weights = "ssd"}, prefetch = 1 : i64, weights = "bf16"}, boa.workspace = 4096 : i64} {
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
  boa.storage @tokens[4] : tensor<2x4xi32> on device role "tokens"
  boa.storage @targets[4] : tensor<2x4xi32> on device role "targets"
  boa.storage @loss[4] : tensor<f32> on device role "loss"
  boa.storage @checkpoints[4, 4] : tensor<2x4x8xf32> on ssd role "checkpoints" slots 4 of 1
  boa.storage @boundary_gradients[4, 4] : tensor<2x4x8xf32> on ssd role "boundary_gradients" slots 4 of 1
  boa.storage @weights.embed[1] : tensor<2048xbf16> on ssd role "weights" persistent slots 1 of 1
  boa.storage @gradients.embed[1] : tensor<2048xf32> on ssd role "gradients" persistent slots 1 of 1
  boa.storage @low.embed[1] : tensor<2048xi16> on ssd role "master" persistent slots 1 of 1
  boa.storage @momentum.embed[1] : tensor<2048xf32> on ssd role "momentum" persistent slots 1 of 1
  boa.storage @variance.embed[1] : tensor<2048xf32> on ssd role "variance" persistent slots 1 of 1
  boa.storage @weights.block[3] : tensor<2048xbf16> on ssd role "weights" persistent slots 3 of 1
  boa.storage @gradients.block[3] : tensor<2048xf32> on ssd role "gradients" persistent slots 3 of 1
  boa.storage @low.block[3] : tensor<2048xi16> on ssd role "master" persistent slots 3 of 1
  boa.storage @momentum.block[3] : tensor<2048xf32> on ssd role "momentum" persistent slots 3 of 1
  boa.storage @variance.block[3] : tensor<2048xf32> on ssd role "variance" persistent slots 3 of 1
  boa.storage @weights.head[1] : tensor<2048xbf16> on ssd role "weights" persistent slots 1 of 1
  boa.storage @gradients.head[1] : tensor<2048xf32> on ssd role "gradients" persistent slots 1 of 1
  boa.storage @low.head[1] : tensor<2048xi16> on ssd role "master" persistent slots 1 of 1
  boa.storage @momentum.head[1] : tensor<2048xf32> on ssd role "momentum" persistent slots 1 of 1
  boa.storage @variance.head[1] : tensor<2048xf32> on ssd role "variance" persistent slots 1 of 1
  boa.step @step(%arg0, %arg1) attributes {boa.first_traffic = {read = {boundary_gradients = 49152 : i64, checkpoints = 98304 : i64, master = 20480 : i64, momentum = 40960 : i64, variance = 40960 : i64, weights = 28672 : i64}, written = {boundary_gradients = 65536 : i64, checkpoints = 65536 : i64, master = 20480 : i64, momentum = 40960 : i64, variance = 40960 : i64, weights = 20480 : i64}}, boa.resumed_traffic = {read = {boundary_gradients = 49152 : i64, checkpoints = 98304 : i64, master = 20480 : i64, momentum = 40960 : i64, variance = 40960 : i64, weights = 28672 : i64}, written = {boundary_gradients = 65536 : i64, checkpoints = 65536 : i64, master = 20480 : i64, momentum = 40960 : i64, variance = 40960 : i64, weights = 20480 : i64}}, boa.traffic = {read = {boundary_gradients = 49152 : i64, checkpoints = 98304 : i64, master = 12288 : i64, momentum = 24576 : i64, variance = 24576 : i64, weights = 16384 : i64}, written = {boundary_gradients = 65536 : i64, checkpoints = 65536 : i64, master = 20480 : i64, momentum = 40960 : i64, variance = 40960 : i64, weights = 20480 : i64}}} {
    %c0 = arith.constant 0 : index
    %c0_0 = arith.constant 0 : index
    %0 = boa.prefetch @weights.embed[%c0_0]
    %1 = boa.await %0 : <tensor<2048xbf16>>
    boa.loop "micro_batch" %arg2 = 0 to 4 forward {
      %12 = boa.prefetch @tokens[%arg2]
      %13 = boa.await %12 : <tensor<2x4xi32>>
      %14 = boa.create @checkpoints[%c0, %arg2] : <tensor<2x4x8xf32>>
      boa.launch @embed_forward reads(%13, %1 : !boa.buffer<tensor<2x4xi32>>, !boa.buffer<tensor<2048xbf16>>) writes(%14 : !boa.buffer<tensor<2x4x8xf32>>)
      %15 = boa.offload %14, @checkpoints[%c0, %arg2] : <tensor<2x4x8xf32>>
      boa.release %13 : <tensor<2x4xi32>>
      %16 = boa.at_last %arg2
      boa.release %14 retain %16 : <tensor<2x4x8xf32>>
    }
    %true = arith.constant true
    boa.release %1 retain %true : <tensor<2048xbf16>>
    boa.loop "layer" %arg2 = 0 to 3 forward {
      %12 = boa.prefetch @weights.block[%arg2]
      %13 = boa.shift %arg2, 1
      %14 = boa.await %12 : <tensor<2048xbf16>>
      boa.loop "micro_batch" %arg3 = 0 to 4 snake(%arg2 + 1) {
        %16 = boa.prefetch @checkpoints[%arg2, %arg3]
        %17 = boa.await %16 : <tensor<2x4x8xf32>>
        %18 = boa.create @checkpoints[%13, %arg3] : <tensor<2x4x8xf32>>
        boa.launch @block_forward reads(%17, %14 : !boa.buffer<tensor<2x4x8xf32>>, !boa.buffer<tensor<2048xbf16>>) writes(%18 : !boa.buffer<tensor<2x4x8xf32>>)
        %19 = boa.offload %18, @checkpoints[%13, %arg3] : <tensor<2x4x8xf32>>
        boa.release %17 : <tensor<2x4x8xf32>>
        %20 = boa.at_last %arg3
        boa.release %18 retain %20 : <tensor<2x4x8xf32>>
      }
      %15 = boa.at_last %arg2
      boa.release %14 retain %15 : <tensor<2048xbf16>>
    }
    %c0_1 = arith.constant 0 : index
    %c0_2 = arith.constant 0 : index
    %c3 = arith.constant 3 : index
    %c3_3 = arith.constant 3 : index
    %c0_4 = arith.constant 0 : index
    %2 = boa.prefetch @weights.head[%c0_4]
    %c0_5 = arith.constant 0 : index
    %3 = boa.prefetch @weights.embed[%c0_5]
    %4 = boa.await %2 : <tensor<2048xbf16>>
    %5 = boa.await %3 : <tensor<2048xbf16>>
    %true_6 = arith.constant true
    %6 = boa.prefetch @gradients.head[%c0_2] zero %true_6
    %7 = boa.await %6 : <tensor<2048xf32>>
    %true_7 = arith.constant true
    %8 = boa.prefetch @gradients.embed[%c0_1] zero %true_7
    %9 = boa.await %8 : <tensor<2048xf32>>
    boa.loop "micro_batch" %arg2 = 0 to 4 forward {
      %12 = boa.prefetch @checkpoints[%c3_3, %arg2]
      %13 = boa.prefetch @targets[%arg2]
      %14 = boa.at_first %arg2
      %15 = boa.at_first %arg2
      %16 = boa.await %12 : <tensor<2x4x8xf32>>
      %17 = boa.await %13 : <tensor<2x4xi32>>
      %18 = boa.create @loss[%arg2] : <tensor<f32>>
      %19 = boa.create @boundary_gradients[%c3, %arg2] : <tensor<2x4x8xf32>>
      boa.launch @head_backward reads(%16, %17, %4, %5 : !boa.buffer<tensor<2x4x8xf32>>, !boa.buffer<tensor<2x4xi32>>, !boa.buffer<tensor<2048xbf16>>, !boa.buffer<tensor<2048xbf16>>) updates(%7, %9 : !boa.buffer<tensor<2048xf32>>, !boa.buffer<tensor<2048xf32>>) writes(%18, %19 : !boa.buffer<tensor<f32>>, !boa.buffer<tensor<2x4x8xf32>>)
      %20 = boa.offload %19, @boundary_gradients[%c3, %arg2] : <tensor<2x4x8xf32>>
      boa.release %16 : <tensor<2x4x8xf32>>
      boa.release %17 : <tensor<2x4xi32>>
      boa.release %18 : <tensor<f32>>
      %21 = boa.at_last %arg2
      boa.release %19 retain %21 : <tensor<2x4x8xf32>>
    }
    %true_8 = arith.constant true
    boa.release %9 retain %true_8 : <tensor<2048xf32>>
    %true_9 = arith.constant true
    boa.release %5 retain %true_9 : <tensor<2048xbf16>>
    %c0_10 = arith.constant 0 : index
    boa.loop "chunk" %arg2 = 0 to 1 forward {
      %12 = boa.prefetch @low.head[%c0_10] chunk %arg2 count 1
      %13 = boa.prefetch @momentum.head[%c0_10] chunk %arg2 count 1
      %14 = boa.prefetch @variance.head[%c0_10] chunk %arg2 count 1
      %15 = boa.await %12 : <tensor<2048xi16>>
      %16 = boa.await %13 : <tensor<2048xf32>>
      %17 = boa.await %14 : <tensor<2048xf32>>
      boa.update @head chunk %arg2 step %arg0 weights(%4 : <tensor<2048xbf16>>) gradient(%7 : <tensor<2048xf32>>) low(%15 : !boa.buffer<tensor<2048xi16>>) momentum(%16 : !boa.buffer<tensor<2048xf32>>) variance(%17 : !boa.buffer<tensor<2048xf32>>)
      %18 = boa.offload %4, @weights.head[%c0_10] chunk %arg2 count 1 : <tensor<2048xbf16>>
      %19 = boa.offload %15, @low.head[%c0_10] chunk %arg2 count 1 : <tensor<2048xi16>>
      %20 = boa.offload %16, @momentum.head[%c0_10] chunk %arg2 count 1 : <tensor<2048xf32>>
      %21 = boa.offload %17, @variance.head[%c0_10] chunk %arg2 count 1 : <tensor<2048xf32>>
      %true_16 = arith.constant true
      boa.release %15 retain %true_16 : <tensor<2048xi16>>
      %true_17 = arith.constant true
      boa.release %16 retain %true_17 : <tensor<2048xf32>>
      %true_18 = arith.constant true
      boa.release %17 retain %true_18 : <tensor<2048xf32>>
    }
    boa.release %7 : <tensor<2048xf32>>
    %true_11 = arith.constant true
    boa.release %4 retain %true_11 : <tensor<2048xbf16>>
    %true_12 = arith.constant true
    boa.loop "layer" %arg2 = 0 to 3 reverse {
      %12 = boa.prefetch @weights.block[%arg2]
      %13 = boa.prefetch @gradients.block[%arg2] zero %true_12
      %14 = boa.shift %arg2, 1
      %15 = boa.await %12 : <tensor<2048xbf16>>
      %16 = boa.await %13 : <tensor<2048xf32>>
      boa.loop "micro_batch" %arg3 = 0 to 4 snake(%arg2 + 1) {
        %18 = boa.prefetch @checkpoints[%arg2, %arg3]
        %19 = boa.prefetch @boundary_gradients[%14, %arg3]
        %20 = boa.at_first %arg3
        %21 = boa.await %18 : <tensor<2x4x8xf32>>
        %22 = boa.await %19 : <tensor<2x4x8xf32>>
        %23 = boa.create @boundary_gradients[%arg2, %arg3] : <tensor<2x4x8xf32>>
        boa.launch @block_backward reads(%21, %22, %15 : !boa.buffer<tensor<2x4x8xf32>>, !boa.buffer<tensor<2x4x8xf32>>, !boa.buffer<tensor<2048xbf16>>) updates(%16 : !boa.buffer<tensor<2048xf32>>) writes(%23 : !boa.buffer<tensor<2x4x8xf32>>)
        %24 = boa.offload %23, @boundary_gradients[%arg2, %arg3] : <tensor<2x4x8xf32>>
        boa.release %21 : <tensor<2x4x8xf32>>
        boa.release %22 : <tensor<2x4x8xf32>>
        %25 = boa.at_last %arg3
        boa.release %23 retain %25 : <tensor<2x4x8xf32>>
      }
      boa.loop "chunk" %arg3 = 0 to 1 forward {
        %18 = boa.prefetch @low.block[%arg2] chunk %arg3 count 1
        %19 = boa.prefetch @momentum.block[%arg2] chunk %arg3 count 1
        %20 = boa.prefetch @variance.block[%arg2] chunk %arg3 count 1
        %21 = boa.await %18 : <tensor<2048xi16>>
        %22 = boa.await %19 : <tensor<2048xf32>>
        %23 = boa.await %20 : <tensor<2048xf32>>
        boa.update @block chunk %arg3 step %arg0 weights(%15 : <tensor<2048xbf16>>) gradient(%16 : <tensor<2048xf32>>) low(%21 : !boa.buffer<tensor<2048xi16>>) momentum(%22 : !boa.buffer<tensor<2048xf32>>) variance(%23 : !boa.buffer<tensor<2048xf32>>)
        %24 = boa.offload %15, @weights.block[%arg2] chunk %arg3 count 1 : <tensor<2048xbf16>>
        %25 = boa.offload %21, @low.block[%arg2] chunk %arg3 count 1 : <tensor<2048xi16>>
        %26 = boa.offload %22, @momentum.block[%arg2] chunk %arg3 count 1 : <tensor<2048xf32>>
        %27 = boa.offload %23, @variance.block[%arg2] chunk %arg3 count 1 : <tensor<2048xf32>>
        boa.release %21 : <tensor<2048xi16>>
        boa.release %22 : <tensor<2048xf32>>
        boa.release %23 : <tensor<2048xf32>>
      }
      boa.release %16 : <tensor<2048xf32>>
      %17 = boa.at_last %arg2
      boa.release %15 retain %17 : <tensor<2048xbf16>>
    }
    %false = arith.constant false
    %c0_13 = arith.constant 0 : index
    %10 = boa.prefetch @gradients.embed[%c0_13] zero %false
    %c0_14 = arith.constant 0 : index
    %11 = boa.await %10 : <tensor<2048xf32>>
    boa.loop "micro_batch" %arg2 = 0 to 4 forward {
      %12 = boa.prefetch @tokens[%arg2]
      %13 = boa.prefetch @boundary_gradients[%c0_14, %arg2]
      %14 = boa.await %12 : <tensor<2x4xi32>>
      %15 = boa.await %13 : <tensor<2x4x8xf32>>
      boa.launch @embed_backward reads(%14, %15 : !boa.buffer<tensor<2x4xi32>>, !boa.buffer<tensor<2x4x8xf32>>) updates(%11 : !boa.buffer<tensor<2048xf32>>)
      boa.release %14 : <tensor<2x4xi32>>
      boa.release %15 : <tensor<2x4x8xf32>>
    }
    %c0_15 = arith.constant 0 : index
    boa.loop "chunk" %arg2 = 0 to 1 forward {
      %12 = boa.prefetch @weights.embed[%c0_15] chunk %arg2 count 1
      %13 = boa.prefetch @low.embed[%c0_15] chunk %arg2 count 1
      %14 = boa.prefetch @momentum.embed[%c0_15] chunk %arg2 count 1
      %15 = boa.prefetch @variance.embed[%c0_15] chunk %arg2 count 1
      %16 = boa.await %12 : <tensor<2048xbf16>>
      %17 = boa.await %13 : <tensor<2048xi16>>
      %18 = boa.await %14 : <tensor<2048xf32>>
      %19 = boa.await %15 : <tensor<2048xf32>>
      boa.update @embed chunk %arg2 step %arg0 weights(%16 : <tensor<2048xbf16>>) gradient(%11 : <tensor<2048xf32>>) low(%17 : !boa.buffer<tensor<2048xi16>>) momentum(%18 : !boa.buffer<tensor<2048xf32>>) variance(%19 : !boa.buffer<tensor<2048xf32>>)
      %20 = boa.offload %16, @weights.embed[%c0_15] chunk %arg2 count 1 : <tensor<2048xbf16>>
      %21 = boa.offload %17, @low.embed[%c0_15] chunk %arg2 count 1 : <tensor<2048xi16>>
      %22 = boa.offload %18, @momentum.embed[%c0_15] chunk %arg2 count 1 : <tensor<2048xf32>>
      %23 = boa.offload %19, @variance.embed[%c0_15] chunk %arg2 count 1 : <tensor<2048xf32>>
      %true_16 = arith.constant true
      boa.release %16 retain %true_16 : <tensor<2048xbf16>>
      %true_17 = arith.constant true
      boa.release %17 retain %true_17 : <tensor<2048xi16>>
      %true_18 = arith.constant true
      boa.release %18 retain %true_18 : <tensor<2048xf32>>
      %true_19 = arith.constant true
      boa.release %19 retain %true_19 : <tensor<2048xf32>>
    }
    boa.release %11 : <tensor<2048xf32>>
  }
  boa.step @drain(%arg0, %arg1) attributes {boa.first_traffic = {read = {}, written = {}}, boa.traffic = {read = {}, written = {}}} {
  }
  boa.step @evaluate(%arg0, %arg1) attributes {boa.first_traffic = {read = {checkpoints = 49152 : i64, weights = 20480 : i64}, written = {checkpoints = 65536 : i64}}, boa.traffic = {read = {checkpoints = 49152 : i64, weights = 20480 : i64}, written = {checkpoints = 65536 : i64}}} {
    %c0 = arith.constant 0 : index
    %c0_0 = arith.constant 0 : index
    %0 = boa.prefetch @weights.embed[%c0_0]
    %1 = boa.await %0 : <tensor<2048xbf16>>
    boa.loop "micro_batch" %arg2 = 0 to 4 forward {
      %6 = boa.prefetch @tokens[%arg2]
      %7 = boa.await %6 : <tensor<2x4xi32>>
      %8 = boa.create @checkpoints[%c0, %arg2] : <tensor<2x4x8xf32>>
      boa.launch @embed_forward reads(%7, %1 : !boa.buffer<tensor<2x4xi32>>, !boa.buffer<tensor<2048xbf16>>) writes(%8 : !boa.buffer<tensor<2x4x8xf32>>)
      %9 = boa.offload %8, @checkpoints[%c0, %arg2] : <tensor<2x4x8xf32>>
      boa.release %7 : <tensor<2x4xi32>>
      %10 = boa.at_last %arg2
      boa.release %8 retain %10 : <tensor<2x4x8xf32>>
    }
    %true = arith.constant true
    boa.release %1 retain %true : <tensor<2048xbf16>>
    boa.loop "layer" %arg2 = 0 to 3 forward {
      %6 = boa.prefetch @weights.block[%arg2]
      %7 = boa.shift %arg2, 1
      %8 = boa.await %6 : <tensor<2048xbf16>>
      boa.loop "micro_batch" %arg3 = 0 to 4 snake(%arg2 + 1) {
        %9 = boa.prefetch @checkpoints[%arg2, %arg3]
        %10 = boa.await %9 : <tensor<2x4x8xf32>>
        %11 = boa.create @checkpoints[%7, %arg3] : <tensor<2x4x8xf32>>
        boa.launch @block_forward reads(%10, %8 : !boa.buffer<tensor<2x4x8xf32>>, !boa.buffer<tensor<2048xbf16>>) writes(%11 : !boa.buffer<tensor<2x4x8xf32>>)
        %12 = boa.offload %11, @checkpoints[%7, %arg3] : <tensor<2x4x8xf32>>
        boa.release %10 : <tensor<2x4x8xf32>>
        %13 = boa.at_last %arg3
        boa.release %11 retain %13 : <tensor<2x4x8xf32>>
      }
      boa.release %8 : <tensor<2048xbf16>>
    }
    %c3 = arith.constant 3 : index
    %c0_1 = arith.constant 0 : index
    %2 = boa.prefetch @weights.head[%c0_1]
    %c0_2 = arith.constant 0 : index
    %3 = boa.prefetch @weights.embed[%c0_2]
    %4 = boa.await %2 : <tensor<2048xbf16>>
    %5 = boa.await %3 : <tensor<2048xbf16>>
    boa.loop "micro_batch" %arg2 = 0 to 4 forward {
      %6 = boa.prefetch @checkpoints[%c3, %arg2]
      %7 = boa.prefetch @targets[%arg2]
      %8 = boa.await %6 : <tensor<2x4x8xf32>>
      %9 = boa.await %7 : <tensor<2x4xi32>>
      %10 = boa.create @loss[%arg2] : <tensor<f32>>
      boa.launch @head_forward reads(%8, %9, %4, %5 : !boa.buffer<tensor<2x4x8xf32>>, !boa.buffer<tensor<2x4xi32>>, !boa.buffer<tensor<2048xbf16>>, !boa.buffer<tensor<2048xbf16>>) writes(%10 : !boa.buffer<tensor<f32>>)
      %11 = boa.offload %10, @loss[%arg2] : <tensor<f32>>
      boa.release %8 : <tensor<2x4x8xf32>>
      boa.release %9 : <tensor<2x4xi32>>
      boa.release %10 : <tensor<f32>>
    }
    boa.release %5 : <tensor<2048xbf16>>
    boa.release %4 : <tensor<2048xbf16>>
  }
}

