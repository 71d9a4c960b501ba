// RUN: boa-opt %s --boa-insert-offload --split-input-file --verify-diagnostics

// A kernel's operand must have a home: a value of another call has none.

module {
  func.func private @f(tensor<4xf32>) -> tensor<4xf32>
  boa.storage @x[1] : tensor<4xf32> on device role checkpoints persistent
  boa.step @step(%step, %pending) {
    %c0 = arith.constant 0 : index
    %x = boa.read @x[%c0] : tensor<4xf32>
    // expected-error @below {{'boa.call' op expected each result to be stored exactly once}}
    %y = boa.call @f(%x) : (tensor<4xf32>) -> tensor<4xf32>
    %z = boa.call @f(%y) : (tensor<4xf32>) -> tensor<4xf32>
    boa.write %z, @x[%c0] : tensor<4xf32>
  }
}

// -----

// Tensors of a step come from storage.

module {
  func.func private @f(tensor<4xf32>) -> tensor<4xf32>
  boa.storage @x[1] : tensor<4xf32> on device role checkpoints persistent
  boa.step @step(%step, %pending) {
    %c0 = arith.constant 0 : index
    // expected-error @below {{'arith.constant' op is unknown in a boa.step: expected boa.loop, or an op of the step or of the storage phase}}
    %x = arith.constant dense<0.0> : tensor<4xf32>
    %y = boa.call @f(%x) : (tensor<4xf32>) -> tensor<4xf32>
    boa.write %y, @x[%c0] : tensor<4xf32>
  }
}

// -----

// A result that nobody stores.

module {
  func.func private @f(tensor<4xf32>) -> tensor<4xf32>
  boa.storage @x[1] : tensor<4xf32> on device role checkpoints persistent
  boa.step @step(%step, %pending) {
    %c0 = arith.constant 0 : index
    %x = boa.read @x[%c0] : tensor<4xf32>
    // expected-error @below {{'boa.call' op expected each result to be stored exactly once}}
    %y = boa.call @f(%x) : (tensor<4xf32>) -> tensor<4xf32>
  }
}

// -----

// The read would move down to the call, past a write of what it reads.

module {
  func.func private @f(tensor<4xf32>) -> tensor<4xf32>
  boa.storage @x[1] : tensor<4xf32> on device role checkpoints persistent
  boa.storage @y[1] : tensor<4xf32> on device role checkpoints persistent
  boa.step @step(%step, %pending) {
    %c0 = arith.constant 0 : index
    // expected-note @below {{it is read here}}
    %old = boa.read @x[%c0] : tensor<4xf32>
    %y = boa.read @y[%c0] : tensor<4xf32>
    %new = boa.call @f(%y) : (tensor<4xf32>) -> tensor<4xf32>
    // expected-note @below {{and overwritten here}}
    boa.write %new, @x[%c0] : tensor<4xf32>
    // expected-error @below {{'boa.call' op takes a value of @x that is overwritten before the call: expected its read beside it}}
    %z = boa.call @f(%old) : (tensor<4xf32>) -> tensor<4xf32>
    boa.write %z, @y[%c0] : tensor<4xf32>
  }
}

// -----

// The write would move up to the call, past a read of what was there.

module {
  func.func private @f(tensor<4xf32>) -> tensor<4xf32>
  boa.storage @x[1] : tensor<4xf32> on device role checkpoints persistent
  boa.storage @y[1] : tensor<4xf32> on device role checkpoints persistent
  boa.step @step(%step, %pending) {
    %c0 = arith.constant 0 : index
    %x = boa.read @x[%c0] : tensor<4xf32>
    // expected-error @below {{'boa.call' op has a result that is written to @x only after another access to it: expected its write beside it}}
    %new = boa.call @f(%x) : (tensor<4xf32>) -> tensor<4xf32>
    // expected-note @below {{the other access is here}}
    %old = boa.read @x[%c0] : tensor<4xf32>
    %z = boa.call @f(%old) : (tensor<4xf32>) -> tensor<4xf32>
    boa.write %z, @y[%c0] : tensor<4xf32>
    // expected-note @below {{it is written here}}
    boa.write %new, @x[%c0] : tensor<4xf32>
  }
}

// -----

// An optimizer update is a write of its group's weights.

module {
  boa.group @a repeat 1 {
    boa.param @w : tensor<4096xf32> = "ones"
  }
  func.func private @f(tensor<4096xf32>) -> tensor<4096xf32>
  boa.storage @weights.a[1] : tensor<4096xf32> on device role weights persistent
  boa.storage @gradients.a[1] : tensor<4096xf32> on device role gradients
  boa.storage @y[1] : tensor<4096xf32> on device role checkpoints persistent
  boa.step @step(%step, %pending) {
    %c0 = arith.constant 0 : index
    // expected-note @below {{it is read here}}
    %w = boa.read @weights.a[%c0] : tensor<4096xf32>
    // expected-note @below {{and overwritten here}}
    boa.optimizer_update @a[%c0] chunks 0 to 1 step %step
    // expected-error @below {{'boa.call' op takes a value of @weights.a that is overwritten before the call: expected its read beside it}}
    %y = boa.call @f(%w) : (tensor<4096xf32>) -> tensor<4096xf32>
    boa.write %y, @y[%c0] : tensor<4096xf32>
  }
}

