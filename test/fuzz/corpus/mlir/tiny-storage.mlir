module attributes {boa.arena = 9613312 : i64, boa.arena_device = 53248 : i64, boa.computes = -1036987196130899281 : i64, boa.workspace = 4096 : i64} {
  boa.config @machine {
    device_memory = 0 : i64,
    host_memory = 0 : i64
  }
  boa.config @model {name = "tiny"}
  boa.config @train {batch = 8 : i64, optimizer = {kind = "adamw"}, weights = "bf16"}
  boa.config @plan {
    delay = 2.500000e-01 : f64,
    micro_batch = 2 : i64,
    place = {boundary_gradients = "ssd", checkpoints = "ssd", gradients = "ssd", optimizer = "ssd", saved = "ssd", weights = "ssd"},
    prefetch = 1 : i64
  }
  boa.group @embed repeat 1 {
    boa.param @wte : tensor<64x512xf32> = "normal" 2.000000e-02
  }
  boa.group @block repeat 3 {
    boa.param @w : tensor<512x512xf32> = "normal" 2.000000e-02
    boa.param @b : tensor<512xf32> = "zeros"
  }
  boa.group @head repeat 1 {
    boa.param @ln : tensor<512xf32> = "ones"
  }
  func.func @embed_forward(%arg0: tensor<2x16xi32> {boa.buffer = 0 : i32, boa.offset = 0 : i64}, %arg1: tensor<64x512xbf16> {boa.buffer = 1 : i32, boa.offset = 0 : i64}) -> (tensor<2x16x512xf32> {boa.buffer = 2 : i32, boa.offset = 0 : i64}) attributes {boa.buffers = array<i32: 2, 0, 1>, boa.bytes = 1.967360e+05 : f64, boa.contents = [tensor<2x16xi32>, tensor<32768xbf16>, tensor<2x16x512xf32>], boa.flops = 0.000000e+00 : f64, boa.kernel} {
    %0 = boa.cast %arg1 : tensor<64x512xbf16> to tensor<64x512xf32>
    %1 = boa.embedding %0, %arg0 : (tensor<64x512xf32>, tensor<2x16xi32>) -> tensor<2x16x512xf32>
    return %1 : tensor<2x16x512xf32>
  }
  func.func @embed_backward(%arg0: tensor<2x16xi32> {boa.buffer = 0 : i32, boa.offset = 0 : i64}, %arg1: tensor<2x16x512xf32> {boa.buffer = 1 : i32, boa.offset = 0 : i64}, %arg2: tensor<64x512xf32> {boa.buffer = 2 : i32, boa.offset = 0 : i64, boa.result = 0 : i32}) -> (tensor<64x512xf32> {boa.buffer = 2 : i32, boa.offset = 0 : i64}) attributes {boa.buffers = array<i32: 2, 1, 0>, boa.bytes = 1.967360e+05 : f64, boa.contents = [tensor<2x16xi32>, tensor<2x16x512xf32>, tensor<32768xf32>], boa.flops = 1.638400e+04 : f64, boa.kernel} {
    %0 = boa.embedding_grad %arg0, %arg1 : (tensor<2x16xi32>, tensor<2x16x512xf32>) -> tensor<64x512xf32>
    %1 = boa.add %arg2, %0 : tensor<64x512xf32>, tensor<64x512xf32>
    return %1 : tensor<64x512xf32>
  }
  func.func @block_forward(%arg0: tensor<2x16x512xf32> {boa.buffer = 0 : i32, boa.offset = 0 : i64}, %arg1: tensor<512x512xbf16> {boa.buffer = 1 : i32, boa.offset = 0 : i64}, %arg2: tensor<512xbf16> {boa.buffer = 1 : i32, boa.offset = 524288 : i64}) -> (tensor<2x16x512xf32> {boa.buffer = 2 : i32, boa.offset = 0 : i64}) attributes {boa.buffers = array<i32: 2, 0, 1>, boa.bytes = 0x4137080000000000 : f64, boa.contents = [tensor<2x16x512xf32>, tensor<276480xbf16>, tensor<2x16x512xf32>], boa.flops = 0x4170440000000000 : f64, boa.kernel} {
    %0 = boa.cast %arg1 : tensor<512x512xbf16> to tensor<512x512xf32>
    %1 = boa.cast %arg2 : tensor<512xbf16> to tensor<512xf32>
    %2 = boa.linear %arg0, %0 bias %1 : (tensor<2x16x512xf32>, tensor<512x512xf32>, tensor<512xf32>) -> tensor<2x16x512xf32>
    %3 = boa.gelu %2 : tensor<2x16x512xf32>
    %4 = boa.add %arg0, %3 : tensor<2x16x512xf32>, tensor<2x16x512xf32>
    return %4 : tensor<2x16x512xf32>
  }
  func.func @block_backward(%arg0: tensor<2x16x512xf32> {boa.buffer = 0 : i32, boa.offset = 0 : i64}, %arg1: tensor<512x512xbf16> {boa.buffer = 2 : i32, boa.offset = 0 : i64}, %arg2: tensor<512xbf16> {boa.buffer = 2 : i32, boa.offset = 524288 : i64}, %arg3: tensor<2x16x512xf32> {boa.buffer = 1 : i32, boa.offset = 0 : i64}, %arg4: tensor<512x512xf32> {boa.buffer = 3 : i32, boa.offset = 0 : i64, boa.result = 1 : i32}, %arg5: tensor<512xf32> {boa.buffer = 3 : i32, boa.offset = 1048576 : i64, boa.result = 2 : i32}) -> (tensor<2x16x512xf32> {boa.buffer = 4 : i32, boa.offset = 0 : i64}, tensor<512x512xf32> {boa.buffer = 3 : i32, boa.offset = 0 : i64}, tensor<512xf32> {boa.buffer = 3 : i32, boa.offset = 1048576 : i64}) attributes {boa.buffers = array<i32: 3, 1, 1>, boa.bytes = 0x414E880000000000 : f64, boa.contents = [tensor<2x16x512xf32>, tensor<2x16x512xf32>, tensor<276480xbf16>, tensor<276480xf32>, tensor<2x16x512xf32>], boa.flops = 0x4188340000000000 : f64, boa.kernel} {
    %0 = boa.cast %arg1 : tensor<512x512xbf16> to tensor<512x512xf32>
    %1 = boa.cast %arg2 : tensor<512xbf16> to tensor<512xf32>
    %2 = boa.linear %arg0, %0 bias %1 : (tensor<2x16x512xf32>, tensor<512x512xf32>, tensor<512xf32>) -> tensor<2x16x512xf32>
    %3 = boa.gelu_grad %2, %arg3 : tensor<2x16x512xf32>
    %4 = boa.linear %3, %0 transpose : (tensor<2x16x512xf32>, tensor<512x512xf32>) -> tensor<2x16x512xf32>
    %5 = boa.linear_weight_grad %arg0, %3 : (tensor<2x16x512xf32>, tensor<2x16x512xf32>) -> tensor<512x512xf32>
    %6 = boa.sum_leading %3 : tensor<2x16x512xf32> to tensor<512xf32>
    %7 = boa.add %arg3, %4 : tensor<2x16x512xf32>, tensor<2x16x512xf32>
    %8 = boa.add %arg4, %5 : tensor<512x512xf32>, tensor<512x512xf32>
    %9 = boa.add %arg5, %6 : tensor<512xf32>, tensor<512xf32>
    return %7, %8, %9 : tensor<2x16x512xf32>, tensor<512x512xf32>, tensor<512xf32>
  }
  func.func @head_forward(%arg0: tensor<2x16x512xf32> {boa.buffer = 0 : i32, boa.offset = 0 : i64}, %arg1: tensor<2x16xi32> {boa.buffer = 1 : i32, boa.offset = 0 : i64}, %arg2: tensor<512xbf16> {boa.buffer = 2 : i32, boa.offset = 0 : i64}, %arg3: tensor<64x512xbf16> {boa.buffer = 3 : i32, boa.offset = 0 : i64}) -> (tensor<f32> {boa.buffer = 4 : i32, boa.offset = 0 : i64}) attributes {boa.buffers = array<i32: 4, 0, 1>, boa.bytes = 3.462440e+05 : f64, boa.contents = [tensor<2x16x512xf32>, tensor<2x16xi32>, tensor<2048xbf16>, tensor<32768xbf16>, tensor<f32>], boa.flops = 0x4140C80000000000 : f64, boa.kernel} {
    %0 = boa.cast %arg2 : tensor<512xbf16> to tensor<512xf32>
    %1 = boa.cast %arg3 : tensor<64x512xbf16> to tensor<64x512xf32>
    %2 = boa.rms_norm %arg0, %0 : (tensor<2x16x512xf32>, tensor<512xf32>) -> tensor<2x16x512xf32>
    %3 = boa.linear %2, %1 transpose : (tensor<2x16x512xf32>, tensor<64x512xf32>) -> tensor<2x16x64xf32>
    %4 = boa.cross_entropy %3, %arg1 : (tensor<2x16x64xf32>, tensor<2x16xi32>) -> tensor<f32>
    return %4 : tensor<f32>
  }
  func.func @head_backward(%arg0: tensor<2x16x512xf32> {boa.buffer = 0 : i32, boa.offset = 0 : i64}, %arg1: tensor<2x16xi32> {boa.buffer = 1 : i32, boa.offset = 0 : i64}, %arg2: tensor<512xbf16> {boa.buffer = 2 : i32, boa.offset = 0 : i64}, %arg3: tensor<64x512xbf16> {boa.buffer = 3 : i32, boa.offset = 0 : i64}, %arg4: tensor<512xf32> {boa.buffer = 4 : i32, boa.offset = 0 : i64, boa.result = 2 : i32}, %arg5: tensor<64x512xf32> {boa.buffer = 5 : i32, boa.offset = 0 : i64, boa.result = 3 : i32}) -> (tensor<f32> {boa.buffer = 6 : i32, boa.offset = 0 : i64}, tensor<2x16x512xf32> {boa.buffer = 7 : i32, boa.offset = 0 : i64}, tensor<512xf32> {boa.buffer = 4 : i32, boa.offset = 0 : i64}, tensor<64x512xf32> {boa.buffer = 5 : i32, boa.offset = 0 : i64}) attributes {boa.buffers = array<i32: 4, 2, 2>, boa.bytes = 9.730640e+05 : f64, boa.contents = [tensor<2x16x512xf32>, tensor<2x16xi32>, tensor<2048xbf16>, tensor<32768xbf16>, tensor<2048xf32>, tensor<32768xf32>, tensor<f32>, tensor<2x16x512xf32>], boa.flops = 0x41592C0000000000 : f64, boa.kernel} {
    %0 = boa.cast %arg2 : tensor<512xbf16> to tensor<512xf32>
    %1 = boa.cast %arg3 : tensor<64x512xbf16> to tensor<64x512xf32>
    %2 = boa.rms_norm %arg0, %0 : (tensor<2x16x512xf32>, tensor<512xf32>) -> tensor<2x16x512xf32>
    %3 = boa.linear %2, %1 transpose : (tensor<2x16x512xf32>, tensor<64x512xf32>) -> tensor<2x16x64xf32>
    %4 = boa.cross_entropy %3, %arg1 : (tensor<2x16x64xf32>, tensor<2x16xi32>) -> tensor<f32>
    %cst = arith.constant dense<2.500000e-01> : tensor<f32>
    %5 = boa.cross_entropy_grad %3, %arg1, %cst : (tensor<2x16x64xf32>, tensor<2x16xi32>, tensor<f32>) -> tensor<2x16x64xf32>
    %6 = boa.linear %5, %1 : (tensor<2x16x64xf32>, tensor<64x512xf32>) -> tensor<2x16x512xf32>
    %7 = boa.linear_weight_grad %2, %5 transpose : (tensor<2x16x512xf32>, tensor<2x16x64xf32>) -> tensor<64x512xf32>
    %dx, %dweight = boa.rms_norm_grad %arg0, %0, %6 : (tensor<2x16x512xf32>, tensor<512xf32>, tensor<2x16x512xf32>) -> (tensor<2x16x512xf32>, tensor<512xf32>)
    %8 = boa.add %arg4, %dweight : tensor<512xf32>, tensor<512xf32>
    %9 = boa.add %arg5, %7 : tensor<64x512xf32>, tensor<64x512xf32>
    return %4, %dx, %8, %9 : tensor<f32>, tensor<2x16x512xf32>, tensor<512xf32>, tensor<64x512xf32>
  }
  boa.storage @tokens[4] : tensor<2x16xi32> on device role tokens
  boa.storage @targets[4] : tensor<2x16xi32> on device role targets
  boa.storage @loss[4] : tensor<f32> on device role loss
  boa.storage @checkpoints[4, 4] : tensor<2x16x512xf32> on ssd role checkpoints slots device 4 x 1
  boa.storage @boundary_gradients[4, 4] : tensor<2x16x512xf32> on ssd role boundary_gradients slots device 4 x 1
  boa.storage @weights.embed[1] : tensor<32768xbf16> on ssd role weights chunks 8 persistent slots device 7 x 1, device 1 x 8
  boa.storage @gradients.embed[1] : tensor<32768xf32> on ssd role gradients chunks 8 slots device 3 x 1, device 1 x 8
  boa.storage @low.embed[1] : tensor<32768xi16> on ssd role master chunks 8 persistent slots device 8 x 1
  boa.storage @momentum.embed[1] : tensor<32768xf32> on ssd role momentum chunks 8 persistent slots device 8 x 1
  boa.storage @variance.embed[1] : tensor<32768xf32> on ssd role variance chunks 8 persistent slots device 8 x 1
  boa.storage @weights.block[3] : tensor<276480xbf16> on ssd role weights chunks 15 persistent slots device 1 x 1, device 3 x 15
  boa.storage @gradients.block[3] : tensor<276480xf32> on ssd role gradients chunks 15 slots device 5 x 1, device 3 x 15
  boa.storage @low.block[3] : tensor<276480xi16> on ssd role master chunks 15 persistent slots device 16 x 1
  boa.storage @momentum.block[3] : tensor<276480xf32> on ssd role momentum chunks 15 persistent slots device 16 x 1
  boa.storage @variance.block[3] : tensor<276480xf32> on ssd role variance chunks 15 persistent slots device 16 x 1
  boa.storage @weights.head[1] : tensor<2048xbf16> on ssd role weights persistent slots device 1 x 1
  boa.storage @gradients.head[1] : tensor<2048xf32> on ssd role gradients slots device 1 x 1
  boa.storage @low.head[1] : tensor<2048xi16> on ssd role master persistent slots device 1 x 1
  boa.storage @momentum.head[1] : tensor<2048xf32> on ssd role momentum persistent slots device 1 x 1
  boa.storage @variance.head[1] : tensor<2048xf32> on ssd role variance persistent slots device 1 x 1
  boa.step @step(%arg0, %arg1) attributes {boa.first_traffic = {read = {boundary_gradients = 786432 : i64, checkpoints = 1572864 : i64, master = 1269760 : i64, momentum = 2539520 : i64, variance = 2539520 : i64, weights = 2883584 : i64}, written = {boundary_gradients = 1048576 : i64, checkpoints = 1048576 : i64, gradients = 917504 : i64, master = 1269760 : i64, momentum = 2539520 : i64, variance = 2539520 : i64, weights = 1269760 : i64}}, boa.second_traffic = {read = {boundary_gradients = 786432 : i64, checkpoints = 1572864 : i64, gradients = 917504 : i64, master = 1724416 : i64, momentum = 3448832 : i64, variance = 3448832 : i64, weights = 2326528 : i64}, written = {boundary_gradients = 1048576 : i64, checkpoints = 1048576 : i64, gradients = 917504 : i64, master = 1728512 : i64, momentum = 3457024 : i64, variance = 3457024 : i64, weights = 1728512 : i64}}, boa.traffic = {read = {boundary_gradients = 786432 : i64, checkpoints = 1572864 : i64, gradients = 917504 : i64, master = 1724416 : i64, momentum = 3448832 : i64, variance = 3448832 : i64, weights = 2326528 : i64}, written = {boundary_gradients = 1048576 : i64, checkpoints = 1048576 : i64, gradients = 917504 : i64, master = 1728512 : i64, momentum = 3457024 : i64, variance = 3457024 : i64, weights = 1728512 : i64}}} {
    %c0 = arith.constant 0 : index
    %c0_0 = arith.constant 0 : index
    %0 = boa.prefetch @weights.embed[%c0_0] : <tensor<32768xbf16>, device>
    boa.loop chunk %arg2 = 6 to 8 forward if %arg1 {
      %6 = boa.prefetch @gradients.embed[%c0] chunk %arg2 count 1 : <tensor<32768xf32>, host>
      %7 = boa.prefetch @low.embed[%c0] chunk %arg2 count 1 : <tensor<32768xi16>, host>
      %8 = boa.prefetch @momentum.embed[%c0] chunk %arg2 count 1 : <tensor<32768xf32>, host>
      %9 = boa.prefetch @variance.embed[%c0] chunk %arg2 count 1 : <tensor<32768xf32>, host>
      boa.update @embed chunk %arg2 step %arg1 weights(%0 : <tensor<32768xbf16>, device>) gradient(%6 : <tensor<32768xf32>, host>) low(%7 : <tensor<32768xi16>, host>) momentum(%8 : <tensor<32768xf32>, host>) variance(%9 : <tensor<32768xf32>, host>)
      boa.offload %0, @weights.embed[%c0] chunk %arg2 count 1 : <tensor<32768xbf16>, device>
      boa.offload %7, @low.embed[%c0] chunk %arg2 count 1 : <tensor<32768xi16>, host>
      boa.offload %8, @momentum.embed[%c0] chunk %arg2 count 1 : <tensor<32768xf32>, host>
      boa.offload %9, @variance.embed[%c0] chunk %arg2 count 1 : <tensor<32768xf32>, host>
      boa.release %6 : <tensor<32768xf32>, host>
      boa.release %7 : <tensor<32768xi16>, host>
      boa.release %8 : <tensor<32768xf32>, host>
      boa.release %9 : <tensor<32768xf32>, host>
    }
    %c0_1 = arith.constant 0 : index
    boa.loop micro_batch %arg2 = 0 to 4 forward {
      %6 = boa.prefetch @tokens[%arg2] : <tensor<2x16xi32>, device>
      %7 = boa.create @checkpoints[%c0_1, %arg2] : <tensor<2x16x512xf32>, device>
      boa.launch @embed_forward reads(%6, %0 : <tensor<2x16xi32>, device>, <tensor<32768xbf16>, device>) writes(%7 : <tensor<2x16x512xf32>, device>)
      boa.offload %7, @checkpoints[%c0_1, %arg2] : <tensor<2x16x512xf32>, device>
      boa.release %6 : <tensor<2x16xi32>, device>
      %8 = boa.at_last %arg2
      boa.release %7 retain %8 : <tensor<2x16x512xf32>, device>
    }
    %true = arith.constant true
    boa.release %0 retain %true : <tensor<32768xbf16>, device>
    boa.loop layer %arg2 = 0 to 3 forward {
      %6 = boa.prefetch @weights.block[%arg2] : <tensor<276480xbf16>, device>
      boa.loop chunk %arg3 = 11 to 15 forward if %arg1 {
        %9 = boa.prefetch @gradients.block[%arg2] chunk %arg3 count 1 : <tensor<276480xf32>, host>
        %10 = boa.prefetch @low.block[%arg2] chunk %arg3 count 1 : <tensor<276480xi16>, host>
        %11 = boa.prefetch @momentum.block[%arg2] chunk %arg3 count 1 : <tensor<276480xf32>, host>
        %12 = boa.prefetch @variance.block[%arg2] chunk %arg3 count 1 : <tensor<276480xf32>, host>
        boa.update @block chunk %arg3 step %arg1 weights(%6 : <tensor<276480xbf16>, device>) gradient(%9 : <tensor<276480xf32>, host>) low(%10 : <tensor<276480xi16>, host>) momentum(%11 : <tensor<276480xf32>, host>) variance(%12 : <tensor<276480xf32>, host>)
        boa.offload %6, @weights.block[%arg2] chunk %arg3 count 1 : <tensor<276480xbf16>, device>
        boa.offload %10, @low.block[%arg2] chunk %arg3 count 1 : <tensor<276480xi16>, host>
        boa.offload %11, @momentum.block[%arg2] chunk %arg3 count 1 : <tensor<276480xf32>, host>
        boa.offload %12, @variance.block[%arg2] chunk %arg3 count 1 : <tensor<276480xf32>, host>
        boa.release %9 : <tensor<276480xf32>, host>
        boa.release %10 : <tensor<276480xi16>, host>
        boa.release %11 : <tensor<276480xf32>, host>
        boa.release %12 : <tensor<276480xf32>, host>
      }
      %7 = boa.shift %arg2, 1
      boa.loop micro_batch %arg3 = 0 to 4 snake(%arg2 + 1) {
        %9 = boa.prefetch @checkpoints[%arg2, %arg3] : <tensor<2x16x512xf32>, device>
        %10 = boa.create @checkpoints[%7, %arg3] : <tensor<2x16x512xf32>, device>
        boa.launch @block_forward reads(%9, %6 : <tensor<2x16x512xf32>, device>, <tensor<276480xbf16>, device>) writes(%10 : <tensor<2x16x512xf32>, device>)
        boa.offload %10, @checkpoints[%7, %arg3] : <tensor<2x16x512xf32>, device>
        boa.release %9 : <tensor<2x16x512xf32>, device>
        %11 = boa.at_last %arg3
        boa.release %10 retain %11 : <tensor<2x16x512xf32>, device>
      }
      %8 = boa.at_last %arg2
      boa.release %6 retain %8 : <tensor<276480xbf16>, device>
    }
    %c0_2 = arith.constant 0 : index
    %c0_3 = arith.constant 0 : index
    %c3 = arith.constant 3 : index
    %c3_4 = arith.constant 3 : index
    %c0_5 = arith.constant 0 : index
    %1 = boa.prefetch @weights.head[%c0_5] : <tensor<2048xbf16>, device>
    %c0_6 = arith.constant 0 : index
    %2 = boa.prefetch @weights.embed[%c0_6] : <tensor<32768xbf16>, device>
    %true_7 = arith.constant true
    %3 = boa.prefetch @gradients.head[%c0_3] zero %true_7 : <tensor<2048xf32>, device>
    %true_8 = arith.constant true
    %4 = boa.prefetch @gradients.embed[%c0_2] zero %true_8 : <tensor<32768xf32>, device>
    boa.loop micro_batch %arg2 = 0 to 4 forward {
      %6 = boa.prefetch @checkpoints[%c3_4, %arg2] : <tensor<2x16x512xf32>, device>
      %7 = boa.prefetch @targets[%arg2] : <tensor<2x16xi32>, device>
      %8 = boa.at_first %arg2
      %9 = boa.at_first %arg2
      %10 = boa.create @loss[%arg2] : <tensor<f32>, device>
      %11 = boa.create @boundary_gradients[%c3, %arg2] : <tensor<2x16x512xf32>, device>
      boa.launch @head_backward reads(%6, %7, %1, %2 : <tensor<2x16x512xf32>, device>, <tensor<2x16xi32>, device>, <tensor<2048xbf16>, device>, <tensor<32768xbf16>, device>) updates(%3, %4 : <tensor<2048xf32>, device>, <tensor<32768xf32>, device>) writes(%10, %11 : <tensor<f32>, device>, <tensor<2x16x512xf32>, device>)
      boa.offload %11, @boundary_gradients[%c3, %arg2] : <tensor<2x16x512xf32>, device>
      boa.release %6 : <tensor<2x16x512xf32>, device>
      boa.release %7 : <tensor<2x16xi32>, device>
      boa.release %10 : <tensor<f32>, device>
      %12 = boa.at_last %arg2
      boa.release %11 retain %12 : <tensor<2x16x512xf32>, device>
    }
    %true_9 = arith.constant true
    boa.release %4 retain %true_9 : <tensor<32768xf32>, device>
    boa.release %2 : <tensor<32768xbf16>, device>
    %c0_10 = arith.constant 0 : index
    boa.loop chunk %arg2 = 0 to 1 forward {
      %6 = boa.prefetch @low.head[%c0_10] chunk %arg2 count 1 : <tensor<2048xi16>, host>
      %7 = boa.prefetch @momentum.head[%c0_10] chunk %arg2 count 1 : <tensor<2048xf32>, host>
      %8 = boa.prefetch @variance.head[%c0_10] chunk %arg2 count 1 : <tensor<2048xf32>, host>
      boa.update @head chunk %arg2 step %arg0 weights(%1 : <tensor<2048xbf16>, device>) gradient(%3 : <tensor<2048xf32>, device>) low(%6 : <tensor<2048xi16>, host>) momentum(%7 : <tensor<2048xf32>, host>) variance(%8 : <tensor<2048xf32>, host>)
      boa.offload %1, @weights.head[%c0_10] chunk %arg2 count 1 : <tensor<2048xbf16>, device>
      boa.offload %6, @low.head[%c0_10] chunk %arg2 count 1 : <tensor<2048xi16>, host>
      boa.offload %7, @momentum.head[%c0_10] chunk %arg2 count 1 : <tensor<2048xf32>, host>
      boa.offload %8, @variance.head[%c0_10] chunk %arg2 count 1 : <tensor<2048xf32>, host>
      %true_16 = arith.constant true
      boa.release %6 retain %true_16 : <tensor<2048xi16>, host>
      %true_17 = arith.constant true
      boa.release %7 retain %true_17 : <tensor<2048xf32>, host>
      %true_18 = arith.constant true
      boa.release %8 retain %true_18 : <tensor<2048xf32>, host>
    }
    boa.release %3 : <tensor<2048xf32>, device>
    %true_11 = arith.constant true
    boa.release %1 retain %true_11 : <tensor<2048xbf16>, device>
    %true_12 = arith.constant true
    boa.loop layer %arg2 = 0 to 3 reverse {
      %6 = boa.prefetch @weights.block[%arg2] : <tensor<276480xbf16>, device>
      %7 = boa.prefetch @gradients.block[%arg2] zero %true_12 : <tensor<276480xf32>, device>
      %8 = boa.shift %arg2, 1
      boa.loop micro_batch %arg3 = 0 to 4 snake(%arg2 + 1) {
        %10 = boa.prefetch @checkpoints[%arg2, %arg3] : <tensor<2x16x512xf32>, device>
        %11 = boa.prefetch @boundary_gradients[%8, %arg3] : <tensor<2x16x512xf32>, device>
        %12 = boa.at_first %arg3
        %13 = boa.create @boundary_gradients[%arg2, %arg3] : <tensor<2x16x512xf32>, device>
        boa.launch @block_backward reads(%10, %11, %6 : <tensor<2x16x512xf32>, device>, <tensor<2x16x512xf32>, device>, <tensor<276480xbf16>, device>) updates(%7 : <tensor<276480xf32>, device>) writes(%13 : <tensor<2x16x512xf32>, device>)
        boa.offload %13, @boundary_gradients[%arg2, %arg3] : <tensor<2x16x512xf32>, device>
        boa.release %10 : <tensor<2x16x512xf32>, device>
        boa.release %11 : <tensor<2x16x512xf32>, device>
        %14 = boa.at_last %arg3
        boa.release %13 retain %14 : <tensor<2x16x512xf32>, device>
      }
      %c11 = arith.constant 11 : index
      boa.offload %7, @gradients.block[%arg2] chunk %c11 count 4 : <tensor<276480xf32>, device>
      boa.loop chunk %arg3 = 0 to 11 forward {
        %10 = boa.prefetch @low.block[%arg2] chunk %arg3 count 1 : <tensor<276480xi16>, host>
        %11 = boa.prefetch @momentum.block[%arg2] chunk %arg3 count 1 : <tensor<276480xf32>, host>
        %12 = boa.prefetch @variance.block[%arg2] chunk %arg3 count 1 : <tensor<276480xf32>, host>
        boa.update @block chunk %arg3 step %arg0 weights(%6 : <tensor<276480xbf16>, device>) gradient(%7 : <tensor<276480xf32>, device>) low(%10 : <tensor<276480xi16>, host>) momentum(%11 : <tensor<276480xf32>, host>) variance(%12 : <tensor<276480xf32>, host>)
        boa.offload %6, @weights.block[%arg2] chunk %arg3 count 1 : <tensor<276480xbf16>, device>
        boa.offload %10, @low.block[%arg2] chunk %arg3 count 1 : <tensor<276480xi16>, host>
        boa.offload %11, @momentum.block[%arg2] chunk %arg3 count 1 : <tensor<276480xf32>, host>
        boa.offload %12, @variance.block[%arg2] chunk %arg3 count 1 : <tensor<276480xf32>, host>
        boa.release %10 : <tensor<276480xi16>, host>
        boa.release %11 : <tensor<276480xf32>, host>
        boa.release %12 : <tensor<276480xf32>, host>
      }
      boa.release %7 : <tensor<276480xf32>, device>
      %9 = boa.at_last %arg2
      boa.release %6 retain %9 : <tensor<276480xbf16>, device>
    }
    %false = arith.constant false
    %c0_13 = arith.constant 0 : index
    %5 = boa.prefetch @gradients.embed[%c0_13] zero %false : <tensor<32768xf32>, device>
    %c0_14 = arith.constant 0 : index
    boa.loop micro_batch %arg2 = 0 to 4 forward {
      %6 = boa.prefetch @tokens[%arg2] : <tensor<2x16xi32>, device>
      %7 = boa.prefetch @boundary_gradients[%c0_14, %arg2] : <tensor<2x16x512xf32>, device>
      boa.launch @embed_backward reads(%6, %7 : <tensor<2x16xi32>, device>, <tensor<2x16x512xf32>, device>) updates(%5 : <tensor<32768xf32>, device>)
      boa.release %6 : <tensor<2x16xi32>, device>
      boa.release %7 : <tensor<2x16x512xf32>, device>
    }
    %c6 = arith.constant 6 : index
    boa.offload %5, @gradients.embed[%c0_13] chunk %c6 count 2 : <tensor<32768xf32>, device>
    %c0_15 = arith.constant 0 : index
    boa.loop chunk %arg2 = 0 to 6 forward {
      %6 = boa.prefetch @weights.embed[%c0_15] chunk %arg2 count 1 : <tensor<32768xbf16>, host>
      %7 = boa.prefetch @low.embed[%c0_15] chunk %arg2 count 1 : <tensor<32768xi16>, host>
      %8 = boa.prefetch @momentum.embed[%c0_15] chunk %arg2 count 1 : <tensor<32768xf32>, host>
      %9 = boa.prefetch @variance.embed[%c0_15] chunk %arg2 count 1 : <tensor<32768xf32>, host>
      boa.update @embed chunk %arg2 step %arg0 weights(%6 : <tensor<32768xbf16>, host>) gradient(%5 : <tensor<32768xf32>, device>) low(%7 : <tensor<32768xi16>, host>) momentum(%8 : <tensor<32768xf32>, host>) variance(%9 : <tensor<32768xf32>, host>)
      boa.offload %6, @weights.embed[%c0_15] chunk %arg2 count 1 : <tensor<32768xbf16>, host>
      boa.offload %7, @low.embed[%c0_15] chunk %arg2 count 1 : <tensor<32768xi16>, host>
      boa.offload %8, @momentum.embed[%c0_15] chunk %arg2 count 1 : <tensor<32768xf32>, host>
      boa.offload %9, @variance.embed[%c0_15] chunk %arg2 count 1 : <tensor<32768xf32>, host>
      boa.release %6 : <tensor<32768xbf16>, host>
      boa.release %7 : <tensor<32768xi16>, host>
      boa.release %8 : <tensor<32768xf32>, host>
      boa.release %9 : <tensor<32768xf32>, host>
    }
    boa.release %5 : <tensor<32768xf32>, device>
  }
  boa.step @drain(%arg0, %arg1) attributes {boa.traffic = {read = {gradients = 917504 : i64, master = 458752 : i64, momentum = 917504 : i64, variance = 917504 : i64, weights = 458752 : i64}, written = {master = 458752 : i64, momentum = 917504 : i64, variance = 917504 : i64, weights = 458752 : i64}}} {
    %c0 = arith.constant 0 : index
    boa.loop chunk %arg2 = 6 to 8 forward if %arg1 {
      %0 = boa.prefetch @gradients.embed[%c0] chunk %arg2 count 1 : <tensor<32768xf32>, host>
      %1 = boa.prefetch @weights.embed[%c0] chunk %arg2 count 1 : <tensor<32768xbf16>, host>
      %2 = boa.prefetch @low.embed[%c0] chunk %arg2 count 1 : <tensor<32768xi16>, host>
      %3 = boa.prefetch @momentum.embed[%c0] chunk %arg2 count 1 : <tensor<32768xf32>, host>
      %4 = boa.prefetch @variance.embed[%c0] chunk %arg2 count 1 : <tensor<32768xf32>, host>
      boa.update @embed chunk %arg2 step %arg1 weights(%1 : <tensor<32768xbf16>, host>) gradient(%0 : <tensor<32768xf32>, host>) low(%2 : <tensor<32768xi16>, host>) momentum(%3 : <tensor<32768xf32>, host>) variance(%4 : <tensor<32768xf32>, host>)
      boa.offload %1, @weights.embed[%c0] chunk %arg2 count 1 : <tensor<32768xbf16>, host>
      boa.offload %2, @low.embed[%c0] chunk %arg2 count 1 : <tensor<32768xi16>, host>
      boa.offload %3, @momentum.embed[%c0] chunk %arg2 count 1 : <tensor<32768xf32>, host>
      boa.offload %4, @variance.embed[%c0] chunk %arg2 count 1 : <tensor<32768xf32>, host>
      boa.release %0 : <tensor<32768xf32>, host>
      boa.release %1 : <tensor<32768xbf16>, host>
      boa.release %2 : <tensor<32768xi16>, host>
      boa.release %3 : <tensor<32768xf32>, host>
      boa.release %4 : <tensor<32768xf32>, host>
    }
    boa.loop layer %arg2 = 0 to 3 forward {
      boa.loop chunk %arg3 = 11 to 15 forward if %arg1 {
        %0 = boa.prefetch @gradients.block[%arg2] chunk %arg3 count 1 : <tensor<276480xf32>, host>
        %1 = boa.prefetch @weights.block[%arg2] chunk %arg3 count 1 : <tensor<276480xbf16>, host>
        %2 = boa.prefetch @low.block[%arg2] chunk %arg3 count 1 : <tensor<276480xi16>, host>
        %3 = boa.prefetch @momentum.block[%arg2] chunk %arg3 count 1 : <tensor<276480xf32>, host>
        %4 = boa.prefetch @variance.block[%arg2] chunk %arg3 count 1 : <tensor<276480xf32>, host>
        boa.update @block chunk %arg3 step %arg1 weights(%1 : <tensor<276480xbf16>, host>) gradient(%0 : <tensor<276480xf32>, host>) low(%2 : <tensor<276480xi16>, host>) momentum(%3 : <tensor<276480xf32>, host>) variance(%4 : <tensor<276480xf32>, host>)
        boa.offload %1, @weights.block[%arg2] chunk %arg3 count 1 : <tensor<276480xbf16>, host>
        boa.offload %2, @low.block[%arg2] chunk %arg3 count 1 : <tensor<276480xi16>, host>
        boa.offload %3, @momentum.block[%arg2] chunk %arg3 count 1 : <tensor<276480xf32>, host>
        boa.offload %4, @variance.block[%arg2] chunk %arg3 count 1 : <tensor<276480xf32>, host>
        boa.release %0 : <tensor<276480xf32>, host>
        boa.release %1 : <tensor<276480xbf16>, host>
        boa.release %2 : <tensor<276480xi16>, host>
        boa.release %3 : <tensor<276480xf32>, host>
        boa.release %4 : <tensor<276480xf32>, host>
      }
    }
  }
  boa.step @evaluate(%arg0, %arg1) attributes {boa.traffic = {read = {checkpoints = 786432 : i64, weights = 1728512 : i64}, written = {checkpoints = 1048576 : i64}}} {
    %c0 = arith.constant 0 : index
    %c0_0 = arith.constant 0 : index
    %0 = boa.prefetch @weights.embed[%c0_0] : <tensor<32768xbf16>, device>
    boa.loop micro_batch %arg2 = 0 to 4 forward {
      %3 = boa.prefetch @tokens[%arg2] : <tensor<2x16xi32>, device>
      %4 = boa.create @checkpoints[%c0, %arg2] : <tensor<2x16x512xf32>, device>
      boa.launch @embed_forward reads(%3, %0 : <tensor<2x16xi32>, device>, <tensor<32768xbf16>, device>) writes(%4 : <tensor<2x16x512xf32>, device>)
      boa.offload %4, @checkpoints[%c0, %arg2] : <tensor<2x16x512xf32>, device>
      boa.release %3 : <tensor<2x16xi32>, device>
      %5 = boa.at_last %arg2
      boa.release %4 retain %5 : <tensor<2x16x512xf32>, device>
    }
    %true = arith.constant true
    boa.release %0 retain %true : <tensor<32768xbf16>, device>
    boa.loop layer %arg2 = 0 to 3 forward {
      %3 = boa.prefetch @weights.block[%arg2] : <tensor<276480xbf16>, device>
      %4 = boa.shift %arg2, 1
      boa.loop micro_batch %arg3 = 0 to 4 snake(%arg2 + 1) {
        %5 = boa.prefetch @checkpoints[%arg2, %arg3] : <tensor<2x16x512xf32>, device>
        %6 = boa.create @checkpoints[%4, %arg3] : <tensor<2x16x512xf32>, device>
        boa.launch @block_forward reads(%5, %3 : <tensor<2x16x512xf32>, device>, <tensor<276480xbf16>, device>) writes(%6 : <tensor<2x16x512xf32>, device>)
        boa.offload %6, @checkpoints[%4, %arg3] : <tensor<2x16x512xf32>, device>
        boa.release %5 : <tensor<2x16x512xf32>, device>
        %7 = boa.at_last %arg3
        boa.release %6 retain %7 : <tensor<2x16x512xf32>, device>
      }
      boa.release %3 : <tensor<276480xbf16>, device>
    }
    %c3 = arith.constant 3 : index
    %c0_1 = arith.constant 0 : index
    %1 = boa.prefetch @weights.head[%c0_1] : <tensor<2048xbf16>, device>
    %c0_2 = arith.constant 0 : index
    %2 = boa.prefetch @weights.embed[%c0_2] : <tensor<32768xbf16>, device>
    boa.loop micro_batch %arg2 = 0 to 4 forward {
      %3 = boa.prefetch @checkpoints[%c3, %arg2] : <tensor<2x16x512xf32>, device>
      %4 = boa.prefetch @targets[%arg2] : <tensor<2x16xi32>, device>
      %5 = boa.create @loss[%arg2] : <tensor<f32>, device>
      boa.launch @head_forward reads(%3, %4, %1, %2 : <tensor<2x16x512xf32>, device>, <tensor<2x16xi32>, device>, <tensor<2048xbf16>, device>, <tensor<32768xbf16>, device>) writes(%5 : <tensor<f32>, device>)
      boa.offload %5, @loss[%arg2] : <tensor<f32>, device>
      boa.release %3 : <tensor<2x16x512xf32>, device>
      boa.release %4 : <tensor<2x16xi32>, device>
      boa.release %5 : <tensor<f32>, device>
    }
    boa.release %2 : <tensor<32768xbf16>, device>
    boa.release %1 : <tensor<2048xbf16>, device>
  }
}

