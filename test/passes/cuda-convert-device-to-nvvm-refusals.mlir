// RUN: boa-opt %s --cuda-convert-device-to-nvvm --split-input-file --verify-diagnostics

// Math that is no instruction would be a call of a library that no program has.

gpu.module @cuda {
  gpu.func @k(%x: memref<32xf32>) kernel {
    %t = gpu.thread_id x
    %0 = memref.load %x[%t] : memref<32xf32>
    // expected-error @below {{'math.erf' op has no PTX instruction, and --kernel-expand-math does not expand it}}
    %1 = math.erf %0 : f32
    memref.store %1, %x[%t] : memref<32xf32>
    gpu.return
  }
}

// -----

// Nor is the sine, of which PTX has an approximation alone.

gpu.module @cuda {
  gpu.func @k(%x: memref<32xf32>) kernel {
    %t = gpu.thread_id x
    %0 = memref.load %x[%t] : memref<32xf32>
    // expected-error @below {{'math.sin' op has no PTX instruction, and --kernel-expand-math does not expand it}}
    %1 = math.sin %0 : f32
    memref.store %1, %x[%t] : memref<32xf32>
    gpu.return
  }
}

// -----

// These are.

gpu.module @cuda {
  gpu.func @k(%x: memref<32xf32>) kernel {
    %t = gpu.thread_id x
    %0 = memref.load %x[%t] : memref<32xf32>
    %1 = math.sqrt %0 : f32
    %2 = math.rsqrt %1 : f32
    %3 = math.fma %0, %1, %2 : f32
    %4 = math.roundeven %3 : f32
    memref.store %4, %x[%t] : memref<32xf32>
    gpu.return
  }
}
