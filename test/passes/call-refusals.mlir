// RUN: boa-opt %s --split-input-file --verify-diagnostics

// A call is checked against its function, a launch against its kernel and an update
// against its group: code is made for the types that they say, and another buffer
// would be read or written past its end.

// Activations in order, then weights as they are stored: this is as it should be.

module {
  boa.group @a repeat 1 {
    boa.param @w : tensor<4x4xf32> = "ones"
  }
  func.func private @f(tensor<4xf32>, tensor<6xf32>, tensor<4x4xf32> {boa.param = @a::@w}) -> (tensor<6xf32>, tensor<4x4xf32> {boa.param = @a::@w})
  boa.storage @x[1] : tensor<4xf32> on device role checkpoints persistent
  boa.storage @y[1] : tensor<6xf32> on device role checkpoints persistent
  boa.storage @weights.a[1] : tensor<2048xbf16> on device role weights persistent
  boa.step @step(%step, %pending) {
    %c0 = arith.constant 0 : index
    %x = boa.read @x[%c0] : tensor<4xf32>
    %y = boa.read @y[%c0] : tensor<6xf32>
    %w = boa.read @weights.a[%c0] : tensor<2048xbf16>
    %0:2 = boa.call @f(%x, %y, %w) : (tensor<4xf32>, tensor<6xf32>, tensor<2048xbf16>) -> (tensor<6xf32>, tensor<2048xf32>)
  }
}

// -----

// Two operands swapped.

module {
  boa.group @a repeat 1 {
    boa.param @w : tensor<4x4xf32> = "ones"
  }
  func.func private @f(tensor<4xf32>, tensor<6xf32>, tensor<4x4xf32> {boa.param = @a::@w}) -> (tensor<6xf32>, tensor<4x4xf32> {boa.param = @a::@w})
  boa.storage @x[1] : tensor<4xf32> on device role checkpoints persistent
  boa.storage @y[1] : tensor<6xf32> on device role checkpoints persistent
  boa.storage @weights.a[1] : tensor<2048xbf16> on device role weights persistent
  boa.step @step(%step, %pending) {
    %c0 = arith.constant 0 : index
    %x = boa.read @x[%c0] : tensor<4xf32>
    %y = boa.read @y[%c0] : tensor<6xf32>
    %w = boa.read @weights.a[%c0] : tensor<2048xbf16>
    // expected-error @below {{'boa.call' op expected operand 0 of @f to be 'tensor<4xf32>' but found 'tensor<6xf32>'}}
    %0:2 = boa.call @f(%y, %x, %w) : (tensor<6xf32>, tensor<4xf32>, tensor<2048xbf16>) -> (tensor<6xf32>, tensor<2048xf32>)
  }
}

// -----

module {
  boa.group @a repeat 1 {
    boa.param @w : tensor<4x4xf32> = "ones"
  }
  func.func private @f(tensor<4xf32>, tensor<6xf32>, tensor<4x4xf32> {boa.param = @a::@w}) -> (tensor<6xf32>, tensor<4x4xf32> {boa.param = @a::@w})
  boa.storage @x[1] : tensor<4xf32> on device role checkpoints persistent
  boa.storage @y[1] : tensor<6xf32> on device role checkpoints persistent
  boa.storage @weights.a[1] : tensor<2048xbf16> on device role weights persistent
  boa.step @step(%step, %pending) {
    %c0 = arith.constant 0 : index
    %x = boa.read @x[%c0] : tensor<4xf32>
    %y = boa.read @y[%c0] : tensor<6xf32>
    %w = boa.read @weights.a[%c0] : tensor<2048xbf16>
    // expected-error @below {{'boa.call' op expected operand 2 of @f to be 'tensor<2048xf32>', of group a, but found 'tensor<6xf32>'}}
    %0:2 = boa.call @f(%x, %y, %y) : (tensor<4xf32>, tensor<6xf32>, tensor<6xf32>) -> (tensor<6xf32>, tensor<2048xf32>)
  }
}

// -----

