// RUN: boa-opt %s --boa-outline-kernels --split-input-file --verify-diagnostics

// A launch needs a function,

module {
  boa.storage @x[1] : tensor<8xf32> on device role checkpoints persistent
  boa.step @step(%step, %pending) {
    %c0 = arith.constant 0 : index
    %x = boa.create @x[%c0] : <tensor<8xf32>, device>
    // expected-error @below {{'boa.launch' op expected a function of one block named @k}}
    boa.launch @k writes(%x : <tensor<8xf32>, device>)
    boa.release %x : <tensor<8xf32>, device>
  }
}

// -----

// and a buffer for each of its operands and results: of that, launches are verified.

module {
  func.func @k(%x: tensor<8xf32>) -> tensor<8xf32> {
    return %x : tensor<8xf32>
  }
  boa.storage @x[1] : tensor<8xf32> on device role checkpoints persistent
  boa.step @step(%step, %pending) {
    %c0 = arith.constant 0 : index
    %x = boa.create @x[%c0] : <tensor<8xf32>, device>
    // expected-error @below {{'boa.launch' op expected 1 operands of @k but found 0}}
    boa.launch @k writes(%x : <tensor<8xf32>, device>)
    boa.release %x : <tensor<8xf32>, device>
  }
}
