module attributes {boa.arena = 9613312 : i64, boa.arena_device = 53248 : i64, boa.computes = 1468578131038529066 : i64, boa.workspace = 4096 : i64} {
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
  boa.kernel @embed_forward(%arg0: tensor<2x16xi32> {boa.buffer = 0 : i32, boa.offset = 0 : i64}, %arg1: tensor<64x512xbf16> {boa.buffer = 1 : i32, boa.offset = 0 : i64}) -> (tensor<2x16x512xf32> {boa.buffer = 2 : i32, boa.offset = 0 : i64}) reads [tensor<2x16xi32>, tensor<32768xbf16>] writes [tensor<2x16x512xf32>] costs {f32 = #boa.cost<flops = 0, bytes = 196736>} {
    %0 = boa.cast %arg1 : tensor<64x512xbf16> to tensor<64x512xf32>
    %1 = boa.embedding %0, %arg0 : (tensor<64x512xf32>, tensor<2x16xi32>) -> tensor<2x16x512xf32>
    boa.return %1 : tensor<2x16x512xf32>
  }
  boa.kernel @embed_backward(%arg0: tensor<2x16xi32> {boa.buffer = 0 : i32, boa.offset = 0 : i64}, %arg1: tensor<2x16x512xf32> {boa.buffer = 1 : i32, boa.offset = 0 : i64}, %arg2: tensor<64x512xf32> {boa.buffer = 2 : i32, boa.offset = 0 : i64, boa.result = 0 : i32}) -> (tensor<64x512xf32> {boa.buffer = 2 : i32, boa.offset = 0 : i64}) reads [tensor<2x16xi32>, tensor<2x16x512xf32>] updates [tensor<32768xf32>] costs {f32 = #boa.cost<flops = 16384, bytes = 196736>} {
    %0 = boa.embedding_grad %arg0, %arg1 : (tensor<2x16xi32>, tensor<2x16x512xf32>) -> tensor<64x512xf32>
    %1 = boa.add %arg2, %0 : tensor<64x512xf32>, tensor<64x512xf32>
    boa.return %1 : tensor<64x512xf32>
  }
  boa.kernel @block_forward(%arg0: tensor<2x16x512xf32> {boa.buffer = 0 : i32, boa.offset = 0 : i64}, %arg1: tensor<512x512xbf16> {boa.buffer = 1 : i32, boa.offset = 0 : i64}, %arg2: tensor<512xbf16> {boa.buffer = 1 : i32, boa.offset = 524288 : i64}) -> (tensor<2x16x512xf32> {boa.buffer = 2 : i32, boa.offset = 0 : i64}) reads [tensor<2x16x512xf32>, tensor<276480xbf16>] writes [tensor<2x16x512xf32>] costs {f32 = #boa.cost<flops = 17055744, bytes = 1509376>} {
    %0 = boa.cast %arg1 : tensor<512x512xbf16> to tensor<512x512xf32>
    %1 = boa.cast %arg2 : tensor<512xbf16> to tensor<512xf32>
    %2 = boa.linear %arg0, %0 bias %1 : (tensor<2x16x512xf32>, tensor<512x512xf32>, tensor<512xf32>) -> tensor<2x16x512xf32>
    %3 = boa.gelu %2 : tensor<2x16x512xf32>
    %4 = boa.add %arg0, %3 : tensor<2x16x512xf32>, tensor<2x16x512xf32>
    boa.return %4 : tensor<2x16x512xf32>
  }
  boa.kernel @block_backward(%arg0: tensor<2x16x512xf32> {boa.buffer = 0 : i32, boa.offset = 0 : i64}, %arg1: tensor<512x512xbf16> {boa.buffer = 2 : i32, boa.offset = 0 : i64}, %arg2: tensor<512xbf16> {boa.buffer = 2 : i32, boa.offset = 524288 : i64}, %arg3: tensor<2x16x512xf32> {boa.buffer = 1 : i32, boa.offset = 0 : i64}, %arg4: tensor<512x512xf32> {boa.buffer = 3 : i32, boa.offset = 0 : i64, boa.result = 1 : i32}, %arg5: tensor<512xf32> {boa.buffer = 3 : i32, boa.offset = 1048576 : i64, boa.result = 2 : i32}) -> (tensor<2x16x512xf32> {boa.buffer = 4 : i32, boa.offset = 0 : i64}, tensor<512x512xf32> {boa.buffer = 3 : i32, boa.offset = 0 : i64}, tensor<512xf32> {boa.buffer = 3 : i32, boa.offset = 1048576 : i64}) reads [tensor<2x16x512xf32>, tensor<2x16x512xf32>, tensor<276480xbf16>] updates [tensor<276480xf32>] writes [tensor<2x16x512xf32>] costs {f32 = #boa.cost<flops = 50757632, bytes = 4001792>} {
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
    boa.return %7, %8, %9 : tensor<2x16x512xf32>, tensor<512x512xf32>, tensor<512xf32>
  }
  boa.kernel @head_forward(%arg0: tensor<2x16x512xf32> {boa.buffer = 0 : i32, boa.offset = 0 : i64}, %arg1: tensor<2x16xi32> {boa.buffer = 1 : i32, boa.offset = 0 : i64}, %arg2: tensor<512xbf16> {boa.buffer = 2 : i32, boa.offset = 0 : i64}, %arg3: tensor<64x512xbf16> {boa.buffer = 3 : i32, boa.offset = 0 : i64}) -> (tensor<f32> {boa.buffer = 4 : i32, boa.offset = 0 : i64}) reads [tensor<2x16x512xf32>, tensor<2x16xi32>, tensor<2048xbf16>, tensor<32768xbf16>] writes [tensor<f32>] costs {f32 = #boa.cost<flops = 2199552, bytes = 346244>} {
    %0 = boa.cast %arg2 : tensor<512xbf16> to tensor<512xf32>
    %1 = boa.cast %arg3 : tensor<64x512xbf16> to tensor<64x512xf32>
    %2 = boa.rms_norm %arg0, %0 : (tensor<2x16x512xf32>, tensor<512xf32>) -> tensor<2x16x512xf32>
    %3 = boa.linear %2, %1 transpose : (tensor<2x16x512xf32>, tensor<64x512xf32>) -> tensor<2x16x64xf32>
    %4 = boa.cross_entropy %3, %arg1 : (tensor<2x16x64xf32>, tensor<2x16xi32>) -> tensor<f32>
    boa.return %4 : tensor<f32>
  }
  boa.kernel @head_backward(%arg0: tensor<2x16x512xf32> {boa.buffer = 0 : i32, boa.offset = 0 : i64}, %arg1: tensor<2x16xi32> {boa.buffer = 1 : i32, boa.offset = 0 : i64}, %arg2: tensor<512xbf16> {boa.buffer = 2 : i32, boa.offset = 0 : i64}, %arg3: tensor<64x512xbf16> {boa.buffer = 3 : i32, boa.offset = 0 : i64}, %arg4: tensor<512xf32> {boa.buffer = 4 : i32, boa.offset = 0 : i64, boa.result = 2 : i32}, %arg5: tensor<64x512xf32> {boa.buffer = 5 : i32, boa.offset = 0 : i64, boa.result = 3 : i32}) -> (tensor<f32> {boa.buffer = 6 : i32, boa.offset = 0 : i64}, tensor<2x16x512xf32> {boa.buffer = 7 : i32, boa.offset = 0 : i64}, tensor<512xf32> {boa.buffer = 4 : i32, boa.offset = 0 : i64}, tensor<64x512xf32> {boa.buffer = 5 : i32, boa.offset = 0 : i64}) reads [tensor<2x16x512xf32>, tensor<2x16xi32>, tensor<2048xbf16>, tensor<32768xbf16>] updates [tensor<2048xf32>, tensor<32768xf32>] writes [tensor<f32>, tensor<2x16x512xf32>] costs {f32 = #boa.cost<flops = 6598656, bytes = 973064>} {
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
    boa.return %4, %dx, %8, %9 : tensor<f32>, tensor<2x16x512xf32>, tensor<512xf32>, tensor<64x512xf32>
  }
  boa.storage @input.tokens[4] : tensor<2x16xi32> on device role input
  boa.storage @input.targets[4] : tensor<2x16xi32> on device role input
  boa.storage @loss[4] : tensor<f32> on device role loss
  boa.storage @checkpoints[4, 4] : tensor<2x16x512xf32> on [0 to 4: host, 4 to 16: ssd] role checkpoints slots device 4 x 1
  boa.storage @boundary_gradients[4, 4] : tensor<2x16x512xf32> on ssd role boundary_gradients slots device 4 x 1
  boa.storage @weights.embed[1] : tensor<32768xbf16> on ssd role weights chunks 8 persistent slots device 7 x 1, device 1 x 8
  boa.storage @gradients.embed[1] : tensor<32768xf32> on ssd role gradients chunks 8 slots device 3 x 1, device 1 x 8
  boa.storage @low.embed[1] : tensor<32768xi16> on ssd role master chunks 8 persistent slots device 8 x 1
  boa.storage @momentum.embed[1] : tensor<32768xf32> on ssd role state chunks 8 persistent slots device 8 x 1
  boa.storage @variance.embed[1] : tensor<32768xf32> on ssd role state chunks 8 persistent slots device 8 x 1
  boa.storage @weights.block[3] : tensor<276480xbf16> on ssd role weights chunks 15 persistent slots device 1 x 1, device 3 x 15
  boa.storage @gradients.block[3] : tensor<276480xf32> on ssd role gradients chunks 15 slots device 5 x 1, device 3 x 15
  boa.storage @low.block[3] : tensor<276480xi16> on ssd role master chunks 15 persistent slots device 16 x 1
  boa.storage @momentum.block[3] : tensor<276480xf32> on [0 to 1: host, 1 to 3: host 4, ssd] role state chunks 15 persistent slots device 16 x 1
  boa.storage @variance.block[3] : tensor<276480xf32> on ssd role state chunks 15 persistent slots device 16 x 1
  boa.storage @weights.head[1] : tensor<2048xbf16> on ssd role weights persistent slots device 1 x 1
  boa.storage @gradients.head[1] : tensor<2048xf32> on ssd role gradients slots device 1 x 1
  boa.storage @low.head[1] : tensor<2048xi16> on ssd role master persistent slots device 1 x 1
  boa.storage @momentum.head[1] : tensor<2048xf32> on ssd role state persistent slots device 1 x 1
  boa.storage @variance.head[1] : tensor<2048xf32> on ssd role state persistent slots device 1 x 1
  boa.step @step(%step, %pending) traffic {
    first read boundary_gradients 786432, checkpoints 1572864, master 1269760, momentum 2539520,
      variance 2539520, weights 2883584
    first written boundary_gradients 1048576, checkpoints 1048576, gradients 917504, master 1269760,
      momentum 2539520, variance 2539520, weights 1269760
    second read boundary_gradients 786432, checkpoints 1572864, gradients 917504, master 1724416,
      momentum 3448832, variance 3448832, weights 2326528
    second written boundary_gradients 1048576, checkpoints 1048576, gradients 917504, master 1728512,
      momentum 3457024, variance 3457024, weights 1728512
    each read boundary_gradients 786432, checkpoints 1572864, gradients 917504, master 1724416,
      momentum 3448832, variance 3448832, weights 2326528
    each written boundary_gradients 1048576, checkpoints 1048576, gradients 917504, master 1728512,
      momentum 3457024, variance 3457024, weights 1728512
  } {
    %c0 = arith.constant 0 : index
    %c0_0 = arith.constant 0 : index
    %w.embed = boa.prefetch @weights.embed[%c0_0] : <tensor<32768xbf16>, device>
    boa.loop chunk %c = 6 to 8 forward if %pending {
      %g.embed.c = boa.prefetch @gradients.embed[%c0] chunk %c count 1 : <tensor<32768xf32>, host>
      %low.embed.c = boa.prefetch @low.embed[%c0] chunk %c count 1 : <tensor<32768xi16>, host>
      %momentum.embed.c = boa.prefetch @momentum.embed[%c0] chunk %c count 1 : <tensor<32768xf32>, host>
      %variance.embed.c = boa.prefetch @variance.embed[%c0] chunk %c count 1 : <tensor<32768xf32>, host>
      boa.update @embed chunk %c step %pending weights(%w.embed : <tensor<32768xbf16>, device>) gradient(%g.embed.c : <tensor<32768xf32>, host>) low(%low.embed.c : <tensor<32768xi16>, host>) states(%momentum.embed.c, %variance.embed.c : <tensor<32768xf32>, host>, <tensor<32768xf32>, host>)
      boa.offload %w.embed, @weights.embed[%c0] chunk %c count 1 : <tensor<32768xbf16>, device>
      boa.offload %low.embed.c, @low.embed[%c0] chunk %c count 1 : <tensor<32768xi16>, host>
      boa.offload %momentum.embed.c, @momentum.embed[%c0] chunk %c count 1 : <tensor<32768xf32>, host>
      boa.offload %variance.embed.c, @variance.embed[%c0] chunk %c count 1 : <tensor<32768xf32>, host>
      boa.release %g.embed.c : <tensor<32768xf32>, host>
      boa.release %low.embed.c : <tensor<32768xi16>, host>
      boa.release %momentum.embed.c : <tensor<32768xf32>, host>
      boa.release %variance.embed.c : <tensor<32768xf32>, host>
    }
    %c0_1 = arith.constant 0 : index
    boa.loop micro_batch %m = 0 to 4 forward {
      %tokens = boa.prefetch @input.tokens[%m] : <tensor<2x16xi32>, device>
      %y.0 = boa.create @checkpoints[%c0_1, %m] : <tensor<2x16x512xf32>, device>
      boa.launch @embed_forward reads(%tokens, %w.embed : <tensor<2x16xi32>, device>, <tensor<32768xbf16>, device>) writes(%y.0 : <tensor<2x16x512xf32>, device>)
      boa.offload %y.0, @checkpoints[%c0_1, %m] : <tensor<2x16x512xf32>, device>
      boa.release %tokens : <tensor<2x16xi32>, device>
      %last = boa.at_last %m
      boa.release %y.0 retain %last : <tensor<2x16x512xf32>, device>
    }
    %true = arith.constant true
    boa.release %w.embed retain %true : <tensor<32768xbf16>, device>
    boa.loop layer %l = 0 to 3 forward {
      %w = boa.prefetch @weights.block[%l] : <tensor<276480xbf16>, device>
      boa.loop chunk %c = 11 to 15 forward if %pending {
        %g.c = boa.prefetch @gradients.block[%l] chunk %c count 1 : <tensor<276480xf32>, host>
        %low.c = boa.prefetch @low.block[%l] chunk %c count 1 : <tensor<276480xi16>, host>
        %momentum.c = boa.prefetch @momentum.block[%l] chunk %c count 1 : <tensor<276480xf32>, host>
        %variance.c = boa.prefetch @variance.block[%l] chunk %c count 1 : <tensor<276480xf32>, host>
        boa.update @block chunk %c step %pending weights(%w : <tensor<276480xbf16>, device>) gradient(%g.c : <tensor<276480xf32>, host>) low(%low.c : <tensor<276480xi16>, host>) states(%momentum.c, %variance.c : <tensor<276480xf32>, host>, <tensor<276480xf32>, host>)
        boa.offload %w, @weights.block[%l] chunk %c count 1 : <tensor<276480xbf16>, device>
        boa.offload %low.c, @low.block[%l] chunk %c count 1 : <tensor<276480xi16>, host>
        boa.offload %momentum.c, @momentum.block[%l] chunk %c count 1 : <tensor<276480xf32>, host>
        boa.offload %variance.c, @variance.block[%l] chunk %c count 1 : <tensor<276480xf32>, host>
        boa.release %g.c : <tensor<276480xf32>, host>
        boa.release %low.c : <tensor<276480xi16>, host>
        boa.release %momentum.c : <tensor<276480xf32>, host>
        boa.release %variance.c : <tensor<276480xf32>, host>
      }
      %next = boa.shift %l, 1
      boa.loop micro_batch %m = 0 to 4 snake(%l + 1) {
        %x = boa.prefetch @checkpoints[%l, %m] : <tensor<2x16x512xf32>, device>
        %y = boa.create @checkpoints[%next, %m] : <tensor<2x16x512xf32>, device>
        boa.launch @block_forward reads(%x, %w : <tensor<2x16x512xf32>, device>, <tensor<276480xbf16>, device>) writes(%y : <tensor<2x16x512xf32>, device>)
        boa.offload %y, @checkpoints[%next, %m] : <tensor<2x16x512xf32>, device>
        boa.release %x : <tensor<2x16x512xf32>, device>
        %last = boa.at_last %m
        boa.release %y retain %last : <tensor<2x16x512xf32>, device>
      }
      %end = boa.at_last %l
      boa.release %w retain %end : <tensor<276480xbf16>, device>
    }
    %c0_2 = arith.constant 0 : index
    %c0_3 = arith.constant 0 : index
    %c3 = arith.constant 3 : index
    %c3_4 = arith.constant 3 : index
    %c0_5 = arith.constant 0 : index
    %w.head = boa.prefetch @weights.head[%c0_5] : <tensor<2048xbf16>, device>
    %c0_6 = arith.constant 0 : index
    %w.embed_7 = boa.prefetch @weights.embed[%c0_6] : <tensor<32768xbf16>, device>
    %true_8 = arith.constant true
    %g.head = boa.prefetch @gradients.head[%c0_3] zero %true_8 : <tensor<2048xf32>, device>
    %true_9 = arith.constant true
    %g.embed = boa.prefetch @gradients.embed[%c0_2] zero %true_9 : <tensor<32768xf32>, device>
    boa.loop micro_batch %m = 0 to 4 forward {
      %x.3 = boa.prefetch @checkpoints[%c3_4, %m] : <tensor<2x16x512xf32>, device>
      %targets = boa.prefetch @input.targets[%m] : <tensor<2x16xi32>, device>
      %first = boa.at_first %m
      %first_18 = boa.at_first %m
      %loss = boa.create @loss[%m] : <tensor<f32>, device>
      %dx.3 = boa.create @boundary_gradients[%c3, %m] : <tensor<2x16x512xf32>, device>
      boa.launch @head_backward reads(%x.3, %targets, %w.head, %w.embed_7 : <tensor<2x16x512xf32>, device>, <tensor<2x16xi32>, device>, <tensor<2048xbf16>, device>, <tensor<32768xbf16>, device>) updates(%g.head, %g.embed : <tensor<2048xf32>, device>, <tensor<32768xf32>, device>) writes(%loss, %dx.3 : <tensor<f32>, device>, <tensor<2x16x512xf32>, device>)
      boa.offload %dx.3, @boundary_gradients[%c3, %m] : <tensor<2x16x512xf32>, device>
      boa.release %x.3 : <tensor<2x16x512xf32>, device>
      boa.release %targets : <tensor<2x16xi32>, device>
      boa.release %loss : <tensor<f32>, device>
      %last = boa.at_last %m
      boa.release %dx.3 retain %last : <tensor<2x16x512xf32>, device>
    }
    %true_10 = arith.constant true
    boa.release %g.embed retain %true_10 : <tensor<32768xf32>, device>
    boa.release %w.embed_7 : <tensor<32768xbf16>, device>
    %c0_11 = arith.constant 0 : index
    boa.loop chunk %c = 0 to 1 forward {
      %low.head.c = boa.prefetch @low.head[%c0_11] chunk %c count 1 : <tensor<2048xi16>, host>
      %momentum.head.c = boa.prefetch @momentum.head[%c0_11] chunk %c count 1 : <tensor<2048xf32>, host>
      %variance.head.c = boa.prefetch @variance.head[%c0_11] chunk %c count 1 : <tensor<2048xf32>, host>
      boa.update @head chunk %c step %step weights(%w.head : <tensor<2048xbf16>, device>) gradient(%g.head : <tensor<2048xf32>, device>) low(%low.head.c : <tensor<2048xi16>, host>) states(%momentum.head.c, %variance.head.c : <tensor<2048xf32>, host>, <tensor<2048xf32>, host>)
      boa.offload %w.head, @weights.head[%c0_11] chunk %c count 1 : <tensor<2048xbf16>, device>
      boa.offload %low.head.c, @low.head[%c0_11] chunk %c count 1 : <tensor<2048xi16>, host>
      boa.offload %momentum.head.c, @momentum.head[%c0_11] chunk %c count 1 : <tensor<2048xf32>, host>
      boa.offload %variance.head.c, @variance.head[%c0_11] chunk %c count 1 : <tensor<2048xf32>, host>
      %true_18 = arith.constant true
      boa.release %low.head.c retain %true_18 : <tensor<2048xi16>, host>
      %true_19 = arith.constant true
      boa.release %momentum.head.c retain %true_19 : <tensor<2048xf32>, host>
      %true_20 = arith.constant true
      boa.release %variance.head.c retain %true_20 : <tensor<2048xf32>, host>
    }
    boa.release %g.head : <tensor<2048xf32>, device>
    %true_12 = arith.constant true
    boa.release %w.head retain %true_12 : <tensor<2048xbf16>, device>
    %true_13 = arith.constant true
    boa.loop layer %l = 0 to 3 reverse {
      %w = boa.prefetch @weights.block[%l] : <tensor<276480xbf16>, device>
      %g = boa.prefetch @gradients.block[%l] zero %true_13 : <tensor<276480xf32>, device>
      %next = boa.shift %l, 1
      boa.loop micro_batch %m = 0 to 4 snake(%l + 1) {
        %x = boa.prefetch @checkpoints[%l, %m] : <tensor<2x16x512xf32>, device>
        %dy = boa.prefetch @boundary_gradients[%next, %m] : <tensor<2x16x512xf32>, device>
        %first = boa.at_first %m
        %dx = boa.create @boundary_gradients[%l, %m] : <tensor<2x16x512xf32>, device>
        boa.launch @block_backward reads(%x, %dy, %w : <tensor<2x16x512xf32>, device>, <tensor<2x16x512xf32>, device>, <tensor<276480xbf16>, device>) updates(%g : <tensor<276480xf32>, device>) writes(%dx : <tensor<2x16x512xf32>, device>)
        boa.offload %dx, @boundary_gradients[%l, %m] : <tensor<2x16x512xf32>, device>
        boa.release %x : <tensor<2x16x512xf32>, device>
        boa.release %dy : <tensor<2x16x512xf32>, device>
        %last = boa.at_last %m
        boa.release %dx retain %last : <tensor<2x16x512xf32>, device>
      }
      %c11 = arith.constant 11 : index
      boa.offload %g, @gradients.block[%l] chunk %c11 count 4 : <tensor<276480xf32>, device>
      boa.loop chunk %c = 0 to 11 forward {
        %low.c = boa.prefetch @low.block[%l] chunk %c count 1 : <tensor<276480xi16>, host>
        %momentum.c = boa.prefetch @momentum.block[%l] chunk %c count 1 : <tensor<276480xf32>, host>
        %variance.c = boa.prefetch @variance.block[%l] chunk %c count 1 : <tensor<276480xf32>, host>
        boa.update @block chunk %c step %step weights(%w : <tensor<276480xbf16>, device>) gradient(%g : <tensor<276480xf32>, device>) low(%low.c : <tensor<276480xi16>, host>) states(%momentum.c, %variance.c : <tensor<276480xf32>, host>, <tensor<276480xf32>, host>)
        boa.offload %w, @weights.block[%l] chunk %c count 1 : <tensor<276480xbf16>, device>
        boa.offload %low.c, @low.block[%l] chunk %c count 1 : <tensor<276480xi16>, host>
        boa.offload %momentum.c, @momentum.block[%l] chunk %c count 1 : <tensor<276480xf32>, host>
        boa.offload %variance.c, @variance.block[%l] chunk %c count 1 : <tensor<276480xf32>, host>
        boa.release %low.c : <tensor<276480xi16>, host>
        boa.release %momentum.c : <tensor<276480xf32>, host>
        boa.release %variance.c : <tensor<276480xf32>, host>
      }
      boa.release %g : <tensor<276480xf32>, device>
      %end = boa.at_last %l
      boa.release %w retain %end : <tensor<276480xbf16>, device>
    }
    %false = arith.constant false
    %c0_14 = arith.constant 0 : index
    %g.embed_15 = boa.prefetch @gradients.embed[%c0_14] zero %false : <tensor<32768xf32>, device>
    %c0_16 = arith.constant 0 : index
    boa.loop micro_batch %m = 0 to 4 forward {
      %tokens = boa.prefetch @input.tokens[%m] : <tensor<2x16xi32>, device>
      %dy.0 = boa.prefetch @boundary_gradients[%c0_16, %m] : <tensor<2x16x512xf32>, device>
      boa.launch @embed_backward reads(%tokens, %dy.0 : <tensor<2x16xi32>, device>, <tensor<2x16x512xf32>, device>) updates(%g.embed_15 : <tensor<32768xf32>, device>)
      boa.release %tokens : <tensor<2x16xi32>, device>
      boa.release %dy.0 : <tensor<2x16x512xf32>, device>
    }
    %c6 = arith.constant 6 : index
    boa.offload %g.embed_15, @gradients.embed[%c0_14] chunk %c6 count 2 : <tensor<32768xf32>, device>
    %c0_17 = arith.constant 0 : index
    boa.loop chunk %c = 0 to 6 forward {
      %w.embed.c = boa.prefetch @weights.embed[%c0_17] chunk %c count 1 : <tensor<32768xbf16>, host>
      %low.embed.c = boa.prefetch @low.embed[%c0_17] chunk %c count 1 : <tensor<32768xi16>, host>
      %momentum.embed.c = boa.prefetch @momentum.embed[%c0_17] chunk %c count 1 : <tensor<32768xf32>, host>
      %variance.embed.c = boa.prefetch @variance.embed[%c0_17] chunk %c count 1 : <tensor<32768xf32>, host>
      boa.update @embed chunk %c step %step weights(%w.embed.c : <tensor<32768xbf16>, host>) gradient(%g.embed_15 : <tensor<32768xf32>, device>) low(%low.embed.c : <tensor<32768xi16>, host>) states(%momentum.embed.c, %variance.embed.c : <tensor<32768xf32>, host>, <tensor<32768xf32>, host>)
      boa.offload %w.embed.c, @weights.embed[%c0_17] chunk %c count 1 : <tensor<32768xbf16>, host>
      boa.offload %low.embed.c, @low.embed[%c0_17] chunk %c count 1 : <tensor<32768xi16>, host>
      boa.offload %momentum.embed.c, @momentum.embed[%c0_17] chunk %c count 1 : <tensor<32768xf32>, host>
      boa.offload %variance.embed.c, @variance.embed[%c0_17] chunk %c count 1 : <tensor<32768xf32>, host>
      boa.release %w.embed.c : <tensor<32768xbf16>, host>
      boa.release %low.embed.c : <tensor<32768xi16>, host>
      boa.release %momentum.embed.c : <tensor<32768xf32>, host>
      boa.release %variance.embed.c : <tensor<32768xf32>, host>
    }
    boa.release %g.embed_15 : <tensor<32768xf32>, device>
  }
  boa.step @drain(%step, %pending) traffic {
    each read gradients 917504, master 458752, momentum 917504, variance 917504, weights 458752
    each written master 458752, momentum 917504, variance 917504, weights 458752
  } {
    %c0 = arith.constant 0 : index
    boa.loop chunk %c = 6 to 8 forward if %pending {
      %g.embed.c = boa.prefetch @gradients.embed[%c0] chunk %c count 1 : <tensor<32768xf32>, host>
      %w.embed.c = boa.prefetch @weights.embed[%c0] chunk %c count 1 : <tensor<32768xbf16>, host>
      %low.embed.c = boa.prefetch @low.embed[%c0] chunk %c count 1 : <tensor<32768xi16>, host>
      %momentum.embed.c = boa.prefetch @momentum.embed[%c0] chunk %c count 1 : <tensor<32768xf32>, host>
      %variance.embed.c = boa.prefetch @variance.embed[%c0] chunk %c count 1 : <tensor<32768xf32>, host>
      boa.update @embed chunk %c step %pending weights(%w.embed.c : <tensor<32768xbf16>, host>) gradient(%g.embed.c : <tensor<32768xf32>, host>) low(%low.embed.c : <tensor<32768xi16>, host>) states(%momentum.embed.c, %variance.embed.c : <tensor<32768xf32>, host>, <tensor<32768xf32>, host>)
      boa.offload %w.embed.c, @weights.embed[%c0] chunk %c count 1 : <tensor<32768xbf16>, host>
      boa.offload %low.embed.c, @low.embed[%c0] chunk %c count 1 : <tensor<32768xi16>, host>
      boa.offload %momentum.embed.c, @momentum.embed[%c0] chunk %c count 1 : <tensor<32768xf32>, host>
      boa.offload %variance.embed.c, @variance.embed[%c0] chunk %c count 1 : <tensor<32768xf32>, host>
      boa.release %g.embed.c : <tensor<32768xf32>, host>
      boa.release %w.embed.c : <tensor<32768xbf16>, host>
      boa.release %low.embed.c : <tensor<32768xi16>, host>
      boa.release %momentum.embed.c : <tensor<32768xf32>, host>
      boa.release %variance.embed.c : <tensor<32768xf32>, host>
    }
    boa.loop layer %l = 0 to 3 forward {
      boa.loop chunk %c = 11 to 15 forward if %pending {
        %g.c = boa.prefetch @gradients.block[%l] chunk %c count 1 : <tensor<276480xf32>, host>
        %w.c = boa.prefetch @weights.block[%l] chunk %c count 1 : <tensor<276480xbf16>, host>
        %low.c = boa.prefetch @low.block[%l] chunk %c count 1 : <tensor<276480xi16>, host>
        %momentum.c = boa.prefetch @momentum.block[%l] chunk %c count 1 : <tensor<276480xf32>, host>
        %variance.c = boa.prefetch @variance.block[%l] chunk %c count 1 : <tensor<276480xf32>, host>
        boa.update @block chunk %c step %pending weights(%w.c : <tensor<276480xbf16>, host>) gradient(%g.c : <tensor<276480xf32>, host>) low(%low.c : <tensor<276480xi16>, host>) states(%momentum.c, %variance.c : <tensor<276480xf32>, host>, <tensor<276480xf32>, host>)
        boa.offload %w.c, @weights.block[%l] chunk %c count 1 : <tensor<276480xbf16>, host>
        boa.offload %low.c, @low.block[%l] chunk %c count 1 : <tensor<276480xi16>, host>
        boa.offload %momentum.c, @momentum.block[%l] chunk %c count 1 : <tensor<276480xf32>, host>
        boa.offload %variance.c, @variance.block[%l] chunk %c count 1 : <tensor<276480xf32>, host>
        boa.release %g.c : <tensor<276480xf32>, host>
        boa.release %w.c : <tensor<276480xbf16>, host>
        boa.release %low.c : <tensor<276480xi16>, host>
        boa.release %momentum.c : <tensor<276480xf32>, host>
        boa.release %variance.c : <tensor<276480xf32>, host>
      }
    }
  }
  boa.step @evaluate(%step, %pending) traffic {
    each read checkpoints 786432, weights 1728512
    each written checkpoints 1048576
  } {
    %c0 = arith.constant 0 : index
    %c0_0 = arith.constant 0 : index
    %w.embed = boa.prefetch @weights.embed[%c0_0] : <tensor<32768xbf16>, device>
    boa.loop micro_batch %m = 0 to 4 forward {
      %tokens = boa.prefetch @input.tokens[%m] : <tensor<2x16xi32>, device>
      %y.0 = boa.create @checkpoints[%c0, %m] : <tensor<2x16x512xf32>, device>
      boa.launch @embed_forward reads(%tokens, %w.embed : <tensor<2x16xi32>, device>, <tensor<32768xbf16>, device>) writes(%y.0 : <tensor<2x16x512xf32>, device>)
      boa.offload %y.0, @checkpoints[%c0, %m] : <tensor<2x16x512xf32>, device>
      boa.release %tokens : <tensor<2x16xi32>, device>
      %last = boa.at_last %m
      boa.release %y.0 retain %last : <tensor<2x16x512xf32>, device>
    }
    %true = arith.constant true
    boa.release %w.embed retain %true : <tensor<32768xbf16>, device>
    boa.loop layer %l = 0 to 3 forward {
      %w = boa.prefetch @weights.block[%l] : <tensor<276480xbf16>, device>
      %next = boa.shift %l, 1
      boa.loop micro_batch %m = 0 to 4 snake(%l + 1) {
        %x = boa.prefetch @checkpoints[%l, %m] : <tensor<2x16x512xf32>, device>
        %y = boa.create @checkpoints[%next, %m] : <tensor<2x16x512xf32>, device>
        boa.launch @block_forward reads(%x, %w : <tensor<2x16x512xf32>, device>, <tensor<276480xbf16>, device>) writes(%y : <tensor<2x16x512xf32>, device>)
        boa.offload %y, @checkpoints[%next, %m] : <tensor<2x16x512xf32>, device>
        boa.release %x : <tensor<2x16x512xf32>, device>
        %last = boa.at_last %m
        boa.release %y retain %last : <tensor<2x16x512xf32>, device>
      }
      boa.release %w : <tensor<276480xbf16>, device>
    }
    %c3 = arith.constant 3 : index
    %c0_1 = arith.constant 0 : index
    %w.head = boa.prefetch @weights.head[%c0_1] : <tensor<2048xbf16>, device>
    %c0_2 = arith.constant 0 : index
    %w.embed_3 = boa.prefetch @weights.embed[%c0_2] : <tensor<32768xbf16>, device>
    boa.loop micro_batch %m = 0 to 4 forward {
      %x.3 = boa.prefetch @checkpoints[%c3, %m] : <tensor<2x16x512xf32>, device>
      %targets = boa.prefetch @input.targets[%m] : <tensor<2x16xi32>, device>
      %loss = boa.create @loss[%m] : <tensor<f32>, device>
      boa.launch @head_forward reads(%x.3, %targets, %w.head, %w.embed_3 : <tensor<2x16x512xf32>, device>, <tensor<2x16xi32>, device>, <tensor<2048xbf16>, device>, <tensor<32768xbf16>, device>) writes(%loss : <tensor<f32>, device>)
      boa.offload %loss, @loss[%m] : <tensor<f32>, device>
      boa.release %x.3 : <tensor<2x16x512xf32>, device>
      boa.release %targets : <tensor<2x16xi32>, device>
      boa.release %loss : <tensor<f32>, device>
    }
    boa.release %w.embed_3 : <tensor<32768xbf16>, device>
    boa.release %w.head : <tensor<2048xbf16>, device>
  }
}

