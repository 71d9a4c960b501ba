// RUN: boa-opt %s | boa-opt | FileCheck %s
// RUN: boa-opt %s --mlir-print-op-generic | boa-opt | FileCheck %s
// RUN: boa-opt %s --emit-bytecode | boa-opt | FileCheck %s

// Every op prints what it parses. The model phase:

// CHECK-LABEL: boa.group @block repeat 6 {
// CHECK-NEXT:    boa.param @ones : tensor<384xf32> = "ones"
// CHECK-NEXT:    boa.param @normal : tensor<384x1152xf32> = "normal" 2.000000e-02
// CHECK-NEXT:    boa.param @own : tensor<384xf32> = "ones" number 3 lr_scale 5.000000e-01 weight_decay 1.000000e-01
// CHECK-NEXT:    boa.param @adapted : tensor<8x6xf32> = "normal" 2.000000e-02 external "h.*.w" adapter <"a", "b", 1.600000e+01 : f64, true>
// CHECK-NEXT:    boa.param @stable : tensor<8x6xf32> = "zeros" adapter <"a", "b", 1.600000e+01 : f64, false, rslora true>
boa.group @block repeat 6 {
  boa.param @ones : tensor<384xf32> = "ones"
  boa.param @normal : tensor<384x1152xf32> = "normal" 0.02
  boa.param @own : tensor<384xf32> = "ones" number 3 lr_scale 0.5 weight_decay 0.1
  boa.param @adapted : tensor<8x6xf32> = "normal" 0.02 external "h.*.w" adapter <"a", "b", 16.0 : f64, true>
  boa.param @stable : tensor<8x6xf32> = "zeros" adapter <"a", "b", 16.0 : f64, false, rslora true>
}
// CHECK: boa.input @tokens from data : tensor<2xi32>
boa.input @tokens from data : tensor<2xi32>
// CHECK: boa.input @targets from seed : tensor<2xi32>
boa.input @targets from seed : tensor<2xi32>
// CHECK: boa.stage @once(@tokens){{$}}
boa.stage @once(@tokens)
// CHECK: boa.stage @often(@once) repeat 6
boa.stage @often(@once) repeat 6
// CHECK: boa.stage @beside(@once, @once[1], @targets, @often) repeat 2 saves 1
boa.stage @beside(@once, @once[1], @targets, @often) repeat 2 saves 1
// CHECK: boa.stage @nothing()
boa.stage @nothing()
func.func private @once(tensor<2xi32>) -> (tensor<2xf32>, tensor<2xi1>)
func.func private @often(tensor<2xf32>) -> tensor<2xf32>
func.func private @beside(tensor<2xf32>, tensor<2xi1>, tensor<2xi32>, tensor<2xf32>) -> (tensor<2xf32>, tensor<2xi1>)
func.func private @nothing()

// CHECK-LABEL: func.func @matrices
func.func @matrices(%x: tensor<2x4x8xf32>, %w: tensor<8x6xf32>, %b: tensor<6xf32>, %dy: tensor<2x4x6xf32>) {
  // CHECK: boa.linear %{{.*}}, %{{.*}} : (tensor<2x4x8xf32>, tensor<8x6xf32>) -> tensor<2x4x6xf32>
  %0 = boa.linear %x, %w : (tensor<2x4x8xf32>, tensor<8x6xf32>) -> tensor<2x4x6xf32>
  // CHECK: boa.linear %{{.*}}, %{{.*}} bias %{{.*}} :
  %1 = boa.linear %x, %w bias %b : (tensor<2x4x8xf32>, tensor<8x6xf32>, tensor<6xf32>) -> tensor<2x4x6xf32>
  // CHECK: boa.linear %{{.*}}, %{{.*}} transpose :
  %2 = boa.linear %dy, %w transpose : (tensor<2x4x6xf32>, tensor<8x6xf32>) -> tensor<2x4x8xf32>
  // CHECK: boa.linear_weight_grad %{{.*}}, %{{.*}} : {{.*}} -> tensor<8x6xf32>
  %3 = boa.linear_weight_grad %x, %dy : (tensor<2x4x8xf32>, tensor<2x4x6xf32>) -> tensor<8x6xf32>
  // CHECK: boa.linear_weight_grad %{{.*}}, %{{.*}} transpose : {{.*}} -> tensor<6x8xf32>
  %4 = boa.linear_weight_grad %x, %dy transpose : (tensor<2x4x8xf32>, tensor<2x4x6xf32>) -> tensor<6x8xf32>
  return
}

