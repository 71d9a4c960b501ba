// RUN: boa-opt %s --boa-differentiate --split-input-file --verify-diagnostics

// Ops that gradients are made of are differentiable no further.

module {
  boa.group @a repeat 1 {
    boa.param @w : tensor<8xf32> = "ones"
  }
  boa.stage @a_forward
  func.func @a_forward(%x: tensor<2x8xf32>, %w: tensor<8xf32> {boa.param = @a::@w}) -> tensor<2x8xf32> {
    %0 = boa.mul %x, %w : tensor<2x8xf32>, tensor<8xf32>
    // expected-error @below {{'boa.gelu_grad' op is not differentiable}}
    %1 = boa.gelu_grad %0, %0 : tensor<2x8xf32>
    return %1 : tensor<2x8xf32>
  }
}

// -----

// An op that no gradient flows through need not be differentiable.

module {
  boa.group @a repeat 1 {
    boa.param @w : tensor<8xf32> = "ones"
  }
  boa.stage @a_forward
  func.func @a_forward(%x: tensor<2x8xf32>, %w: tensor<8xf32> {boa.param = @a::@w}) -> tensor<2x8xf32> {
    %0 = boa.mul %x, %w : tensor<2x8xf32>, tensor<8xf32>
    %1 = boa.gelu_grad %0, %0 : tensor<2x8xf32>
    return %0 : tensor<2x8xf32>
  }
}
