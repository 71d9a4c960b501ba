// RUN: boa-opt %s --split-input-file --verify-diagnostics

// Shapes are checked by each op. A weight is a matrix.

func.func @f(%x: tensor<2x4x8xf32>, %w: tensor<8xf32>) -> tensor<2x4x8xf32> {
  // expected-error @below {{'boa.linear' op expected a weight of rank 2 but found 'tensor<8xf32>'}}
  %0 = boa.linear %x, %w : (tensor<2x4x8xf32>, tensor<8xf32>) -> tensor<2x4x8xf32>
  return %0 : tensor<2x4x8xf32>
}

// -----

// [in, out], or with `transpose` [out, in].

func.func @f(%x: tensor<2x4x8xf32>, %w: tensor<6x8xf32>) -> tensor<2x4x8xf32> {
  // expected-error @below {{'boa.linear' op expected the last dimension of x to be 6 but found 8}}
  %0 = boa.linear %x, %w : (tensor<2x4x8xf32>, tensor<6x8xf32>) -> tensor<2x4x8xf32>
  return %0 : tensor<2x4x8xf32>
}

// -----

func.func @f(%x: tensor<2x4x8xf32>, %w: tensor<6x8xf32>) -> tensor<2x4x8xf32> {
  // expected-error @below {{'boa.linear' op expected a result whose last dimension is 6 but found 'tensor<2x4x8xf32>'}}
  %0 = boa.linear %x, %w transpose : (tensor<2x4x8xf32>, tensor<6x8xf32>) -> tensor<2x4x8xf32>
  return %0 : tensor<2x4x8xf32>
}

// -----

func.func @f(%x: tensor<2x4x8xf32>, %w: tensor<8x6xf32>, %b: tensor<8xf32>) -> tensor<2x4x6xf32> {
  // expected-error @below {{'boa.linear' op expected a bias of 6 elements but found 'tensor<8xf32>'}}
  %0 = boa.linear %x, %w bias %b : (tensor<2x4x8xf32>, tensor<8x6xf32>, tensor<8xf32>) -> tensor<2x4x6xf32>
  return %0 : tensor<2x4x6xf32>
}

// -----

// Broadcasting is over leading dimensions, and of the right operand.

func.func @f(%x: tensor<2x4x8xf32>, %y: tensor<4xf32>) -> tensor<2x4x8xf32> {
  // expected-error @below {{'boa.add' op expected the shape of rhs to be a suffix of that of lhs, found 'tensor<2x4x8xf32>' and 'tensor<4xf32>'}}
  %0 = boa.add %x, %y : tensor<2x4x8xf32>, tensor<4xf32>
  return %0 : tensor<2x4x8xf32>
}

// -----

func.func @f(%x: tensor<8xf32>, %y: tensor<2x4x8xf32>) -> tensor<8xf32> {
  // expected-error @below {{'boa.mul' op expected the shape of rhs to be a suffix of that of lhs, found 'tensor<8xf32>' and 'tensor<2x4x8xf32>'}}
  %0 = boa.mul %x, %y : tensor<8xf32>, tensor<2x4x8xf32>
  return %0 : tensor<8xf32>
}

// -----

// The parts of a split are all of it.

func.func @f(%x: tensor<2x4x8xf32>) -> tensor<2x4x4xf32> {
  // expected-error @below {{'boa.split' op expected parts that add up to 8 but found 6}}
  %0:2 = boa.split %x : (tensor<2x4x8xf32>) -> (tensor<2x4x4xf32>, tensor<2x4x2xf32>)
  return %0#0 : tensor<2x4x4xf32>
}

// -----

// Heads divide the width, and are shared evenly.

func.func @f(%x: tensor<2x4x8xf32>) -> tensor<2x4x8xf32> {
  // expected-error @below {{'boa.attention' op expected kv_heads to divide heads, found 4 and 3}}
  %0, %1 = boa.attention %x, %x, %x heads 4, 3 causal : (tensor<2x4x8xf32>, tensor<2x4x8xf32>, tensor<2x4x8xf32>) -> (tensor<2x4x8xf32>, tensor<2x4x4xf32>)
  return %0 : tensor<2x4x8xf32>
}

// -----

func.func @f(%x: tensor<2x4x8xf32>) -> tensor<2x4x8xf32> {
  // expected-error @below {{'boa.attention' op expected heads to divide the width 8}}
  %0, %1 = boa.attention %x, %x, %x heads 3, 3 : (tensor<2x4x8xf32>, tensor<2x4x8xf32>, tensor<2x4x8xf32>) -> (tensor<2x4x8xf32>, tensor<2x3x4xf32>)
  return %0 : tensor<2x4x8xf32>
}

// -----

// Grouped queries: 4 heads of width 2 share 2 heads of keys, of width 4 together.

func.func @f(%x: tensor<2x4x8xf32>) -> tensor<2x4x8xf32> {
  // expected-error @below {{'boa.attention' op expected k and v of width 4 but found 8 and 8}}
  %0, %1 = boa.attention %x, %x, %x heads 4, 2 : (tensor<2x4x8xf32>, tensor<2x4x8xf32>, tensor<2x4x8xf32>) -> (tensor<2x4x8xf32>, tensor<2x4x4xf32>)
  return %0 : tensor<2x4x8xf32>
}
