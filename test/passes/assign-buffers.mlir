// RUN: boa-opt %s --boa-assign-buffers --split-input-file | FileCheck %s
// RUN: boa-opt %s --boa-assign-buffers --split-input-file --remarks-filter-analyse=boa-storage \
// RUN:   2>&1 | FileCheck %s --check-prefix=REMARK

// A layer's weights (4 MiB) are needed one at a time; two slots more let the
// runtime look ahead. There are 3 layers, so 3 slots is all: no more is useful.
// Momentum streams by chunks of 1 MiB: one at a time and 3 ahead,
// which is all of them. What is on a
// device needs no slots: it is there whole.

// CHECK:      module attributes {boa.arena = 16818176 : i64
// CHECK:      boa.storage @w[3] : {{.*}} slots device 3 x 4
// CHECK:      boa.storage @momentum.a[1] : {{.*}} slots device 4 x 1
// CHECK:      boa.storage @d[2] : tensor<1024xf32> on device role input{{$}}
// What moves in a step, by role: 3 layers in, one chunk of 4 out, 4 chunks both ways.
// CHECK:      boa.step @step
// CHECK:          each read momentum 4194304, weights 12582912{{$}}
// CHECK-NEXT:     each written momentum 4194304, weights 3145728{{$}}
// 12 MiB of weights, 4 MiB of momentum, a slot of either skewed by 4096 bytes (no slot
// is a multiple of 64 KiB);
// two entries of 4096 bytes in memory, and as much workspace.
// REMARK: remark: [Analysis] assign-buffers | Category:boa-storage | Remark="arena of ", bytes=16818176

module {
  boa.config @plan {prefetch = 1 : i64}
  boa.storage @w[3] : tensor<1048576xf32> on ssd role weights chunks 4 persistent
  boa.storage @momentum.a[1] : tensor<1048576xf32> on ssd role state chunks 4 persistent
  boa.storage @d[2] : tensor<1024xf32> on device role input
  boa.step @step(%step, %pending) {
    %c0 = arith.constant 0 : index
    %c3 = arith.constant 3 : index
    boa.loop layer %l = 0 to 3 forward {
      %w = boa.prefetch @w[%l] : <tensor<1048576xf32>, device>
      boa.offload %w, @w[%l] chunk %c3 count 1 : <tensor<1048576xf32>, device>
      boa.release %w : <tensor<1048576xf32>, device>
    }
    boa.loop chunk %c = 0 to 4 forward {
      %m = boa.prefetch @momentum.a[%c0] chunk %c count 1 : <tensor<1048576xf32>, device>
      boa.offload %m, @momentum.a[%c0] chunk %c count 1 : <tensor<1048576xf32>, device>
      boa.release %m : <tensor<1048576xf32>, device>
    }
  }
}

// -----

// Where memory is short, looking ahead is given up: 9 MiB hold two of the three
// layers' weights, of 4 MiB.

// CHECK: boa.storage @w[3] : {{.*}} slots device 2 x 1
// REMARK: bytes=8400896

module {
  boa.config @machine {device_memory = 5242880 : i64, host_memory = 4194304 : i64}
  boa.config @plan {prefetch = 1 : i64}
  boa.storage @w[3] : tensor<1048576xf32> on ssd role weights persistent
  boa.step @step(%step, %pending) {
    boa.loop layer %l = 0 to 3 forward {
      %w = boa.prefetch @w[%l] : <tensor<1048576xf32>, device>
      boa.release %w : <tensor<1048576xf32>, device>
    }
  }
}

// -----

// So it is where only one limit is said: 9 MiB of host, and nothing of the device.

// CHECK: boa.storage @w[3] : {{.*}} slots device 2 x 1
// REMARK: bytes=8400896

module {
  boa.config @machine {host_memory = 9437184 : i64}
  boa.config @plan {prefetch = 1 : i64}
  boa.storage @w[3] : tensor<1048576xf32> on ssd role weights persistent
  boa.step @step(%step, %pending) {
    boa.loop layer %l = 0 to 3 forward {
      %w = boa.prefetch @w[%l] : <tensor<1048576xf32>, device>
      boa.release %w : <tensor<1048576xf32>, device>
    }
  }
}

