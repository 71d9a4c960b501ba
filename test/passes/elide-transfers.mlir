// RUN: boa-opt %s --boa-elide-transfers --split-input-file | FileCheck %s
// RUN: boa-opt %s --boa-elide-transfers --split-input-file --remarks-filter=boa-storage \
// RUN:   2>&1 | FileCheck %s --check-prefix=REMARK
// RUN: boa-opt %s --boa-elide-transfers --boa-elide-offloads --split-input-file \
// RUN:   | FileCheck %s --check-prefix=HOME

// The optimizer follows the backward pass whose gradient is still in memory: it
// takes that buffer. What else an update needs is still brought. Nobody then reads the
// gradient on SSD, where it need not go.

// CHECK-LABEL: boa.step @step
// CHECK:         %[[G:.*]] = boa.prefetch @gradients.a
// CHECK-NEXT:    boa.launch @backward updates(%[[G]] :
// CHECK-NOT:     boa.release %[[G]]
// CHECK:         boa.loop chunk %[[C:.*]] = 0 to 4 forward {
// CHECK-NOT:       boa.prefetch @gradients.a
// CHECK:           boa.prefetch @low.a[%{{.*}}] chunk %[[C]] count 1
// CHECK:           boa.update @a chunk %[[C]] {{.*}} gradient(%[[G]]
// CHECK:         }
// CHECK:         boa.release %[[G]]
// REMARK: remark: [Passed] elide-transfers | Category:boa-storage | {{.*}}Remark=step, {{.*}}shared=1
// HOME:          boa.launch @backward updates(%[[G:.*]] :
// HOME-NOT:      boa.offload %[[G]]
// HOME:          boa.loop chunk

boa.group @a repeat 1 {
  boa.param @w : tensor<16384xf32> = "ones"
}
boa.storage @weights.a[1] : tensor<16384xbf16> on device role weights chunks 4 persistent
boa.storage @gradients.a[1] : tensor<16384xf32> on ssd role gradients chunks 4
boa.storage @low.a[1] : tensor<16384xi16> on ssd role master chunks 4 persistent
boa.step @step(%step, %pending) {
  %c0 = arith.constant 0 : index
  %true = arith.constant true
  %g = boa.prefetch @gradients.a[%c0] zero %true : <tensor<16384xf32>, device>
  boa.launch @backward updates(%g : <tensor<16384xf32>, device>)
  boa.offload %g, @gradients.a[%c0] : <tensor<16384xf32>, device>
  boa.release %g : <tensor<16384xf32>, device>
  boa.loop chunk %c = 0 to 4 forward {
    %3 = boa.prefetch @gradients.a[%c0] chunk %c count 1 : <tensor<16384xf32>, host>
    %5 = boa.prefetch @weights.a[%c0] chunk %c count 1 : <tensor<16384xbf16>, host>
    %7 = boa.prefetch @low.a[%c0] chunk %c count 1 : <tensor<16384xi16>, host>
    boa.update @a chunk %c step %step weights(%5 : <tensor<16384xbf16>, host>) gradient(%3 : <tensor<16384xf32>, host>) low(%7 : <tensor<16384xi16>, host>)
    boa.offload %5, @weights.a[%c0] chunk %c count 1 : <tensor<16384xbf16>, host>
    boa.offload %7, @low.a[%c0] chunk %c count 1 : <tensor<16384xi16>, host>
    boa.release %3 : <tensor<16384xf32>, host>
    boa.release %5 : <tensor<16384xbf16>, host>
    boa.release %7 : <tensor<16384xi16>, host>
  }
}

// -----

// What was updated and not written home is thrown away by its release: the next
// kernel reads what is at home, so the copy is not shared.

