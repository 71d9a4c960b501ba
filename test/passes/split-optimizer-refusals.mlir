// RUN: boa-opt %s --boa-split-optimizer=delay=0.5 --split-input-file --verify-diagnostics
// RUN: not boa-opt %S/Inputs/tiny.mlir --boa-differentiate --boa-build-step \
// RUN:     --boa-split-optimizer=delay=1.5 2>&1 | FileCheck %s

// Clipping needs all gradients before the first update, half of which would come
// during the backward pass.

module {
  boa.group @a repeat 1 {
    boa.param @w : tensor<16384xf32> = "ones"
  }
  boa.storage @weights.a[1] : tensor<16384xf32> on device role weights chunks 4 persistent
  boa.storage @gradients.a[1] : tensor<16384xf32> on device role gradients chunks 4
  // expected-error @below {{'boa.step' op cannot split the optimizer at a delay of 5.000000e-01: clipping by the global norm needs every gradient of the step before the first update; legal are delay = 0 (update after backward) and delay = 1 (update in the next step)}}
  boa.step @step(%step, %pending) {
    boa.loop layer %l = 0 to 1 forward {
      boa.gradient_norm @a[%l]
    }
    // expected-note @below {{the norm is complete here}}
    boa.finish_norm %step
    boa.loop layer %l = 0 to 1 forward {
      boa.optimizer_update @a[%l] chunks 0 to 4 step %step
    }
  }
}

// -----

// So does leaving out a step whose gradients are not finite.

module {
  boa.config @train {nonfinite = "skip"}
  boa.group @a repeat 1 {
    boa.param @w : tensor<16384xf32> = "ones"
  }
  boa.storage @weights.a[1] : tensor<16384xf32> on device role weights chunks 4 persistent
  boa.storage @gradients.a[1] : tensor<16384xf32> on device role gradients chunks 4
  // expected-error @below {{'boa.step' op cannot split the optimizer at a delay of 5.000000e-01: leaving out steps with nonfinite = skip needs every gradient of the step before the first update; legal are delay = 0 (update after backward) and delay = 1 (update in the next step)}}
  boa.step @step(%step, %pending) {
    boa.loop layer %l = 0 to 1 forward {
      boa.gradient_norm @a[%l]
    }
    // expected-note @below {{the norm is complete here}}
    boa.finish_norm %step
    boa.loop layer %l = 0 to 1 forward {
      boa.optimizer_update @a[%l] chunks 0 to 4 step %step
    }
  }
}

// -----

// A read after the update sees the new weights, all of them: no chunk can wait.

module {
  boa.group @a repeat 1 {
    boa.param @w : tensor<16384xf32> = "ones"
  }
  func.func private @f(tensor<16384xf32>) -> tensor<16384xf32>
  boa.storage @weights.a[1] : tensor<16384xf32> on device role weights chunks 4 persistent
  boa.storage @gradients.a[1] : tensor<16384xf32> on device role gradients chunks 4
  boa.storage @y[1] : tensor<16384xf32> on device role checkpoints
  // expected-error @below {{'boa.step' op cannot split the update of @a at a delay of 5.000000e-01: it would see another gradient, or a read of @weights.a would see other weights}}
  boa.step @step(%step, %pending) {
    boa.loop micro_batch %m = 0 to 1 forward {
      %c0 = arith.constant 0 : index
      %true = arith.constant true
      %w = boa.read @weights.a[%c0] : tensor<16384xf32>
      %g = boa.call @f(%w) : (tensor<16384xf32>) -> tensor<16384xf32>
      boa.accumulate %g, @gradients.a[%c0] initial %true : tensor<16384xf32>
    }
    boa.loop layer %l = 0 to 1 forward {
      boa.optimizer_update @a[%l] chunks 0 to 4 step %step
    }
    boa.loop micro_batch %m = 0 to 1 forward {
      %c0 = arith.constant 0 : index
      %w = boa.read @weights.a[%c0] : tensor<16384xf32>
      %y = boa.call @f(%w) : (tensor<16384xf32>) -> tensor<16384xf32>
      boa.write %y, @y[%c0] : tensor<16384xf32>
    }
  }
}

// -----

// Only what is updated may be split: the whole of it, every layer, once.

module {
  boa.group @a repeat 1 {
    boa.param @w : tensor<16384xf32> = "ones"
  }
  boa.step @step(%step, %pending) {
    boa.loop layer %l = 0 to 1 forward {
      // expected-error @below {{'boa.optimizer_update' op expected all 4 chunks of @a}}
      boa.optimizer_update @a[%l] chunks 0 to 2 step %step
    }
  }
}

// -----

module {
  boa.group @a repeat 3 {
    boa.param @w : tensor<16384xf32> = "ones"
  }
  boa.storage @weights.a[3] : tensor<16384xf32> on device role weights chunks 4 persistent
  boa.storage @gradients.a[3] : tensor<16384xf32> on device role gradients chunks 4
  // expected-error @below {{'boa.step' op cannot split the update of @a at a delay of 5.000000e-01: it would see another gradient, or a read of @weights.a would see other weights}}
  boa.step @step(%step, %pending) {
    boa.loop layer %l = 1 to 2 forward {
      boa.optimizer_update @a[%l] chunks 0 to 4 step %step
    }
  }
}

// -----

module {
  boa.group @a repeat 1 {
    boa.param @w : tensor<16384xf32> = "ones"
  }
  boa.step @step(%step, %pending) {
    boa.loop layer %l = 0 to 1 forward {
      // expected-note @below {{it is also updated here}}
      boa.optimizer_update @a[%l] chunks 0 to 4 step %step
      // expected-error @below {{'boa.optimizer_update' op updates @a again}}
      boa.optimizer_update @a[%l] chunks 0 to 4 step %step
    }
  }
}

// -----

// A step is split once.

module {
  boa.group @a repeat 1 {
    boa.param @w : tensor<16384xf32> = "ones"
  }
  // expected-error @below {{'boa.step' op is split already: its drain is there}}
  boa.step @step(%step, %pending) {
    boa.loop layer %l = 0 to 1 forward {
      boa.optimizer_update @a[%l] chunks 0 to 4 step %step
    }
  }
  // expected-note @below {{here}}
  boa.step @drain(%step, %pending) {
  }
}

// -----

// What is moved stands in a loop, before which or after which it moves.

module {
  boa.group @a repeat 1 {
    boa.param @w : tensor<16384xf32> = "ones"
  }
  boa.step @step(%step, %pending) {
    %c0 = arith.constant 0 : index
    // expected-error @below {{'boa.optimizer_update' op expected to be in a loop of @step}}
    boa.optimizer_update @a[%c0] chunks 0 to 4 step %step
  }
}

// A share is a share.

// CHECK: error: 'boa.step' op expected a delay in [0, 1] but found 1.500000e+00
