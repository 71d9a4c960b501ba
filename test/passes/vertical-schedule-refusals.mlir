// RUN: boa-opt %s --boa-vertical-schedule --split-input-file --verify-diagnostics | FileCheck %s

// A state is carried from micro-batch to micro-batch: layer 0 of micro-batch 1
// reads what layer 1 of micro-batch 0 wrote. No order that finishes layer 0 first
// can do that.

module {
  func.func private @f(tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  boa.storage @w[2] : tensor<4xf32> on device role checkpoints persistent
  boa.storage @state[1] : tensor<4xf32> on device role checkpoints persistent
  // expected-error @below {{'boa.step' op the vertical schedule is illegal: a read of @state entry 0 would see another write}}
  boa.step @step(%step, %pending) {
    boa.loop micro_batch %m = 0 to 2 forward {
      boa.loop layer %l = 0 to 2 forward {
        %c0 = arith.constant 0 : index
        // expected-note @below {{the read is here}}
        %x = boa.read @state[%c0] : tensor<4xf32>
        %w = boa.read @w[%l] : tensor<4xf32>
        %y = boa.call @f(%x, %w) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
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
  func.func private @f(tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  boa.storage @v[2] : tensor<4xf32> on device role checkpoints persistent
  boa.storage @state[2] : tensor<4xf32> on device role checkpoints persistent
  // expected-error @below {{'boa.step' op the vertical schedule is illegal: a read of @state entry 1 would see another write}}
  boa.step @step(%step, %pending) {
    boa.loop micro_batch %m = 0 to 2 forward {
      boa.loop layer %l = 0 to 2 forward {
        // expected-note @below {{the read is here}}
        %x = boa.read @state[%l] : tensor<4xf32>
        %v = boa.read @v[%m] : tensor<4xf32>
        %y = boa.call @f(%x, %v) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
        // expected-note @below {{the dependence is on this write of @state}}
        boa.write %y, @state[%l] : tensor<4xf32>
      }
    }
  }
}

// -----

// Nothing reads @last in the step, but somebody will: its last writer must be that
// of the order given. With the snake layer 1 ends with micro-batch 0.

module {
  func.func private @f(tensor<4xf32>) -> tensor<4xf32>
  boa.storage @x[2, 4] : tensor<4xf32> on device role checkpoints persistent
  boa.storage @last[1] : tensor<4xf32> on device role checkpoints persistent
  // expected-error @below {{'boa.step' op the vertical schedule is illegal: it would change the last write of @last entry 0}}
  boa.step @step(%step, %pending) {
    boa.loop micro_batch %m = 0 to 4 forward {
      boa.loop layer %l = 0 to 2 forward {
        %c0 = arith.constant 0 : index
        %x = boa.read @x[%l, %m] : tensor<4xf32>
        %y = boa.call @f(%x) : (tensor<4xf32>) -> tensor<4xf32>
        // expected-note @below {{in the order given it is this one of layer 1, micro_batch 3}}
        // expected-note @below {{in the new order it is this one of layer 1, micro_batch 0}}
        boa.write %y, @last[%c0] : tensor<4xf32>
      }
    }
  }
}

// -----

// Two writers, of which distribution makes the other one the last of micro-batch 0's
// entry.

module {
  func.func private @f(tensor<4xf32>) -> tensor<4xf32>
  func.func private @g(tensor<4xf32>) -> tensor<4xf32>
  boa.storage @x[3] : tensor<4xf32> on device role checkpoints persistent
  boa.storage @last[3] : tensor<4xf32> on device role checkpoints persistent
  // expected-error @below {{'boa.step' op the vertical schedule is illegal: it would change the last write of @last entry 1}}
  boa.step @step(%step, %pending) {
    boa.loop micro_batch %m = 0 to 2 forward {
      %next = boa.shift %m, 1
      %x = boa.read @x[%m] : tensor<4xf32>
      %y = boa.call @f(%x) : (tensor<4xf32>) -> tensor<4xf32>
      // expected-note @below {{in the order given it is this one of micro_batch 1}}
      boa.write %y, @last[%m] : tensor<4xf32>
      %v = boa.read @x[%next] : tensor<4xf32>
      %w = boa.call @g(%v) : (tensor<4xf32>) -> tensor<4xf32>
      // expected-note @below {{in the new order it is this one of micro_batch 0}}
      boa.write %w, @last[%next] : tensor<4xf32>
    }
  }
}

// -----

// Each micro-batch's read must see what it saw; that all together see the same
// values is not enough. With the snake micro-batch 1 of layer 1 would come first.

module {
  func.func private @f(tensor<4xf32>) -> tensor<4xf32>
  boa.storage @state[2] : tensor<4xf32> on device role checkpoints persistent
  // expected-error @below {{'boa.step' op the vertical schedule is illegal: a read of @weights.a entry 1 would see another write}}
  boa.step @step(%step, %pending) {
    boa.loop micro_batch %m = 0 to 2 forward {
      boa.loop layer %l = 0 to 2 forward {
        %x = boa.read @state[%m] : tensor<4xf32>
        %y = boa.call @f(%x) : (tensor<4xf32>) -> tensor<4xf32>
        boa.write %y, @gradients.a[%l] : tensor<4xf32>
        // expected-note @below {{the read is here}}
        // expected-note @below {{the dependence is on this write of @weights.a}}
        boa.optimizer_update @a[%l] chunks 0 to 1 step %step
      }
    }
  }
  boa.group @a repeat 2 {
    boa.param @w : tensor<4xf32> = "ones"
  }
  boa.storage @weights.a[2] : tensor<4xf32> on device role weights persistent
  boa.storage @gradients.a[2] : tensor<4xf32> on device role gradients
}

// -----

// A value that crosses statements without a storage.

module {
  func.func private @f(tensor<4xf32>) -> tensor<4xf32>
  func.func private @g(tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  boa.storage @x[2] : tensor<4xf32> on device role checkpoints persistent
  boa.storage @y[2] : tensor<4xf32> on device role checkpoints persistent
  boa.storage @z[2] : tensor<4xf32> on device role checkpoints persistent
  // expected-error @below {{'boa.step' op the vertical schedule is illegal: a value would cross from one loop to another; expected it to go through a storage}}
  boa.step @step(%step, %pending) {
    boa.loop micro_batch %m = 0 to 2 forward {
      // expected-note @below {{and defined here}}
      %x = boa.read @x[%m] : tensor<4xf32>
      %y = boa.call @f(%x) : (tensor<4xf32>) -> tensor<4xf32>
      boa.write %y, @y[%m] : tensor<4xf32>
      %v = boa.read @y[%m] : tensor<4xf32>
      // expected-note @below {{it is used here}}
      %z = boa.call @g(%x, %v) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      boa.write %z, @z[%m] : tensor<4xf32>
    }
  }
}

// -----

// A layer loop whose direction depends on the micro-batch cannot come outside.

module {
  func.func private @f(tensor<4xf32>) -> tensor<4xf32>
  boa.storage @x[2] : tensor<4xf32> on device role checkpoints persistent
  boa.storage @y[2, 2] : tensor<4xf32> on device role checkpoints persistent
  boa.step @step(%step, %pending) {
    boa.loop micro_batch %m = 0 to 2 forward {
      // expected-error @below {{'boa.loop' op cannot be interchanged: expected order forward or reverse but found snake}}
      boa.loop layer %l = 0 to 2 snake(%m) {
        %x = boa.read @x[%l] : tensor<4xf32>
        %y = boa.call @f(%x) : (tensor<4xf32>) -> tensor<4xf32>
        boa.write %y, @y[%l, %m] : tensor<4xf32>
      }
    }
  }
}

// -----

// An index of an index is computed again in each loop.

// CHECK-LABEL: boa.step @evaluate
// CHECK-NEXT:    boa.loop micro_batch %[[M:.*]] = 0 to 2 forward {
// CHECK-NEXT:      %[[A:.*]] = boa.shift %[[M]], 1
// CHECK-NEXT:      %[[B:.*]] = boa.shift %[[A]], 1
// CHECK-NEXT:      boa.read @x[%[[B]]]
module {
  func.func private @f(tensor<4xf32>) -> tensor<4xf32>
  boa.storage @x[4] : tensor<4xf32> on device role checkpoints persistent
  boa.storage @y[2] : tensor<4xf32> on device role checkpoints persistent
  boa.step @evaluate(%step, %pending) {
    boa.loop micro_batch %m = 0 to 2 forward {
      %a = boa.shift %m, 1
      %b = boa.shift %a, 1
      %x = boa.read @x[%b] : tensor<4xf32>
      %y = boa.call @f(%x) : (tensor<4xf32>) -> tensor<4xf32>
      boa.write %y, @y[%m] : tensor<4xf32>
    }
  }
}

// -----

// A step without micro-batches is left as it is.

// CHECK-LABEL: boa.step @evaluate
// CHECK-NEXT:    boa.loop layer %{{.*}} = 0 to 2 forward {
module {
  func.func private @f(tensor<4xf32>) -> tensor<4xf32>
  boa.storage @state[3] : tensor<4xf32> on device role checkpoints persistent
  boa.step @evaluate(%step, %pending) {
    boa.loop layer %l = 0 to 2 forward {
      %x = boa.read @state[%l] : tensor<4xf32>
      %y = boa.call @f(%x) : (tensor<4xf32>) -> tensor<4xf32>
      boa.write %y, @state[%l] : tensor<4xf32>
    }
  }
}

// -----

// What the nest leaves in @y is read where an even step has nothing pending: in a process that
// resumes from a commit. Odd steps run the loop over %k downward and write @y[1] first; in the
// even steps of a training the pending loop does.

// expected-error @below {{the vertical schedule is illegal: it would change the results}}
module {
  func.func private @f(tensor<4xf32>) -> tensor<4xf32>
  func.func private @make() -> tensor<4xf32>
  boa.storage @v[2] : tensor<4xf32> on device role checkpoints persistent
  boa.storage @y[2] : tensor<4xf32> on device role checkpoints
  boa.storage @out[2] : tensor<4xf32> on device role checkpoints persistent
  boa.step @step(%step, %pending) {
    boa.loop micro_batch %m = 0 to 2 forward {
      boa.loop layer %l = 0 to 2 forward {
        %c1 = arith.constant 1 : index
        %x = boa.read @v[%m] : tensor<4xf32>
        %y = boa.call @f(%x) : (tensor<4xf32>) -> tensor<4xf32>
        boa.write %y, @y[%c1] : tensor<4xf32>
      }
    }
    boa.loop layer %p = 1 to 2 forward if %pending {
      %z = boa.call @make() : () -> tensor<4xf32>
      boa.write %z, @y[%p] : tensor<4xf32>
    }
    boa.loop layer %k = 0 to 2 snake(%step) {
      %c1 = arith.constant 1 : index
      %z = boa.call @make() : () -> tensor<4xf32>
      boa.write %z, @y[%k] : tensor<4xf32>
      %y = boa.read @y[%c1] : tensor<4xf32>
      %o = boa.call @f(%y) : (tensor<4xf32>) -> tensor<4xf32>
      boa.write %o, @out[%k] : tensor<4xf32>
    }
  }
  boa.step @drain(%step, %pending) {
    boa.loop layer %p = 1 to 2 forward if %pending {
      %z = boa.call @make() : () -> tensor<4xf32>
    }
  }
}
