// RUN: boa-opt %s --boa-insert-offload --split-input-file | FileCheck %s
// RUN: boa-opt %S/Inputs/tiny.mlir --boa-differentiate --boa-build-step --boa-vertical-schedule \
// RUN:     --boa-split-optimizer=delay=0.25 --boa-insert-offload | FileCheck %s --check-prefix=WHOLE

// Each read becomes a prefetch, each result a slot, an offload; each
// buffer is released after its use. `place` decides the tiers; what it does not
// name (tokens) stays in memory.

// CHECK-DAG: boa.storage @input.tokens[2] : tensor<2xi32> on device
// CHECK-DAG: boa.storage @checkpoints[3, 2] : tensor<4xf32> on ssd
// CHECK-DAG: boa.storage @weights.block[2] : tensor<4096xf32> on host
// CHECK-LABEL: boa.step @step
// CHECK:         boa.loop micro_batch %[[M:.*]] = 0 to 2 forward {
// CHECK:           boa.loop layer %[[L:.*]] = 0 to 2 forward {
// CHECK-NEXT:        %[[NEXT:.*]] = boa.shift %[[L]], 1
// CHECK-NEXT:        %[[X:.*]] = boa.prefetch @checkpoints[%[[L]], %[[M]]]
// CHECK-NEXT:        %[[W:.*]] = boa.prefetch @weights.block[%[[L]]]
// CHECK-NEXT:        %[[Y:.*]] = boa.create @checkpoints[%[[NEXT]], %[[M]]]
// CHECK-NEXT:        boa.launch @f reads(%[[X]], %[[W]] : {{.*}}) writes(%[[Y]] : {{.*}})
// CHECK-NEXT:        boa.offload %[[Y]], @checkpoints[%[[NEXT]], %[[M]]]
// CHECK-NEXT:        boa.release %[[X]] :
// CHECK-NEXT:        boa.release %[[W]] :
// CHECK-NEXT:        boa.release %[[Y]] :
// CHECK-NOT:     boa.read
// CHECK-NOT:     boa.write
// CHECK-NOT:     boa.call

module {
  boa.config @plan {place = {weights = "host", checkpoints = "ssd"}}
  func.func private @f(tensor<4xf32>, tensor<4096xf32>) -> tensor<4xf32>
  boa.storage @input.tokens[2] : tensor<2xi32> on device role input
  boa.storage @checkpoints[3, 2] : tensor<4xf32> on device role checkpoints
  boa.storage @weights.block[2] : tensor<4096xf32> on device role weights persistent
  boa.step @step(%step, %pending) {
    boa.loop micro_batch %m = 0 to 2 forward {
      boa.loop layer %l = 0 to 2 forward {
        %x = boa.read @checkpoints[%l, %m] : tensor<4xf32>
        %w = boa.read @weights.block[%l] : tensor<4096xf32>
        %y = boa.call @f(%x, %w) : (tensor<4xf32>, tensor<4096xf32>) -> tensor<4xf32>
        %next = boa.shift %l, 1
        boa.write %y, @checkpoints[%next, %m] : tensor<4xf32>
      }
    }
  }
}

// -----

// An accumulation is read and written: the kernel adds into the buffer. The first
// one begins at zero instead of reading.

// CHECK-LABEL: boa.step @evaluate
// CHECK:         boa.loop micro_batch %[[M:.*]] = 0 to 2 forward {
// CHECK:           %[[FIRST:.*]] = boa.at_first %[[M]]
// CHECK:           %[[G:.*]] = boa.prefetch @gradients.a[%[[C0:.*]]] zero %[[FIRST]]
// CHECK-NEXT:      boa.launch @g reads(%{{.*}} : {{.*}}) updates(%[[G]] : {{.*}})
// CHECK-NOT:       writes
// CHECK-NEXT:      boa.offload %[[G]], @gradients.a[%[[C0]]]

module {
  boa.group @a repeat 1 {
    boa.param @w : tensor<4096xf32> = "ones"
  }
  func.func private @g(tensor<4xf32>) -> (tensor<4096xf32> {boa.param = @a::@w})
  boa.storage @x[2] : tensor<4xf32> on device role checkpoints
  boa.storage @gradients.a[1] : tensor<4096xf32> on device role gradients
  boa.step @evaluate(%step, %pending) {
    boa.loop micro_batch %m = 0 to 2 forward {
      %x = boa.read @x[%m] : tensor<4xf32>
      %g = boa.call @g(%x) : (tensor<4xf32>) -> tensor<4096xf32>
      %first = boa.at_first %m
      %c0 = arith.constant 0 : index
      boa.accumulate %g, @gradients.a[%c0] initial %first : tensor<4096xf32>
    }
  }
}

// -----