// -----

// No looking ahead is asked for: what is live at once, and no more. A retained
// copy is live until it is taken up.

// CHECK: boa.storage @w[3] : {{.*}} slots device 1 x 1
// CHECK: boa.storage @x[2] : {{.*}} slots device 2 x 1

module {
  boa.config @plan {prefetch = 0 : i64}
  boa.storage @w[3] : tensor<1024xf32> on ssd role weights persistent
  boa.storage @x[2] : tensor<1024xf32> on ssd role checkpoints persistent
  boa.step @step(%step, %pending) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %true = arith.constant true
    %x = boa.prefetch @x[%c0] : <tensor<1024xf32>, device>
    boa.release %x retain %true : <tensor<1024xf32>, device>
    %y = boa.prefetch @x[%c1] : <tensor<1024xf32>, device>
    boa.release %y : <tensor<1024xf32>, device>
    %z = boa.prefetch @x[%c0] : <tensor<1024xf32>, device>
    boa.release %z : <tensor<1024xf32>, device>
    boa.loop layer %l = 0 to 3 forward {
      %w = boa.prefetch @w[%l] : <tensor<1024xf32>, device>
      boa.release %w : <tensor<1024xf32>, device>
    }
  }
}

// -----

// A retained copy that a write makes stale gives its slot back before the next is
// taken: one slot does. What holds one chunk has a slot of its size.

// CHECK: boa.storage @x[1] : {{.*}} slots device 3 x 1, device 1 x 4

boa.storage @x[1] : tensor<16384xf32> on ssd role checkpoints chunks 4 persistent
boa.step @step(%step, %pending) {
  %c0 = arith.constant 0 : index
  %true = arith.constant true
  %x = boa.prefetch @x[%c0] : <tensor<16384xf32>, device>
  boa.release %x retain %true : <tensor<16384xf32>, device>
  %y = boa.prefetch @x[%c0] chunk %c0 count 1 zero %true : <tensor<16384xf32>, device>
  boa.release %y : <tensor<16384xf32>, device>
  %z = boa.prefetch @x[%c0] : <tensor<16384xf32>, device>
  boa.release %z : <tensor<16384xf32>, device>
}

// -----

// A copy that the next step takes up: one read the less in each but the first, and
// no more slots.
// CHECK:         boa.storage @again[3] {{.*}}slots device 1 x 1
// CHECK:         boa.step @step
// CHECK-NEXT:        first read weights 16384{{$}}
// CHECK-NEXT:        first written{{$}}
// CHECK:             each read weights 12288{{$}}
// CHECK-NEXT:        each written{{$}}

module {
  boa.config @plan {prefetch = 0 : i64}
  boa.storage @again[3] : tensor<1024xf32> on ssd role weights chunks 1 persistent
  boa.step @step(%step, %pending) {
    %c0 = arith.constant 0 : index
    boa.loop layer %l = 0 to 3 forward {
      %x = boa.prefetch @again[%l] : <tensor<1024xf32>, device>
      boa.launch @k reads(%x : <tensor<1024xf32>, device>)
      boa.release %x : <tensor<1024xf32>, device>
    }
    %true = arith.constant true
    %y = boa.prefetch @again[%c0] : <tensor<1024xf32>, device>
    boa.launch @k reads(%y : <tensor<1024xf32>, device>)
    boa.release %y retain %true : <tensor<1024xf32>, device>
  }
}

// -----

// Two memories. A pool for each size in each space; what is read from SSD to the device has
// a slot on the host; links are counted apart. The share of @w that lives on the
// host is there once, and goes to the device without touching SSD.