// CHECK-LABEL: func.func @elementwise
func.func @elementwise(%x: tensor<2x4x8xf32>, %w: tensor<8xf32>, %k: tensor<2x4xi32>) {
  // CHECK: boa.add %{{.*}}, %{{.*}} : tensor<2x4x8xf32>, tensor<8xf32>
  %0 = boa.add %x, %w : tensor<2x4x8xf32>, tensor<8xf32>
  // CHECK: boa.mul %{{.*}}, %{{.*}} : tensor<2x4x8xf32>, tensor<2x4x8xf32>
  %1 = boa.mul %x, %x : tensor<2x4x8xf32>, tensor<2x4x8xf32>
  // CHECK: boa.scale %{{.*}} by 5.000000e-01 : tensor<2x4x8xf32>
  %2 = boa.scale %x by 0.5 : tensor<2x4x8xf32>
  // CHECK: boa.dropout %{{.*}} by 1.000000e-01 site 2 : tensor<2x4x8xf32>
  %open = boa.dropout %x by 0.1 site 2 : tensor<2x4x8xf32>
  // CHECK: boa.dropout %{{.*}} keys %{{.*}} : tensor<2x4xi32> by 1.000000e-01 site 2 : tensor<2x4x8xf32>
  %dropped = boa.dropout %x keys %k : tensor<2x4xi32> by 0.1 site 2 : tensor<2x4x8xf32>
  // CHECK: boa.gelu %{{.*}} : tensor<2x4x8xf32>
  %3 = boa.gelu %x : tensor<2x4x8xf32>
  // CHECK: boa.gelu_grad %{{.*}}, %{{.*}} : tensor<2x4x8xf32>
  %4 = boa.gelu_grad %x, %x : tensor<2x4x8xf32>
  // CHECK: boa.gelu %{{.*}} exact : tensor<2x4x8xf32>
  %exact = boa.gelu %x exact : tensor<2x4x8xf32>
  // CHECK: boa.gelu_grad %{{.*}}, %{{.*}} exact : tensor<2x4x8xf32>
  %exact_grad = boa.gelu_grad %x, %x exact : tensor<2x4x8xf32>
  // CHECK: boa.silu %{{.*}} : tensor<2x4x8xf32>
  %5 = boa.silu %x : tensor<2x4x8xf32>
  // CHECK: boa.silu_grad %{{.*}}, %{{.*}} : tensor<2x4x8xf32>
  %6 = boa.silu_grad %x, %x : tensor<2x4x8xf32>
  // CHECK: boa.cast %{{.*}} : tensor<2x4x8xf32> to tensor<2x4x8xbf16>
  %7 = boa.cast %x : tensor<2x4x8xf32> to tensor<2x4x8xbf16>
  // CHECK: boa.sum_leading %{{.*}} : tensor<2x4x8xf32> to tensor<8xf32>
  %8 = boa.sum_leading %x : tensor<2x4x8xf32> to tensor<8xf32>
  // CHECK: boa.split %{{.*}} : (tensor<2x4x8xf32>) -> (tensor<2x4x6xf32>, tensor<2x4x2xf32>)
  %9:2 = boa.split %x : (tensor<2x4x8xf32>) -> (tensor<2x4x6xf32>, tensor<2x4x2xf32>)
  // CHECK: boa.concat %{{.*}}, %{{.*}} : (tensor<2x4x6xf32>, tensor<2x4x2xf32>) -> tensor<2x4x8xf32>
  %10 = boa.concat %9#0, %9#1 : (tensor<2x4x6xf32>, tensor<2x4x2xf32>) -> tensor<2x4x8xf32>
  return
}

