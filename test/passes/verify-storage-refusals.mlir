// RUN: boa-opt %s --boa-verify-storage --split-input-file --verify-diagnostics

// A slot that is never given back: the second step would have none.

module {
  boa.storage @x[2] : tensor<8xf32> on ssd role "x" persistent
  boa.step @step(%step, %pending) {
    %c0 = arith.constant 0 : index
    // expected-error @below {{'boa.prefetch' op takes a slot that is not released}}
    %0 = boa.prefetch @x[%c0]
    %x = boa.await %0 : <tensor<8xf32>>
    boa.launch @k reads(%x : !boa.buffer<tensor<8xf32>>)
  }
}

// -----

// Its contents are anybody's after the release.

module {
  boa.storage @x[2] : tensor<8xf32> on ssd role "x" persistent
  boa.step @step(%step, %pending) {
    %c0 = arith.constant 0 : index
    %0 = boa.prefetch @x[%c0]
    %x = boa.await %0 : <tensor<8xf32>>
    boa.release %x : <tensor<8xf32>>
    // expected-error @below {{'boa.launch' op uses a buffer after its release}}
    boa.launch @k reads(%x : !boa.buffer<tensor<8xf32>>)
  }
}

// -----

// Nor is it released twice.

module {
  boa.storage @x[2] : tensor<8xf32> on ssd role "x" persistent
  boa.step @step(%step, %pending) {
    %c0 = arith.constant 0 : index
    %x = boa.create @x[%c0] : <tensor<8xf32>>
    boa.release %x : <tensor<8xf32>>
    // expected-error @below {{'boa.release' op uses a buffer after its release}}
    boa.release %x : <tensor<8xf32>>
  }
}

// -----

// Released in one iteration, used in the next.

module {
  boa.storage @x[2] : tensor<8xf32> on ssd role "x" persistent
  boa.step @step(%step, %pending) {
    %c0 = arith.constant 0 : index
    %x = boa.create @x[%c0] : <tensor<8xf32>>
    boa.loop "micro_batch" %m = 0 to 2 forward {
      // expected-error @below {{'boa.launch' op uses a buffer after its release}}
      boa.launch @k updates(%x : !boa.buffer<tensor<8xf32>>)
      boa.release %x : <tensor<8xf32>>
    }
  }
}

// -----

// A copy that is retained for a prefetch which never comes holds its slot forever.

module {
  boa.storage @x[2] : tensor<8xf32> on ssd role "x" persistent
  // expected-error @below {{'boa.step' op retains a copy of @x entry 1 that nothing takes up}}
  boa.step @step(%step, %pending) {
    %c1 = arith.constant 1 : index
    %true = arith.constant true
    %0 = boa.prefetch @x[%c1]
    %x = boa.await %0 : <tensor<8xf32>>
    boa.release %x retain %true : <tensor<8xf32>>
  }
}

// -----

// More slots at once than were assigned: the engine would wait for ever.

module {
  boa.storage @x[3] : tensor<8xf32> on ssd role "x" persistent slots 2 of 1
  boa.step @step(%step, %pending) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %0 = boa.prefetch @x[%c0]
    %1 = boa.prefetch @x[%c1]
    // expected-error @below {{'boa.prefetch' op needs more slots of @x than the 2 assigned}}
    %2 = boa.prefetch @x[%c2]
    %x = boa.await %0 : <tensor<8xf32>>
    %y = boa.await %1 : <tensor<8xf32>>
    %z = boa.await %2 : <tensor<8xf32>>
    boa.release %x : <tensor<8xf32>>
    boa.release %y : <tensor<8xf32>>
    boa.release %z : <tensor<8xf32>>
  }
}

// -----

// Indices are checked in every iteration.

module {
  boa.storage @x[3] : tensor<8xf32> on ssd role "x" persistent
  boa.step @step(%step, %pending) {
    boa.loop "layer" %l = 0 to 4 forward {
      // expected-error @below {{'boa.create' op indexes @x out of bounds}}
      %x = boa.create @x[%l] : <tensor<8xf32>>
      boa.release %x : <tensor<8xf32>>
    }
  }
}

// -----

// A retained copy that is taken up holds one slot, not two: no error.

module {
  boa.storage @x[3] : tensor<8xf32> on ssd role "x" persistent slots 1 of 1
  boa.step @step(%step, %pending) {
    %c0 = arith.constant 0 : index
    %true = arith.constant true
    %x = boa.create @x[%c0] : <tensor<8xf32>>
    boa.release %x retain %true : <tensor<8xf32>>
    %0 = boa.prefetch @x[%c0]
    %y = boa.await %0 : <tensor<8xf32>>
    boa.release %y : <tensor<8xf32>>
  }
}