// CHECK-LABEL: boa.step @evaluate
// CHECK:         boa.prefetch @s
// CHECK:         boa.launch @k updates
// CHECK:         boa.prefetch @s
// CHECK:         boa.launch @k2 reads
// What another entry point shares stays shared.
// CHECK-LABEL: boa.step @predict
// CHECK:         boa.prefetch @s
// CHECK:         boa.offload
// CHECK-NOT:     boa.prefetch @s
// CHECK:         boa.launch @k2 reads
// REMARK: :[[#@LINE+4]]:1: remark: {{.*}}Remark=evaluate, {{.*}}shared=0
// REMARK: :[[#@LINE+12]]:1: remark: {{.*}}Remark=predict, {{.*}}shared=1

boa.storage @s[1] : tensor<8xf32> on ssd role checkpoints persistent
boa.step @evaluate(%step, %pending) {
  %c0 = arith.constant 0 : index
  %x = boa.prefetch @s[%c0] : <tensor<8xf32>, device>
  boa.launch @k updates(%x : <tensor<8xf32>, device>)
  boa.release %x : <tensor<8xf32>, device>
  %y = boa.prefetch @s[%c0] : <tensor<8xf32>, device>
  boa.launch @k2 reads(%y : <tensor<8xf32>, device>)
  boa.release %y : <tensor<8xf32>, device>
}
boa.step @predict(%step, %pending) {
  %c0 = arith.constant 0 : index
  %x = boa.prefetch @s[%c0] : <tensor<8xf32>, device>
  boa.launch @k updates(%x : <tensor<8xf32>, device>)
  boa.offload %x, @s[%c0] : <tensor<8xf32>, device>
  boa.release %x : <tensor<8xf32>, device>
  %y = boa.prefetch @s[%c0] : <tensor<8xf32>, device>
  boa.launch @k2 reads(%y : <tensor<8xf32>, device>)
  boa.release %y : <tensor<8xf32>, device>
}

// -----

// A kernel that reads an entry and writes a new one of it needs both buffers.

// CHECK-LABEL: boa.step @evaluate
// CHECK:         boa.launch @k reads(%[[X:.*]] : {{.*}}) updates(%[[Y:.*]] :
// CHECK:         boa.release %[[X]] :
// CHECK:         boa.release %[[Y]] :

boa.storage @s[1] : tensor<8xf32> on ssd role checkpoints persistent
boa.step @evaluate(%step, %pending) {
  %c0 = arith.constant 0 : index
  %x = boa.prefetch @s[%c0] : <tensor<8xf32>, device>
  %y = boa.prefetch @s[%c0] : <tensor<8xf32>, device>
  boa.launch @k reads(%x : <tensor<8xf32>, device>) updates(%y : <tensor<8xf32>, device>)
  boa.offload %y, @s[%c0] : <tensor<8xf32>, device>
  boa.release %x : <tensor<8xf32>, device>
  boa.release %y : <tensor<8xf32>, device>
}

// -----

// Chunks that begin at zero do not begin with what a live buffer holds.

// CHECK-LABEL: boa.step @evaluate
// CHECK:         boa.loop chunk
// CHECK-NEXT:      boa.prefetch @gradients.a[%{{.*}}] chunk %{{.*}} count 1 zero

boa.storage @gradients.a[1] : tensor<16384xf32> on ssd role gradients chunks 4
boa.step @evaluate(%step, %pending) {
  %c0 = arith.constant 0 : index
  %true = arith.constant true
  %g = boa.prefetch @gradients.a[%c0] : <tensor<16384xf32>, device>
  boa.launch @k reads(%g : <tensor<16384xf32>, device>)
  boa.loop chunk %c = 0 to 4 forward {
    %z = boa.prefetch @gradients.a[%c0] chunk %c count 1 zero %true : <tensor<16384xf32>, device>
    boa.launch @k reads(%z : <tensor<16384xf32>, device>)
    boa.release %z : <tensor<16384xf32>, device>
  }
  boa.release %g : <tensor<16384xf32>, device>
}

// -----

// A shared constant stays where its other users see it.

// CHECK-LABEL: boa.step @evaluate
// CHECK-NEXT:    %[[C0:.*]] = arith.constant 0 : index
// CHECK:         boa.loop layer
// CHECK:           boa.prefetch @weights.a[%[[C0]]] :
// CHECK:           boa.loop chunk
// CHECK-NOT:         boa.prefetch @weights.a

