// RUN: boa-opt %s --boa-mask-documents | FileCheck %s
// RUN: boa-opt %s --boa-mask-documents --boa-differentiate --boa-build-step --boa-vertical-schedule --boa-verify-step | FileCheck %s --check-prefix=STEP
// RUN: sed "s|, document_mask = true }| }|" %s | boa-opt --boa-mask-documents | FileCheck %s --check-prefix=OPEN

// Of the stages, the one with attention takes the starts of documents, behind x and before the
// result of another stage.

// CHECK:      boa.stage @a_forward(@tokens){{$}}
// CHECK:      boa.stage @b_forward(@a_forward, @document_starts, @a_forward) repeat 3
// CHECK:      boa.stage @c_forward(@b_forward, @targets){{$}}
// CHECK:      func.func @b_forward(%x: tensor<1x4x8xf32>, %document_starts: tensor<1x4xi32>, %a: tensor<1x4x8xf32>, %w
// CHECK:      boa.attention %x, %{{.*}}, %x documents %document_starts heads 2, 2 causal
// OPEN-NOT:   document_starts

// A training brings them once for each micro-batch, and each layer reads them, forward and
// backward. They have no gradient.

// STEP:       func.func @b_backward(%x: tensor<1x4x8xf32>, %document_starts: tensor<1x4xi32>, %a: tensor<1x4x8xf32>
// STEP-SAME:    -> (tensor<1x4x8xf32>, tensor<1x4x8xf32> {boa.sum}, tensor<8x8xf32>
// STEP:       boa.attention_grad {{.*}} documents %document_starts
// STEP:       boa.storage @input.document_starts[2] : tensor<1x4xi32> on device role input
// STEP:       boa.step @step
// STEP:       boa.loop layer
// STEP:       boa.loop micro_batch
// STEP:       boa.read @input.document_starts[%m
// STEP:       boa.call @b_forward
// STEP:       boa.read @input.document_starts[%m
// STEP:       boa.call @b_backward
// STEP:       boa.step @evaluate
// STEP:       boa.read @input.document_starts[%m

module {
  boa.config @model { context = 4 : i64, vocab = 16 : i64 }
  boa.config @train { batch = 2 : i64, document_mask = true }
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
    %k = boa.linear %a, %w : (tensor<1x4x8xf32>, tensor<8x8xf32>) -> tensor<1x4x8xf32>
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
