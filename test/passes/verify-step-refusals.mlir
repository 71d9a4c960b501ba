// RUN: boa-opt %s --boa-verify-step --split-input-file --verify-diagnostics
// RUN: boa-opt %S/Inputs/tiny.mlir --boa-differentiate --boa-build-step --boa-vertical-schedule \
// RUN:     --boa-split-optimizer=delay=0.25 --boa-verify-step -o /dev/null

// What is read was declared,

module {
  boa.step @step(%step, %pending) {
    %c0 = arith.constant 0 : index
    // expected-error @below {{'boa.read' op names a storage that does not exist: @x}}
    %x = boa.read @x[%c0] : tensor<8xf32>
  }
}

// -----

// with as many indices,

module {
  boa.storage @x[2, 2] : tensor<8xf32> on ssd role checkpoints persistent
  boa.step @step(%step, %pending) {
    %c0 = arith.constant 0 : index
    // expected-error @below {{'boa.read' op expected 2 indices of @x}}
    %x = boa.read @x[%c0] : tensor<8xf32>
  }
}

// -----

// within its bounds in every iteration: the last layer has no next boundary here.

module {
  func.func private @f(tensor<8xf32>) -> tensor<8xf32>
  boa.storage @x[3] : tensor<8xf32> on ssd role checkpoints persistent
  boa.step @step(%step, %pending) {
    boa.loop layer %l = 0 to 3 forward {
      %x = boa.read @x[%l] : tensor<8xf32>
      %y = boa.call @f(%x) : (tensor<8xf32>) -> tensor<8xf32>
      %next = boa.shift %l, 1
      // expected-error @below {{'boa.write' op indexes @x out of bounds}}
      boa.write %y, @x[%next] : tensor<8xf32>
    }
  }
}

// -----

// after it was written: downward, layer 2 reads boundary 3, which layer 3 would
// have to write.

module {
  func.func private @f(tensor<8xf32>) -> tensor<8xf32>
  boa.storage @x[4] : tensor<8xf32> on ssd role boundary_gradients
  boa.step @step(%step, %pending) {
    boa.loop layer %l = 0 to 3 reverse {
      %next = boa.shift %l, 1
      // expected-error @below {{'boa.read' op reads entry 3 of @x before it is written}}
      %x = boa.read @x[%next] : tensor<8xf32>
      %y = boa.call @f(%x) : (tensor<8xf32>) -> tensor<8xf32>
      boa.write %y, @x[%l] : tensor<8xf32>
    }
  }
}

// -----

// An accumulation that is not the first reads.

module {
  func.func private @f() -> tensor<8xf32>
  boa.storage @g[1] : tensor<8xf32> on ssd role gradients
  boa.step @step(%step, %pending) {
    %c0 = arith.constant 0 : index
    %false = arith.constant false
    %y = boa.call @f() : () -> tensor<8xf32>
    // expected-error @below {{'boa.accumulate' op reads entry 0 of @g before it is written}}
    boa.accumulate %y, @g[%c0] initial %false : tensor<8xf32>
  }
}

// -----

// Tokens, targets and what persists hold values before the step: no error.

module {
  func.func private @f(tensor<8xi32>, tensor<8xi32>, tensor<8xf32>) -> tensor<8xf32>
  boa.storage @tokens[1] : tensor<8xi32> on device role tokens
  boa.storage @targets[1] : tensor<8xi32> on device role targets
  boa.storage @w[1] : tensor<8xf32> on ssd role weights persistent
  boa.step @step(%step, %pending) {
    %c0 = arith.constant 0 : index
    %a = boa.read @tokens[%c0] : tensor<8xi32>
    %b = boa.read @targets[%c0] : tensor<8xi32>
    %c = boa.read @w[%c0] : tensor<8xf32>
    %y = boa.call @f(%a, %b, %c) : (tensor<8xi32>, tensor<8xi32>, tensor<8xf32>) -> tensor<8xf32>
    boa.write %y, @w[%c0] : tensor<8xf32>
  }
}

// -----

// Odd steps are looked at, too: they run this loop downward, and read entry 0 before
// they write it.

module {
  func.func private @make() -> tensor<8xf32>
  boa.storage @x[2] : tensor<8xf32> on device role checkpoints
  boa.step @step(%step, %pending) {
    %c0 = arith.constant 0 : index
    boa.loop micro_batch %m = 0 to 2 snake(%step) {
      %0 = boa.call @make() : () -> tensor<8xf32>
      boa.write %0, @x[%m] : tensor<8xf32>
      // expected-error @below {{'boa.read' op reads entry 0 of @x before it is written}}
      %1 = boa.read @x[%c0] : tensor<8xf32>
    }
  }
}

// -----

// What is not known cannot be enumerated: it is refused, not passed over.

module {
  func.func private @other()
  boa.step @step(%step, %pending) {
    // expected-error @below {{'func.call' op is unknown in a boa.step: expected boa.loop, or an op of the step or of the storage phase}}
    func.call @other() : () -> ()
  }
}

// -----

module {
  boa.step @step(%step, %pending) {
    %true = arith.constant true
    // expected-error @below {{'scf.if' op is unknown in a boa.step: expected boa.loop, or an op of the step or of the storage phase}}
    scf.if %true {
    }
  }
}

// -----

// A step's number says when, not where.

module {
  boa.storage @x[2] : tensor<8xf32> on device role checkpoints persistent
  boa.step @step(%step, %pending) {
    // expected-error @below {{'boa.read' op uses the number of a step as an index}}
    %0 = boa.read @x[%pending] : tensor<8xf32>
  }
}

// -----

module {
  boa.step @step(%step, %pending) {
    // expected-error @below {{'boa.loop' op expected the pending step of the boa.step as its guard}}
    boa.loop chunk %c = 0 to 2 forward if %step {
    }
  }
}

// -----

// Nor may an index come from outside.

module {
  boa.storage @x[2] : tensor<8xf32> on device role checkpoints persistent
  %c0 = arith.constant 0 : index
  %c1 = arith.addi %c0, %c0 : index
  // expected-note @below {{required by region isolation constraints}}
  boa.step @step(%step, %pending) {
    // expected-error @below {{'boa.read' op using value defined outside the region}}
    %0 = boa.read @x[%c1] : tensor<8xf32>
  }
}