// CHECK-LABEL: func.func @norms
func.func @norms(%x: tensor<2x4x8xf32>, %w: tensor<8xf32>, %ofHead: tensor<4xf32>) {
  // CHECK: boa.layer_norm %{{.*}}, %{{.*}}, %{{.*}} : (tensor<2x4x8xf32>, tensor<8xf32>, tensor<8xf32>) -> tensor<2x4x8xf32>
  %0 = boa.layer_norm %x, %w, %w : (tensor<2x4x8xf32>, tensor<8xf32>, tensor<8xf32>) -> tensor<2x4x8xf32>
  // CHECK: boa.layer_norm_grad %{{.*}}, %{{.*}}, %{{.*}} : {{.*}} -> (tensor<2x4x8xf32>, tensor<8xf32>, tensor<8xf32>)
  %1:3 = boa.layer_norm_grad %x, %w, %x : (tensor<2x4x8xf32>, tensor<8xf32>, tensor<2x4x8xf32>) -> (tensor<2x4x8xf32>, tensor<8xf32>, tensor<8xf32>)
  // CHECK: boa.rms_norm %{{.*}}, %{{.*}} {eps = 6.250000e-02 : f64} : (tensor<2x4x8xf32>, tensor<8xf32>) -> tensor<2x4x8xf32>
  %2 = boa.rms_norm %x, %w {eps = 0.0625 : f64} : (tensor<2x4x8xf32>, tensor<8xf32>) -> tensor<2x4x8xf32>
  // CHECK: boa.rms_norm_grad %{{.*}}, %{{.*}}, %{{.*}} {eps = 6.250000e-02 : f64} : {{.*}} -> (tensor<2x4x8xf32>, tensor<8xf32>)
  %3:2 = boa.rms_norm_grad %x, %w, %x {eps = 0.0625 : f64} : (tensor<2x4x8xf32>, tensor<8xf32>, tensor<2x4x8xf32>) -> (tensor<2x4x8xf32>, tensor<8xf32>)
  // CHECK: boa.rms_norm %{{.*}}, %{{.*}} {heads = 2 : i64} : (tensor<2x4x8xf32>, tensor<4xf32>) -> tensor<2x4x8xf32>
  %4 = boa.rms_norm %x, %ofHead {heads = 2 : i64} : (tensor<2x4x8xf32>, tensor<4xf32>) -> tensor<2x4x8xf32>
  return
}

// CHECK-LABEL: func.func @cached_attention
func.func @cached_attention(%q: tensor<1x2x8xf32>, %k: tensor<1x2x4xf32>, %c: tensor<1x16x4xf32>, %at: tensor<1x2xi32>) {
  // CHECK: boa.cached_attention %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} at %{{.*}} heads 4, 2 {window = 3 : i64}
  %y, %k1, %v1 = boa.cached_attention %q, %k, %k, %c, %c at %at heads 4, 2 {window = 3 : i64}
      : (tensor<1x2x8xf32>, tensor<1x2x4xf32>, tensor<1x2x4xf32>, tensor<1x16x4xf32>, tensor<1x16x4xf32>, tensor<1x2xi32>)
      -> (tensor<1x2x8xf32>, tensor<1x16x4xf32>, tensor<1x16x4xf32>)
  return
}