// CHECK: boa.arena_device = 20480 : i64
// CHECK: boa.storage @w[1] : tensor<4096xf32> on host 1, ssd role weights chunks 4 persistent slots device 1 x 4, host 4 x 1
// CHECK: boa.step @step
// CHECK:      each read weights 24576{{$}}
// CHECK-NEXT: each to_device weights 16384{{$}}
// CHECK-NEXT: each written weights 12288{{$}}

module {
  boa.config @machine {memory = "separate", device_memory = 32768 : i64, host_memory = 65536 : i64}
  boa.config @plan {prefetch = 1 : i64}
  boa.storage @w[1] : tensor<4096xf32> on host 1, ssd role weights chunks 4 persistent
  boa.step @step(%step, %pending) {
    %c0 = arith.constant 0 : index
    %w = boa.prefetch @w[%c0] : <tensor<4096xf32>, device>
    boa.launch @k reads(%w : <tensor<4096xf32>, device>)
    boa.release %w : <tensor<4096xf32>, device>
    boa.loop chunk %c = 0 to 4 forward {
      %h = boa.prefetch @w[%c0] chunk %c count 1 : <tensor<4096xf32>, host>
      boa.offload %h, @w[%c0] chunk %c count 1 : <tensor<4096xf32>, host>
      boa.release %h : <tensor<4096xf32>, host>
    }
  }
}

// -----

// Where SSDs reach the device's memory, nothing passes the host: slots there are those of the
// loop alone, and what comes from SSD to the device is no copy.

// CHECK: boa.arena_device = 36864 : i64
// CHECK: boa.storage @w[1] : tensor<4096xf32> on host 1, ssd role weights chunks 4 persistent slots device 1 x 4, host 4 x 1
// CHECK: boa.storage @x[1] : tensor<4096xf32> on ssd role checkpoints chunks 4 slots device 1 x 4{{$}}
// CHECK: boa.step @step
// CHECK:      each read checkpoints 16384, weights 24576{{$}}
// CHECK-NEXT: each to_device weights 4096{{$}}
// CHECK-NEXT: each written checkpoints 16384, weights 12288{{$}}

module {
  boa.config @machine {memory = "separate", direct = true, device_memory = 65536 : i64, host_memory = 65536 : i64}
  boa.config @plan {prefetch = 1 : i64}
  boa.storage @w[1] : tensor<4096xf32> on host 1, ssd role weights chunks 4 persistent
  boa.storage @x[1] : tensor<4096xf32> on ssd role checkpoints chunks 4
  boa.step @step(%step, %pending) {
    %c0 = arith.constant 0 : index
    %w = boa.prefetch @w[%c0] : <tensor<4096xf32>, device>
    %x = boa.create @x[%c0] : <tensor<4096xf32>, device>
    boa.launch @k reads(%w : <tensor<4096xf32>, device>) writes(%x : <tensor<4096xf32>, device>)
    boa.offload %x, @x[%c0] : <tensor<4096xf32>, device>
    boa.release %x : <tensor<4096xf32>, device>
    boa.release %w : <tensor<4096xf32>, device>
    %y = boa.prefetch @x[%c0] : <tensor<4096xf32>, device>
    boa.launch @k reads(%y : <tensor<4096xf32>, device>)
    boa.release %y : <tensor<4096xf32>, device>
    boa.loop chunk %c = 0 to 4 forward {
      %h = boa.prefetch @w[%c0] chunk %c count 1 : <tensor<4096xf32>, host>
      boa.offload %h, @w[%c0] chunk %c count 1 : <tensor<4096xf32>, host>
      boa.release %h : <tensor<4096xf32>, host>
    }
  }
}

// -----

// An entry that lives in one memory, in shares of device and host, is the buffer itself:
// it stands there in one piece and takes no slot.

// CHECK: boa.storage @w[2] : tensor<65536xf32> on device 1, host role weights chunks 4 persistent{{$}}
// REMARK: bytes=536576

boa.storage @w[2] : tensor<65536xf32> on device 1, host role weights chunks 4 persistent
boa.step @step(%step, %pending) {
  %c0 = arith.constant 0 : index
  %w = boa.prefetch @w[%c0] : <tensor<65536xf32>, device>
  boa.release %w : <tensor<65536xf32>, device>
}

