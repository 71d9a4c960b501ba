// RUN: boa-opt %s --boa-build-generation --split-input-file --verify-diagnostics

// expected-error @below {{expected at least two stages but found 0}}
module {
}

// -----

// Calls are made of functions by their places in the chain.

module {
  boa.input @tokens from data : tensor<1x4xi32>
  boa.input @targets from data : tensor<1x4xi32>
  boa.stage @a_forward(@tokens)
  boa.stage @b_forward(@a_forward, @targets)
  func.func @a_forward(%x: tensor<1x4xi32>) -> tensor<1x4x8xf32> {
    %0 = arith.constant dense<0.0> : tensor<1x4x8xf32>
    return %0 : tensor<1x4x8xf32>
  }
  // expected-error @below {{expected the prefill function of stage a to take 1 activations and to return 1, and 0 gradients to add up, but found 2, 1 and 0}}
  func.func @a_prefill(%x: tensor<1x4xi32>, %y: tensor<1x4x8xf32>) -> tensor<1x4x8xf32> {
    return %y : tensor<1x4x8xf32>
  }
  func.func @b_forward(%x: tensor<1x4x8xf32>, %t: tensor<1x4xi32>) -> tensor<f32> {
    %0 = arith.constant dense<0.0> : tensor<f32>
    return %0 : tensor<f32>
  }
}

// -----

// A text that is continued has tokens alone.

module {
  boa.input @tokens from data : tensor<1x4xi32>
  boa.input @targets from data : tensor<1x4xi32>
  boa.input @document_starts from data : tensor<1x4xi32>
  boa.stage @a_forward(@tokens, @document_starts)
  boa.stage @b_forward(@a_forward, @targets)
  // expected-error @below {{'func.func' op cannot predict: expected only tokens and results of stages but it takes @document_starts}}
  func.func private @a_forward(tensor<1x4xi32>, tensor<1x4xi32>) -> tensor<1x4x8xf32>
  func.func private @a_prefill(tensor<1x2xi32>, tensor<1x2xi32>) -> tensor<1x2x8xf32>
  func.func private @a_generate(tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1x8xf32>
  func.func private @b_forward(tensor<1x4x8xf32>, tensor<1x4xi32>) -> tensor<f32>
  func.func private @b_generate(tensor<1x1x8xf32>) -> tensor<1x1x8xf32>
}