module {
  boa.group @a repeat 1 {
    boa.param @w : tensor<4x4xf32> = "ones"
  }
  func.func private @f(tensor<4xf32>, tensor<6xf32>, tensor<4x4xf32> {boa.param = @a::@w}) -> (tensor<6xf32>, tensor<4x4xf32> {boa.param = @a::@w})
  boa.storage @x[1] : tensor<4xf32> on device role checkpoints persistent
  boa.storage @y[1] : tensor<6xf32> on device role checkpoints persistent
  boa.storage @weights.a[1] : tensor<2048xbf16> on device role weights persistent
  boa.step @step(%step, %pending) {
    %c0 = arith.constant 0 : index
    %x = boa.read @x[%c0] : tensor<4xf32>
    %y = boa.read @y[%c0] : tensor<6xf32>
    %w = boa.read @weights.a[%c0] : tensor<2048xbf16>
    // expected-error @below {{'boa.call' op expected 3 operands of @f but found 2}}
    %0:2 = boa.call @f(%x, %y) : (tensor<4xf32>, tensor<6xf32>) -> (tensor<6xf32>, tensor<2048xf32>)
  }
}

// -----

module {
  boa.group @a repeat 1 {
    boa.param @w : tensor<4x4xf32> = "ones"
  }
  func.func private @f(tensor<4xf32>, tensor<6xf32>, tensor<4x4xf32> {boa.param = @a::@w}) -> (tensor<6xf32>, tensor<4x4xf32> {boa.param = @a::@w})
  boa.storage @x[1] : tensor<4xf32> on device role checkpoints persistent
  boa.storage @y[1] : tensor<6xf32> on device role checkpoints persistent
  boa.storage @weights.a[1] : tensor<2048xbf16> on device role weights persistent
  boa.step @step(%step, %pending) {
    %c0 = arith.constant 0 : index
    %x = boa.read @x[%c0] : tensor<4xf32>
    %y = boa.read @y[%c0] : tensor<6xf32>
    %w = boa.read @weights.a[%c0] : tensor<2048xbf16>
    // expected-error @below {{'boa.call' op expected result 1 of @f to be 'tensor<2048xf32>', of group a, but found 'tensor<2048xbf16>'}}
    %0:2 = boa.call @f(%x, %y, %w) : (tensor<4xf32>, tensor<6xf32>, tensor<2048xbf16>) -> (tensor<6xf32>, tensor<2048xbf16>)
  }
}

// -----

module {
  boa.group @a repeat 1 {
    boa.param @w : tensor<4x4xf32> = "ones"
  }
  func.func private @f(tensor<4xf32>, tensor<6xf32>, tensor<4x4xf32> {boa.param = @a::@w}) -> (tensor<6xf32>, tensor<4x4xf32> {boa.param = @a::@w})
  boa.storage @x[1] : tensor<4xf32> on device role checkpoints persistent
  boa.storage @y[1] : tensor<6xf32> on device role checkpoints persistent
  boa.storage @weights.a[1] : tensor<2048xbf16> on device role weights persistent
  boa.step @step(%step, %pending) {
    %c0 = arith.constant 0 : index
    %x = boa.read @x[%c0] : tensor<4xf32>
    %y = boa.read @y[%c0] : tensor<6xf32>
    %w = boa.read @weights.a[%c0] : tensor<2048xbf16>
    // expected-error @below {{'boa.call' op expected 2 results of @f but found 1}}
    %0 = boa.call @f(%x, %y, %w) : (tensor<4xf32>, tensor<6xf32>, tensor<2048xbf16>) -> tensor<6xf32>
  }
}

// -----

// A parameter that does not exist has no place in an entry.

module {
  func.func private @f(tensor<4x4xf32> {boa.param = @a::@w}) -> tensor<4xf32>
  boa.storage @w[1] : tensor<2048xf32> on device role weights persistent
  boa.step @step(%step, %pending) {
    %c0 = arith.constant 0 : index
    %w = boa.read @w[%c0] : tensor<2048xf32>
    // expected-error @below {{'boa.call' op cannot call @f: it names a parameter that does not exist: @a::@w}}
    %0 = boa.call @f(%w) : (tensor<2048xf32>) -> tensor<4xf32>
  }
}

// -----

// A launch: gradients are added to, other results written. This is as it should be.

