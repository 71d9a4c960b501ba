// RUN: boa-opt %s --boa-seed-dropout | FileCheck %s
// RUN: boa-opt %s --boa-seed-dropout --boa-seed-dropout | FileCheck %s
// RUN: boa-opt %s --boa-seed-dropout --boa-differentiate --boa-build-step --boa-vertical-schedule --boa-verify-step | FileCheck %s --check-prefix=STEP
// RUN: sed "s/batch = 2/batch = 2 : i64, document_mask = true, evaluate_every = 1/" %s | boa-opt --boa-mask-documents --boa-seed-dropout | FileCheck %s --check-prefix=BOTH
// RUN: boa compile %s --emit=computation | FileCheck %s --check-prefix=TEXT

// Of the stages, the one with dropout takes keys, behind x and before the result of another stage.

// CHECK:      boa.stage @a_forward(@tokens){{$}}
// CHECK:      boa.stage @b_forward(@a_forward, @dropout_keys, @a_forward) repeat 3
// CHECK:      boa.stage @c_forward(@b_forward, @targets){{$}}
// CHECK:      func.func @b_forward(%x: tensor<1x4x8xf32>, %dropout_keys: tensor<1x4xi32>, %a: tensor<1x4x8xf32>, %w
// CHECK:      boa.dropout %a keys %dropout_keys : tensor<1x4xi32> by 2.500000e-01 site 3 : tensor<1x4x8xf32>
// BOTH:       func.func @b_forward(%x: tensor<1x4x8xf32>, %document_starts: tensor<1x4xi32>, %dropout_keys: tensor<1x4xi32>, %a

// A training brings them for each layer and micro-batch. The backward pass drops the same elements of
// the gradient.

// STEP:       func.func @b_backward(%x: tensor<1x4x8xf32>, %dropout_keys: tensor<1x4xi32>, %a: tensor<1x4x8xf32>
// STEP-COUNT-2: boa.dropout {{.*}} keys %dropout_keys : tensor<1x4xi32> by 2.500000e-01 site 3
// STEP:       boa.storage @input.dropout_keys[3, 2] : tensor<1x4xi32> on device role input
// STEP:       boa.step @step
// STEP:       boa.read @input.dropout_keys[%l, %m
// STEP:       boa.call @b_forward
// STEP:       boa.read @input.dropout_keys[%l, %m
// STEP:       boa.call @b_backward
// STEP:       boa.step @evaluate
// STEP:       boa.read @input.dropout_keys[%l, %m

// It is no part of the computation that a state belongs to.

// TEXT-NOT:   dropout

module {
  boa.config @model { context = 4 : i64, vocab = 16 : i64 }
  boa.config @train { batch = 2 : i64 }
  boa.config @plan { micro_batch = 1 : i64 }
  boa.group @params.a repeat 1 {
    boa.param @w : tensor<16x8xf32> = "ones"
  }
  boa.group @params.b repeat 3 {
    boa.param @w : tensor<8x8xf32> = "ones"
  }
  boa.input @tokens from data : tensor<1x4xi32>
  boa.input @targets from data : tensor<1x4xi32>
  boa.stage @a_forward(@tokens)
  boa.stage @b_forward(@a_forward, @a_forward) repeat 3
  boa.stage @c_forward(@b_forward, @targets)
  func.func @a_forward(%x: tensor<1x4xi32>, %w: tensor<16x8xf32> {boa.param = @params.a::@w}) -> tensor<1x4x8xf32> {
    %0 = boa.embedding %w, %x : (tensor<16x8xf32>, tensor<1x4xi32>) -> tensor<1x4x8xf32>
    return %0 : tensor<1x4x8xf32>
  }
  func.func @b_forward(%x: tensor<1x4x8xf32>, %a: tensor<1x4x8xf32>, %w: tensor<8x8xf32> {boa.param = @params.b::@w}) -> tensor<1x4x8xf32> {
    %d = boa.dropout %a by 0.25 site 3 : tensor<1x4x8xf32>
    %k = boa.linear %d, %w : (tensor<1x4x8xf32>, tensor<8x8xf32>) -> tensor<1x4x8xf32>
    %y, %lse = boa.attention %x, %k, %x heads 2, 2 causal
        : (tensor<1x4x8xf32>, tensor<1x4x8xf32>, tensor<1x4x8xf32>) -> (tensor<1x4x8xf32>, tensor<1x2x4xf32>)
    return %y : tensor<1x4x8xf32>
  }
  func.func @c_forward(%x: tensor<1x4x8xf32>, %t: tensor<1x4xi32>, %w: tensor<16x8xf32> {boa.param = @params.a::@w}) -> tensor<f32> {
    %0 = boa.linear %x, %w transpose : (tensor<1x4x8xf32>, tensor<16x8xf32>) -> tensor<1x4x16xf32>
    %1 = boa.cross_entropy %0, %t : (tensor<1x4x16xf32>, tensor<1x4xi32>) -> tensor<f32>
    return %1 : tensor<f32>
  }
}
