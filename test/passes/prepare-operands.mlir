// RUN: boa-opt %s --split-input-file --boa-prepare-operands --boa-verify-storage | FileCheck %s
// RUN: boa-opt %s --split-input-file --boa-prepare-operands --remarks-filter=boa-storage 2>&1 \
// RUN:   | grep remark | FileCheck %s --check-prefix=REMARK

// Weights that are there through all micro-batches: the form is made before, and released behind.
// The weights that @block reads change with each layer. Those of @head are updated after them.

// REMARK: [Passed] prepare-operands {{.*}}Remark=block, {{.*}} bytes=4096, launches=4, visits=1
// REMARK: [Passed] prepare-operands {{.*}}Remark=head, {{.*}} bytes=4096, launches=8, visits=2

// CHECK: module
// CHECK: boa.storage @prepared.block[1] : tensor<16xf32> on device role prepared
// CHECK: boa.storage @prepared.head[1] : tensor<16xbf16> on device role prepared
// CHECK-LABEL: boa.step @step
// CHECK: boa.loop layer
// CHECK:   %[[W:.*]] = boa.prefetch @weights.block
// CHECK:   %[[P:.*]] = boa.create @prepared.block[%{{.*}}] : <tensor<16xf32>, device>
// CHECK:   boa.launch @pack reads(%[[W]] : {{.*}}) writes(%[[P]] :
// CHECK:   boa.loop micro_batch
// CHECK:     boa.launch @block reads(%{{.*}}, %[[W]] : {{.*}}) prepared(%[[P]] : <tensor<16xf32>, device>)
// CHECK:   }
// CHECK:   boa.release %[[P]]
// CHECK:   boa.release %[[W]]
// CHECK: boa.launch @widen
// CHECK: boa.loop micro_batch
// CHECK:   boa.launch @head {{.*}} prepared(
// CHECK: }
// CHECK: boa.release
// CHECK: boa.launch @change
// CHECK-LABEL: boa.step @evaluate
// CHECK: boa.launch @widen
// CHECK: boa.loop micro_batch
// CHECK:   boa.launch @head {{.*}} prepared(
module {
  boa.storage @x[4] : tensor<8xf32> on device role checkpoints persistent
  boa.storage @weights.block[3] : tensor<8xf32> on ssd role weights persistent
  boa.storage @weights.head[1] : tensor<2048xf32> on ssd role weights persistent
  boa.kernel @pack() reads [tensor<8xf32>] writes [tensor<16xf32>] {
    boa.return
  }
  boa.kernel @block() reads [tensor<8xf32>, tensor<8xf32>]
      prepared #boa.prepared<tensor<16xf32> by @pack of [1]> {
    boa.return
  }
  boa.kernel @change() updates [tensor<2048xf32>] {
    boa.return
  }
  boa.kernel @widen() reads [tensor<2048xf32>] writes [tensor<16xbf16>] {
    boa.return
  }
  boa.kernel @head() reads [tensor<2048xf32>, tensor<8xf32>]
      prepared #boa.prepared<tensor<16xbf16> by @widen of [0]> {
    boa.return
  }
  boa.step @step(%step, %pending) {
    %c0 = arith.constant 0 : index
    boa.loop layer %l = 0 to 3 forward {
      %w = boa.prefetch @weights.block[%l] : <tensor<8xf32>, device>
      boa.loop micro_batch %m = 0 to 4 forward {
        %x = boa.prefetch @x[%m] : <tensor<8xf32>, device>
        boa.launch @block reads(%x, %w : <tensor<8xf32>, device>, <tensor<8xf32>, device>)
        boa.release %x : <tensor<8xf32>, device>
      }
      boa.release %w : <tensor<8xf32>, device>
    }
    %w = boa.prefetch @weights.head[%c0] : <tensor<2048xf32>, device>
    boa.loop micro_batch %m = 0 to 4 forward {
      %x = boa.prefetch @x[%m] : <tensor<8xf32>, device>
      boa.launch @head reads(%w, %x : <tensor<2048xf32>, device>, <tensor<8xf32>, device>)
      boa.release %x : <tensor<8xf32>, device>
    }
    boa.launch @change updates(%w : <tensor<2048xf32>, device>)
    boa.offload %w, @weights.head[%c0] : <tensor<2048xf32>, device>
    boa.release %w : <tensor<2048xf32>, device>
  }
  boa.step @evaluate(%step, %pending) {
    %c0 = arith.constant 0 : index
    %w = boa.prefetch @weights.head[%c0] : <tensor<2048xf32>, device>
    boa.loop micro_batch %m = 0 to 4 forward {
      %x = boa.prefetch @x[%m] : <tensor<8xf32>, device>
      boa.launch @head reads(%w, %x : <tensor<2048xf32>, device>, <tensor<8xf32>, device>)
      boa.release %x : <tensor<8xf32>, device>
    }
    boa.release %w : <tensor<2048xf32>, device>
  }
}

// -----

// A launch alone in its visit: the form would be made as often. Nor where weights change in the
// loop, or where the loop brings them.

