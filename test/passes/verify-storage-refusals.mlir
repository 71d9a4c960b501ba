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
    %x = boa.create @x[%c1] : <tensor<8xf32>>
    boa.launch @k writes(%x : !boa.buffer<tensor<8xf32>>)
    boa.offload %x, @x[%c1] : <tensor<8xf32>>
    boa.release %x retain %true : <tensor<8xf32>>
  }
}

// -----

// The next step takes it up: no error.

module {
  boa.storage @x[2] : tensor<8xf32> on ssd role "x" persistent slots 1 of 1
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

// -----

// A storage must be declared.

module {
  boa.step @step(%step, %pending) {
    %c0 = arith.constant 0 : index
    // expected-error @below {{'boa.prefetch' op names a storage that does not exist: @nosuch}}
    %0 = boa.prefetch @nosuch[%c0]
    %x = boa.await %0 : <tensor<8xf32>>
    boa.release %x : <tensor<8xf32>>
  }
}

// -----

// Nobody wrote entry 1, and it did not exist before the step.

module {
  boa.storage @x[2] : tensor<8xf32> on ssd role "checkpoints"
  boa.step @step(%step, %pending) {
    boa.loop "layer" %l = 0 to 1 forward {
      %x = boa.create @x[%l] : <tensor<8xf32>>
      boa.launch @k writes(%x : !boa.buffer<tensor<8xf32>>)
      %0 = boa.offload %x, @x[%l] : <tensor<8xf32>>
      boa.release %x : <tensor<8xf32>>
      %next = boa.shift %l, 1
      // expected-error @below {{'boa.prefetch' op reads entry 1 of @x before it is written}}
      %1 = boa.prefetch @x[%next]
      %y = boa.await %1 : <tensor<8xf32>>
      boa.launch @k reads(%y : !boa.buffer<tensor<8xf32>>)
      boa.release %y : <tensor<8xf32>>
    }
  }
}

// -----

// Of four chunks three were written.

module {
  boa.storage @x[1] : tensor<16384xf32> on ssd role "gradients" chunks 4
  boa.step @step(%step, %pending) {
    %c0 = arith.constant 0 : index
    %true = arith.constant true
    boa.loop "chunk" %c = 0 to 3 forward {
      %0 = boa.prefetch @x[%c0] chunk %c count 1 zero %true
      %x = boa.await %0 : <tensor<16384xf32>>
      %1 = boa.offload %x, @x[%c0] chunk %c count 1 : <tensor<16384xf32>>
      boa.release %x : <tensor<16384xf32>>
    }
    // expected-error @below {{'boa.prefetch' op reads entry 0 of @x before it is written}}
    %0 = boa.prefetch @x[%c0]
    %x = boa.await %0 : <tensor<16384xf32>>
    boa.release %x : <tensor<16384xf32>>
  }
}

// -----

// A created buffer holds nothing yet, in memory as on SSD.

module {
  boa.storage @x[1] : tensor<8xf32> on device role "checkpoints"
  boa.step @step(%step, %pending) {
    %c0 = arith.constant 0 : index
    %x = boa.create @x[%c0] : <tensor<8xf32>>
    // expected-error @below {{'boa.launch' op reads entry 0 of @x before it is written}}
    boa.launch @k reads(%x : !boa.buffer<tensor<8xf32>>)
    boa.release %x : <tensor<8xf32>>
  }
}

// -----

// Chunks, too, have bounds,

module {
  boa.storage @x[1] : tensor<16384xf32> on ssd role "x" chunks 4 persistent
  boa.step @step(%step, %pending) {
    %c0 = arith.constant 0 : index
    %c3 = arith.constant 3 : index
    // expected-error @below {{'boa.prefetch' op indexes @x out of bounds}}
    %0 = boa.prefetch @x[%c0] chunk %c3 count 2
    %x = boa.await %0 : <tensor<16384xf32>>
    boa.release %x : <tensor<16384xf32>>
  }
}

// -----

// and only those that a buffer holds are written or updated.

module {
  boa.storage @x[1] : tensor<16384xf32> on ssd role "x" chunks 4 persistent
  boa.step @step(%step, %pending) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %0 = boa.prefetch @x[%c0] chunk %c0 count 1
    %x = boa.await %0 : <tensor<16384xf32>>
    // expected-error @below {{'boa.offload' op writes chunks that its buffer does not hold}}
    %1 = boa.offload %x, @x[%c0] chunk %c1 count 1 : <tensor<16384xf32>>
    boa.release %x : <tensor<16384xf32>>
  }
}

