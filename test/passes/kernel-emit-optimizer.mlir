// RUN: boa-opt %s --kernel-emit-optimizer --split-input-file --verify-diagnostics | FileCheck %s

// A loop over elements, in a function whose pointers are apart: LLVM vectorises it. Around it, a
// loop over ranges of one rate and one decay.

// CHECK-LABEL: func.func @boa_prepare_update(%{{.*}}: i64, %{{.*}}: !llvm.ptr)
// CHECK-LABEL: func.func private @boa_update_elements(
// CHECK-SAME:      !llvm.ptr {llvm.noalias}, %{{.*}}: !llvm.ptr {llvm.noalias}, %{{.*}}: !llvm.ptr {llvm.noalias}, %{{.*}}: f32,
// CHECK-SAME:      attributes {llvm.linkage = #llvm.linkage<internal>}
// CHECK:         scf.for
// CHECK-COUNT-2:   llvm.load
// CHECK:           arith.subf
// CHECK:           llvm.store
// CHECK-NOT:       llvm.load
// CHECK-LABEL: func.func @boa_update(
// CHECK-NOT:     llvm.alloca
// CHECK:         scf.for
// CHECK:           func.call @boa_update_elements
// CHECK:         return

boa.optimizer @sgd {} states {} prepare {
^bb0(%t: f64):
  boa.yield
} update {
^bb0(%w: f32, %g: f32, %rate: f32, %weight_decay: f32):
  %change = arith.mulf %rate, %g : f32
  %next = arith.subf %w, %change : f32
  boa.yield %next : f32
}
boa.group @a repeat 1 {
  boa.param @w : tensor<8xf32> = "ones"
}
boa.storage @weights.a[1] : tensor<2048xf32> on device role weights persistent
boa.storage @gradients.a[1] : tensor<2048xf32> on device role gradients
boa.step @step(%step, %pending) {
  %c0 = arith.constant 0 : index
  %w = boa.prefetch @weights.a[%c0] : <tensor<2048xf32>, host>
  %g = boa.prefetch @gradients.a[%c0] : <tensor<2048xf32>, host>
  boa.update @a chunk %c0 step %step weights(%w : <tensor<2048xf32>, host>) gradient(%g : <tensor<2048xf32>, host>)
}

// -----

// Weights in bf16 are joined with their lower halves. Codes are decoded before a part of a chunk is
// updated, and encoded after it.

// CHECK-LABEL: func.func private @boa_update_elements(
// CHECK:         llvm.load %{{.*}} : !llvm.ptr -> i16
// CHECK:         llvm.load %{{.*}} : !llvm.ptr -> i16
// CHECK:         llvm.store %{{.*}} : i16, !llvm.ptr
// CHECK-LABEL: func.func @boa_update(
// CHECK:         llvm.alloca
// CHECK:         scf.for
// CHECK:           scf.for
// CHECK:             scf.for
// CHECK:               llvm.load %{{.*}} : !llvm.ptr -> i8
// CHECK:           func.call @boa_update_elements
// CHECK:             arith.maxui
// CHECK:               llvm.store %{{.*}} : i8, !llvm.ptr

boa.optimizer @sgd {} states {moment = si8} prepare {
^bb0(%t: f64):
  boa.yield
} update {
^bb0(%w: f32, %g: f32, %rate: f32, %weight_decay: f32, %m: f32):
  %change = arith.mulf %rate, %g : f32
  %next = arith.subf %w, %change : f32
  boa.yield %next, %g : f32, f32
}
boa.group @a repeat 1 {
  boa.param @w : tensor<8xf32> = "ones"
}
boa.storage @weights.a[1] : tensor<2048xbf16> on device role weights persistent
boa.storage @low.a[1] : tensor<2048xi16> on device role master persistent
boa.storage @gradients.a[1] : tensor<2048xf32> on device role gradients
boa.storage @moment.a[1] : tensor<4096xi8> on device role state persistent
boa.step @step(%step, %pending) {
  %c0 = arith.constant 0 : index
  %w = boa.prefetch @weights.a[%c0] : <tensor<2048xbf16>, host>
  %g = boa.prefetch @gradients.a[%c0] : <tensor<2048xf32>, host>
  %low = boa.prefetch @low.a[%c0] : <tensor<2048xi16>, host>
  %m = boa.prefetch @moment.a[%c0] : <tensor<4096xi8>, host>
  boa.update @a chunk %c0 step %step weights(%w : <tensor<2048xbf16>, host>) gradient(%g : <tensor<2048xf32>, host>) low(%low : <tensor<2048xi16>, host>) states(%m : <tensor<4096xi8>, host>)
}

// -----

// Nothing is updated: no function.

// CHECK-NOT: func.func
boa.optimizer @sgd {} states {} prepare {
^bb0(%t: f64):
  boa.yield
} update {
^bb0(%w: f32, %g: f32, %rate: f32, %weight_decay: f32):
  %change = arith.mulf %rate, %g : f32
  %next = arith.subf %w, %change : f32
  boa.yield %next : f32
}

// -----

// expected-error @below {{expected a boa.optimizer with a body: the program updates weights}}
module {
boa.optimizer @sgd {} states {}
boa.group @a repeat 1 {
  boa.param @w : tensor<8xf32> = "ones"
}
boa.storage @weights.a[1] : tensor<2048xf32> on device role weights persistent
boa.storage @gradients.a[1] : tensor<2048xf32> on device role gradients
boa.step @step(%step, %pending) {
  %c0 = arith.constant 0 : index
  %w = boa.prefetch @weights.a[%c0] : <tensor<2048xf32>, host>
  %g = boa.prefetch @gradients.a[%c0] : <tensor<2048xf32>, host>
  boa.update @a chunk %c0 step %step weights(%w : <tensor<2048xf32>, host>) gradient(%g : <tensor<2048xf32>, host>)
}
}
