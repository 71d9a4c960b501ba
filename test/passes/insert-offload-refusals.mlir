// RUN: boa-opt %s --boa-insert-offload --split-input-file --verify-diagnostics

// A kernel's operand must have a home: a value of another call has none.

module {
  func.func private @f(tensor<4xf32>) -> tensor<4xf32>
  boa.storage @x[1] : tensor<4xf32> on device role "x" persistent
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

// The same, where what is missing is the read.

module {
  func.func private @f(tensor<4xf32>) -> tensor<4xf32>
  boa.storage @x[1] : tensor<4xf32> on device role "x" persistent
  boa.step @step(%step, %pending) {
    %c0 = arith.constant 0 : index
    %x = arith.constant dense<0.0> : tensor<4xf32>
    // expected-error @below {{'boa.call' op expected operands that were read from storage}}
    %y = boa.call @f(%x) : (tensor<4xf32>) -> tensor<4xf32>
    boa.write %y, @x[%c0] : tensor<4xf32>
  }
}

// -----

// A result that nobody stores.

module {
  func.func private @f(tensor<4xf32>) -> tensor<4xf32>
  boa.storage @x[1] : tensor<4xf32> on device role "x" persistent
  boa.step @step(%step, %pending) {
    %c0 = arith.constant 0 : index
    %x = boa.read @x[%c0] : tensor<4xf32>
    // expected-error @below {{'boa.call' op expected each result to be stored exactly once}}
    %y = boa.call @f(%x) : (tensor<4xf32>) -> tensor<4xf32>
  }
}