module {
  boa.group @a repeat 1 {
    boa.param @w : tensor<4x4xf32> = "ones"
  }
  func.func private @f(tensor<4xf32>, tensor<6xf32>, tensor<4x4xf32> {boa.param = @a::@w}) -> (tensor<6xf32>, tensor<4x4xf32> {boa.param = @a::@w})
  boa.storage @x[1] : tensor<4xf32> on device role checkpoints persistent
  boa.storage @y[1] : tensor<6xf32> on device role checkpoints persistent
  boa.storage @weights.a[1] : tensor<2048xbf16> on device role weights persistent
  boa.storage @gradients.a[1] : tensor<2048xf32> on device role gradients
  boa.step @step(%step, %pending) {
    %c0 = arith.constant 0 : index
    %true = arith.constant true
    %x = boa.prefetch @x[%c0] : <tensor<4xf32>, device>
    %y = boa.prefetch @y[%c0] : <tensor<6xf32>, device>
    %w = boa.prefetch @weights.a[%c0] : <tensor<2048xbf16>, device>
    %g = boa.prefetch @gradients.a[%c0] zero %true : <tensor<2048xf32>, device>
    %z = boa.create @y[%c0] : <tensor<6xf32>, device>
    boa.launch @f reads(%x, %y, %w : <tensor<4xf32>, device>, <tensor<6xf32>, device>, <tensor<2048xbf16>, device>) updates(%g : <tensor<2048xf32>, device>) writes(%z : <tensor<6xf32>, device>)
  }
}

// -----

module {
  boa.group @a repeat 1 {
    boa.param @w : tensor<4x4xf32> = "ones"
  }
  func.func private @f(tensor<4xf32>, tensor<6xf32>, tensor<4x4xf32> {boa.param = @a::@w}) -> (tensor<6xf32>, tensor<4x4xf32> {boa.param = @a::@w})
  boa.storage @x[1] : tensor<4xf32> on device role checkpoints persistent
  boa.storage @y[1] : tensor<6xf32> on device role checkpoints persistent
  boa.storage @weights.a[1] : tensor<2048xbf16> on device role weights persistent
  boa.storage @gradients.a[1] : tensor<2048xf32> on device role gradients
  boa.step @step(%step, %pending) {
    %c0 = arith.constant 0 : index
    %true = arith.constant true
    %x = boa.prefetch @x[%c0] : <tensor<4xf32>, device>
    %y = boa.prefetch @y[%c0] : <tensor<6xf32>, device>
    %w = boa.prefetch @weights.a[%c0] : <tensor<2048xbf16>, device>
    %g = boa.prefetch @gradients.a[%c0] zero %true : <tensor<2048xf32>, device>
    %z = boa.create @y[%c0] : <tensor<6xf32>, device>
    // expected-error @below {{'boa.launch' op expected operand 0 of @f to be 'tensor<4xf32>' but found 'tensor<6xf32>'}}
    boa.launch @f reads(%y, %x, %w : <tensor<6xf32>, device>, <tensor<4xf32>, device>, <tensor<2048xbf16>, device>) updates(%g : <tensor<2048xf32>, device>) writes(%z : <tensor<6xf32>, device>)
  }
}

// -----

module {
  boa.group @a repeat 1 {
    boa.param @w : tensor<4x4xf32> = "ones"
  }
  func.func private @f(tensor<4xf32>, tensor<6xf32>, tensor<4x4xf32> {boa.param = @a::@w}) -> (tensor<6xf32>, tensor<4x4xf32> {boa.param = @a::@w})
  boa.storage @x[1] : tensor<4xf32> on device role checkpoints persistent
  boa.storage @y[1] : tensor<6xf32> on device role checkpoints persistent
  boa.storage @weights.a[1] : tensor<2048xbf16> on device role weights persistent
  boa.storage @gradients.a[1] : tensor<2048xf32> on device role gradients
  boa.step @step(%step, %pending) {
    %c0 = arith.constant 0 : index
    %true = arith.constant true
    %x = boa.prefetch @x[%c0] : <tensor<4xf32>, device>
    %y = boa.prefetch @y[%c0] : <tensor<6xf32>, device>
    %w = boa.prefetch @weights.a[%c0] : <tensor<2048xbf16>, device>
    %g = boa.prefetch @gradients.a[%c0] zero %true : <tensor<2048xf32>, device>
    %z = boa.create @y[%c0] : <tensor<6xf32>, device>
    // expected-error @below {{'boa.launch' op expected gradient 0 of @f to be 'tensor<2048xf32>', of group a, but found 'tensor<6xf32>'}}
    boa.launch @f reads(%x, %y, %w : <tensor<4xf32>, device>, <tensor<6xf32>, device>, <tensor<2048xbf16>, device>) updates(%z : <tensor<6xf32>, device>) writes(%g : <tensor<2048xf32>, device>)
  }
}

