// RUN: boa-opt %s --cuda-embed-image --split-input-file --verify-diagnostics

// Nobody links the device's code: a driver would refuse it when a training begins.

// expected-error @+1 {{the device's code calls `__nv_sinf`, which nothing defines}}
gpu.module @cuda {
  llvm.func @__nv_sinf(f32) -> f32
  llvm.func @k(%x: !llvm.ptr) attributes {gpu.kernel, nvvm.kernel} {
    %0 = llvm.load %x : !llvm.ptr -> f32
    %1 = llvm.call @__nv_sinf(%0) : (f32) -> f32
    llvm.store %1, %x : f32, !llvm.ptr
    llvm.return
  }
}

// -----

// What nothing calls need not be there.

gpu.module @cuda {
  llvm.func @__nv_sinf(f32) -> f32
  llvm.func @k(%x: !llvm.ptr) attributes {gpu.kernel, nvvm.kernel} {
    %0 = llvm.load %x : !llvm.ptr -> f32
    llvm.store %0, %x : f32, !llvm.ptr
    llvm.return
  }
}
