// RUN: boa-opt %s --boa-elide-offloads --split-input-file | FileCheck %s
// RUN: boa-opt %s --boa-elide-offloads --split-input-file --remarks-filter=boa-storage \
// RUN:   2>&1 | FileCheck %s --check-prefix=REMARK

// A quarter of the update comes in the next step: of the gradient only the chunks
// that are then read are written. The weights are trained state: written whole.

// CHECK-LABEL: boa.step @step
// CHECK:         boa.launch @backward
// CHECK:         %[[FIRST:.*]] = arith.constant 3 : index
// CHECK:         boa.offload %{{.*}}, @gradients.a[%{{.*}}] chunk %[[FIRST]] count 1
// REMARK: remark: [Passed] elide-offloads | Category:boa-storage | Remark="dropped or narrowed ", offloads=1

boa.group @a repeat 1 {
  boa.param @w : tensor<16384xf32> = "ones"
}
boa.storage @weights.a[1] : tensor<16384xf32> on device role weights chunks 4 persistent
boa.storage @gradients.a[1] : tensor<16384xf32> on ssd role gradients chunks 4
boa.step @step(%step, %pending) {
  %c0 = arith.constant 0 : index
  %true = arith.constant true
  boa.loop chunk %c = 3 to 4 forward if %pending {
    %3 = boa.prefetch @gradients.a[%c0] chunk %c count 1 : <tensor<16384xf32>, host>
    %5 = boa.prefetch @weights.a[%c0] chunk %c count 1 : <tensor<16384xf32>, host>
    boa.update @a chunk %c step %pending weights(%5 : <tensor<16384xf32>, host>) gradient(%3 : <tensor<16384xf32>, host>)
    boa.offload %5, @weights.a[%c0] chunk %c count 1 : <tensor<16384xf32>, host>
    boa.release %3 : <tensor<16384xf32>, host>
    boa.release %5 : <tensor<16384xf32>, host>
  }
  %g = boa.prefetch @gradients.a[%c0] zero %true : <tensor<16384xf32>, device>
  boa.launch @backward updates(%g : <tensor<16384xf32>, device>)
  boa.offload %g, @gradients.a[%c0] : <tensor<16384xf32>, device>
  boa.release %g : <tensor<16384xf32>, device>
}

// -----

// In the first step nothing is pending, so the delayed update does not write x.
// The kernel then reads what the step before left: that offload is needed.

// CHECK-LABEL: boa.step @step
// CHECK:         boa.offload %{{.*}}, @gradients.a[%{{.*}}] : <tensor<16384xf32>, device>

boa.group @a repeat 1 {
  boa.param @w : tensor<16384xf32> = "ones"
}
boa.storage @weights.a[1] : tensor<16384xf32> on device role weights chunks 4 persistent
boa.storage @gradients.a[1] : tensor<16384xf32> on ssd role gradients chunks 4
boa.step @step(%step, %pending) {
  %c0 = arith.constant 0 : index
  %0 = boa.create @gradients.a[%c0] : <tensor<16384xf32>, device>
  boa.launch @backward writes(%0 : <tensor<16384xf32>, device>)
  boa.offload %0, @gradients.a[%c0] : <tensor<16384xf32>, device>
  boa.release %0 : <tensor<16384xf32>, device>
  boa.loop chunk %c = 0 to 4 forward if %pending {
    %w = boa.prefetch @weights.a[%c0] chunk %c count 1 : <tensor<16384xf32>, host>
    %3 = boa.create @gradients.a[%c0] chunk %c count 1 : <tensor<16384xf32>, host>
    boa.launch @fill writes(%3 : <tensor<16384xf32>, host>)
    boa.update @a chunk %c step %pending weights(%w : <tensor<16384xf32>, host>) gradient(%3 : <tensor<16384xf32>, host>)
    boa.offload %3, @gradients.a[%c0] chunk %c count 1 : <tensor<16384xf32>, host>
    boa.release %w : <tensor<16384xf32>, host>
    boa.release %3 : <tensor<16384xf32>, host>
  }
  boa.loop layer %l = 0 to 1 forward {
    %g = boa.prefetch @gradients.a[%c0] : <tensor<16384xf32>, device>
    boa.launch @k reads(%g : <tensor<16384xf32>, device>)
    boa.release %g : <tensor<16384xf32>, device>
  }
}

// -----

// An evaluation that reads what a step left keeps it on SSD.

// CHECK-LABEL: boa.step @step
// CHECK:         boa.offload %{{.*}}, @gradients.a
// CHECK-LABEL: boa.step @evaluate

