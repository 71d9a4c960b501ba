// RUN: boa-opt %s --boa-place-weights --split-input-file | FileCheck %s
// RUN: boa-opt %s --boa-place-weights --split-input-file --remarks-filter-passed=boa-storage 2>&1 \
// RUN:   | grep remark | FileCheck %s --check-prefix=REMARK

// Of 5 MiB beside workspace, one layer of 1 MiB is the slot that a kernel needs, and one is read
// ahead. What is there once stays, and one layer of four, between the others.

// REMARK: [Passed] place-weights | {{.*}} entries=5, resident=2
// CHECK: boa.storage @weights.head[1] : {{.*}} on device role weights
// CHECK: boa.storage @weights.block[4] : {{.*}} on [0 to 3: ssd, 3 to 4: device] role weights
module {
  boa.config @machine {host_memory = 4259840 : i64}
  boa.storage @weights.head[1] : tensor<262144xf32> on device role weights persistent
  boa.storage @weights.block[4] : tensor<262144xf32> on device role weights persistent
  boa.step @generate(%step, %pending) {
    %c0 = arith.constant 0 : index
    boa.loop layer %l = 0 to 4 forward {
      %w = boa.prefetch @weights.block[%l] : <tensor<262144xf32>, device>
      boa.release %w : <tensor<262144xf32>, device>
    }
    %w = boa.prefetch @weights.head[%c0] : <tensor<262144xf32>, device>
    boa.release %w : <tensor<262144xf32>, device>
  }
}

// -----

// Two of four: every other layer.

// REMARK: [Passed] place-weights | {{.*}} entries=5, resident=3
// REMARK-NOT: place-weights

// CHECK: boa.storage @weights.block[4] : {{.*}} on [0 to 1: ssd, 1 to 2: device, 2 to 3: ssd, 3 to 4: device] role weights
module {
  boa.config @machine {host_memory = 5308416 : i64}
  boa.storage @weights.head[1] : tensor<262144xf32> on device role weights persistent
  boa.storage @weights.block[4] : tensor<262144xf32> on device role weights persistent
  boa.step @generate(%step, %pending) {
    %c0 = arith.constant 0 : index
    boa.loop layer %l = 0 to 4 forward {
      %w = boa.prefetch @weights.block[%l] : <tensor<262144xf32>, device>
      boa.release %w : <tensor<262144xf32>, device>
    }
    %w = boa.prefetch @weights.head[%c0] : <tensor<262144xf32>, device>
    boa.release %w : <tensor<262144xf32>, device>
  }
}

// -----

// Without a limit all stay.

// CHECK: boa.storage @weights.block[4] : {{.*}} on device role weights
module {
  boa.storage @weights.block[4] : tensor<262144xf32> on device role weights persistent
  boa.step @generate(%step, %pending) {
    boa.loop layer %l = 0 to 4 forward {
      %w = boa.prefetch @weights.block[%l] : <tensor<262144xf32>, device>
      boa.release %w : <tensor<262144xf32>, device>
    }
  }
}