boa.group @a repeat 1 {
  boa.param @w : tensor<16384xf32> = "ones"
}
boa.storage @weights.a[1] : tensor<16384xf32> on ssd role weights chunks 4 persistent
boa.storage @gradients.a[1] : tensor<16384xf32> on device role gradients chunks 4
boa.step @evaluate(%step, %pending) {
  %c0 = arith.constant 0 : index
  boa.loop layer %l = 0 to 1 forward {
    boa.loop chunk %c = 0 to 4 forward {
      %g = boa.prefetch @gradients.a[%c0] chunk %c count 1 : <tensor<16384xf32>, host>
      %w = boa.prefetch @weights.a[%c0] chunk %c count 1 : <tensor<16384xf32>, host>
      boa.update @a chunk %c step %step weights(%w : <tensor<16384xf32>, host>) gradient(%g : <tensor<16384xf32>, host>)
      boa.offload %w, @weights.a[%c0] chunk %c count 1 : <tensor<16384xf32>, host>
      boa.release %g : <tensor<16384xf32>, host>
      boa.release %w : <tensor<16384xf32>, host>
    }
    %w = boa.prefetch @weights.a[%c0] : <tensor<16384xf32>, device>
    boa.launch @k reads(%w : <tensor<16384xf32>, device>)
    boa.release %w : <tensor<16384xf32>, device>
  }
  boa.loop layer %l = 0 to 1 forward {
    %g = boa.prefetch @gradients.a[%c0] : <tensor<16384xf32>, device>
    boa.launch @k reads(%g : <tensor<16384xf32>, device>)
    boa.release %g : <tensor<16384xf32>, device>
  }
}

// -----

// One bad pair does not cost the good ones. What the first kernel makes of s never
// goes home, so the second must not find it; t is brought once, and so is u.

// REMARK: remark: [Missed] elide-transfers | Category:boa-storage | Remark="left a transfer of ", Remark=@s, Remark=" in @", Remark=evaluate, Remark=" as it was: the program would compute something else"
// REMARK: :[[#@LINE+13]]:1: remark: [Passed] elide-transfers | Category:boa-storage | {{.*}}Remark=evaluate, {{.*}}shared=2

// CHECK-LABEL: boa.step @evaluate
// CHECK-COUNT-2: boa.prefetch @s
// CHECK:         boa.prefetch @t
// CHECK-NOT:     boa.prefetch @t
// CHECK:         boa.prefetch @u
// CHECK-NOT:     boa.prefetch
// CHECK-LABEL: boa.step @predict

boa.storage @s[1] : tensor<8xf32> on ssd role checkpoints persistent
boa.storage @t[1] : tensor<8xf32> on ssd role checkpoints persistent
boa.storage @u[1] : tensor<8xf32> on ssd role checkpoints persistent
boa.step @evaluate(%step, %pending) {
  %c0 = arith.constant 0 : index
  %s0 = boa.prefetch @s[%c0] : <tensor<8xf32>, device>
  boa.launch @k updates(%s0 : <tensor<8xf32>, device>)
  boa.release %s0 : <tensor<8xf32>, device>
  %s1 = boa.prefetch @s[%c0] : <tensor<8xf32>, device>
  boa.launch @k reads(%s1 : <tensor<8xf32>, device>)
  boa.release %s1 : <tensor<8xf32>, device>
  %t0 = boa.prefetch @t[%c0] : <tensor<8xf32>, device>
  boa.launch @k reads(%t0 : <tensor<8xf32>, device>)
  boa.release %t0 : <tensor<8xf32>, device>
  %t1 = boa.prefetch @t[%c0] : <tensor<8xf32>, device>
  boa.launch @k reads(%t1 : <tensor<8xf32>, device>)
  boa.release %t1 : <tensor<8xf32>, device>
  %u0 = boa.prefetch @u[%c0] : <tensor<8xf32>, device>
  boa.launch @k reads(%u0 : <tensor<8xf32>, device>)
  boa.release %u0 : <tensor<8xf32>, device>
  %u1 = boa.prefetch @u[%c0] : <tensor<8xf32>, device>
  boa.launch @k reads(%u1 : <tensor<8xf32>, device>)
  boa.release %u1 : <tensor<8xf32>, device>
}
boa.step @predict(%step, %pending) {
}