// -----

// Two contributions to one entry would each begin with what was there.

module {
  func.func private @f(tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  boa.storage @x[1] : tensor<4xf32> on device role checkpoints persistent
  boa.storage @g[1] : tensor<4xf32> on ssd role gradients
  boa.step @step(%step, %pending) {
    %c0 = arith.constant 0 : index
    %true = arith.constant true
    %false = arith.constant false
    %x = boa.read @x[%c0] : tensor<4xf32>
    // expected-error @below {{'boa.call' op stores two results in one entry of @g}}
    %y:2 = boa.call @f(%x) : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
    boa.accumulate %y#0, @g[%c0] initial %true : tensor<4xf32>
    boa.accumulate %y#1, @g[%c0] initial %false : tensor<4xf32>
  }
}

// -----

// A store in a loop of its own would be done once.

module {
  func.func private @f(tensor<4xf32>) -> tensor<4xf32>
  boa.storage @x[1] : tensor<4xf32> on device role checkpoints persistent
  boa.storage @y[2] : tensor<4xf32> on ssd role checkpoints
  boa.step @step(%step, %pending) {
    %c0 = arith.constant 0 : index
    %x = boa.read @x[%c0] : tensor<4xf32>
    // expected-error @below {{'boa.call' op expected each result to be stored beside the call}}
    %y = boa.call @f(%x) : (tensor<4xf32>) -> tensor<4xf32>
    boa.loop layer %l = 0 to 2 forward {
      boa.write %y, @y[%l] : tensor<4xf32>
    }
  }
}

// -----

// A copy from storage to storage is no kernel's.

module {
  boa.storage @x[2] : tensor<4xf32> on device role checkpoints persistent
  boa.step @step(%step, %pending) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    // expected-error @below {{'boa.read' op expected the operand or the result of a boa.call}}
    %x = boa.read @x[%c0] : tensor<4xf32>
    boa.write %x, @x[%c1] : tensor<4xf32>
  }
}

// -----

// What an update reads must be declared.

module {
  boa.group @a repeat 1 {
    boa.param @w : tensor<4096xf32> = "ones"
  }
  boa.storage @weights.a[1] : tensor<4096xf32> on device role weights persistent
  boa.step @step(%step, %pending) {
    %c0 = arith.constant 0 : index
    // expected-error @below {{'boa.optimizer_update' op expected a storage @gradients.a}}
    boa.optimizer_update @a[%c0] chunks 0 to 1 step %step
  }
}

// -----

module {
  boa.group @a repeat 1 {
    boa.param @w : tensor<4096xf32> = "ones"
  }
  boa.storage @weights.a[1] : tensor<4096xf32> on device role master persistent
  boa.storage @gradients.a[1] : tensor<4096xf32> on device role gradients
  boa.step @step(%step, %pending) {
    %c0 = arith.constant 0 : index
    // expected-error @below {{'boa.optimizer_update' op expected a storage @weights.a of role weights}}
    boa.optimizer_update @a[%c0] chunks 0 to 1 step %step
  }
}

// -----

// A read moves down to its call, and a write up to its: they must not pass each other. Of
// another entry they may.

module {
  func.func private @f(tensor<4xf32>) -> tensor<4xf32>
  func.func private @g(tensor<4xf32>) -> tensor<4xf32>
  boa.storage @x[3] : tensor<4xf32> on ssd role checkpoints persistent
  boa.storage @y[2] : tensor<4xf32> on ssd role checkpoints
  boa.step @step(%step, %pending) {
    boa.loop layer %l = 0 to 2 forward {
      %next = boa.shift %l, 1
      %x = boa.read @x[%l] : tensor<4xf32>
      %z = boa.call @f(%x) : (tensor<4xf32>) -> tensor<4xf32>
      %y = boa.call @g(%x) : (tensor<4xf32>) -> tensor<4xf32>
      boa.write %y, @y[%l] : tensor<4xf32>
      boa.write %z, @x[%next] : tensor<4xf32>
    }
    %c0 = arith.constant 0 : index
    %x = boa.read @x[%c0] : tensor<4xf32>
    // expected-error @below {{'boa.call' op has a result that is written to @x only after another access to it: expected its write beside it}}
    %z = boa.call @f(%x) : (tensor<4xf32>) -> tensor<4xf32>
    // expected-note @below {{the other access is here}}
    %y = boa.call @g(%x) : (tensor<4xf32>) -> tensor<4xf32>
    boa.write %y, @y[%c0] : tensor<4xf32>
    // expected-note @below {{it is written here}}
    boa.write %z, @x[%c0] : tensor<4xf32>
  }
}
