// RUN: boa-opt %s --boa-build-step --split-input-file --verify-diagnostics

// The step calls functions that an earlier pass made.

// expected-error @below {{expected a function @a_backward, which --boa-differentiate makes}}
module {
  boa.group @a repeat 1 {
    boa.param @w : tensor<2x4x8xf32> = "zeros"
  }
  boa.input @tokens from data : tensor<2x4xi32>
  boa.input @targets from data : tensor<2x4xi32>
  boa.stage @a_forward(@tokens)
  boa.stage @b_forward(@a_forward, @targets)
  func.func @a_forward(%x: tensor<2x4xi32>, %w: tensor<2x4x8xf32> {boa.param = @a::@w})
      -> tensor<2x4x8xf32> {
    return %w : tensor<2x4x8xf32>
  }
  func.func @b_forward(%x: tensor<2x4x8xf32>, %t: tensor<2x4xi32>) -> tensor<f32> {
    %0 = arith.constant dense<0.0> : tensor<f32>
    return %0 : tensor<f32>
  }
}

// -----

// Stages are found by name.

// expected-error @below {{expected a function @a_forward}}
module {
  boa.input @tokens from data : tensor<2x4xi32>
  boa.input @targets from data : tensor<2x4xi32>
  boa.stage @a(@tokens)
  boa.stage @b_forward(@a, @targets)
  func.func @a(%x: tensor<2x4xi32>) -> tensor<2x4x8xf32> {
    %0 = arith.constant dense<0.0> : tensor<2x4x8xf32>
    return %0 : tensor<2x4x8xf32>
  }
  func.func @b_forward(%x: tensor<2x4x8xf32>, %t: tensor<2x4xi32>) -> tensor<f32> {
    %0 = arith.constant dense<0.0> : tensor<f32>
    return %0 : tensor<f32>
  }
}

// -----

// expected-error @below {{expected at least two stages but found 0}}
module {
}

// -----

// Calls are made of functions by their places in the chain.

module {
  boa.group @a repeat 1 {
    boa.param @w : tensor<2x4x8xf32> = "zeros"
  }
  boa.input @tokens from data : tensor<2x4xi32>
  boa.input @targets from data : tensor<2x4xi32>
  boa.stage @a_forward(@tokens)
  boa.stage @b_forward(@a_forward, @targets)
  func.func @a_forward(%x: tensor<2x4xi32>, %w: tensor<2x4x8xf32> {boa.param = @a::@w}) -> tensor<2x4x8xf32> {
    return %w : tensor<2x4x8xf32>
  }
  // expected-error @below {{expected the backward function of stage a to take 2 activations and to return 0, and 0 gradients to add up, but found 1, 1 and 0}}
  func.func @a_backward(%x: tensor<2x4x8xf32>) -> tensor<2x4x8xf32> {
    return %x : tensor<2x4x8xf32>
  }
  func.func @b_forward(%x: tensor<2x4x8xf32>, %t: tensor<2x4xi32>) -> tensor<f32> {
    %0 = arith.constant dense<0.0> : tensor<f32>
    return %0 : tensor<f32>
  }
}

// -----

// Compile time is bounded: a step runs so many layers, and for so many micro-batches.

module {
  boa.config @train {batch = 1048576 : i64}
  boa.config @plan {micro_batch = 2 : i64}
  boa.input @tokens from data : tensor<2x4xi32>
  boa.input @targets from data : tensor<2x4xi32>
  boa.stage @a_forward(@tokens)
  // expected-error @below {{a step runs 5 layers and stages for 524288 micro-batches: the compiler places each such run by itself, and takes at most 131072; make micro_batch larger, or batch or the depth smaller}}
  boa.stage @block_forward(@a_forward) repeat 3
  boa.stage @b_forward(@block_forward, @targets)
  func.func @a_forward(%x: tensor<2x4xi32>) -> tensor<2x4x8xf32> {
    %0 = arith.constant dense<0.0> : tensor<2x4x8xf32>
    return %0 : tensor<2x4x8xf32>
  }
  func.func @block_forward(%x: tensor<2x4x8xf32>) -> tensor<2x4x8xf32> {
    return %x : tensor<2x4x8xf32>
  }
  func.func @b_forward(%x: tensor<2x4x8xf32>, %t: tensor<2x4xi32>) -> tensor<f32> {
    %0 = arith.constant dense<0.0> : tensor<f32>
    return %0 : tensor<f32>
  }
}

// -----

// Blocks of the vocabulary are stages, too.

module {
  boa.config @train {batch = 64 : i64}
  boa.config @plan {micro_batch = 2 : i64, vocabulary_blocks = 4096 : i64}
  boa.input @tokens from data : tensor<2x4xi32>
  boa.input @targets from data : tensor<2x4xi32>
  boa.stage @a_forward(@tokens)
  // expected-error @below {{a step runs 4098 layers and stages for 32 micro-batches: the compiler places each such run by itself, and takes at most 131072; make micro_batch larger, or batch, vocabulary_blocks or the depth smaller}}
  boa.stage @a.blocks_forward(@a_forward) repeat 4096
  boa.stage @b_forward(@a.blocks_forward, @targets)
  func.func @a_forward(%x: tensor<2x4xi32>) -> tensor<2x4x8xf32> {
    %0 = arith.constant dense<0.0> : tensor<2x4x8xf32>
    return %0 : tensor<2x4x8xf32>
  }
  func.func @a.blocks_forward(%x: tensor<2x4x8xf32>) -> tensor<2x4x8xf32> {
    return %x : tensor<2x4x8xf32>
  }
  func.func @b_forward(%x: tensor<2x4x8xf32>, %t: tensor<2x4xi32>) -> tensor<f32> {
    %0 = arith.constant dense<0.0> : tensor<f32>
    return %0 : tensor<f32>
  }
}