// -----

module {
  boa.group @a repeat 1 {
    boa.param @w : tensor<4x4xf32> = "ones"
  }
  func.func private @f(tensor<4xf32>, tensor<6xf32>, tensor<4x4xf32> {boa.param = @a::@w}) -> (tensor<6xf32>, tensor<4x4xf32> {boa.param = @a::@w})
  boa.storage @x[1] : tensor<4xf32> on device role checkpoints persistent
  boa.storage @y[1] : tensor<6xf32> on device role checkpoints persistent
  boa.storage @weights.a[1] : tensor<2048xbf16> on device role weights persistent
  boa.storage @gradients.a[1] : tensor<2048xf32> on device role gradients
  boa.step @step(%step, %pending) {
    %c0 = arith.constant 0 : index
    %true = arith.constant true
    %x = boa.prefetch @x[%c0] : <tensor<4xf32>, device>
    %y = boa.prefetch @y[%c0] : <tensor<6xf32>, device>
    %w = boa.prefetch @weights.a[%c0] : <tensor<2048xbf16>, device>
    %g = boa.prefetch @gradients.a[%c0] zero %true : <tensor<2048xf32>, device>
    %z = boa.create @y[%c0] : <tensor<6xf32>, device>
    // expected-error @below {{'boa.launch' op expected other result 0 of @f to be 'tensor<6xf32>' but found 'tensor<4xf32>'}}
    boa.launch @f reads(%x, %y, %w : <tensor<4xf32>, device>, <tensor<6xf32>, device>, <tensor<2048xbf16>, device>) updates(%g : <tensor<2048xf32>, device>) writes(%x : <tensor<4xf32>, device>)
  }
}

// -----

// A kernel says what its buffers hold, and what it does to them.

module {
  boa.group @a repeat 1 {
    boa.param @w : tensor<4x4xf32> = "ones"
  }
  boa.kernel @f() reads [tensor<4xf32>] writes [tensor<6xf32>] {
    boa.return
  }
  boa.storage @x[1] : tensor<4xf32> on device role checkpoints persistent
  boa.storage @y[1] : tensor<6xf32> on device role checkpoints persistent
  boa.storage @weights.a[1] : tensor<2048xbf16> on device role weights persistent
  boa.storage @gradients.a[1] : tensor<2048xf32> on device role gradients
  boa.step @step(%step, %pending) {
    %c0 = arith.constant 0 : index
    %true = arith.constant true
    %x = boa.prefetch @x[%c0] : <tensor<4xf32>, device>
    %y = boa.prefetch @y[%c0] : <tensor<6xf32>, device>
    %w = boa.prefetch @weights.a[%c0] : <tensor<2048xbf16>, device>
    %g = boa.prefetch @gradients.a[%c0] zero %true : <tensor<2048xf32>, device>
    %z = boa.create @y[%c0] : <tensor<6xf32>, device>
    // expected-error @below {{'boa.launch' op expected buffer 0 that @f reads to hold 'tensor<4xf32>' but found 'tensor<6xf32>'}}
    boa.launch @f reads(%y : <tensor<6xf32>, device>) writes(%x : <tensor<4xf32>, device>)
  }
}

// -----

module {
  boa.group @a repeat 1 {
    boa.param @w : tensor<4x4xf32> = "ones"
  }
  boa.kernel @f() reads [tensor<4xf32>] writes [tensor<6xf32>] {
    boa.return
  }
  boa.storage @x[1] : tensor<4xf32> on device role checkpoints persistent
  boa.storage @y[1] : tensor<6xf32> on device role checkpoints persistent
  boa.storage @weights.a[1] : tensor<2048xbf16> on device role weights persistent
  boa.storage @gradients.a[1] : tensor<2048xf32> on device role gradients
  boa.step @step(%step, %pending) {
    %c0 = arith.constant 0 : index
    %true = arith.constant true
    %x = boa.prefetch @x[%c0] : <tensor<4xf32>, device>
    %y = boa.prefetch @y[%c0] : <tensor<6xf32>, device>
    %w = boa.prefetch @weights.a[%c0] : <tensor<2048xbf16>, device>
    %g = boa.prefetch @gradients.a[%c0] zero %true : <tensor<2048xf32>, device>
    %z = boa.create @y[%c0] : <tensor<6xf32>, device>
    // expected-error @below {{'boa.launch' op expected 1 buffers that @f writes but found 0}}
    boa.launch @f reads(%x : <tensor<4xf32>, device>)
  }
}