// -----

// Between two memories it is not.

// CHECK: boa.storage @w[2] : {{.*}} slots device 2 x 4

boa.config @machine {memory = "separate", device_memory = 8388608 : i64, host_memory = 8388608 : i64}
boa.storage @w[2] : tensor<65536xf32> on device 1, host role weights chunks 4 persistent
boa.step @step(%step, %pending) {
  %c0 = arith.constant 0 : index
  %w = boa.prefetch @w[%c0] : <tensor<65536xf32>, device>
  boa.release %w : <tensor<65536xf32>, device>
}

// -----

// Where the slots that are needed at least do not fit, storages share some whose buffers are
// not live at the same time: first those that save most, of the same role if there is a choice.
// One slot of 4 MiB holds @a, then @b. @c is live beside both: it has its own.

// CHECK: boa.storage @a[1] : {{.*}} slots device 1 x 1 shared 1
// CHECK: boa.storage @b[1] : {{.*}} slots device 1 x 2 shared 1
// CHECK: boa.storage @c[1] : {{.*}} slots device 1 x 1{{$}}
// REMARK: bytes=13656064

module {
  boa.config @machine {device_memory = 6291456 : i64, memory = "separate"}
  boa.config @plan {prefetch = 1 : i64}
  boa.storage @a[1] : tensor<786432xf32> on host role weights persistent
  boa.storage @b[1] : tensor<1048576xf32> on host role weights chunks 2 persistent
  boa.storage @c[1] : tensor<262144xf32> on host role weights persistent
  boa.step @step(%step, %pending) {
    %c0 = arith.constant 0 : index
    %c = boa.prefetch @c[%c0] : <tensor<262144xf32>, device>
    %a = boa.prefetch @a[%c0] : <tensor<786432xf32>, device>
    boa.release %a : <tensor<786432xf32>, device>
    %b = boa.prefetch @b[%c0] : <tensor<1048576xf32>, device>
    boa.release %b : <tensor<1048576xf32>, device>
    boa.release %c : <tensor<262144xf32>, device>
  }
}

// -----

// Two of four layers' weights live in memory: 2 x 4 MiB. The others pass through slots: one, and
// one to look ahead, which is all of them. They alone are read. Each of the four is skewed by 4096
// bytes, and there is as much workspace.

// CHECK:      module attributes {boa.arena = 16797696 : i64
// CHECK:      boa.storage @w[4] : {{.*}} slots device 2 x 4
// CHECK:          each read weights 8388608{{$}}
// REMARK: bytes=16797696

module {
  boa.config @plan {prefetch = 3 : i64}
  boa.storage @w[4] : tensor<1048576xf32> on [0 to 2: host, 2 to 4: ssd] role weights chunks 4 persistent
  boa.step @step(%step, %pending) {
    boa.loop layer %l = 0 to 4 forward {
      %w = boa.prefetch @w[%l] : <tensor<1048576xf32>, device>
      boa.release %w : <tensor<1048576xf32>, device>
    }
  }
}

// -----

// Between two memories the first two are copied to the device, too: all four take a slot there.

// CHECK: boa.storage @w[4] : {{.*}} slots device 4 x 4, host 1 x 1
// CHECK:          each read weights 8388608{{$}}
// CHECK:          each to_device weights 16777216{{$}}

module {
  boa.config @machine {memory = "separate", device_memory = 33554432 : i64, host_memory = 33554432 : i64}
  boa.config @plan {prefetch = 3 : i64}
  boa.storage @w[4] : tensor<1048576xf32> on [0 to 2: host, 2 to 4: ssd] role weights chunks 4 persistent
  boa.step @step(%step, %pending) {
    boa.loop layer %l = 0 to 4 forward {
      %w = boa.prefetch @w[%l] : <tensor<1048576xf32>, device>
      boa.release %w : <tensor<1048576xf32>, device>
    }
  }
}