// CHECK-LABEL: func.func @attention
func.func @attention(%q: tensor<2x4x8xf32>, %k: tensor<2x4x4xf32>) {
  // CHECK: boa.rotary %{{.*}} heads 4 : tensor<2x4x8xf32>
  %0 = boa.rotary %q heads 4 : tensor<2x4x8xf32>
  // CHECK: boa.rotary %{{.*}} heads 4 inverse {base = 5.000000e+05 : f64} : tensor<2x4x8xf32>
  %1 = boa.rotary %q heads 4 inverse {base = 5.0e+5 : f64} : tensor<2x4x8xf32>
  // CHECK: boa.rotary %{{.*}} heads 4 {factor = 8.000000e+00 : f64, high = 4.000000e+00 : f64, low = 1.000000e+00 : f64, original_context = 64 : i64} : tensor<2x4x8xf32>
  %scaled = boa.rotary %q heads 4 {factor = 8.0 : f64, low = 1.0 : f64, high = 4.0 : f64, original_context = 64 : i64} : tensor<2x4x8xf32>
  // CHECK: boa.rotary %{{.*}} heads 4 at %{{.*}} of 64 : tensor<2x4x8xf32>, tensor<2x4xi32>
  %at = arith.constant dense<0> : tensor<2x4xi32>
  %placed = boa.rotary %q heads 4 at %at of 64 : tensor<2x4x8xf32>, tensor<2x4xi32>
  // CHECK: boa.attention %{{.*}}, %{{.*}}, %{{.*}} heads 4, 2 causal : {{.*}} -> (tensor<2x4x8xf32>, tensor<2x4x4xf32>)
  %y, %lse = boa.attention %q, %k, %k heads 4, 2 causal : (tensor<2x4x8xf32>, tensor<2x4x4xf32>, tensor<2x4x4xf32>) -> (tensor<2x4x8xf32>, tensor<2x4x4xf32>)
  // CHECK: boa.attention %{{.*}}, %{{.*}}, %{{.*}} heads 4, 4 : {{.*}}
  %y2, %lse2 = boa.attention %q, %q, %q heads 4, 4 : (tensor<2x4x8xf32>, tensor<2x4x8xf32>, tensor<2x4x8xf32>) -> (tensor<2x4x8xf32>, tensor<2x4x4xf32>)
  // CHECK: boa.attention %{{.*}}, %{{.*}}, %{{.*}} heads 4, 4 causal {window = 2 : i64} : {{.*}}
  %y3, %lse3 = boa.attention %q, %q, %q heads 4, 4 causal {window = 2 : i64} : (tensor<2x4x8xf32>, tensor<2x4x8xf32>, tensor<2x4x8xf32>) -> (tensor<2x4x8xf32>, tensor<2x4x4xf32>)
  // CHECK: boa.attention_grad %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} heads 4, 2 causal : {{.*}} -> (tensor<2x4x8xf32>, tensor<2x4x4xf32>, tensor<2x4x4xf32>)
  %d:3 = boa.attention_grad %q, %k, %k, %y, %lse, %y heads 4, 2 causal : (tensor<2x4x8xf32>, tensor<2x4x4xf32>, tensor<2x4x4xf32>, tensor<2x4x8xf32>, tensor<2x4x4xf32>, tensor<2x4x8xf32>) -> (tensor<2x4x8xf32>, tensor<2x4x4xf32>, tensor<2x4x4xf32>)
  return
}

