// RUN: boa-opt %s --split-input-file --cuda-outline-launches --cuda-emit-updates | FileCheck %s
// RUN: boa-opt %s --split-input-file --cuda-code-pipeline | FileCheck %s --check-prefix=PTX

// With the optimizer on the device each trained group has a function for its updates and one for
// its norm. A thread updates four elements: all that it reads, then all that it writes. Of weights
// in bf16 the master is put together from its halves and taken apart again.

// CHECK-LABEL: gpu.module @cuda
// CHECK:       gpu.func @update_block(
// CHECK-SAME:    %[[C:[^:]*]]: memref<6xf32> {llvm.align = 64 : i64, llvm.noalias},
// CHECK-SAME:    %[[FLAG:[^:]*]]: memref<1xi32> {{{[^}]*}}},
// CHECK-SAME:    %[[HIGH:[^:]*]]: memref<4096xi16> {{{[^}]*}}},
// CHECK-SAME:    %[[LOW:[^:]*]]: memref<4096xi16> {{{[^}]*}}},
// CHECK-SAME:    %[[M:[^:]*]]: memref<4096xf32> {{{[^}]*}}},
// CHECK-SAME:    %[[V:[^:]*]]: memref<4096xf32> {{{[^}]*}}},
// CHECK-SAME:    %[[G:[^:]*]]: memref<4096xf32> {{{[^}]*}}}) kernel
// CHECK-SAME:    known_block_size = array<i32: 256, 1, 1>
// CHECK-SAME:    known_grid_size = array<i32: 4, 1, 1>
// CHECK-COUNT-4: memref.load %[[G]]
// CHECK-NOT:     memref.load
// CHECK:         arith.extui
// CHECK:         arith.divf
// CHECK:         arith.trunci
// CHECK-COUNT-4: memref.store %{{.*}}, %[[V]]
// CHECK:         scf.if
// CHECK:           memref.store %{{.*}}, %[[FLAG]]
// CHECK:       gpu.func @norm_block(%{{.*}}: memref<8192xf32> {{{[^}]*}}}, %{{.*}}: memref<2xf64> {{{[^}]*}}})
// CHECK-SAME:    workgroup(%{{.*}} : memref<128xf64, #gpu.address_space<workgroup>>

// Nothing is fused, and what is rounded is rounded as on the host; accesses are of 128 bits.

// PTX:           .visible .entry update_block(
// PTX-NOT:       fma
// PTX-SAME:      ld.global{{(.nc)?}}.v4
// PTX-NOT:       fma
// PTX-SAME:      mul.rn.f32
// PTX-NOT:       fma
// PTX-SAME:      add.rn.f32
// PTX-NOT:       fma
// PTX-SAME:      sqrt.rn.f32
// PTX-NOT:       fma
// PTX-SAME:      div.rn.f32
// PTX-NOT:       fma
// PTX-SAME:      st.global.v4
// PTX-NOT:       fma
// PTX-SAME:      .visible .entry norm_block(
// PTX-NOT:       fma
// PTX-SAME:      mul.rn.f64
// PTX-NOT:       fma
// PTX-SAME:      add.rn.f64
// PTX-NOT:       fma
// PTX-SAME:      \00")

module {
  boa.optimizer @moments {} states {momentum = f32, variance = f32} prepare {
  ^bb0(%t: f64):
    %rest = arith.constant 0.1 : f32
    %eps = arith.constant 1.0e-8 : f32
    boa.yield %rest, %eps : f32, f32
  } update {
  ^bb0(%w: f32, %g: f32, %rate: f32, %weight_decay: f32, %m: f32, %v: f32, %rest: f32, %eps: f32):
    %new = arith.mulf %rest, %g : f32
    %momentum = arith.addf %m, %new : f32
    %square = arith.mulf %g, %g : f32
    %variance = arith.addf %v, %square : f32
    %root = math.sqrt %variance : f32
    %divisor = arith.addf %root, %eps : f32
    %direction = arith.divf %momentum, %divisor : f32
    %change = arith.mulf %rate, %direction : f32
    %next = arith.subf %w, %change : f32
    boa.yield %next, %momentum, %variance : f32, f32, f32
  }
  boa.config @train {weights = "bf16", optimizer = {weight_decay = 0.1}}
  boa.config @plan {update = "device"}
  boa.group @params.block repeat 2 {
    boa.param @bias : tensor<64xf32> = "zeros"
    boa.param @matrix : tensor<64x64xf32> = "ones"
  }
  boa.storage @weights.block[2] : tensor<8192xbf16> on device role weights chunks 2 persistent
  boa.storage @low.block[2] : tensor<8192xi16> on device role master chunks 2 persistent
  boa.storage @momentum.block[2] : tensor<8192xf32> on device role state chunks 2 persistent
  boa.storage @variance.block[2] : tensor<8192xf32> on device role state chunks 2 persistent
  boa.storage @gradients.block[2] : tensor<8192xf32> on device role gradients chunks 2
}