// -----

module {
  boa.group @a repeat 1 {
    boa.param @w : tensor<16384xf32> = "ones"
  }
  boa.storage @weights.a[1] : tensor<16384xf32> on ssd role "weights" chunks 4 persistent
  boa.storage @gradients.a[1] : tensor<16384xf32> on ssd role "gradients" chunks 4
  boa.step @step(%step, %pending) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %0 = boa.prefetch @gradients.a[%c0]
    %g = boa.await %0 : <tensor<16384xf32>>
    %1 = boa.prefetch @weights.a[%c0] chunk %c0 count 1
    %w = boa.await %1 : <tensor<16384xf32>>
    // expected-error @below {{'boa.update' op updates a chunk that a buffer of @weights.a entry 0 does not hold}}
    boa.update @a chunk %c1 step %step weights(%w : <tensor<16384xf32>>) gradient(%g : <tensor<16384xf32>>)
    boa.release %g : <tensor<16384xf32>>
    boa.release %w : <tensor<16384xf32>>
  }
}

// -----

// The group must be declared, too.

module {
  boa.storage @g[1] : tensor<8xf32> on ssd role "gradients" persistent
  boa.step @step(%step, %pending) {
    %c0 = arith.constant 0 : index
    %0 = boa.prefetch @g[%c0]
    %g = boa.await %0 : <tensor<8xf32>>
    // expected-error @below {{'boa.norm' op names a group that does not exist: @a}}
    boa.norm @a gradient %g : <tensor<8xf32>>
    boa.release %g : <tensor<8xf32>>
  }
}

// -----

// A buffer goes home to its own storage,

module {
  boa.storage @x[1] : tensor<8xf32> on ssd role "x" persistent
  boa.storage @y[1] : tensor<8xf32> on ssd role "y" persistent
  boa.step @step(%step, %pending) {
    %c0 = arith.constant 0 : index
    %0 = boa.prefetch @x[%c0]
    %x = boa.await %0 : <tensor<8xf32>>
    // expected-error @below {{'boa.offload' op writes a buffer of @x to @y}}
    %1 = boa.offload %x, @y[%c0] : <tensor<8xf32>>
    boa.release %x : <tensor<8xf32>>
  }
}

// -----

// and where that is memory, to its own entry: the buffer is the entry.

module {
  boa.storage @x[2] : tensor<8xf32> on host role "x" persistent
  boa.step @step(%step, %pending) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %0 = boa.prefetch @x[%c0]
    %x = boa.await %0 : <tensor<8xf32>>
    // expected-error @below {{'boa.offload' op writes @x entry 0 to entry 1, but moves nothing where a storage lives in memory}}
    %1 = boa.offload %x, @x[%c1] : <tensor<8xf32>>
    boa.release %x : <tensor<8xf32>>
  }
}

// -----

// Hence two buffers of one entry are the same memory there.

module {
  boa.storage @x[1] : tensor<8xf32> on device role "x" persistent
  boa.step @step(%step, %pending) {
    %c0 = arith.constant 0 : index
    %0 = boa.prefetch @x[%c0]
    %x = boa.await %0 : <tensor<8xf32>>
    %y = boa.create @x[%c0] : <tensor<8xf32>>
    // expected-error @below {{'boa.launch' op writes @x entry 0 while another operand is the same memory}}
    boa.launch @k reads(%x : !boa.buffer<tensor<8xf32>>) writes(%y : !boa.buffer<tensor<8xf32>>)
    boa.release %x : <tensor<8xf32>>
    boa.release %y : <tensor<8xf32>>
  }
}

