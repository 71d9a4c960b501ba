// RUN: boa-opt %s --boa-verify-storage --split-input-file --verify-diagnostics

// A form that was made before its weights changed.

boa.storage @w[1] : tensor<8xf32> on ssd role weights persistent
boa.storage @prepared.k[1] : tensor<16xf32> on device role prepared
boa.kernel @pack() reads [tensor<8xf32>] writes [tensor<16xf32>] {
  boa.return
}
boa.kernel @change() updates [tensor<8xf32>] {
  boa.return
}
boa.kernel @k() reads [tensor<8xf32>] prepared #boa.prepared<tensor<16xf32> by @pack of [0]> {
  boa.return
}
boa.step @evaluate(%step, %pending) {
  %c0 = arith.constant 0 : index
  %w = boa.prefetch @w[%c0] : <tensor<8xf32>, device>
  %p = boa.create @prepared.k[%c0] : <tensor<16xf32>, device>
  boa.launch @pack reads(%w : <tensor<8xf32>, device>) writes(%p : <tensor<16xf32>, device>)
  boa.launch @k reads(%w : <tensor<8xf32>, device>) prepared(%p : <tensor<16xf32>, device>)
  boa.launch @change updates(%w : <tensor<8xf32>, device>)
  // expected-error @below {{'boa.launch' op takes @prepared.k entry 0, which does not hold what @pack makes of what it reads}}
  boa.launch @k reads(%w : <tensor<8xf32>, device>) prepared(%p : <tensor<16xf32>, device>)
  boa.release %p : <tensor<16xf32>, device>
  boa.release %w : <tensor<8xf32>, device>
}

// -----

// A form of another layer's weights.

boa.storage @w[2] : tensor<8xf32> on ssd role weights persistent
boa.storage @prepared.k[1] : tensor<16xf32> on device role prepared
boa.kernel @pack() reads [tensor<8xf32>] writes [tensor<16xf32>] {
  boa.return
}
boa.kernel @k() reads [tensor<8xf32>] prepared #boa.prepared<tensor<16xf32> by @pack of [0]> {
  boa.return
}
boa.step @evaluate(%step, %pending) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %w = boa.prefetch @w[%c0] : <tensor<8xf32>, device>
  %other = boa.prefetch @w[%c1] : <tensor<8xf32>, device>
  %p = boa.create @prepared.k[%c0] : <tensor<16xf32>, device>
  boa.launch @pack reads(%w : <tensor<8xf32>, device>) writes(%p : <tensor<16xf32>, device>)
  // expected-error @below {{takes @prepared.k entry 0, which does not hold what @pack makes of what it reads}}
  boa.launch @k reads(%other : <tensor<8xf32>, device>) prepared(%p : <tensor<16xf32>, device>)
  boa.release %p : <tensor<16xf32>, device>
  boa.release %other : <tensor<8xf32>, device>
  boa.release %w : <tensor<8xf32>, device>
}

// -----

// Two of the launches that fill a buffer: the kernel must be the one that its launches name.

boa.storage @w[1] : tensor<8xf32> on ssd role weights persistent
boa.storage @prepared.k[1] : tensor<16xf32> on device role prepared
boa.kernel @pack() reads [tensor<8xf32>] writes [tensor<16xf32>] {
  boa.return
}
boa.kernel @mirror() reads [tensor<8xf32>] writes [tensor<16xf32>] {
  boa.return
}
boa.kernel @k() reads [tensor<8xf32>] prepared #boa.prepared<tensor<16xf32> by @pack of [0]> {
  boa.return
}
boa.step @evaluate(%step, %pending) {
  %c0 = arith.constant 0 : index
  %w = boa.prefetch @w[%c0] : <tensor<8xf32>, device>
  %p = boa.create @prepared.k[%c0] : <tensor<16xf32>, device>
  boa.launch @mirror reads(%w : <tensor<8xf32>, device>) writes(%p : <tensor<16xf32>, device>)
  // expected-error @below {{takes @prepared.k entry 0, which does not hold what @pack makes of what it reads}}
  boa.launch @k reads(%w : <tensor<8xf32>, device>) prepared(%p : <tensor<16xf32>, device>)
  boa.release %p : <tensor<16xf32>, device>
  boa.release %w : <tensor<8xf32>, device>
}

// -----

// A kernel that did not ask.

boa.storage @w[1] : tensor<8xf32> on ssd role weights persistent
boa.kernel @k() reads [tensor<8xf32>] {
  boa.return
}
boa.step @evaluate(%step, %pending) {
  %c0 = arith.constant 0 : index
  %w = boa.prefetch @w[%c0] : <tensor<8xf32>, device>
  // expected-error @below {{'boa.launch' op has a prepared operand of 'tensor<8xf32>' for which @k does not ask}}
  boa.launch @k reads(%w : <tensor<8xf32>, device>) prepared(%w : <tensor<8xf32>, device>)
  boa.release %w : <tensor<8xf32>, device>
}

// -----

// A form of another size.

boa.storage @w[1] : tensor<8xf32> on ssd role weights persistent
boa.kernel @pack() reads [tensor<8xf32>] writes [tensor<16xf32>] {
  boa.return
}
boa.kernel @k() reads [tensor<8xf32>] prepared #boa.prepared<tensor<16xf32> by @pack of [0]> {
  boa.return
}
boa.step @evaluate(%step, %pending) {
  %c0 = arith.constant 0 : index
  %w = boa.prefetch @w[%c0] : <tensor<8xf32>, device>
  // expected-error @below {{has a prepared operand of 'tensor<8xf32>' for which @k does not ask}}
  boa.launch @k reads(%w : <tensor<8xf32>, device>) prepared(%w : <tensor<8xf32>, device>)
  boa.release %w : <tensor<8xf32>, device>
}

// -----

// A function of a stage asks for nothing.

boa.storage @w[1] : tensor<8xf32> on ssd role weights persistent
func.func private @f(tensor<8xf32>)
boa.step @evaluate(%step, %pending) {
  %c0 = arith.constant 0 : index
  %w = boa.prefetch @w[%c0] : <tensor<8xf32>, device>
  // expected-error @below {{has a prepared operand of 'tensor<8xf32>' for which @f does not ask}}
  boa.launch @f reads(%w : <tensor<8xf32>, device>) prepared(%w : <tensor<8xf32>, device>)
  boa.release %w : <tensor<8xf32>, device>
}

// -----

// What is asked for must be there: a kernel of those buffers.

// expected-error @below {{'boa.kernel' op expected @pack to be a kernel that makes 'tensor<16xf32>' of what it prepares}}
boa.kernel @k() reads [tensor<8xf32>] prepared #boa.prepared<tensor<16xf32> by @pack of [0]> {
  boa.return
}

// -----

boa.kernel @pack() reads [tensor<4xf32>] writes [tensor<16xf32>] {
  boa.return
}
// expected-error @below {{expected @pack to be a kernel that makes 'tensor<16xf32>' of what it prepares}}
boa.kernel @k() reads [tensor<8xf32>] prepared #boa.prepared<tensor<16xf32> by @pack of [0]> {
  boa.return
}

// -----

boa.kernel @pack() reads [tensor<8xf32>] writes [tensor<16xf32>] {
  boa.return
}
// expected-error @below {{expected to prepare some of the 1 buffers that it reads but found 1}}
boa.kernel @k() reads [tensor<8xf32>] prepared #boa.prepared<tensor<16xf32> by @pack of [1]> {
  boa.return
}