boa.storage @gradients.a[1] : tensor<16384xf32> on ssd role gradients
boa.step @step(%step, %pending) {
  %c0 = arith.constant 0 : index
  %0 = boa.create @gradients.a[%c0] : <tensor<16384xf32>, device>
  boa.launch @backward writes(%0 : <tensor<16384xf32>, device>)
  boa.offload %0, @gradients.a[%c0] : <tensor<16384xf32>, device>
  boa.release %0 : <tensor<16384xf32>, device>
}
boa.step @evaluate(%step, %pending) {
  %c0 = arith.constant 0 : index
  %g = boa.prefetch @gradients.a[%c0] : <tensor<16384xf32>, device>
  boa.launch @k reads(%g : <tensor<16384xf32>, device>)
  boa.release %g : <tensor<16384xf32>, device>
}

// -----

// Loss and logits are read from their homes: another memory than the kernel's.

// CHECK-LABEL: boa.storage @out
// CHECK:         boa.launch @k writes(%[[Y:.*]] :
// CHECK-NEXT:    boa.offload %[[Y]], @out

module {
  boa.config @machine {memory = "separate"}
  boa.storage @out[1] : tensor<8xf32> on host role logits
  boa.step @step(%step, %pending) {
    %c0 = arith.constant 0 : index
    %y = boa.create @out[%c0] : <tensor<8xf32>, device>
    boa.launch @k writes(%y : <tensor<8xf32>, device>)
    boa.offload %y, @out[%c0] : <tensor<8xf32>, device>
    boa.release %y : <tensor<8xf32>, device>
  }
}

// -----

// The first entry lives where the buffer is. Its reads are none of what the offload moves: the
// second entry, which nobody reads.

// CHECK-LABEL: boa.storage @x
// CHECK-NOT:     boa.offload

boa.storage @x[2] : tensor<8xf32> on [0 to 1: device, 1 to 2: ssd] role checkpoints
boa.step @step(%step, %pending) {
  %c0 = arith.constant 0 : index
  boa.loop layer %l = 0 to 2 forward {
    %y = boa.create @x[%l] : <tensor<8xf32>, device>
    boa.launch @k writes(%y : <tensor<8xf32>, device>)
    boa.offload %y, @x[%l] : <tensor<8xf32>, device>
    boa.release %y : <tensor<8xf32>, device>
  }
  %x = boa.prefetch @x[%c0] : <tensor<8xf32>, device>
  boa.launch @k reads(%x : <tensor<8xf32>, device>)
  boa.release %x : <tensor<8xf32>, device>
}

// -----

// Results are read where they live, in one entry as in another.

// CHECK-LABEL: boa.storage @out
// CHECK:         boa.offload

module {
  boa.config @machine {memory = "separate"}
  boa.storage @out[2] : tensor<8xf32> on [0 to 1: device, 1 to 2: host] role logits
  boa.step @step(%step, %pending) {
    boa.loop layer %l = 0 to 2 forward {
      %y = boa.create @out[%l] : <tensor<8xf32>, device>
      boa.launch @k writes(%y : <tensor<8xf32>, device>)
      boa.offload %y, @out[%l] : <tensor<8xf32>, device>
      boa.release %y : <tensor<8xf32>, device>
    }
  }
}

// -----

// A loop over chunks is followed together only as far as chunks live alike in every entry. Here
// the first chunk is at home, and nobody reads what moves.

// CHECK-LABEL: boa.storage @weights.a[2]
// CHECK-NOT:     boa.offload {{.*}} @gradients.a

boa.group @a repeat 2 {
  boa.param @w : tensor<16384xf32> = "ones"
}
boa.storage @weights.a[2] : tensor<16384xf32> on device role weights chunks 4 persistent
boa.storage @gradients.a[2] : tensor<16384xf32> on [0 to 1: ssd, 1 to 2: device 1, ssd] role gradients chunks 4
boa.step @step(%step, %pending) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %true = arith.constant true
  boa.loop chunk %c = 0 to 4 forward {
    %g = boa.prefetch @gradients.a[%c1] chunk %c count 1 zero %true : <tensor<16384xf32>, device>
    %w = boa.prefetch @weights.a[%c1] chunk %c count 1 : <tensor<16384xf32>, device>
    boa.update @a chunk %c step %step weights(%w : <tensor<16384xf32>, device>) gradient(%g : <tensor<16384xf32>, device>)
    boa.offload %g, @gradients.a[%c1] chunk %c count 1 : <tensor<16384xf32>, device>
    boa.offload %w, @weights.a[%c1] chunk %c count 1 : <tensor<16384xf32>, device>
    boa.release %g : <tensor<16384xf32>, device>
    boa.release %w : <tensor<16384xf32>, device>
  }
  %x = boa.prefetch @gradients.a[%c1] chunk %c0 count 1 : <tensor<16384xf32>, device>
  boa.launch @k reads(%x : <tensor<16384xf32>, device>)
  boa.release %x : <tensor<16384xf32>, device>
}