// CHECK-LABEL: func.func @ends
func.func @ends(%table: tensor<16x8xf32>, %tokens: tensor<2x4xi32>, %dy: tensor<2x4x8xf32>, %dloss: tensor<f32>) {
  // CHECK: boa.embedding %{{.*}}, %{{.*}} : (tensor<16x8xf32>, tensor<2x4xi32>) -> tensor<2x4x8xf32>
  %0 = boa.embedding %table, %tokens : (tensor<16x8xf32>, tensor<2x4xi32>) -> tensor<2x4x8xf32>
  // CHECK: boa.embedding_grad %{{.*}}, %{{.*}} : (tensor<2x4xi32>, tensor<2x4x8xf32>) -> tensor<16x8xf32>
  %1 = boa.embedding_grad %tokens, %dy : (tensor<2x4xi32>, tensor<2x4x8xf32>) -> tensor<16x8xf32>
  // CHECK: boa.embedding %{{.*}}, %{{.*}} partial : (tensor<16x8xf32>, tensor<2x4xi32>) -> tensor<2x4x8xf32>
  %part = boa.embedding %table, %tokens partial : (tensor<16x8xf32>, tensor<2x4xi32>) -> tensor<2x4x8xf32>
  // CHECK: boa.embedding_grad %{{.*}}, %{{.*}} partial : (tensor<2x4xi32>, tensor<2x4x8xf32>) -> tensor<16x8xf32>
  %dpart = boa.embedding_grad %tokens, %dy partial : (tensor<2x4xi32>, tensor<2x4x8xf32>) -> tensor<16x8xf32>
  // CHECK: boa.rebase %{{.*}} by 16 : tensor<2x4xi32>
  %rest = boa.rebase %tokens by 16 : tensor<2x4xi32>
  // CHECK: boa.cross_entropy %{{.*}}, %{{.*}} : (tensor<2x4x8xf32>, tensor<2x4xi32>) -> tensor<f32>
  %2 = boa.cross_entropy %0, %tokens : (tensor<2x4x8xf32>, tensor<2x4xi32>) -> tensor<f32>
  // CHECK: boa.cross_entropy_grad %{{.*}}, %{{.*}}, %{{.*}} : (tensor<2x4x8xf32>, tensor<2x4xi32>, tensor<f32>) -> tensor<2x4x8xf32>
  %3 = boa.cross_entropy_grad %0, %tokens, %dloss : (tensor<2x4x8xf32>, tensor<2x4xi32>, tensor<f32>) -> tensor<2x4x8xf32>
  // CHECK: boa.cross_entropy_block %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} : (tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xi32>, tensor<2x4x8xf32>) -> (tensor<2x4xf32>, tensor<2x4xf32>)
  %none = arith.constant dense<0.0> : tensor<2x4xf32>
  %log, %logit = boa.cross_entropy_block %none, %none, %tokens, %0 : (tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xi32>, tensor<2x4x8xf32>) -> (tensor<2x4xf32>, tensor<2x4xf32>)
  // CHECK: boa.cross_entropy_block_grad %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} : (tensor<2x4xf32>, tensor<2x4xi32>, tensor<2x4x8xf32>, tensor<2x4xf32>, tensor<2x4xf32>) -> (tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4x8xf32>)
  %dlog, %dlogit, %dlogits = boa.cross_entropy_block_grad %none, %tokens, %0, %log, %logit : (tensor<2x4xf32>, tensor<2x4xi32>, tensor<2x4x8xf32>, tensor<2x4xf32>, tensor<2x4xf32>) -> (tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4x8xf32>)
  // CHECK: boa.cross_entropy_end %{{.*}}, %{{.*}}, %{{.*}} : (tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xi32>) -> tensor<f32>
  %4 = boa.cross_entropy_end %log, %logit, %tokens : (tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xi32>) -> tensor<f32>
  // CHECK: boa.cross_entropy_end_grad %{{.*}}, %{{.*}} : (tensor<2x4xi32>, tensor<f32>) -> (tensor<2x4xf32>, tensor<2x4xf32>)
  %dend:2 = boa.cross_entropy_end_grad %tokens, %dloss : (tensor<2x4xi32>, tensor<f32>) -> (tensor<2x4xf32>, tensor<2x4xf32>)
  return
}

// The step phase. Tiers and sizes are part of a storage; the default chunk is one.

// CHECK: boa.storage @x[7, 4] : tensor<8xf32> on ssd role checkpoints{{$}}
boa.storage @x[7, 4] : tensor<8xf32> on ssd role checkpoints
// CHECK: boa.storage @w[6] : tensor<8xbf16> on host role weights chunks 4 persistent slots device 3 x 2
boa.storage @w[6] : tensor<8xbf16> on host role weights chunks 4 persistent slots device 3 x 2
// CHECK: boa.storage @v[3, 2] : tensor<8xf32> on [0 to 2: host, 2 to 6: host 1, ssd] role checkpoints chunks 4
boa.storage @v[3, 2] : tensor<8xf32> on [0 to 2: host, 2 to 6: host 1, ssd] role checkpoints chunks 4
// CHECK: boa.storage @gradients.block[6] : tensor<8xf32> on device role gradients
boa.storage @gradients.block[6] : tensor<8xf32> on device role gradients
func.func private @f(tensor<8xf32>) -> tensor<8xf32>