// -----

// SGD without a momentum has weights and a gradient alone. Each parameter has its own factor of the
// rate, and its own decay. What is frozen has no functions.

// CHECK-LABEL: gpu.module @cuda
// CHECK:       gpu.func @update_a(%{{[^:]*}}: memref<4xf32> {{{[^}]*}}}, %{{[^:]*}}: memref<1xi32> {{{[^}]*}}}, %{{[^:]*}}: memref<2048xf32> {{{[^}]*}}}, %{{[^:]*}}: memref<2048xf32> {{{[^}]*}}}) kernel
// CHECK-DAG:     %[[HALF:.*]] = arith.constant 5.000000e-01 : f32
// CHECK-DAG:     %[[ONE:.*]] = arith.constant 1.000000e+00 : f32
// CHECK-DAG:     arith.select %{{.*}}, %[[ONE]], %[[HALF]] : f32
// CHECK-DAG:     arith.select %{{.*}}, %{{.*}}, %[[DECAY:.*]] : f32
// CHECK-NOT:     @update_frozen

module {
  boa.optimizer @sgd {} states {} prepare {
  ^bb0(%t: f64):
    boa.yield
  } update {
  ^bb0(%w: f32, %g: f32, %rate: f32, %weight_decay: f32):
    %change = arith.mulf %rate, %g : f32
    %next = arith.subf %w, %change : f32
    boa.yield %next : f32
  }
  boa.config @plan {update = "device"}
  boa.group @a repeat 1 {
    boa.param @w : tensor<64xf32> = "zeros"
    boa.param @v : tensor<64xf32> = "zeros" lr_scale 0.5 weight_decay 0.1
  }
  boa.group @frozen.a repeat 1 frozen {
    boa.param @u : tensor<64xf32> = "zeros" number 2
  }
  boa.storage @weights.a[1] : tensor<2048xf32> on device role weights persistent
  boa.storage @weights.frozen.a[1] : tensor<2048xf32> on device role weights persistent
  boa.storage @gradients.a[1] : tensor<2048xf32> on device role gradients
}

// -----

// A state in 8 bits has codes and scales. The threads of a block of 256 elements agree on its scale.

// CHECK-LABEL: gpu.module @cuda
// CHECK:       gpu.func @update_a(
// CHECK-SAME:    %[[CODES:[^:]*]]: memref<2048xi8> {{{[^}]*}}}, %[[SCALES:[^:]*]]: memref<8xf32> {{{[^}]*}}}, %{{[^:]*}}: memref<2048xf32> {{{[^}]*}}})
// CHECK-SAME:    workgroup(%{{.*}} : memref<256xi32, #gpu.address_space<workgroup>>
// CHECK:         memref.load %[[SCALES]]
// CHECK-COUNT-4: memref.load %[[CODES]]
// CHECK:         gpu.barrier
// CHECK-COUNT-6: gpu.barrier
// CHECK:         memref.store %{{.*}}, %[[SCALES]]
// CHECK-COUNT-4: memref.store %{{.*}}, %[[CODES]]

module {
  boa.optimizer @coded {} states {moment = si8} prepare {
  ^bb0(%t: f64):
    boa.yield
  } update {
  ^bb0(%w: f32, %g: f32, %rate: f32, %weight_decay: f32, %m: f32):
    %change = arith.mulf %rate, %g : f32
    %next = arith.subf %w, %change : f32
    boa.yield %next, %g : f32, f32
  }
  boa.config @plan {update = "device"}
  boa.group @a repeat 1 {
    boa.param @w : tensor<64xf32> = "zeros"
  }
  boa.storage @weights.a[1] : tensor<2048xf32> on device role weights persistent
  boa.storage @gradients.a[1] : tensor<2048xf32> on device role gradients
  boa.storage @moment.a[1] : tensor<4096xi8> on device role state persistent
}

// -----

// On the host it needs none.

// CHECK-LABEL: gpu.module @cuda
// CHECK-NEXT:  }

module {
  boa.group @a repeat 1 {
    boa.param @w : tensor<64xf32> = "zeros"
  }
  boa.storage @weights.a[1] : tensor<2048xf32> on device role weights persistent
  boa.storage @gradients.a[1] : tensor<2048xf32> on device role gradients
}
