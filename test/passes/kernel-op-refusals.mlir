// RUN: boa-opt %s --split-input-file --verify-diagnostics

// A kernel reads, updates and writes within the buffers that it says it has. Another place would be
// memory of something else.

// expected-error @below {{'boa.kernel' op expected 'tensor<4xf32>' within buffer 0, which holds 'tensor<8xf32>', but found boa.offset = 20}}
boa.kernel @f(%x: tensor<4xf32> {boa.buffer = 0 : i32, boa.offset = 20 : i64}) reads [tensor<8xf32>] {
  boa.return
}

// -----

// expected-error @below {{expected one of the 1 buffers that it reads, from 0, but found boa.buffer = 1}}
boa.kernel @f(%x: tensor<4xf32> {boa.buffer = 1 : i32, boa.offset = 0 : i64}) reads [tensor<4xf32>] writes [tensor<4xf32>] {
  boa.return
}

// -----

// expected-error @below {{expected one of the 1 buffers that it writes, from 2, but found boa.buffer = 1}}
boa.kernel @f(%x: tensor<4xf32> {boa.buffer = 0 : i32, boa.offset = 0 : i64})
    -> (tensor<4xf32> {boa.buffer = 1 : i32, boa.offset = 0 : i64})
    reads [tensor<4xf32>] updates [tensor<4xf32>] writes [tensor<4xf32>] {
  boa.return %x : tensor<4xf32>
}

// -----

// expected-error @below {{expected one of the 0 buffers that it updates, from 1, but found boa.buffer = 1}}
boa.kernel @f(%x: tensor<4xf32> {boa.buffer = 1 : i32, boa.offset = 0 : i64, boa.result = 0 : i32})
    -> (tensor<4xf32> {boa.buffer = 1 : i32, boa.offset = 0 : i64})
    reads [tensor<4xf32>] writes [tensor<4xf32>] {
  boa.return %x : tensor<4xf32>
}

// -----

// expected-error @below {{expected boa.buffer and boa.offset together}}
boa.kernel @f(%x: tensor<4xf32> {boa.buffer = 0 : i32}) reads [tensor<4xf32>] {
  boa.return
}

// -----

// expected-error @below {{expected boa.result to be one of 0 results but found 1}}
boa.kernel @f(%x: tensor<4xf32> {boa.buffer = 0 : i32, boa.offset = 0 : i64, boa.result = 1 : i32}) updates [tensor<4xf32>] {
  boa.return
}

// -----

// expected-error @below {{expected argument 0 to lie where result 0 does}}
boa.kernel @f(%x: tensor<4xf32> {boa.buffer = 0 : i32, boa.offset = 0 : i64, boa.result = 0 : i32})
    -> (tensor<4xf32> {boa.buffer = 0 : i32, boa.offset = 16 : i64}) updates [tensor<8xf32>] {
  boa.return %x : tensor<4xf32>
}

// -----

// expected-error @below {{expected buffers of tensors of static shape but found 'tensor<?xf32>'}}
boa.kernel @f() reads [tensor<?xf32>] {
  boa.return
}

// -----

// expected-error @below {{attribute 'reads' failed to satisfy constraint: type array attribute}}
boa.kernel @f() reads [1 : i64] {
  boa.return
}

// -----

// A body has the results that the kernel names.

boa.kernel @f(%x: tensor<4xf32>) -> tensor<8xf32> {
  // expected-error @below {{'boa.return' op expected the types of the results of @f}}
  boa.return %x : tensor<4xf32>
}

// -----

func.func @f() {
  // expected-error @below {{'boa.return' op expects parent op 'boa.kernel'}}
  boa.return
}

// -----

// What it needs.

// expected-error @below {{expected scratch within the workspace of 64 bytes but found 128}}
boa.kernel @f() workspace 64 scratch 128 {
  boa.return
}

// -----

// expected-error @below {{attribute 'workspace' failed to satisfy constraint}}
boa.kernel @f() workspace -64 {
  boa.return
}

// -----

// expected-error @below {{expected tables of angles but found 1 : i64}}
boa.kernel @f() tables [1 : i64] {
  boa.return
}

// -----

// expected-error @below {{expected tables of angles but found}}
boa.kernel @f() tables [{frequencies = [1.0], function = "sine", type = tensor<4x2xf32>}] {
  boa.return
}

// -----

// What it costs, in formats that the runtime knows.

// expected-error @below {{expected costs by format, {f32 = #boa.cost<...>}, but found f7 = #boa.cost<flops = 1, bytes = 2>}}
boa.kernel @f() costs {f7 = #boa.cost<flops = 1, bytes = 2>} {
  boa.return
}

// -----

// expected-error @below {{expected costs by format, {f32 = #boa.cost<...>}, but found f32 = 1 : i64}}
boa.kernel @f() costs {f32 = 1 : i64} {
  boa.return
}

// -----

// expected-error @below {{expected costs of at least 0}}
boa.kernel @f() costs {f32 = #boa.cost<flops = -1, bytes = 2>} {
  boa.return
}