// CHECK-LABEL: boa.step @step
// CHECK-SAME:    (%[[STEP:.*]], %[[PENDING:.*]]) {
boa.step @step(%step, %pending) {
  // CHECK-NEXT: boa.loop layer %[[L:.*]] = 0 to 6 reverse {
  boa.loop layer %l = 0 to 6 reverse {
    // CHECK-NEXT: %[[L1:.*]] = boa.shift %[[L]], 1
    %l1 = boa.shift %l, 1
    // CHECK-NEXT: boa.loop micro_batch %[[M:.*]] = 0 to 4 snake(%[[L]] + 1) {
    boa.loop micro_batch %m = 0 to 4 snake(%l + 1) {
      // CHECK-NEXT: %[[X:.*]] = boa.read @x[%[[L]], %[[M]]] : tensor<8xf32>
      %x = boa.read @x[%l, %m] : tensor<8xf32>
      // CHECK-NEXT: %[[Y:.*]] = boa.call @f(%[[X]]) : (tensor<8xf32>) -> tensor<8xf32>
      %y = boa.call @f(%x) : (tensor<8xf32>) -> tensor<8xf32>
      // CHECK-NEXT: boa.write %[[Y]], @x[%[[L1]], %[[M]]] : tensor<8xf32>
      boa.write %y, @x[%l1, %m] : tensor<8xf32>
      // CHECK-NEXT: %[[FIRST:.*]] = boa.at_first %[[M]]
      %first = boa.at_first %m
      // CHECK-NEXT: boa.at_last %[[M]]
      %last = boa.at_last %m
      // CHECK-NEXT: boa.accumulate %[[Y]], @gradients.block[%[[L]]] initial %[[FIRST]] : tensor<8xf32>
      boa.accumulate %y, @gradients.block[%l] initial %first : tensor<8xf32>
    }
    // CHECK: boa.loop micro_batch %{{.*}} = 0 to 4 snake(%[[L]]) {
    boa.loop micro_batch %m = 0 to 4 snake(%l) {
    }
    // CHECK: boa.gradient_norm @block[%[[L]]]
    boa.gradient_norm @block[%l]
    // CHECK-NEXT: boa.optimizer_update @block[%[[L]]] chunks 0 to 12 step %[[STEP]]
    boa.optimizer_update @block[%l] chunks 0 to 12 step %step
  }
  // CHECK: boa.loop chunk %{{.*}} = 0 to 4 forward if %[[PENDING]] {
  boa.loop chunk %c = 0 to 4 forward if %pending {
  }
  // CHECK: boa.loop chunk %{{.*}} = 0 to 4 snake(%[[STEP]] + 1) if %[[PENDING]] {
  boa.loop chunk %c = 0 to 4 snake(%step + 1) if %pending {
  }
  // CHECK: boa.finish_norm %[[PENDING]]
  boa.finish_norm %pending
}

// The storage phase. Traffic and other attributes stand before the body.

