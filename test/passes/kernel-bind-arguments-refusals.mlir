// RUN: boa-opt %s --kernel-bind-arguments --split-input-file --verify-diagnostics

// expected-error @below {{expected kernel argument 0 to be a tensor with a buffer and an offset}}
boa.kernel @no_place(%x: tensor<8xf32>)
    -> (tensor<8xf32> {boa.buffer = 1 : i32, boa.offset = 0 : i64}) reads [tensor<4xf32>] writes [tensor<8xf32>] {
  boa.return %x : tensor<8xf32>
}

// -----

// expected-error @below {{expected kernel result 0 to have a buffer and an offset}}
boa.kernel @no_result_place(%x: tensor<8xf32> {boa.buffer = 0 : i32, boa.offset = 0 : i64})
    -> tensor<8xf32> reads [tensor<8xf32>] {
  boa.return %x : tensor<8xf32>
}
