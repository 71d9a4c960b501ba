// RUN: boa-opt %s --convert-boa-to-linalg --split-input-file --verify-diagnostics

// Library ops are --convert-boa-to-blas's business, which must run before.

func.func @left_over(%x: tensor<3x4xf32>, %w: tensor<4x5xf32>) -> tensor<3x5xf32> {
  // expected-error @below {{'boa.linear' op has no lowering to a kernel}}
  %y = boa.linear %x, %w : (tensor<3x4xf32>, tensor<4x5xf32>) -> tensor<3x5xf32>
  return %y : tensor<3x5xf32>
}
