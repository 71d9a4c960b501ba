// RUN: boa-opt %s --kernel-form-groups --split-input-file --verify-diagnostics

// A kernel is straight-line code: memory, ops with loops, library calls.

boa.kernel @loop(%p: !llvm.ptr, %w: !llvm.ptr) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // expected-error @below {{'scf.for' op is not expected in a kernel here}}
  scf.for %i = %c0 to %c1 step %c1 {
  }
  boa.return
}

// -----

// Extents are known.

boa.kernel @dynamic(%x: memref<?x8xf32>, %zero: f32) {
  // expected-error @below {{'linalg.fill' op is not expected in a kernel here}}
  linalg.fill ins(%zero : f32) outs(%x : memref<?x8xf32>)
  boa.return
}
