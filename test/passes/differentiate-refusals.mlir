// RUN: boa-opt %s --boa-differentiate --split-input-file --verify-diagnostics

// Ops that gradients are made of are differentiable no further.

module {
  boa.group @a repeat 1 {
    boa.param @w : tensor<8xf32> = "ones"
  }
  boa.input @tokens from data : tensor<2x8xf32>
  boa.stage @a_forward(@tokens)
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
  boa.input @tokens from data : tensor<2x8xf32>
  boa.stage @a_forward(@tokens)
  func.func @a_forward(%x: tensor<2x8xf32>, %w: tensor<8xf32> {boa.param = @a::@w}) -> tensor<2x8xf32> {
    %0 = boa.mul %x, %w : tensor<2x8xf32>, tensor<8xf32>
    %1 = boa.gelu_grad %0, %0 : tensor<2x8xf32>
    return %0 : tensor<2x8xf32>
  }
}

// -----

// Of several results, each has its gradient or the loss does not depend on it.

module {
  boa.group @a repeat 1 {
    boa.param @w : tensor<4xf32> = "ones"
  }
  boa.input @tokens from data : tensor<2x4x4xf32>
  boa.stage @a_forward(@tokens)
  func.func @a_forward(%x: tensor<2x4x4xf32>, %w: tensor<4xf32> {boa.param = @a::@w}) -> tensor<2x4x4xf32> {
    %0 = boa.mul %x, %w : tensor<2x4x4xf32>, tensor<4xf32>
    // expected-error @below {{'boa.attention' op has no gradient of its result 1, on which the loss depends}}
    %y, %lse = boa.attention %0, %0, %0 heads 4, 4 causal : (tensor<2x4x4xf32>, tensor<2x4x4xf32>, tensor<2x4x4xf32>) -> (tensor<2x4x4xf32>, tensor<2x4x4xf32>)
    %1 = boa.add %y, %lse : tensor<2x4x4xf32>, tensor<2x4x4xf32>
    return %1 : tensor<2x4x4xf32>
  }
}

// -----

module {
  boa.group @a repeat 1 {
    boa.param @w : tensor<4xf32> = "ones"
  }
  boa.input @tokens from data : tensor<2x4x4xf32>
  boa.stage @a_forward(@tokens)
  func.func @a_forward(%x: tensor<2x4x4xf32>, %w: tensor<4xf32> {boa.param = @a::@w}) -> tensor<2x4x4xf32> {
    %0 = boa.mul %x, %w : tensor<2x4x4xf32>, tensor<4xf32>
    // expected-error @below {{'boa.attention' op has no gradient of its result 1, on which the loss depends}}
    %y, %lse = boa.attention %0, %0, %0 heads 4, 4 causal : (tensor<2x4x4xf32>, tensor<2x4x4xf32>, tensor<2x4x4xf32>) -> (tensor<2x4x4xf32>, tensor<2x4x4xf32>)
    return %lse : tensor<2x4x4xf32>
  }
}

// -----

// A split has all of them, whichever parts are used.

module {
  boa.group @a repeat 1 {
    boa.param @w : tensor<4xf32> = "ones"
  }
  boa.input @tokens from data : tensor<2x4x4xf32>
  boa.stage @a_forward(@tokens)
  func.func @a_forward(%x: tensor<2x4x4xf32>, %w: tensor<4xf32> {boa.param = @a::@w}) -> tensor<2x4x2xf32> {
    %0 = boa.mul %x, %w : tensor<2x4x4xf32>, tensor<4xf32>
    %1:2 = boa.split %0 : (tensor<2x4x4xf32>) -> (tensor<2x4x2xf32>, tensor<2x4x2xf32>)
    return %1#1 : tensor<2x4x2xf32>
  }
}