// CHECK-LABEL: boa.step @evaluate
// CHECK-SAME:    traffic {
// CHECK-NEXT:    each read weights 12{{$}}
// CHECK-NEXT:  } attributes {note = 1 : i64} {
boa.step @evaluate(%step, %pending) traffic {
  each read weights 12
} attributes {note = 1 : i64} {
  %c0 = arith.constant 0 : index
  %true = arith.constant true
  // CHECK: %[[B0:.*]] = boa.prefetch @x[%{{.*}}, %{{.*}}] :
  %x = boa.prefetch @x[%c0, %c0] : <tensor<8xf32>, device>
  // CHECK-NEXT: %[[B1:.*]] = boa.prefetch @w[%{{.*}}] chunk %{{.*}} count 1 :
  %w = boa.prefetch @w[%c0] chunk %c0 count 1 : <tensor<8xbf16>, device>
  // CHECK-NEXT: %[[B2:.*]] = boa.prefetch @gradients.block[%{{.*}}] zero %{{.*}}
  %g = boa.prefetch @gradients.block[%c0] zero %true : <tensor<8xf32>, device>
  // CHECK-NEXT: %[[B3:.*]] = boa.create @x[%{{.*}}, %{{.*}}] : <tensor<8xf32>, device>
  %y = boa.create @x[%c0, %c0] : <tensor<8xf32>, device>
  // CHECK-NEXT: boa.launch @kernel reads(%[[B0]], %[[B1]] : <tensor<8xf32>, device>, <tensor<8xbf16>, device>) updates(%[[B2]] : <tensor<8xf32>, device>) writes(%[[B3]] : <tensor<8xf32>, device>)
  boa.launch @kernel reads(%x, %w : <tensor<8xf32>, device>, <tensor<8xbf16>, device>) updates(%g : <tensor<8xf32>, device>) writes(%y : <tensor<8xf32>, device>)
  // CHECK-NEXT: boa.offload %[[B3]], @x[%{{.*}}, %{{.*}}] : <tensor<8xf32>, device>
  boa.offload %y, @x[%c0, %c0] : <tensor<8xf32>, device>
  // CHECK-NEXT: boa.offload %[[B1]], @w[%{{.*}}] chunk %{{.*}} count 1 : <tensor<8xbf16>, device>
  boa.offload %w, @w[%c0] chunk %c0 count 1 : <tensor<8xbf16>, device>
  // CHECK-NEXT: boa.release %[[B0]] : <tensor<8xf32>, device>
  boa.release %x : <tensor<8xf32>, device>
  // CHECK-NEXT: boa.release %[[B3]] retain %{{.*}} : <tensor<8xf32>, device>
  boa.release %y retain %true : <tensor<8xf32>, device>
}

// A kernel says what its buffers hold, what it costs and what it needs; defaults are left out.

// CHECK-LABEL: boa.kernel @kernel(%{{.*}}: tensor<8xf32> {boa.buffer = 0 : i32, boa.offset = 0 : i64}, %{{.*}}: tensor<8xf32> {boa.buffer = 2 : i32, boa.offset = 0 : i64, boa.result = 0 : i32}) -> (tensor<8xf32> {boa.buffer = 2 : i32, boa.offset = 0 : i64}, tensor<8xf32> {boa.buffer = 3 : i32, boa.offset = 0 : i64})
// CHECK-SAME:    reads [tensor<8xf32>, tensor<8xbf16>] updates [tensor<8xf32>] writes [tensor<8xf32>]
// CHECK-SAME:    costs {bf16 = #boa.cost<flops = 16, bytes = 32>, f32 = #boa.cost<flops = 8, bytes = 64, product_flops = 2, attention_flops = 4, elementwise_bytes = 24>}
// CHECK-SAME:    workspace 512 scratch 64
// CHECK-SAME:    tables [{frequencies = [1.000000e+00], function = "sine", type = tensor<4x1xf32>}]
// CHECK-SAME:    attributes {note = 1 : i64} {
// CHECK-NEXT:    boa.return %{{.*}}, %{{.*}} : tensor<8xf32>, tensor<8xf32>
boa.kernel @kernel(%x: tensor<8xf32> {boa.buffer = 0 : i32, boa.offset = 0 : i64},
                   %g: tensor<8xf32> {boa.buffer = 2 : i32, boa.offset = 0 : i64, boa.result = 0 : i32})
    -> (tensor<8xf32> {boa.buffer = 2 : i32, boa.offset = 0 : i64},
        tensor<8xf32> {boa.buffer = 3 : i32, boa.offset = 0 : i64})
    reads [tensor<8xf32>, tensor<8xbf16>] updates [tensor<8xf32>] writes [tensor<8xf32>]
    costs {f32 = #boa.cost<flops = 8, bytes = 64, product_flops = 2, attention_flops = 4, elementwise_bytes = 24>,
           bf16 = #boa.cost<flops = 16, bytes = 32>}
    workspace 512 scratch 64
    tables [{frequencies = [1.0], function = "sine", type = tensor<4x1xf32>}]
    attributes {note = 1 : i64} {
  boa.return %g, %x : tensor<8xf32>, tensor<8xf32>
}

// CHECK-LABEL: boa.kernel @empty() {
boa.kernel @empty() {
  boa.return
}
