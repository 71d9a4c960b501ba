// RUN: sed 's/micro_batch = 2/schedule = "horizontal", micro_batch = 2/' %S/Inputs/tiny.mlir \
// RUN:   | boa-opt --boa-differentiate=recompute=false --boa-build-step --boa-split-optimizer \
// RUN:     --boa-contract-storage --boa-verify-step | FileCheck %s
// RUN: boa-opt %S/Inputs/tiny.mlir --boa-differentiate=recompute=false --boa-build-step \
// RUN:     --boa-vertical-schedule --boa-split-optimizer -o %t.before
// RUN: boa-opt %t.before --boa-contract-storage -o %t.after && diff %t.before %t.after
// RUN: boa-opt %s --boa-contract-storage --split-input-file \
// RUN:     --remarks-filter-missed=boa-schedule 2>&1 | FileCheck %s --check-prefix=KEPT

// In the horizontal order a micro-batch is over before the next one begins: one entry for each
// layer does for activations and their gradients. The trainer fills and reads the rest.

// CHECK: boa.storage @input.tokens[4]
// CHECK: boa.storage @input.targets[4]
// CHECK: boa.storage @loss[4]
// CHECK: boa.storage @checkpoints[4, 1]
// CHECK: boa.storage @boundary_gradients[4, 1]
// CHECK: boa.storage @saved.block[3, 1]

// CHECK-LABEL: boa.step @step
// CHECK:         boa.loop micro_batch %[[M:.*]] = 0 to 4
// CHECK:           boa.read @input.tokens[%[[M]]]
// CHECK:           boa.loop layer %[[L:.*]] = 0 to 3
// CHECK:             %[[ZERO:.*]] = arith.constant 0 : index
// CHECK-NEXT:        boa.read @checkpoints[%[[L]], %[[ZERO]]]

// In the vertical order all micro-batches of a layer are live at once: nothing changes (diff).

// Remarks name what is kept in the three modules below. In the first, @b is read in a
// loop of its own, after all of it is written. @a is not.

// KEPT:     kept an entry of @", Remark=b, Remark=" for each micro-batch: one is read after another is written
// KEPT:     kept an entry of @", Remark=a
// KEPT:     kept an entry of @", Remark=a
// KEPT:     boa.storage @a[1]
// KEPT:     boa.storage @b[2]
module {
  func.func private @f(tensor<4xf32>) -> tensor<4xf32>
  boa.storage @input.tokens[2] : tensor<4xf32> on device role input
  boa.storage @loss[2] : tensor<4xf32> on device role loss
  boa.storage @a[2] : tensor<4xf32> on device role checkpoints
  boa.storage @b[2] : tensor<4xf32> on device role checkpoints
  boa.step @step(%step, %pending) {
    boa.loop micro_batch %m = 0 to 2 forward {
      %x = boa.read @input.tokens[%m] : tensor<4xf32>
      %y = boa.call @f(%x) : (tensor<4xf32>) -> tensor<4xf32>
      boa.write %y, @a[%m] : tensor<4xf32>
      %z = boa.read @a[%m] : tensor<4xf32>
      %u = boa.call @f(%z) : (tensor<4xf32>) -> tensor<4xf32>
      boa.write %u, @b[%m] : tensor<4xf32>
    }
    boa.loop micro_batch %m = 0 to 2 forward {
      %x = boa.read @b[%m] : tensor<4xf32>
      %y = boa.call @f(%x) : (tensor<4xf32>) -> tensor<4xf32>
      boa.write %y, @loss[%m] : tensor<4xf32>
    }
  }
}

// -----

// One entry would do for @step, but @evaluate needs them all.

// KEPT:     boa.storage @a[2]
module {
  func.func private @f(tensor<4xf32>) -> tensor<4xf32>
  boa.storage @input.tokens[2] : tensor<4xf32> on device role input
  boa.storage @loss[2] : tensor<4xf32> on device role loss
  boa.storage @a[2] : tensor<4xf32> on device role checkpoints
  boa.step @step(%step, %pending) {
    boa.loop micro_batch %m = 0 to 2 forward {
      %x = boa.read @input.tokens[%m] : tensor<4xf32>
      %y = boa.call @f(%x) : (tensor<4xf32>) -> tensor<4xf32>
      boa.write %y, @a[%m] : tensor<4xf32>
      %z = boa.read @a[%m] : tensor<4xf32>
      %u = boa.call @f(%z) : (tensor<4xf32>) -> tensor<4xf32>
      boa.write %u, @loss[%m] : tensor<4xf32>
    }
  }
  boa.step @evaluate(%step, %pending) {
    boa.loop micro_batch %m = 0 to 2 forward {
      %x = boa.read @input.tokens[%m] : tensor<4xf32>
      %y = boa.call @f(%x) : (tensor<4xf32>) -> tensor<4xf32>
      boa.write %y, @a[%m] : tensor<4xf32>
    }
    boa.loop micro_batch %m = 0 to 2 forward {
      %x = boa.read @a[%m] : tensor<4xf32>
      %y = boa.call @f(%x) : (tensor<4xf32>) -> tensor<4xf32>
      boa.write %y, @loss[%m] : tensor<4xf32>
    }
  }
}

// -----

// A value that the next step reads is no value of this step's micro-batch: the entries stay.

// KEPT:     boa.storage @a[2]
module {
  func.func private @f(tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  boa.storage @loss[2] : tensor<4xf32> on device role loss
  boa.storage @a[2] : tensor<4xf32> on device role checkpoints
  boa.step @step(%step, %pending) {
    boa.loop micro_batch %m = 0 to 2 forward {
      %z = boa.read @a[%m] : tensor<4xf32>
      %u:2 = boa.call @f(%z) : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
      boa.write %u#0, @loss[%m] : tensor<4xf32>
      boa.write %u#1, @a[%m] : tensor<4xf32>
    }
  }
}