// The optimizer streams: a loop over the chunks of its update, each brought,
// updated and written back by itself. Its gradient is only read. The state is as
// much as the optimizer has: here one state, f32 weights without
// lower halves. `optimizer` in `place` is the tier of both.

// CHECK:       boa.storage @momentum.a[1] : tensor<16384xf32> on ssd
// CHECK-LABEL: boa.step @evaluate
// CHECK-SAME:    (%[[STEP:.*]], %{{.*}}) {
// CHECK:         boa.loop layer %[[L:.*]] = 0 to 1 forward {
// CHECK-NEXT:      boa.loop chunk %[[C:.*]] = 1 to 4 forward {
// CHECK:             %[[G:.*]] = boa.prefetch @gradients.a[%[[L]]] chunk %[[C]] count 1
// CHECK:             %[[W:.*]] = boa.prefetch @weights.a[%[[L]]] chunk %[[C]] count 1
// CHECK:             %[[M:.*]] = boa.prefetch @momentum.a[%[[L]]] chunk %[[C]] count 1
// CHECK:             boa.update @a chunk %[[C]] step %[[STEP]] weights(%[[W]] : {{.*}}) gradient(%[[G]] : {{.*}}) states(%[[M]] :
// CHECK-NEXT:        boa.offload %[[W]], @weights.a[%[[L]]] chunk %[[C]] count 1
// CHECK-NEXT:        boa.offload %[[M]], @momentum.a[%[[L]]] chunk %[[C]] count 1
// CHECK-NOT:         boa.offload
// CHECK-DAG:         boa.release %[[G]]
// CHECK-DAG:         boa.release %[[W]]
// CHECK-DAG:         boa.release %[[M]]

module {
  boa.config @plan {place = {optimizer = "ssd"}}
  boa.group @a repeat 1 {
    boa.param @w : tensor<16384xf32> = "ones"
  }
  boa.storage @weights.a[1] : tensor<16384xf32> on device role weights chunks 4 persistent
  boa.storage @gradients.a[1] : tensor<16384xf32> on device role gradients chunks 4
  boa.storage @momentum.a[1] : tensor<16384xf32> on device role state chunks 4 persistent
  boa.step @evaluate(%step, %pending) {
    boa.loop layer %l = 0 to 1 forward {
      boa.optimizer_update @a[%l] chunks 1 to 4 step %step
    }
  }
}

// -----

// Shares are of an entry's chunks, in order, rounded to whole ones. The optimizer runs on
// the host, whatever its state's home.

// CHECK: boa.storage @weights.a[1] : tensor<16384xf32> on device 1, host role weights chunks 4
// CHECK: boa.storage @gradients.a[1] : tensor<16384xf32> on ssd role gradients chunks 4
// CHECK: boa.storage @momentum.a[1] : tensor<16384xf32> on host 2, ssd role state chunks 4
// CHECK-LABEL: boa.step @evaluate
// CHECK:         boa.prefetch @gradients.a[%{{.*}}] chunk %{{.*}} count 1 : <tensor<16384xf32>, host>
// CHECK:         boa.prefetch @weights.a[%{{.*}}] chunk %{{.*}} count 1 : <tensor<16384xf32>, host>
// CHECK:         boa.prefetch @momentum.a[%{{.*}}] chunk %{{.*}} count 1 : <tensor<16384xf32>, host>

module {
  boa.config @plan {
    place = {gradients = "ssd", weights = ["device", 0.3, "host"], optimizer = ["host", 0.4, "ssd"]}
  }
  boa.group @a repeat 1 {
    boa.param @w : tensor<16384xf32> = "ones"
  }
  boa.storage @weights.a[1] : tensor<16384xf32> on device role weights chunks 4 persistent
  boa.storage @gradients.a[1] : tensor<16384xf32> on device role gradients chunks 4
  boa.storage @momentum.a[1] : tensor<16384xf32> on device role state chunks 4 persistent
  boa.step @evaluate(%step, %pending) {
    boa.loop layer %l = 0 to 1 forward {
      boa.optimizer_update @a[%l] chunks 0 to 4 step %step
    }
  }
}

// -----

// Or it runs on the device, out of its memory: gradients, their norm and all state.

// CHECK-LABEL: boa.step @evaluate
// CHECK:         boa.prefetch @gradients.a[%{{.*}}] : <tensor<16384xf32>, device>
// CHECK-NEXT:    boa.norm @a
// CHECK:         boa.prefetch @gradients.a[%{{.*}}] chunk %{{.*}} count 1 : <tensor<16384xf32>, device>
// CHECK:         boa.prefetch @weights.a[%{{.*}}] chunk %{{.*}} count 1 : <tensor<16384xf32>, device>
// CHECK:         boa.prefetch @momentum.a[%{{.*}}] chunk %{{.*}} count 1 : <tensor<16384xf32>, device>
// CHECK-NOT:     host>

