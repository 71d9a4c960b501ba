// RUN: boa-opt %s --split-input-file --verify-diagnostics

// The ops of the model, step and storage phases check themselves. A stage needs its
// function,

// expected-error @below {{'boa.stage' op expected a function named @none}}
boa.stage @none

// -----

// and the function its parameters,

boa.group @a repeat 1 {
  boa.param @w : tensor<8xf32> = "ones"
}
// expected-error @below {{'boa.stage' op argument 0 of @f names a parameter that does not exist: @a::@v}}
boa.stage @f
func.func @f(%v: tensor<8xf32> {boa.param = @a::@v}) {
  return
}

// -----

// of the type that they have.

boa.group @a repeat 1 {
  boa.param @w : tensor<8xf32> = "ones"
}
// expected-error @below {{'boa.stage' op argument 0 of @f has type 'tensor<4xf32>' but @a::@w has type 'tensor<8xf32>'}}
boa.stage @f
func.func @f(%w: tensor<4xf32> {boa.param = @a::@w}) {
  return
}

// -----

// Storage has a static size,

// expected-error @below {{'boa.storage' op expected entries of a static tensor type but found 'tensor<?xf32>'}}
boa.storage @x[2] : tensor<?xf32> on ssd role "x"

// -----

// expected-error @below {{'boa.storage' op expected positive dimensions}}
boa.storage @x[2, 0] : tensor<8xf32> on ssd role "x"

// -----

// and equal chunks.

// expected-error @below {{'boa.storage' op expected a number of chunks that divides 8 elements but found 3}}
boa.storage @x[2] : tensor<8xf32> on ssd role "x" chunks 3

// -----

// A loop runs,

boa.step @step(%step, %pending) {
  // expected-error @below {{'boa.loop' op expected at least one iteration}}
  boa.loop "layer" %l = 2 to 2 forward {
  }
}

// -----

// and its ends are those of a loop.

boa.step @step(%step, %pending) {
  // expected-error @below {{'boa.at_first' op expected the induction variable of a boa.loop}}
  %0 = boa.at_first %step
}

// -----

boa.step @step(%step, %pending) {
  boa.loop "layer" %l = 0 to 2 forward {
    %next = boa.shift %l, 1
    // expected-error @below {{'boa.at_last' op expected the induction variable of a boa.loop}}
    %0 = boa.at_last %next
  }
}

// -----

// An entry point is given two numbers.

// expected-error @below {{expected two arguments: step, pending}}
boa.step @step(%step) {
}

// -----

boa.storage @x[2] : tensor<8xf32> on ssd role "x"
boa.step @step(%step, %pending) {
  boa.loop "layer" %l = 0 to 2 forward {
    %x = boa.read @x[%l] : tensor<8xf32>
    // expected-error @below {{'boa.call' op expected a function named @none}}
    boa.call @none(%x) : (tensor<8xf32>) -> ()
  }
}