// -----

// The parts of an update are the group's own, each in its place.

module {
  boa.group @a repeat 1 {
    boa.param @w : tensor<4x4xf32> = "ones"
  }
  boa.storage @weights.a[1] : tensor<2048xf32> on ssd role weights persistent
  boa.storage @gradients.a[1] : tensor<2048xf32> on ssd role gradients persistent
  boa.storage @momentum.a[1] : tensor<2048xf32> on ssd role state persistent
  boa.storage @variance.a[1] : tensor<2048xf32> on ssd role state persistent
  boa.step @step(%step, %pending) {
    %c0 = arith.constant 0 : index
    %b0 = boa.prefetch @weights.a[%c0] : <tensor<2048xf32>, host>
    %b1 = boa.prefetch @gradients.a[%c0] : <tensor<2048xf32>, host>
    %b2 = boa.prefetch @momentum.a[%c0] : <tensor<2048xf32>, host>
    %b3 = boa.prefetch @variance.a[%c0] : <tensor<2048xf32>, host>
    // expected-error @below {{'boa.update' op expected a buffer of @momentum.a as momentum but found one of @variance.a}}
    boa.update @a chunk %c0 step %step weights(%b0 : <tensor<2048xf32>, host>) gradient(%b1 : <tensor<2048xf32>, host>) states(%b3, %b2 : <tensor<2048xf32>, host>, <tensor<2048xf32>, host>)
  }
}

// -----

module {
  boa.group @a repeat 1 {
    boa.param @w : tensor<4x4xf32> = "ones"
  }
  boa.storage @weights.a[1] : tensor<2048xf32> on ssd role weights persistent
  boa.storage @gradients.a[1] : tensor<4096xf32> on ssd role gradients persistent
  boa.step @step(%step, %pending) {
    %c0 = arith.constant 0 : index
    %b0 = boa.prefetch @weights.a[%c0] : <tensor<2048xf32>, host>
    %b1 = boa.prefetch @gradients.a[%c0] : <tensor<4096xf32>, host>
    // expected-error @below {{'boa.update' op expected gradients of @a to be 'tensor<2048xf32>' but found 'tensor<4096xf32>'}}
    boa.update @a chunk %c0 step %step weights(%b0 : <tensor<2048xf32>, host>) gradient(%b1 : <tensor<4096xf32>, host>)
  }
}

// -----

module {
  boa.group @a repeat 1 {
    boa.param @w : tensor<4x4xf32> = "ones"
  }
  boa.storage @weights.a[1] : tensor<2048xbf16> on ssd role weights persistent
  boa.storage @gradients.a[1] : tensor<2048xf32> on ssd role gradients persistent
  boa.step @step(%step, %pending) {
    %c0 = arith.constant 0 : index
    %b0 = boa.prefetch @weights.a[%c0] : <tensor<2048xbf16>, host>
    %b1 = boa.prefetch @gradients.a[%c0] : <tensor<2048xf32>, host>
    // expected-error @below {{'boa.update' op expected the lower halves of the weights, which are bf16}}
    boa.update @a chunk %c0 step %step weights(%b0 : <tensor<2048xbf16>, host>) gradient(%b1 : <tensor<2048xf32>, host>)
  }
}

// -----

module {
  boa.group @a repeat 1 {
    boa.param @w : tensor<4x4xf32> = "ones"
  }
  boa.storage @gradients.b[1] : tensor<2048xf32> on ssd role gradients persistent
  boa.step @step(%step, %pending) {
    %c0 = arith.constant 0 : index
    %b0 = boa.prefetch @gradients.b[%c0] : <tensor<2048xf32>, host>
    // expected-error @below {{'boa.norm' op expected a buffer of @gradients.a as gradients but found one of @gradients.b}}
    boa.norm @a gradient %b0 : <tensor<2048xf32>, host>
  }
}