module {
  boa.config @train {clip = 1.0}
  boa.config @plan {update = "device", place = {gradients = "ssd", optimizer = "host"}}
  boa.group @a repeat 1 {
    boa.param @w : tensor<16384xf32> = "ones"
  }
  boa.storage @weights.a[1] : tensor<16384xf32> on device role weights chunks 4 persistent
  boa.storage @gradients.a[1] : tensor<16384xf32> on device role gradients chunks 4
  boa.storage @momentum.a[1] : tensor<16384xf32> on device role state chunks 4 persistent
  boa.step @evaluate(%step, %pending) {
    boa.loop layer %l = 0 to 1 forward {
      boa.gradient_norm @a[%l]
    }
    boa.finish_norm %step
    boa.loop layer %l = 0 to 1 forward {
      boa.optimizer_update @a[%l] chunks 0 to 4 step %step
    }
  }
}

// -----

// The whole of a gradient is measured.

// CHECK-LABEL: boa.step @evaluate
// CHECK-SAME:    (%[[STEP:.*]], %{{.*}}) {
// CHECK:           %[[G:.*]] = boa.prefetch @gradients.a[%{{.*}}] :
// CHECK-NEXT:      boa.norm @a gradient %[[G]]
// CHECK-NEXT:      boa.release %[[G]]
// CHECK:         boa.finish_norm %[[STEP]]

module {
  boa.group @a repeat 1 {
    boa.param @w : tensor<16384xf32> = "ones"
  }
  boa.storage @gradients.a[1] : tensor<16384xf32> on device role gradients chunks 4
  boa.step @evaluate(%step, %pending) {
    boa.loop layer %l = 0 to 1 forward {
      boa.gradient_norm @a[%l]
    }
    boa.finish_norm %step
  }
}

// In the whole step of a model nothing of the step phase is left.

// WHOLE-LABEL: boa.step @step
// WHOLE-NOT:     boa.{{(read|write|accumulate|call|optimizer_update|gradient_norm)}}{{ }}
// WHOLE-LABEL: boa.step @drain
// WHOLE-NOT:     boa.{{(read|write|accumulate|call|optimizer_update|gradient_norm)}}{{ }}
// WHOLE-LABEL: boa.step @evaluate
// WHOLE-NOT:     boa.{{(read|write|accumulate|call|optimizer_update|gradient_norm)}}{{ }}

// -----

// Numbers are of layers, in order: all micro-batches of a checkpoint are one. A share is of the
// layers behind them: of their chunks, or, where an entry is one chunk, of each layer's entries.
// Rounded up in one layer, it is rounded down in the next. What no layer has is of the rest.

// CHECK: boa.storage @checkpoints[4, 3] : tensor<4xf32> on [0 to 3: host, 3 to 5: device, 5 to 6: ssd, 6 to 7: device, 7 to 9: ssd, 9 to 11: device, 11 to 12: ssd] role
// CHECK: boa.storage @boundary_gradients[4, 3] : tensor<4xf32> on [0 to 6: host, 6 to 12: ssd] role
// CHECK: boa.storage @boundary_gradients.sum[3] : tensor<4xf32> on ssd role
// CHECK: boa.storage @weights.a[6] : tensor<16384xf32> on [0 to 2: device, 2 to 5: host, 5 to 6: ssd] role
// CHECK: boa.storage @weights.b[1] : tensor<16384xf32> on ssd role
// CHECK: boa.storage @momentum.a[6] : tensor<16384xf32> on [0 to 2: device, 2 to 6: host 2, ssd] role
// CHECK: boa.storage @momentum.b[1] : tensor<16384xf32> on host 2, ssd role

module {
  boa.config @plan {
    place = {weights = ["device", 2, "host", 3, "ssd"], optimizer = ["device", 2, "host", 0.4, "ssd"],
             checkpoints = ["host", 1, "device", 0.5, "ssd"], boundary_gradients = ["host", 2, "ssd"]}
  }
  boa.storage @checkpoints[4, 3] : tensor<4xf32> on device role checkpoints
  boa.storage @boundary_gradients[4, 3] : tensor<4xf32> on device role boundary_gradients
  boa.storage @boundary_gradients.sum[3] : tensor<4xf32> on device role boundary_gradients
  boa.storage @weights.a[6] : tensor<16384xf32> on device role weights chunks 4 persistent
  boa.storage @weights.b[1] : tensor<16384xf32> on device role weights chunks 4 persistent
  boa.storage @momentum.a[6] : tensor<16384xf32> on device role state chunks 4 persistent
  boa.storage @momentum.b[1] : tensor<16384xf32> on device role state chunks 4 persistent
}
