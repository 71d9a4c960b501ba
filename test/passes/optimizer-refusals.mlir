// RUN: boa-opt %s --split-input-file --verify-diagnostics

// expected-error @below {{expected f32, bf16, si8 or ui8 as the type of "moment"}}
boa.optimizer @a {} states {moment = f64}

// -----

// expected-error @below {{expected a state of another name than weights}}
boa.optimizer @a {} states {weights = f32}

// -----

// expected-error @below {{expected a finite f64 as "beta"}}
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

// -----

// A trainer finds the storage of an input by this name.

// expected-error @below {{expected a state of another name than dropout_keys}}
boa.optimizer @a {} states {dropout_keys = f32}

// -----

// Groups have names of these kinds: @params.a, and the state's storage would be that, too.

// expected-error @below {{expected a state of another name than params}}
boa.optimizer @a {} states {params = f32}

// -----

// expected-error @below {{expected a state of another name than frozen}}
boa.optimizer @a {} states {frozen = f32}

// -----

// expected-error @below {{expected a state of another name than blocks}}
boa.optimizer @a {} states {blocks = f32}

// -----

// expected-error @below {{expected a finite f64 as "beta"}}
boa.optimizer @a {beta = 0x7FF0000000000000 : f64} states {}

// -----

// The body is arithmetic that each target has code for, and that ends no program.

boa.optimizer @a {} states {} prepare {
^bb0(%t: f64):
  boa.yield
} update {
^bb0(%w: f32, %g: f32, %rate: f32, %weight_decay: f32):
  // expected-error @below {{'math.erf' op is unknown in a boa.optimizer: expected arithmetic of scalars}}
  %p = math.erf %w : f32
  boa.yield %p : f32
}

// -----

boa.optimizer @a {} states {} prepare {
^bb0(%t: f64):
  %zero = arith.constant 0 : i32
  %number = arith.fptosi %t : f64 to i32
  // expected-error @below {{'arith.divsi' op may end the program: expected a constant divisor, neither 0 nor -1}}
  %share = arith.divsi %number, %zero : i32
  boa.yield
} update {
^bb0(%w: f32, %g: f32, %rate: f32, %weight_decay: f32):
  boa.yield %w : f32
}

// -----

boa.optimizer @a {} states {} prepare {
^bb0(%t: f64):
  %number = arith.fptosi %t : f64 to i32
  // expected-error @below {{'arith.remui' op may end the program: expected a constant divisor, neither 0 nor -1}}
  %rest = arith.remui %number, %number : i32
  boa.yield
} update {
^bb0(%w: f32, %g: f32, %rate: f32, %weight_decay: f32):
  boa.yield %w : f32
}

// -----

boa.optimizer @a {} states {} prepare {
^bb0(%t: f64):
  %three = arith.constant 3 : i32
  %number = arith.fptosi %t : f64 to i32
  %share = arith.divsi %number, %three : i32
  %scalar = arith.sitofp %share : i32 to f32
  boa.yield %scalar : f32
} update {
^bb0(%w: f32, %g: f32, %rate: f32, %weight_decay: f32, %scalar: f32):
  // expected-error @below {{'arith.truncf' op expected f32, f64, or integers of 1, 8, 16, 32 or 64 bits in a boa.optimizer but found 'f16'}}
  %half = arith.truncf %w : f32 to f16
  boa.yield %w : f32
}

// -----

boa.optimizer @a {} states {} prepare {
^bb0(%t: f64):
  // expected-error @below {{'arith.truncf' op expected no rounding mode in a boa.optimizer}}
  %up = arith.truncf %t upward : f64 to f32
  boa.yield %up : f32
} update {
^bb0(%w: f32, %g: f32, %rate: f32, %weight_decay: f32, %scalar: f32):
  boa.yield %w : f32
}
