// RUN: boa-opt %s --boa-split-optimizer=delay=0.5 --split-input-file --verify-diagnostics
// RUN: not boa-opt %S/Inputs/tiny.mlir --boa-differentiate --boa-build-step \
// RUN:     --boa-split-optimizer=delay=1.5 2>&1 | FileCheck %s

// Clipping needs all gradients before the first update, half of which would come
// during the backward pass.

module {
  boa.group @a repeat 1 {
    boa.param @w : tensor<16384xf32> = "ones"
  }
  boa.storage @weights.a[1] : tensor<16384xf32> on device role "weights" chunks 4 persistent
  boa.storage @gradients.a[1] : tensor<16384xf32> on device role "gradients" chunks 4
  // expected-error @below {{'boa.step' op cannot split the optimizer at a delay of 5.000000e-01: clipping by the global norm needs every gradient of the step before the first update; legal are delay = 0 (update after backward) and delay = 1 (update in the next step)}}
  boa.step @step(%step, %pending) {
    boa.loop "layer" %l = 0 to 1 forward {
      boa.gradient_norm @a[%l]
    }
    // expected-note @below {{the norm is complete here}}
    boa.finish_norm %step
    boa.loop "layer" %l = 0 to 1 forward {
      boa.optimizer_update @a[%l] chunks 0 to 4 step %step
    }
  }
}

// A share is a share.

// CHECK: error: 'boa.step' op expected a delay in [0, 1] but found 1.500000e+00
