// RUN: boa-opt %s --split-input-file --verify-diagnostics

// expected-error @below {{expected f32, bf16, si8 or ui8 as the type of "moment"}}
boa.optimizer @a {} states {moment = f64}

// -----

// expected-error @below {{expected a state of another name than weights}}
boa.optimizer @a {} states {weights = f32}

// -----

// expected-error @below {{expected an f64 as "beta"}}
boa.optimizer @a {beta = 1 : i64} states {}

// -----

// expected-error @below {{expected `prepare` to take ('f64', 'f64') but found ('f64')}}
boa.optimizer @a {beta = 0.5} states {} prepare {
^bb0(%t: f64):
  boa.yield
} update {
^bb0(%w: f32, %g: f32, %rate: f32, %weight_decay: f32):
  boa.yield %w : f32
}

// -----

// expected-error @below {{expected `update` to take ('f32', 'f32', 'f32', 'f32', 'f32') but found}}
boa.optimizer @a {} states {moment = f32} prepare {
^bb0(%t: f64):
  boa.yield
} update {
^bb0(%w: f32, %g: f32, %rate: f32, %weight_decay: f32):
  boa.yield %w : f32
}

// -----

boa.optimizer @a {} states {moment = f32} prepare {
^bb0(%t: f64):
  boa.yield
} update {
^bb0(%w: f32, %g: f32, %rate: f32, %weight_decay: f32, %m: f32):
  // expected-error @below {{expected the weight and 1 states but found 1 values}}
  boa.yield %w : f32
}

// -----

boa.optimizer @a {} states {} prepare {
^bb0(%t: f64):
  boa.yield
} update {
^bb0(%w: f32, %g: f32, %rate: f32, %weight_decay: f32):
  // expected-error @below {{is unknown in a boa.optimizer: expected arithmetic of scalars}}
  %p = llvm.mlir.zero : !llvm.ptr
  boa.yield %w : f32
}
