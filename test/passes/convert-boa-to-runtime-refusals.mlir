// RUN: boa-opt %s --convert-boa-to-runtime --split-input-file --verify-diagnostics

// Kernels become numbers, and one that does not exist has none.

module {
  boa.storage @x[1] : tensor<1024xf32> on ssd role checkpoints persistent slots device 1 x 1
  boa.kernel @other(%buffers: !llvm.ptr, %workspace: !llvm.ptr, %queue: !llvm.ptr) writes [tensor<1024xf32>] {
    boa.return
  }
  boa.step @step(%step, %pending) {
    %c0 = arith.constant 0 : index
    %x = boa.create @x[%c0] : <tensor<1024xf32>, device>
    // expected-error @below {{'boa.launch' op expected a kernel named @k}}
    boa.launch @k writes(%x : <tensor<1024xf32>, device>)
    boa.release %x : <tensor<1024xf32>, device>
  }
}

// -----

// Groups, too, become numbers.

module {
  boa.storage @g[1] : tensor<1024xf32> on ssd role gradients persistent slots device 1 x 1
  boa.step @step(%step, %pending) {
    %c0 = arith.constant 0 : index
    %g = boa.prefetch @g[%c0] : <tensor<1024xf32>, host>
    // expected-error @below {{'boa.norm' op names a group that does not exist: @a}}
    boa.norm @a gradient %g : <tensor<1024xf32>, host>
    boa.release %g : <tensor<1024xf32>, host>
  }
}

// -----

// Values have no runtime call: they were to become buffers.

module {
  boa.storage @x[1] : tensor<1024xf32> on ssd role checkpoints persistent
  boa.step @step(%step, %pending) {
    %c0 = arith.constant 0 : index
    // expected-error @below {{'boa.read' op belongs to the step phase: expected the output of --boa-insert-offload}}
    %x = boa.read @x[%c0] : tensor<1024xf32>
  }
}
