// RUN: boa-opt %s --split-input-file --verify-diagnostics

// The generic form can write what the custom forms cannot.

// expected-error @below {{'boa.step' op expected two arguments of its block, the indices step and pending}}
"boa.step"() <{sym_name = "step"}> ({^bb0: }) : () -> ()

// -----

// expected-error @below {{'boa.step' op expected two arguments of its block, the indices step and pending}}
"boa.step"() <{sym_name = "step"}> ({^bb0(%step: f32, %pending: f32): }) : () -> ()

// -----

boa.step @step(%step, %pending) {
  // expected-error @below {{'boa.loop' op expected one argument of its block, an index}}
  "boa.loop"() <{dimension = 0 : i32, lower = 0 : i64, upper = 2 : i64, operandSegmentSizes = array<i32: 0, 0>}> ({^bb0: }) : () -> ()
}

// -----

func.func @f() {
  // expected-error @below {{'boa.loop' op expects parent op to be one of 'boa.step, boa.loop'}}
  boa.loop layer %l = 0 to 2 forward {
  }
  return
}

// -----

// Passes run all iterations. Sizes and numbers are those of the runtime's ABI.

boa.step @step(%step, %pending) {
  // expected-error @below {{'boa.loop' op expected bounds from 0 to 2147483647 but found 0 to 4611686018427387904}}
  boa.loop layer %l = 0 to 4611686018427387904 forward {
  }
}

// -----

boa.step @step(%step, %pending) {
  boa.loop layer %l = 0 to 65536 forward {
    // expected-error @below {{'boa.loop' op brings the step to more than 4194304 iterations: the compiler runs each of them}}
    boa.loop micro_batch %m = 0 to 64 forward {
    }
  }
}

// -----

// Chunks of a loop that can run as one are one iteration. Where a copy may be retained, each is one.

boa.storage @w[1] : tensor<8589934592xf32> on ssd role checkpoints chunks 8388608 persistent
boa.step @step(%step, %pending) {
  %c0 = arith.constant 0 : index
  boa.loop chunk %c = 0 to 8388608 forward {
    %w = boa.prefetch @w[%c0] chunk %c count 1 : <tensor<8589934592xf32>, device>
    boa.offload %w, @w[%c0] chunk %c count 1 : <tensor<8589934592xf32>, device>
    boa.release %w : <tensor<8589934592xf32>, device>
  }
}

// -----

// So are those of updates, and of copies to buffers of the iteration.

boa.group @g repeat 1 {
  boa.param @w : tensor<65536x131072xf32> = "ones"
}
boa.storage @weights.g[1] : tensor<8589934592xf32> on ssd role weights chunks 8388608 persistent
boa.storage @gradients.g[1] : tensor<8589934592xf32> on ssd role gradients chunks 8388608
boa.step @step(%step, %pending) {
  %c0 = arith.constant 0 : index
  boa.loop chunk %c = 0 to 8388608 forward {
    %w = boa.prefetch @weights.g[%c0] chunk %c count 1 : <tensor<8589934592xf32>, host>
    %made = boa.prefetch @gradients.g[%c0] chunk %c count 1 : <tensor<8589934592xf32>, device>
    %g = boa.create @gradients.g[%c0] chunk %c count 1 : <tensor<8589934592xf32>, host>
    boa.copy %made to %g : <tensor<8589934592xf32>, device>, <tensor<8589934592xf32>, host>
    boa.release %made : <tensor<8589934592xf32>, device>
    boa.update @g chunk %c step %step weights(%w : <tensor<8589934592xf32>, host>) gradient(%g : <tensor<8589934592xf32>, host>)
    boa.release %g : <tensor<8589934592xf32>, host>
    boa.offload %w, @weights.g[%c0] chunk %c count 1 : <tensor<8589934592xf32>, host>
    boa.release %w : <tensor<8589934592xf32>, host>
  }
}

// -----

// A copy to the buffer of another iteration is not.

boa.storage @w[1] : tensor<8589934592xf32> on ssd role checkpoints chunks 8388608 persistent
boa.step @step(%step, %pending) {
  %c0 = arith.constant 0 : index
  %to = boa.create @w[%c0] chunk %c0 count 1 : <tensor<8589934592xf32>, host>
  // expected-error @below {{'boa.loop' op brings the step to more than 4194304 iterations}}
  boa.loop chunk %c = 0 to 8388608 forward {
    %w = boa.prefetch @w[%c0] chunk %c count 1 : <tensor<8589934592xf32>, device>
    boa.copy %w to %to : <tensor<8589934592xf32>, device>, <tensor<8589934592xf32>, host>
    boa.release %w : <tensor<8589934592xf32>, device>
  }
  boa.release %to : <tensor<8589934592xf32>, host>
}

// -----

boa.storage @w[1] : tensor<8589934592xf32> on ssd role checkpoints chunks 8388608 persistent
boa.step @step(%step, %pending) {
  %c0 = arith.constant 0 : index
  %true = arith.constant true
  %first = boa.prefetch @w[%c0] chunk %c0 count 1 : <tensor<8589934592xf32>, device>
  boa.release %first retain %true : <tensor<8589934592xf32>, device>
  // expected-error @below {{'boa.loop' op brings the step to more than 4194304 iterations}}
  boa.loop chunk %c = 0 to 8388608 forward {
    %w = boa.prefetch @w[%c0] chunk %c count 1 : <tensor<8589934592xf32>, device>
    boa.offload %w, @w[%c0] chunk %c count 1 : <tensor<8589934592xf32>, device>
    boa.release %w : <tensor<8589934592xf32>, device>
  }
}

