// A kernel as --boa-outline-kernels leaves it: a norm of rows.
boa.kernel @norm(%x: tensor<2x64x256xf32> {boa.buffer = 0 : i32, boa.offset = 0 : i64},
                 %w: tensor<256xf32> {boa.buffer = 1 : i32, boa.offset = 0 : i64})
    -> (tensor<2x64x256xf32> {boa.buffer = 2 : i32, boa.offset = 0 : i64})
    reads [tensor<2x64x256xf32>, tensor<256xf32>] writes [tensor<2x64x256xf32>] {
  %y = boa.rms_norm %x, %w : (tensor<2x64x256xf32>, tensor<256xf32>) -> tensor<2x64x256xf32>
  boa.return %y : tensor<2x64x256xf32>
}