// -----

// A copy that a write makes stale is given back by the runtime: it was retained for
// nothing.

module {
  boa.storage @x[1] : tensor<16384xf32> on ssd role "x" chunks 4 persistent
  // expected-error @below {{'boa.step' op retains a copy of @x entry 0 that nothing takes up}}
  boa.step @step(%step, %pending) {
    %c0 = arith.constant 0 : index
    %true = arith.constant true
    %0 = boa.prefetch @x[%c0]
    %x = boa.await %0 : <tensor<16384xf32>>
    boa.release %x retain %true : <tensor<16384xf32>>
    %1 = boa.prefetch @x[%c0] chunk %c0 count 1 zero %true
    %y = boa.await %1 : <tensor<16384xf32>>
    %2 = boa.offload %y, @x[%c0] chunk %c0 count 1 : <tensor<16384xf32>>
    boa.release %y : <tensor<16384xf32>>
    %3 = boa.prefetch @x[%c0]
    %z = boa.await %3 : <tensor<16384xf32>>
    boa.release %z : <tensor<16384xf32>>
  }
}

// -----

// In the first step nothing is pending, so that only the next takes the copy up:
// no error.

module {
  boa.group @a repeat 1 {
    boa.param @w : tensor<16384xf32> = "ones"
  }
  boa.storage @weights.a[1] : tensor<16384xf32> on ssd role "weights" chunks 1 persistent
  boa.storage @gradients.a[1] : tensor<16384xf32> on ssd role "gradients" chunks 1
  boa.step @step(%step, %pending) {
    %c0 = arith.constant 0 : index
    %true = arith.constant true
    %0 = boa.prefetch @weights.a[%c0]
    %x = boa.await %0 : <tensor<16384xf32>>
    boa.launch @k reads(%x : !boa.buffer<tensor<16384xf32>>)
    boa.release %x retain %true : <tensor<16384xf32>>
    boa.loop "chunk" %c = 0 to 1 forward if %pending {
      %1 = boa.prefetch @gradients.a[%c0] chunk %c count 1
      %g = boa.await %1 : <tensor<16384xf32>>
      %2 = boa.prefetch @weights.a[%c0] chunk %c count 1
      %w = boa.await %2 : <tensor<16384xf32>>
      boa.update @a chunk %c step %pending weights(%w : <tensor<16384xf32>>) gradient(%g : <tensor<16384xf32>>)
      %3 = boa.offload %w, @weights.a[%c0] chunk %c count 1 : <tensor<16384xf32>>
      boa.release %g : <tensor<16384xf32>>
      boa.release %w : <tensor<16384xf32>>
    }
    %4 = boa.create @gradients.a[%c0] : <tensor<16384xf32>>
    boa.launch @k writes(%4 : !boa.buffer<tensor<16384xf32>>)
    %5 = boa.offload %4, @gradients.a[%c0] : <tensor<16384xf32>>
    boa.release %4 : <tensor<16384xf32>>
  }
}

// -----

// A loop over what may be pending needs a guard: without one it runs in the first
// step too, where no gradient was made. What is in the loop says nothing of that.

