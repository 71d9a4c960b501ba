// A kernel whose logits are wider than its input.
boa.kernel @head(%x: tensor<2x24x4xf32>, %w: tensor<4x32xf32>, %t: tensor<2x24xi32>) -> tensor<f32> {
  %y = boa.linear %x, %w : (tensor<2x24x4xf32>, tensor<4x32xf32>) -> tensor<2x24x32xf32>
  %loss = boa.cross_entropy %y, %t : (tensor<2x24x32xf32>, tensor<2x24xi32>) -> tensor<f32>
  boa.return %loss : tensor<f32>
}