// -----

// Where the optimizer's memory is not the kernel's, what is live there is copied, chunk by
// chunk; it does not go home and come back. Weights, which the update writes, are its own.

// CHECK-LABEL: boa.step @step
// CHECK:         %[[G:.*]] = boa.prefetch @gradients.a[%{{.*}}] zero
// CHECK-NEXT:    boa.launch @backward updates(%[[G]] :
// CHECK:         boa.loop chunk %[[C:.*]] = 0 to 4 forward {
// CHECK-NEXT:      %[[H:.*]] = boa.create @gradients.a[%{{.*}}] chunk %[[C]] count 1 : <tensor<16384xf32>, host>
// CHECK-NEXT:      boa.copy %[[G]] to %[[H]]
// CHECK:           boa.update @a chunk %[[C]] {{.*}} gradient(%[[H]]
// CHECK:           boa.release %[[H]]
// CHECK:         }
// CHECK:         boa.release %[[G]]
// HOME:          boa.launch @backward updates(%[[G:.*]] :
// HOME-NOT:      boa.offload %[[G]]
// HOME:          boa.loop chunk

module {
  boa.config @machine {memory = "separate"}
boa.group @a repeat 1 {
  boa.param @w : tensor<16384xf32> = "ones"
}
boa.storage @weights.a[1] : tensor<16384xf32> on ssd role weights chunks 4 persistent
boa.storage @gradients.a[1] : tensor<16384xf32> on ssd role gradients chunks 4
boa.step @step(%step, %pending) {
  %c0 = arith.constant 0 : index
  %true = arith.constant true
  %g = boa.prefetch @gradients.a[%c0] zero %true : <tensor<16384xf32>, device>
  boa.launch @backward updates(%g : <tensor<16384xf32>, device>)
  boa.offload %g, @gradients.a[%c0] : <tensor<16384xf32>, device>
  boa.release %g : <tensor<16384xf32>, device>
  boa.loop chunk %c = 0 to 4 forward {
    %h = boa.prefetch @gradients.a[%c0] chunk %c count 1 : <tensor<16384xf32>, host>
    %w = boa.prefetch @weights.a[%c0] chunk %c count 1 : <tensor<16384xf32>, host>
    boa.update @a chunk %c step %step weights(%w : <tensor<16384xf32>, host>) gradient(%h : <tensor<16384xf32>, host>)
    boa.offload %w, @weights.a[%c0] chunk %c count 1 : <tensor<16384xf32>, host>
    boa.release %h : <tensor<16384xf32>, host>
    boa.release %w : <tensor<16384xf32>, host>
  }
}
}

// -----

// A move that is refused may be of a transfer that a later one takes away.

// CHECK-LABEL: boa.storage @kept
// CHECK:         boa.prefetch @kept
// CHECK:         boa.prefetch @kept
// CHECK-NOT:     boa.prefetch

module {
  boa.storage @kept[1] : tensor<8xf32> on ssd role checkpoints persistent
  boa.step @step(%step, %pending) {
    %c0 = arith.constant 0 : index
    %0 = boa.prefetch @kept[%c0] : <tensor<8xf32>, device>
    boa.launch @k updates(%0 : <tensor<8xf32>, device>)
    boa.release %0 : <tensor<8xf32>, device>
    %1 = boa.prefetch @kept[%c0] : <tensor<8xf32>, device>
    boa.launch @k reads(%1 : <tensor<8xf32>, device>)
    boa.release %1 : <tensor<8xf32>, device>
    %2 = boa.prefetch @kept[%c0] : <tensor<8xf32>, device>
    boa.launch @k reads(%2 : <tensor<8xf32>, device>)
    boa.release %2 : <tensor<8xf32>, device>
  }
}
