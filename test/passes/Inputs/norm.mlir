// A kernel as --boa-outline-kernels leaves it: a norm of rows.
func.func @norm(%x: tensor<2x64x256xf32> {boa.buffer = 0 : i32, boa.offset = 0 : i64},
                %w: tensor<256xf32> {boa.buffer = 1 : i32, boa.offset = 0 : i64})
    -> (tensor<2x64x256xf32> {boa.buffer = 2 : i32, boa.offset = 0 : i64})
    attributes {boa.kernel, boa.buffers = array<i32: 2, 0, 1>} {
  %y = boa.rms_norm %x, %w : (tensor<2x64x256xf32>, tensor<256xf32>) -> tensor<2x64x256xf32>
  return %y : tensor<2x64x256xf32>
}