// -----

boa.step @step(%step, %pending) {
  boa.loop layer %l = 0 to 2 forward {
    // expected-error @below {{'boa.shift' op expected a constant of 32 bits but found 4294967296}}
    %next = boa.shift %l, 4294967296
  }
}

// -----

// expected-error @below {{'boa.storage' op expected at most 262144 entries}}
boa.storage @x[9223372036854775807, 3] : tensor<4xf32> on ssd role checkpoints

// -----

// The product is 2^64.

// expected-error @below {{'boa.storage' op expected at most 262144 entries}}
boa.storage @x[4294967296, 4294967296] : tensor<4xf32> on ssd role checkpoints

// -----

// expected-error @below {{'boa.storage' op expected at most 2^56 bytes but found 262144 entries of 'tensor<1048576x1048576xf32>'}}
boa.storage @x[262144] : tensor<1048576x1048576xf32> on ssd role checkpoints

// -----

// expected-error @below {{'boa.storage' op expected entries of 1 to 2^40 elements of whole bytes but found 'tensor<4xi1>'}}
boa.storage @x[1] : tensor<4xi1> on ssd role checkpoints

// -----

// expected-error @below {{'boa.storage' op expected slots of at most 2^56 bytes together but found 9223372036854775807 of 1 chunks}}
boa.storage @x[1] : tensor<4xf32> on ssd role checkpoints slots device 9223372036854775807 x 1

// -----

// expected-error @below {{'boa.storage' op expected a number of entries}}
"boa.storage"() <{dims = array<i64>, homes = [#boa.entry_homes<0, [<ssd, 0>]>], role = 7 : i32, sym_name = "x", type = tensor<4xf32>}> : () -> ()

// -----

boa.storage @x[1] : tensor<4xf32> on ssd role checkpoints
boa.step @step(%step, %pending) {
  %c0 = arith.constant 0 : index
  // expected-error @below {{'boa.prefetch' op expected a first chunk and a count of 1 to 2147483647, or neither, but found count = -1}}
  %x = boa.prefetch @x[%c0] chunk %c0 count -1 : <tensor<4xf32>, device>
}

// -----

boa.group @a repeat 1 {
  boa.param @w : tensor<4xf32> = "zeros"
}
boa.step @step(%step, %pending) {
  %c0 = arith.constant 0 : index
  // expected-error @below {{'boa.optimizer_update' op expected chunks from 0 to 2147483647 but found -1 to 1}}
  boa.optimizer_update @a[%c0] chunks -1 to 1 step %step
}

// -----

boa.group @a repeat 1 {
  // expected-error @below {{'arith.constant' op is unknown in a boa.group: expected boa.param}}
  %c0 = arith.constant 0 : index
}

// -----

// expected-error @below {{'boa.group' op expected at most 2^50 elements in all entries together}}
boa.group @a repeat 65536 {
  boa.param @w : tensor<1048576x1048576xf32> = "zeros"
}

// -----

// expected-error @below {{'boa.optimizer' op expected `prepare` and `update`, or neither}}
"boa.optimizer"() <{hyperparameters = {}, states = {}, sym_name = "o"}> ({^bb0: }, { }) : () -> ()

// -----

// expected-error @+1 {{expected a buffer of a tensor of static shape, of 1 to 2^40 elements of whole bytes, but found 'tensor<0xf32>'}}
func.func private @f(!boa.buffer<tensor<0xf32>, device>)

// -----

func.func @f(%table: tensor<8x4xf32>, %tokens: tensor<0x4xi32>) -> tensor<0x4x4xf32> {
  // expected-error @below {{'boa.embedding' op operand #1 must be tensor of i32 token indices of static shape, of 1 to 2^40 elements, but got 'tensor<0x4xi32>'}}
  %0 = boa.embedding %table, %tokens : (tensor<8x4xf32>, tensor<0x4xi32>) -> tensor<0x4x4xf32>
  return %0 : tensor<0x4x4xf32>
}

// -----

func.func @f(%x: tensor<1x4x131074xf32>) -> tensor<1x4x131074xf32> {
  // expected-error @below {{'boa.rotary' op expected heads of at most 65536 elements but found 131074}}
  %0 = boa.rotary %x heads 1 : tensor<1x4x131074xf32>
  return %0 : tensor<1x4x131074xf32>
}

// -----

func.func @f(%x: tensor<1x1x8xf32>, %at: tensor<1x1xi32>) -> tensor<1x1x8xf32> {
  // expected-error @below {{'boa.rotary' op expected a length of 1 to 2147483647 but found -1}}
  %0 = boa.rotary %x heads 1 at %at of -1 : tensor<1x1x8xf32>, tensor<1x1xi32>
  return %0 : tensor<1x1x8xf32>
}

// -----

func.func @f(%tokens: tensor<1x4xi32>) -> tensor<1x4xi32> {
  // expected-error @below {{'boa.rebase' op expected a number of 0 to 2147483647 tokens but found 2147483648}}
  %0 = boa.rebase %tokens by 2147483648 : tensor<1x4xi32>
  return %0 : tensor<1x4xi32>
}
