// RUN: boa-opt %s --boa-vertical-schedule --split-input-file --verify-diagnostics | FileCheck %s

// A state is carried from micro-batch to micro-batch: layer 0 of micro-batch 1
// reads what layer 1 of micro-batch 0 wrote. No order that finishes layer 0 first
// can do that.

module {
  func.func private @f(tensor<4xf32>) -> tensor<4xf32>
  boa.storage @state[1] : tensor<4xf32> on device role "state" persistent
  // expected-error @below {{'boa.step' op the vertical schedule is illegal: it would change what a read of @state entry 0 sees}}
  boa.step @step(%step, %pending) {
    boa.loop "micro_batch" %m = 0 to 2 forward {
      boa.loop "layer" %l = 0 to 2 forward {
        %c0 = arith.constant 0 : index
        // expected-note @below {{the read is here}}
        %x = boa.read @state[%c0] : tensor<4xf32>
        %y = boa.call @f(%x) : (tensor<4xf32>) -> tensor<4xf32>
        // expected-note @below {{the dependence is on this write of @state}}
        boa.write %y, @state[%c0] : tensor<4xf32>
      }
    }
  }
}

// -----

// A state for each layer, carried across micro-batches (a recurrence): legal
// without the snake, but it runs odd layers' micro-batches backward.

module {
  func.func private @f(tensor<4xf32>) -> tensor<4xf32>
  boa.storage @state[2] : tensor<4xf32> on device role "state" persistent
  // expected-error @below {{'boa.step' op the vertical schedule is illegal: it would change what a read of @state entry 1 sees}}
  boa.step @step(%step, %pending) {
    boa.loop "micro_batch" %m = 0 to 2 forward {
      boa.loop "layer" %l = 0 to 2 forward {
        // expected-note @below {{the read is here}}
        %x = boa.read @state[%l] : tensor<4xf32>
        %y = boa.call @f(%x) : (tensor<4xf32>) -> tensor<4xf32>
        // expected-note @below {{the dependence is on this write of @state}}
        boa.write %y, @state[%l] : tensor<4xf32>
      }
    }
  }
}

// -----

// A step without micro-batches is left as it is.

// CHECK-LABEL: boa.step @nothing
// CHECK-NEXT:    boa.loop "layer" %{{.*}} = 0 to 2 forward {
module {
  func.func private @f(tensor<4xf32>) -> tensor<4xf32>
  boa.storage @state[3] : tensor<4xf32> on device role "state" persistent
  boa.step @nothing(%step, %pending) {
    boa.loop "layer" %l = 0 to 2 forward {
      %x = boa.read @state[%l] : tensor<4xf32>
      %y = boa.call @f(%x) : (tensor<4xf32>) -> tensor<4xf32>
      boa.write %y, @state[%l] : tensor<4xf32>
    }
  }
}