module {
  boa.group @a repeat 1 {
    boa.param @w : tensor<16384xf32> = "ones"
  }
  boa.storage @weights.a[1] : tensor<16384xf32> on device role "weights" chunks 4 persistent
  boa.storage @gradients.a[1] : tensor<16384xf32> on ssd role "gradients" chunks 4
  boa.step @step(%step, %pending) {
    %c0 = arith.constant 0 : index
    boa.loop "chunk" %c = 3 to 4 forward {
      // expected-error @below {{'boa.prefetch' op reads entry 0 of @gradients.a before it is written}}
      %0 = boa.prefetch @gradients.a[%c0] chunk %c count 1
      %g = boa.await %0 : <tensor<16384xf32>>
      %1 = boa.prefetch @weights.a[%c0] chunk %c count 1
      %w = boa.await %1 : <tensor<16384xf32>>
      boa.update @a chunk %c step %pending weights(%w : <tensor<16384xf32>>) gradient(%g : <tensor<16384xf32>>)
      boa.release %g : <tensor<16384xf32>>
      boa.release %w : <tensor<16384xf32>>
    }
    %2 = boa.create @gradients.a[%c0] : <tensor<16384xf32>>
    boa.launch @k writes(%2 : !boa.buffer<tensor<16384xf32>>)
    %3 = boa.offload %2, @gradients.a[%c0] : <tensor<16384xf32>>
    boa.release %2 : <tensor<16384xf32>>
  }
}

// -----

// Odd steps run this loop downward and read entry 0 before they write it; even ones
// do not.

module {
  boa.storage @x[2] : tensor<8xf32> on ssd role "checkpoints"
  boa.step @step(%step, %pending) {
    %c0 = arith.constant 0 : index
    boa.loop "micro_batch" %m = 0 to 2 snake(%step) {
      %x = boa.create @x[%m] : <tensor<8xf32>>
      boa.launch @k writes(%x : !boa.buffer<tensor<8xf32>>)
      %0 = boa.offload %x, @x[%m] : <tensor<8xf32>>
      boa.release %x : <tensor<8xf32>>
      // expected-error @below {{'boa.prefetch' op reads entry 0 of @x before it is written}}
      %1 = boa.prefetch @x[%c0]
      %y = boa.await %1 : <tensor<8xf32>>
      boa.launch @k reads(%y : !boa.buffer<tensor<8xf32>>)
      boa.release %y : <tensor<8xf32>>
    }
  }
}

// -----

// What holds for the runs that are enumerated holds for all only once a run leaves
// what an earlier one left. Here values wander through twelve entries, one a step.

module {
  boa.storage @x[12] : tensor<8xf32> on ssd role "weights" persistent
  // expected-error @below {{'boa.step' op does not become steady: each of the first runs leaves something else in storages or retained copies than every run before it}}
  boa.step @step(%step, %pending) {
    %c0 = arith.constant 0 : index
    boa.loop "layer" %l = 0 to 11 reverse {
      %l1 = boa.shift %l, 1
      %0 = boa.prefetch @x[%l]
      %x = boa.await %0 : <tensor<8xf32>>
      %1 = boa.offload %x, @x[%l1] : <tensor<8xf32>>
      boa.release %x : <tensor<8xf32>>
    }
    %y = boa.create @x[%c0] : <tensor<8xf32>>
    boa.launch @k writes(%y : !boa.buffer<tensor<8xf32>>)
    %2 = boa.offload %y, @x[%c0] : <tensor<8xf32>>
    boa.release %y : <tensor<8xf32>>
  }
}

// -----

// Through four of them they wander in four steps: then it is the same.

module {
  boa.storage @x[4] : tensor<8xf32> on ssd role "weights" persistent
  boa.step @step(%step, %pending) {
    %c0 = arith.constant 0 : index
    boa.loop "layer" %l = 0 to 3 reverse {
      %l1 = boa.shift %l, 1
      %0 = boa.prefetch @x[%l]
      %x = boa.await %0 : <tensor<8xf32>>
      %1 = boa.offload %x, @x[%l1] : <tensor<8xf32>>
      boa.release %x : <tensor<8xf32>>
    }
    %y = boa.create @x[%c0] : <tensor<8xf32>>
    boa.launch @k writes(%y : !boa.buffer<tensor<8xf32>>)
    %2 = boa.offload %y, @x[%c0] : <tensor<8xf32>>
    boa.release %y : <tensor<8xf32>>
  }
}
