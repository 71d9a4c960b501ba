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
  boa.storage @input.tokens[1] : tensor<8xi32> on device role input
  boa.storage @input.targets[1] : tensor<8xi32> on device role input
  boa.storage @w[1] : tensor<8xf32> on ssd role weights persistent
  boa.step @step(%step, %pending) {
    %c0 = arith.constant 0 : index
    %a = boa.read @input.tokens[%c0] : tensor<8xi32>
    %b = boa.read @input.targets[%c0] : tensor<8xi32>
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

// So are even steps in a process that resumes there. They run this loop upward and read
// entry 1 first, but no commit kept the previous step's.

module {
  func.func private @make() -> tensor<8xf32>
  boa.storage @x[2] : tensor<8xf32> on device role checkpoints
  boa.step @step(%step, %pending) {
    %c1 = arith.constant 1 : index
    boa.loop micro_batch %m = 0 to 2 snake(%step) {
      %y = boa.call @make() : () -> tensor<8xf32>
      boa.write %y, @x[%m] : tensor<8xf32>
      // expected-error @below {{'boa.read' op reads entry 1 of @x before it is written}}
      %x = boa.read @x[%c1] : tensor<8xf32>
    }
  }
}

// -----

// A pending update may read the previous step's entry: a commit drains it first.

module {
  func.func private @make() -> tensor<8xf32>
  func.func private @use(tensor<8xf32>)
  boa.storage @x[1] : tensor<8xf32> on device role checkpoints
  boa.step @step(%step, %pending) {
    %c0 = arith.constant 0 : index
    boa.loop micro_batch %m = 0 to 1 forward if %pending {
      %x = boa.read @x[%c0] : tensor<8xf32>
      boa.call @use(%x) : (tensor<8xf32>) -> ()
    }
    %y = boa.call @make() : () -> tensor<8xf32>
    boa.write %y, @x[%c0] : tensor<8xf32>
  }
  boa.step @drain(%step, %pending) {
    %c0 = arith.constant 0 : index
    boa.loop micro_batch %m = 0 to 1 forward if %pending {
      %x = boa.read @x[%c0] : tensor<8xf32>
      boa.call @use(%x) : (tensor<8xf32>) -> ()
    }
  }
}

// -----

// Indices that follow from one another are computed once each: else this would take 2^64
// steps.

module {
  func.func private @make() -> tensor<8xf32>
  boa.storage @g[1] : tensor<8xf32> on ssd role gradients
  boa.step @step(%step, %pending) {
    %c0 = arith.constant 0 : index
    %a0 = arith.constant true
    %a1 = arith.andi %a0, %a0 : i1
    %a2 = arith.andi %a1, %a1 : i1
    %a3 = arith.andi %a2, %a2 : i1
    %a4 = arith.andi %a3, %a3 : i1
    %a5 = arith.andi %a4, %a4 : i1
    %a6 = arith.andi %a5, %a5 : i1
    %a7 = arith.andi %a6, %a6 : i1
    %a8 = arith.andi %a7, %a7 : i1
    %a9 = arith.andi %a8, %a8 : i1
    %a10 = arith.andi %a9, %a9 : i1
    %a11 = arith.andi %a10, %a10 : i1
    %a12 = arith.andi %a11, %a11 : i1
    %a13 = arith.andi %a12, %a12 : i1
    %a14 = arith.andi %a13, %a13 : i1
    %a15 = arith.andi %a14, %a14 : i1
    %a16 = arith.andi %a15, %a15 : i1
    %a17 = arith.andi %a16, %a16 : i1
    %a18 = arith.andi %a17, %a17 : i1
    %a19 = arith.andi %a18, %a18 : i1
    %a20 = arith.andi %a19, %a19 : i1
    %a21 = arith.andi %a20, %a20 : i1
    %a22 = arith.andi %a21, %a21 : i1
    %a23 = arith.andi %a22, %a22 : i1
    %a24 = arith.andi %a23, %a23 : i1
    %a25 = arith.andi %a24, %a24 : i1
    %a26 = arith.andi %a25, %a25 : i1
    %a27 = arith.andi %a26, %a26 : i1
    %a28 = arith.andi %a27, %a27 : i1
    %a29 = arith.andi %a28, %a28 : i1
    %a30 = arith.andi %a29, %a29 : i1
    %a31 = arith.andi %a30, %a30 : i1
    %a32 = arith.andi %a31, %a31 : i1
    %a33 = arith.andi %a32, %a32 : i1
    %a34 = arith.andi %a33, %a33 : i1
    %a35 = arith.andi %a34, %a34 : i1
    %a36 = arith.andi %a35, %a35 : i1
    %a37 = arith.andi %a36, %a36 : i1
    %a38 = arith.andi %a37, %a37 : i1
    %a39 = arith.andi %a38, %a38 : i1
    %a40 = arith.andi %a39, %a39 : i1
    %a41 = arith.andi %a40, %a40 : i1
    %a42 = arith.andi %a41, %a41 : i1
    %a43 = arith.andi %a42, %a42 : i1
    %a44 = arith.andi %a43, %a43 : i1
    %a45 = arith.andi %a44, %a44 : i1
    %a46 = arith.andi %a45, %a45 : i1
    %a47 = arith.andi %a46, %a46 : i1
    %a48 = arith.andi %a47, %a47 : i1
    %a49 = arith.andi %a48, %a48 : i1
    %a50 = arith.andi %a49, %a49 : i1
    %a51 = arith.andi %a50, %a50 : i1
    %a52 = arith.andi %a51, %a51 : i1
    %a53 = arith.andi %a52, %a52 : i1
    %a54 = arith.andi %a53, %a53 : i1
    %a55 = arith.andi %a54, %a54 : i1
    %a56 = arith.andi %a55, %a55 : i1
    %a57 = arith.andi %a56, %a56 : i1
    %a58 = arith.andi %a57, %a57 : i1
    %a59 = arith.andi %a58, %a58 : i1
    %a60 = arith.andi %a59, %a59 : i1
    %a61 = arith.andi %a60, %a60 : i1
    %a62 = arith.andi %a61, %a61 : i1
    %a63 = arith.andi %a62, %a62 : i1
    %a64 = arith.andi %a63, %a63 : i1
    %y = boa.call @make() : () -> tensor<8xf32>
    boa.accumulate %y, @g[%c0] initial %a64 : tensor<8xf32>
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
