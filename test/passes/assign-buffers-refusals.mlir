// RUN: not boa-opt %s --boa-assign-buffers --split-input-file 2>&1 | FileCheck %s --strict-whitespace

// What does not fit is refused before anything runs, with the arithmetic: two
// layers at once of 4 MiB each, 2 entries of 1 MiB in memory, in 6 MiB.

// CHECK:      error: the training step does not fit the memory given: it needs 10.0 MiB but the machine has 6.00 MiB
// CHECK-NEXT:{{^}}    w                            2 slots x 4.00 MiB = 8.01 MiB
// CHECK-NEXT:{{^}}    x                            2 entries x 1.00 MiB = 2.01 MiB
// CHECK-NEXT:{{^}}    kernel workspace             4.00 KiB
// CHECK-NEXT:{{^}}    total                        10.0 MiB
// CHECK-NEXT:{{^}}    given                        4.00 MiB of device + 2.00 MiB of host = 6.00 MiB

module {
  boa.config @machine {device_memory = 4194304 : i64, host_memory = 2097152 : i64}
  boa.storage @w[3] : tensor<1048576xf32> on ssd role weights persistent
  boa.storage @x[2] : tensor<262144xf32> on host role checkpoints persistent
  boa.step @step(%step, %pending) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %a = boa.prefetch @w[%c0] : <tensor<1048576xf32>, device>
    %b = boa.prefetch @w[%c1] : <tensor<1048576xf32>, device>
    boa.release %a : <tensor<1048576xf32>, device>
    boa.release %b : <tensor<1048576xf32>, device>
  }
}

// -----

// A limit on the device alone is kept to: nothing else was said of the one memory.

// CHECK:      error: the training step does not fit the memory given: it needs 4.01 MiB but the machine has 4.00 MiB
// CHECK-NEXT:{{^}}    w                            1 slots x 4.00 MiB = 4.00 MiB
// CHECK-NEXT:{{^}}    kernel workspace             4.00 KiB
// CHECK-NEXT:{{^}}    total                        4.01 MiB
// CHECK-NEXT:{{^}}    given                        4.00 MiB of device; nothing is said of host, which on the cpu is the same memory

module {
  boa.config @machine {device_memory = 4194304 : i64}
  boa.storage @w[3] : tensor<1048576xf32> on ssd role weights persistent
  boa.step @step(%step, %pending) {
    %c0 = arith.constant 0 : index
    %a = boa.prefetch @w[%c0] : <tensor<1048576xf32>, device>
    boa.release %a : <tensor<1048576xf32>, device>
  }
}

// -----

// A limit on the host alone is kept to: nothing else was said of the one memory.

// CHECK:      error: the training step does not fit the memory given: it needs 4.01 MiB but the machine has 4.00 MiB
// CHECK-NEXT:{{^}}    w                            1 slots x 4.00 MiB = 4.00 MiB
// CHECK-NEXT:{{^}}    kernel workspace             4.00 KiB
// CHECK-NEXT:{{^}}    total                        4.01 MiB
// CHECK-NEXT:{{^}}    given                        4.00 MiB of host; nothing is said of device, which on the cpu is the same memory

module {
  boa.config @machine {host_memory = 4194304 : i64}
  boa.storage @w[3] : tensor<1048576xf32> on ssd role weights persistent
  boa.step @step(%step, %pending) {
    %c0 = arith.constant 0 : index
    %a = boa.prefetch @w[%c0] : <tensor<1048576xf32>, device>
    boa.release %a : <tensor<1048576xf32>, device>
  }
}

// -----

// Tables of kernels are in the device's memory, too: without them this fits.

// CHECK:      error: the training step does not fit the memory given: it needs 4.01 MiB of device memory but the machine has 4.00 MiB
// CHECK-NEXT:{{^}}    w                            3 entries x 1.00 MiB = 3.01 MiB
// CHECK-NEXT:{{^}}    kernel workspace             4.00 KiB
// CHECK-NEXT:{{^}}    constants of kernels         0.99 MiB
// CHECK-NEXT:{{^}}    total                        4.01 MiB
// CHECK-NEXT:{{^}}    given                        4.00 MiB of device

module attributes {boa.constants = 1040384 : i64} {
  boa.config @machine {memory = "separate", device_memory = 4194304 : i64}
  boa.storage @w[3] : tensor<262144xf32> on device role weights persistent
  boa.step @step(%step, %pending) {
  }
}

// -----

// Of some entries what lives in memory is told together.

// CHECK:      error: the training step does not fit the memory given: it needs 3.02 MiB but the machine has 2.00 MiB
// CHECK-NEXT:{{^}}    w                            1 slots x 1.00 MiB = 1.00 MiB
// CHECK-NEXT:{{^}}    w                            2 of 4 entries = 2.01 MiB

module {
  boa.config @machine {device_memory = 2097152 : i64}
  boa.storage @w[4] : tensor<262144xf32> on [0 to 2: host, 2 to 4: ssd] role weights persistent
  boa.step @step(%step, %pending) {
    boa.loop layer %l = 0 to 4 forward {
      %w = boa.prefetch @w[%l] : <tensor<262144xf32>, device>
      boa.release %w : <tensor<262144xf32>, device>
    }
  }
}

// -----

// Sums are not computed in 64 bits that wrap. No machine has more than the runtime counts.

// CHECK:      error: the program does not fit the memory given: it needs 128 PiB but no machine has more than 64.0 PiB
// CHECK-NEXT:{{^}}    x                            65536 entries x 1.00 TiB = 64.0 PiB
// CHECK-NEXT:{{^}}    y                            65536 entries x 1.00 TiB = 64.0 PiB
// CHECK-NEXT:{{^}}    kernel workspace             4.00 KiB
// CHECK-NEXT:{{^}}    total                        128 PiB
// CHECK-NEXT:{{^}}    given                        no limit

module {
  boa.storage @x[65536] : tensor<262144x1048576xf32> on device role checkpoints
  boa.storage @y[65536] : tensor<262144x1048576xf32> on device role checkpoints
}

// -----

// As with limits whose sum is more than 64 bits.

// CHECK:      error: the program does not fit the memory given: it needs 128 PiB but the machine has more than 8 EiB
module {
  boa.config @machine {device_memory = 9223372036854775807 : i64, host_memory = 9223372036854775807 : i64}
  boa.storage @x[65536] : tensor<262144x1048576xf32> on device role checkpoints
  boa.storage @y[65536] : tensor<262144x1048576xf32> on device role checkpoints
}
