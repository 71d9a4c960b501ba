// RUN: boa-opt %s --kernel-bind-arguments --split-input-file --verify-diagnostics

// expected-error @below {{expected kernel argument 0 to be a tensor with a buffer and an offset}}
func.func @no_place(%x: tensor<8xf32>)
    -> (tensor<8xf32> {boa.buffer = 1 : i32, boa.offset = 0 : i64}) attributes {boa.kernel} {
  return %x : tensor<8xf32>
}

// -----

// expected-error @below {{expected kernel result 0 to have a buffer and an offset}}
func.func @no_result_place(%x: tensor<8xf32> {boa.buffer = 0 : i32, boa.offset = 0 : i64})
    -> tensor<8xf32> attributes {boa.kernel} {
  return %x : tensor<8xf32>
}

// -----

// expected-error @below {{expected kernel argument 0 to lie where result 0 does}}
func.func @elsewhere(%x: tensor<8xf32> {boa.buffer = 0 : i32, boa.offset = 0 : i64, boa.result = 0 : i32})
    -> (tensor<8xf32> {boa.buffer = 0 : i32, boa.offset = 64 : i64}) attributes {boa.kernel} {
  return %x : tensor<8xf32>
}