// CHECK: module
// CHECK-NOT: prepared.
// CHECK-NOT: boa.launch @pack
// CHECK: boa.kernel @last
module {
  boa.storage @w[3] : tensor<8xf32> on ssd role weights persistent
  boa.kernel @pack() reads [tensor<8xf32>] writes [tensor<16xf32>] {
    boa.return
  }
  boa.kernel @k() reads [tensor<8xf32>] prepared #boa.prepared<tensor<16xf32> by @pack of [0]> {
    boa.return
  }
  boa.kernel @change() updates [tensor<8xf32>] {
    boa.return
  }
  boa.step @evaluate(%step, %pending) {
    %c0 = arith.constant 0 : index
    boa.loop layer %l = 0 to 3 forward {
      %w = boa.prefetch @w[%l] : <tensor<8xf32>, device>
      boa.launch @k reads(%w : <tensor<8xf32>, device>)
      boa.loop micro_batch %m = 0 to 1 forward {
        boa.launch @k reads(%w : <tensor<8xf32>, device>)
      }
      boa.loop micro_batch %m = 0 to 4 forward {
        boa.launch @k reads(%w : <tensor<8xf32>, device>)
        boa.launch @change updates(%w : <tensor<8xf32>, device>)
      }
      boa.release %w : <tensor<8xf32>, device>
    }
  }
  boa.kernel @last() {
    boa.return
  }
}

// -----

// An outer loop changes the weights behind an inner one: the form is made in each of its iterations,
// and released there before the change.

// REMARK-NEXT: [Passed] prepare-operands {{.*}}Remark=inner, {{.*}} bytes=4096, launches=4, visits=1

// CHECK: boa.storage @prepared.inner[1]
// CHECK-NEXT: boa.step @evaluate
// CHECK: boa.prefetch @w
// CHECK-NOT: boa.launch
// CHECK: boa.loop layer
// CHECK: %[[P:.*]] = boa.create @prepared.inner
// CHECK-NEXT: boa.launch @pack reads(%{{.*}}) writes(%[[P]] :
// CHECK-NEXT: boa.loop micro_batch
// CHECK-NEXT: boa.launch @inner {{.*}} prepared(%[[P]] :
// CHECK-NEXT: }
// CHECK-NEXT: boa.release %[[P]]
// CHECK-NEXT: boa.launch @change
// CHECK-NEXT: }
module {
  boa.storage @w[1] : tensor<8xf32> on device role weights persistent
  boa.kernel @pack() reads [tensor<8xf32>] writes [tensor<16xf32>] {
    boa.return
  }
  boa.kernel @inner() reads [tensor<8xf32>] prepared #boa.prepared<tensor<16xf32> by @pack of [0]> {
    boa.return
  }
  boa.kernel @change() updates [tensor<8xf32>] {
    boa.return
  }
  boa.step @evaluate(%step, %pending) {
    %c0 = arith.constant 0 : index
    %w = boa.prefetch @w[%c0] : <tensor<8xf32>, device>
    boa.loop layer %l = 0 to 3 forward {
      boa.loop micro_batch %m = 0 to 4 forward {
        boa.launch @inner reads(%w : <tensor<8xf32>, device>)
      }
      boa.launch @change updates(%w : <tensor<8xf32>, device>)
    }
    boa.offload %w, @w[%c0] : <tensor<8xf32>, device>
    boa.release %w : <tensor<8xf32>, device>
  }
}

// -----

// Two blocks of memory are left of the limit, one for each of the first forms that ask. The third
// launch goes without.

// REMARK-NEXT: [Passed] prepare-operands {{.*}}Remark=a, {{.*}} bytes=4096, launches=2, visits=1
// REMARK: [Passed] prepare-operands {{.*}}Remark=b, {{.*}} bytes=4096, launches=2, visits=1
// REMARK: [Missed] prepare-operands {{.*}}memory is short of a form for @", Remark=c, {{.*}} bytes=4096

// CHECK: boa.arena = 12288 : i64, boa.arena_device = 12288 : i64
// CHECK-NOT: prepared.c
// CHECK: boa.launch @a reads({{.*}}) prepared(
// CHECK: boa.launch @b reads({{.*}}) prepared(
// CHECK: boa.launch @c reads({{.*}}device>){{$}}
module attributes {boa.arena = 4096 : i64, boa.arena_device = 4096 : i64} {
  boa.config @machine {host_memory = 16383 : i64}
  boa.storage @w[1] : tensor<8xf32> on device role weights persistent
  boa.kernel @pack() reads [tensor<8xf32>] writes [tensor<16xf32>] {
    boa.return
  }
  boa.kernel @a() reads [tensor<8xf32>] prepared #boa.prepared<tensor<16xf32> by @pack of [0]> {
    boa.return
  }
  boa.kernel @b() reads [tensor<8xf32>] prepared #boa.prepared<tensor<16xf32> by @pack of [0]> {
    boa.return
  }
  boa.kernel @c() reads [tensor<8xf32>] prepared #boa.prepared<tensor<16xf32> by @pack of [0]> {
    boa.return
  }
  boa.step @evaluate(%step, %pending) {
    %c0 = arith.constant 0 : index
    %w = boa.prefetch @w[%c0] : <tensor<8xf32>, device>
    boa.loop micro_batch %m = 0 to 2 forward {
      boa.launch @a reads(%w : <tensor<8xf32>, device>)
      boa.launch @b reads(%w : <tensor<8xf32>, device>)
      boa.launch @c reads(%w : <tensor<8xf32>, device>)
    }
    boa.release %w : <tensor<8xf32>, device>
  }
}
