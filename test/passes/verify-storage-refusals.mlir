// RUN: boa-opt %s --boa-verify-storage --split-input-file --verify-diagnostics

// A slot that is never given back: the second step would have none.

module {
  boa.storage @x[2] : tensor<8xf32> on ssd role checkpoints persistent
  boa.step @step(%step, %pending) {
    %c0 = arith.constant 0 : index
    // expected-error @below {{'boa.prefetch' op takes a slot that is not released}}
    %x = boa.prefetch @x[%c0] : <tensor<8xf32>, device>
    boa.launch @k reads(%x : <tensor<8xf32>, device>)
  }
}

// -----

// Its contents are anybody's after the release.

module {
  boa.storage @x[2] : tensor<8xf32> on ssd role checkpoints persistent
  boa.step @step(%step, %pending) {
    %c0 = arith.constant 0 : index
    %x = boa.prefetch @x[%c0] : <tensor<8xf32>, device>
    boa.release %x : <tensor<8xf32>, device>
    // expected-error @below {{'boa.launch' op uses a buffer after its release}}
    boa.launch @k reads(%x : <tensor<8xf32>, device>)
  }
}

// -----

// Nor is it released twice.

module {
  boa.storage @x[2] : tensor<8xf32> on ssd role checkpoints persistent
  boa.step @step(%step, %pending) {
    %c0 = arith.constant 0 : index
    %x = boa.create @x[%c0] : <tensor<8xf32>, device>
    boa.release %x : <tensor<8xf32>, device>
    // expected-error @below {{'boa.release' op uses a buffer after its release}}
    boa.release %x : <tensor<8xf32>, device>
  }
}

// -----

// Released in one iteration, used in the next.

module {
  boa.storage @x[2] : tensor<8xf32> on ssd role checkpoints persistent
  boa.step @step(%step, %pending) {
    %c0 = arith.constant 0 : index
    %x = boa.create @x[%c0] : <tensor<8xf32>, device>
    boa.loop micro_batch %m = 0 to 2 forward {
      // expected-error @below {{'boa.launch' op uses a buffer after its release}}
      boa.launch @k updates(%x : <tensor<8xf32>, device>)
      boa.release %x : <tensor<8xf32>, device>
    }
  }
}

// -----

// A copy that is retained for a prefetch which never comes holds its slot forever.

module {
  boa.storage @x[2] : tensor<8xf32> on ssd role checkpoints persistent
  // expected-error @below {{'boa.step' op retains a copy of @x entry 1 that nothing takes up}}
  boa.step @step(%step, %pending) {
    %c1 = arith.constant 1 : index
    %true = arith.constant true
    %x = boa.create @x[%c1] : <tensor<8xf32>, device>
    boa.launch @k writes(%x : <tensor<8xf32>, device>)
    boa.offload %x, @x[%c1] : <tensor<8xf32>, device>
    boa.release %x retain %true : <tensor<8xf32>, device>
  }
}

// -----

// The next step takes it up: no error.

module {
  boa.storage @x[2] : tensor<8xf32> on ssd role checkpoints persistent slots device 1 x 1
  boa.step @step(%step, %pending) {
    %c1 = arith.constant 1 : index
    %true = arith.constant true
    %x = boa.prefetch @x[%c1] : <tensor<8xf32>, device>
    boa.release %x retain %true : <tensor<8xf32>, device>
  }
}

// -----

// More slots at once than were assigned: the engine would wait for ever.

module {
  boa.storage @x[3] : tensor<8xf32> on ssd role checkpoints persistent slots device 2 x 1
  boa.step @step(%step, %pending) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %x = boa.prefetch @x[%c0] : <tensor<8xf32>, device>
    %y = boa.prefetch @x[%c1] : <tensor<8xf32>, device>
    // expected-error @below {{'boa.prefetch' op needs more slots of @x than the 2 assigned}}
    %z = boa.prefetch @x[%c2] : <tensor<8xf32>, device>
    boa.release %x : <tensor<8xf32>, device>
    boa.release %y : <tensor<8xf32>, device>
    boa.release %z : <tensor<8xf32>, device>
  }
}

// -----

// Indices are checked in every iteration.

module {
  boa.storage @x[3] : tensor<8xf32> on ssd role checkpoints persistent
  boa.step @step(%step, %pending) {
    boa.loop layer %l = 0 to 4 forward {
      // expected-error @below {{'boa.create' op indexes @x out of bounds}}
      %x = boa.create @x[%l] : <tensor<8xf32>, device>
      boa.release %x : <tensor<8xf32>, device>
    }
  }
}

// -----

// A retained copy that is taken up holds one slot, not two: no error.

module {
  boa.storage @x[3] : tensor<8xf32> on ssd role checkpoints persistent slots device 1 x 1
  boa.step @step(%step, %pending) {
    %c0 = arith.constant 0 : index
    %true = arith.constant true
    %x = boa.create @x[%c0] : <tensor<8xf32>, device>
    boa.release %x retain %true : <tensor<8xf32>, device>
    %y = boa.prefetch @x[%c0] : <tensor<8xf32>, device>
    boa.release %y : <tensor<8xf32>, device>
  }
}

// -----

// A storage must be declared.

module {
  boa.step @step(%step, %pending) {
    %c0 = arith.constant 0 : index
    // expected-error @below {{'boa.prefetch' op names a storage that does not exist: @nosuch}}
    %x = boa.prefetch @nosuch[%c0] : <tensor<8xf32>, device>
    boa.release %x : <tensor<8xf32>, device>
  }
}

// -----

// Nobody wrote entry 1, and it did not exist before the step.

module {
  boa.storage @x[2] : tensor<8xf32> on ssd role checkpoints
  boa.step @step(%step, %pending) {
    boa.loop layer %l = 0 to 1 forward {
      %x = boa.create @x[%l] : <tensor<8xf32>, device>
      boa.launch @k writes(%x : <tensor<8xf32>, device>)
      boa.offload %x, @x[%l] : <tensor<8xf32>, device>
      boa.release %x : <tensor<8xf32>, device>
      %next = boa.shift %l, 1
      // expected-error @below {{'boa.prefetch' op reads entry 1 of @x before it is written}}
      %y = boa.prefetch @x[%next] : <tensor<8xf32>, device>
      boa.launch @k reads(%y : <tensor<8xf32>, device>)
      boa.release %y : <tensor<8xf32>, device>
    }
  }
}

// -----

// Of four chunks three were written.

module {
  boa.storage @x[1] : tensor<16384xf32> on ssd role gradients chunks 4
  boa.step @step(%step, %pending) {
    %c0 = arith.constant 0 : index
    %true = arith.constant true
    boa.loop chunk %c = 0 to 3 forward {
      %x = boa.prefetch @x[%c0] chunk %c count 1 zero %true : <tensor<16384xf32>, device>
      boa.offload %x, @x[%c0] chunk %c count 1 : <tensor<16384xf32>, device>
      boa.release %x : <tensor<16384xf32>, device>
    }
    // expected-error @below {{'boa.prefetch' op reads entry 0 of @x before it is written}}
    %x = boa.prefetch @x[%c0] : <tensor<16384xf32>, device>
    boa.release %x : <tensor<16384xf32>, device>
  }
}

// -----

// A created buffer holds nothing yet, in memory as on SSD.

module {
  boa.storage @x[1] : tensor<8xf32> on device role checkpoints
  boa.step @step(%step, %pending) {
    %c0 = arith.constant 0 : index
    %x = boa.create @x[%c0] : <tensor<8xf32>, device>
    // expected-error @below {{'boa.launch' op reads entry 0 of @x before it is written}}
    boa.launch @k reads(%x : <tensor<8xf32>, device>)
    boa.release %x : <tensor<8xf32>, device>
  }
}

// -----

// Chunks, too, have bounds,

module {
  boa.storage @x[1] : tensor<16384xf32> on ssd role checkpoints chunks 4 persistent
  boa.step @step(%step, %pending) {
    %c0 = arith.constant 0 : index
    %c3 = arith.constant 3 : index
    // expected-error @below {{'boa.prefetch' op indexes @x out of bounds}}
    %x = boa.prefetch @x[%c0] chunk %c3 count 2 : <tensor<16384xf32>, device>
    boa.release %x : <tensor<16384xf32>, device>
  }
}

// -----

// and only those that a buffer holds are written or updated.

module {
  boa.storage @x[1] : tensor<16384xf32> on ssd role checkpoints chunks 4 persistent
  boa.step @step(%step, %pending) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %x = boa.prefetch @x[%c0] chunk %c0 count 1 : <tensor<16384xf32>, device>
    // expected-error @below {{'boa.offload' op writes chunks that its buffer does not hold}}
    boa.offload %x, @x[%c0] chunk %c1 count 1 : <tensor<16384xf32>, device>
    boa.release %x : <tensor<16384xf32>, device>
  }
}

// -----

module {
  boa.config @train {optimizer = {kind = "sgd"}}
  boa.group @a repeat 1 {
    boa.param @w : tensor<16384xf32> = "ones"
  }
  boa.storage @weights.a[1] : tensor<16384xf32> on ssd role weights chunks 4 persistent
  boa.storage @gradients.a[1] : tensor<16384xf32> on ssd role gradients chunks 4
  boa.step @step(%step, %pending) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %g = boa.prefetch @gradients.a[%c0] : <tensor<16384xf32>, host>
    %w = boa.prefetch @weights.a[%c0] chunk %c0 count 1 : <tensor<16384xf32>, host>
    // expected-error @below {{'boa.update' op updates a chunk that a buffer of @weights.a entry 0 does not hold}}
    boa.update @a chunk %c1 step %step weights(%w : <tensor<16384xf32>, host>) gradient(%g : <tensor<16384xf32>, host>)
    boa.release %g : <tensor<16384xf32>, host>
    boa.release %w : <tensor<16384xf32>, host>
  }
}

// -----

// The group must be declared, too.

module {
  boa.storage @g[1] : tensor<8xf32> on ssd role gradients persistent
  boa.step @step(%step, %pending) {
    %c0 = arith.constant 0 : index
    %g = boa.prefetch @g[%c0] : <tensor<8xf32>, host>
    // expected-error @below {{'boa.norm' op names a group that does not exist: @a}}
    boa.norm @a gradient %g : <tensor<8xf32>, host>
    boa.release %g : <tensor<8xf32>, host>
  }
}

// -----

// A buffer goes home to its own storage,

module {
  boa.storage @x[1] : tensor<8xf32> on ssd role checkpoints persistent
  boa.storage @y[1] : tensor<8xf32> on ssd role checkpoints persistent
  boa.step @step(%step, %pending) {
    %c0 = arith.constant 0 : index
    %x = boa.prefetch @x[%c0] : <tensor<8xf32>, device>
    // expected-error @below {{'boa.offload' op writes a buffer of @x to @y}}
    boa.offload %x, @y[%c0] : <tensor<8xf32>, device>
    boa.release %x : <tensor<8xf32>, device>
  }
}

// -----

// and where that is memory, to its own entry: the buffer is the entry.

module {
  boa.storage @x[2] : tensor<8xf32> on host role checkpoints persistent
  boa.step @step(%step, %pending) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %x = boa.prefetch @x[%c0] : <tensor<8xf32>, device>
    // expected-error @below {{'boa.offload' op writes @x entry 0 to entry 1, but the buffer is a home in memory: nothing moves}}
    boa.offload %x, @x[%c1] : <tensor<8xf32>, device>
    boa.release %x : <tensor<8xf32>, device>
  }
}

// -----

// Hence two buffers of one entry are the same memory there.

module {
  boa.storage @x[1] : tensor<8xf32> on device role checkpoints persistent
  boa.step @step(%step, %pending) {
    %c0 = arith.constant 0 : index
    %x = boa.prefetch @x[%c0] : <tensor<8xf32>, device>
    %y = boa.create @x[%c0] : <tensor<8xf32>, device>
    // expected-error @below {{'boa.launch' op writes @x entry 0 while another operand is the same memory}}
    boa.launch @k reads(%x : <tensor<8xf32>, device>) writes(%y : <tensor<8xf32>, device>)
    boa.release %x : <tensor<8xf32>, device>
    boa.release %y : <tensor<8xf32>, device>
  }
}

// -----

// A copy that a write makes stale is given back by the runtime: it was retained for
// nothing.

module {
  boa.storage @x[1] : tensor<16384xf32> on ssd role checkpoints chunks 4 persistent
  // expected-error @below {{'boa.step' op retains a copy of @x entry 0 that nothing takes up}}
  boa.step @step(%step, %pending) {
    %c0 = arith.constant 0 : index
    %true = arith.constant true
    %x = boa.prefetch @x[%c0] : <tensor<16384xf32>, device>
    boa.release %x retain %true : <tensor<16384xf32>, device>
    %y = boa.prefetch @x[%c0] chunk %c0 count 1 zero %true : <tensor<16384xf32>, device>
    boa.offload %y, @x[%c0] chunk %c0 count 1 : <tensor<16384xf32>, device>
    boa.release %y : <tensor<16384xf32>, device>
    %z = boa.prefetch @x[%c0] : <tensor<16384xf32>, device>
    boa.release %z : <tensor<16384xf32>, device>
  }
}

// -----

// In the first step nothing is pending, so that only the next takes the copy up:
// no error.

module {
  boa.config @train {optimizer = {kind = "sgd"}}
  boa.group @a repeat 1 {
    boa.param @w : tensor<16384xf32> = "ones"
  }
  boa.storage @weights.a[1] : tensor<16384xf32> on ssd role weights chunks 1 persistent
  boa.storage @gradients.a[1] : tensor<16384xf32> on ssd role gradients chunks 1
  boa.step @step(%step, %pending) {
    %c0 = arith.constant 0 : index
    %true = arith.constant true
    %x = boa.prefetch @weights.a[%c0] : <tensor<16384xf32>, device>
    boa.launch @k reads(%x : <tensor<16384xf32>, device>)
    boa.release %x retain %true : <tensor<16384xf32>, device>
    boa.loop chunk %c = 0 to 1 forward if %pending {
      %g = boa.prefetch @gradients.a[%c0] chunk %c count 1 : <tensor<16384xf32>, host>
      %w = boa.prefetch @weights.a[%c0] chunk %c count 1 : <tensor<16384xf32>, host>
      boa.update @a chunk %c step %pending weights(%w : <tensor<16384xf32>, host>) gradient(%g : <tensor<16384xf32>, host>)
      boa.offload %w, @weights.a[%c0] chunk %c count 1 : <tensor<16384xf32>, host>
      boa.release %g : <tensor<16384xf32>, host>
      boa.release %w : <tensor<16384xf32>, host>
    }
    %4 = boa.create @gradients.a[%c0] : <tensor<16384xf32>, device>
    boa.launch @k writes(%4 : <tensor<16384xf32>, device>)
    boa.offload %4, @gradients.a[%c0] : <tensor<16384xf32>, device>
    boa.release %4 : <tensor<16384xf32>, device>
  }
}

// -----

// A loop over what may be pending needs a guard: without one it runs in the first
// step too, where no gradient was made. What is in the loop says nothing of that.

module {
  boa.config @train {optimizer = {kind = "sgd"}}
  boa.group @a repeat 1 {
    boa.param @w : tensor<16384xf32> = "ones"
  }
  boa.storage @weights.a[1] : tensor<16384xf32> on device role weights chunks 4 persistent
  boa.storage @gradients.a[1] : tensor<16384xf32> on ssd role gradients chunks 4
  boa.step @step(%step, %pending) {
    %c0 = arith.constant 0 : index
    boa.loop chunk %c = 3 to 4 forward {
      // expected-error @below {{'boa.prefetch' op reads entry 0 of @gradients.a before it is written}}
      %g = boa.prefetch @gradients.a[%c0] chunk %c count 1 : <tensor<16384xf32>, host>
      %w = boa.prefetch @weights.a[%c0] chunk %c count 1 : <tensor<16384xf32>, host>
      boa.update @a chunk %c step %pending weights(%w : <tensor<16384xf32>, host>) gradient(%g : <tensor<16384xf32>, host>)
      boa.release %g : <tensor<16384xf32>, host>
      boa.release %w : <tensor<16384xf32>, host>
    }
    %2 = boa.create @gradients.a[%c0] : <tensor<16384xf32>, device>
    boa.launch @k writes(%2 : <tensor<16384xf32>, device>)
    boa.offload %2, @gradients.a[%c0] : <tensor<16384xf32>, device>
    boa.release %2 : <tensor<16384xf32>, device>
  }
}

// -----

// Odd steps run this loop downward and read entry 0 before they write it; even ones
// do not.

module {
  boa.storage @x[2] : tensor<8xf32> on ssd role checkpoints
  boa.step @step(%step, %pending) {
    %c0 = arith.constant 0 : index
    boa.loop micro_batch %m = 0 to 2 snake(%step) {
      %x = boa.create @x[%m] : <tensor<8xf32>, device>
      boa.launch @k writes(%x : <tensor<8xf32>, device>)
      boa.offload %x, @x[%m] : <tensor<8xf32>, device>
      boa.release %x : <tensor<8xf32>, device>
      // expected-error @below {{'boa.prefetch' op reads entry 0 of @x before it is written}}
      %y = boa.prefetch @x[%c0] : <tensor<8xf32>, device>
      boa.launch @k reads(%y : <tensor<8xf32>, device>)
      boa.release %y : <tensor<8xf32>, device>
    }
  }
}

// -----

// What holds for the runs that are enumerated holds for all only once a run leaves
// what an earlier one left. Here values wander through twelve entries, one a step.

module {
  boa.storage @x[12] : tensor<8xf32> on ssd role weights persistent
  // expected-error @below {{'boa.step' op does not become steady: each of the first runs leaves something else in storages or retained copies than every run before it}}
  boa.step @step(%step, %pending) {
    %c0 = arith.constant 0 : index
    boa.loop layer %l = 0 to 11 reverse {
      %l1 = boa.shift %l, 1
      %x = boa.prefetch @x[%l] : <tensor<8xf32>, device>
      boa.offload %x, @x[%l1] : <tensor<8xf32>, device>
      boa.release %x : <tensor<8xf32>, device>
    }
    %y = boa.create @x[%c0] : <tensor<8xf32>, device>
    boa.launch @k writes(%y : <tensor<8xf32>, device>)
    boa.offload %y, @x[%c0] : <tensor<8xf32>, device>
    boa.release %y : <tensor<8xf32>, device>
  }
}

// -----

// Through four of them they wander in four steps: then it is the same.

module {
  boa.storage @x[4] : tensor<8xf32> on ssd role weights persistent
  boa.step @step(%step, %pending) {
    %c0 = arith.constant 0 : index
    boa.loop layer %l = 0 to 3 reverse {
      %l1 = boa.shift %l, 1
      %x = boa.prefetch @x[%l] : <tensor<8xf32>, device>
      boa.offload %x, @x[%l1] : <tensor<8xf32>, device>
      boa.release %x : <tensor<8xf32>, device>
    }
    %y = boa.create @x[%c0] : <tensor<8xf32>, device>
    boa.launch @k writes(%y : <tensor<8xf32>, device>)
    boa.offload %y, @x[%c0] : <tensor<8xf32>, device>
    boa.release %y : <tensor<8xf32>, device>
  }
}

// -----

// Where device and host are two memories, a kernel cannot read the host's.

module {
  boa.config @machine {memory = "separate"}
  boa.storage @x[1] : tensor<8xf32> on host role checkpoints
  boa.step @step(%step, %pending) {
    %c0 = arith.constant 0 : index
    %x = boa.create @x[%c0] : <tensor<8xf32>, host>
    // expected-error @below {{'boa.launch' op takes a buffer in host memory: expected one in device memory, where it runs}}
    boa.launch @k writes(%x : <tensor<8xf32>, host>)
    boa.release %x : <tensor<8xf32>, host>
  }
}

// -----

// Nor can an optimizer on the host read the device's, or one on the device the host's.

module {
  boa.config @machine {memory = "separate"}
  boa.group @a repeat 1 {
    boa.param @w : tensor<4096xf32> = "ones"
  }
  boa.storage @gradients.a[1] : tensor<4096xf32> on host role gradients
  boa.step @step(%step, %pending) {
    %c0 = arith.constant 0 : index
    %g = boa.create @gradients.a[%c0] : <tensor<4096xf32>, device>
    // expected-error @below {{'boa.norm' op takes a buffer in device memory: expected one in host memory, where it runs}}
    boa.norm @a gradient %g : <tensor<4096xf32>, device>
    boa.release %g : <tensor<4096xf32>, device>
  }
}

// -----

module {
  boa.config @train {optimizer = {kind = "sgd"}}
  boa.config @plan {update = "device"}
  boa.config @machine {memory = "separate"}
  boa.group @a repeat 1 {
    boa.param @w : tensor<4096xf32> = "ones"
  }
  boa.storage @weights.a[1] : tensor<4096xf32> on host role weights
  boa.storage @gradients.a[1] : tensor<4096xf32> on device role gradients
  boa.step @step(%step, %pending) {
    %c0 = arith.constant 0 : index
    %w = boa.prefetch @weights.a[%c0] : <tensor<4096xf32>, host>
    %g = boa.create @gradients.a[%c0] : <tensor<4096xf32>, device>
    // expected-error @below {{'boa.update' op takes a buffer in host memory: expected one in device memory, where it runs}}
    boa.update @a chunk %c0 step %step weights(%w : <tensor<4096xf32>, host>) gradient(%g : <tensor<4096xf32>, device>)
    boa.release %w : <tensor<4096xf32>, host>
    boa.release %g : <tensor<4096xf32>, device>
  }
}

// -----

// Slots are of a size in a space: those of the other are no help.

module {
  boa.config @machine {memory = "separate"}
  boa.storage @x[1] : tensor<4096xf32> on ssd role weights chunks 4 persistent slots host 1 x 1, device 1 x 2
  boa.step @step(%step, %pending) {
    %c0 = arith.constant 0 : index
    // expected-error @below {{'boa.prefetch' op takes 4 chunks of @x to device memory, for which no slots were assigned}}
    %x = boa.prefetch @x[%c0] : <tensor<4096xf32>, device>
    boa.release %x : <tensor<4096xf32>, device>
  }
}

// -----

// What comes from SSD passes through the host.

module {
  boa.config @machine {memory = "separate"}
  boa.storage @x[1] : tensor<4096xf32> on ssd role weights chunks 4 persistent slots device 1 x 4
  boa.step @step(%step, %pending) {
    %c0 = arith.constant 0 : index
    // expected-error @below {{'boa.prefetch' op needs a slot of @x in host memory between SSD and the device}}
    %x = boa.prefetch @x[%c0] : <tensor<4096xf32>, device>
    boa.release %x : <tensor<4096xf32>, device>
  }
}

// -----

// A copy is of what is there.

module {
  boa.storage @x[1] : tensor<4096xf32> on ssd role weights chunks 4 persistent
  boa.step @step(%step, %pending) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %part = boa.prefetch @x[%c0] chunk %c1 count 1 : <tensor<4096xf32>, device>
    %whole = boa.create @x[%c0] : <tensor<4096xf32>, host>
    // expected-error @below {{'boa.copy' op copies chunks that its first buffer does not hold}}
    boa.copy %part to %whole : <tensor<4096xf32>, device>, <tensor<4096xf32>, host>
    boa.release %part : <tensor<4096xf32>, device>
    boa.release %whole : <tensor<4096xf32>, host>
  }
}

// -----

// And needs a slot there that nothing else holds: a slot that is given back only after it
// would never come.

module {
  boa.config @machine {memory = "separate"}
  boa.storage @x[2] : tensor<8xf32> on ssd role weights persistent slots device 1 x 1, host 1 x 1
  boa.step @step(%step, %pending) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %host = boa.prefetch @x[%c0] : <tensor<8xf32>, host>
    // expected-error @below {{'boa.prefetch' op needs a slot of @x in host memory between SSD and the device}}
    %device = boa.prefetch @x[%c1] : <tensor<8xf32>, device>
    boa.release %device : <tensor<8xf32>, device>
    boa.release %host : <tensor<8xf32>, host>
  }
}

// -----

// What the trainer brings is another in each run: a copy of the last one's is none of it.

module {
  boa.storage @input.tokens[1] : tensor<8xi32> on ssd role input
  // expected-error @below {{'boa.step' op retains a copy of @input.tokens entry 0, which the next run replaces}}
  boa.step @step(%step, %pending) {
    %c0 = arith.constant 0 : index
    %true = arith.constant true
    %x = boa.prefetch @input.tokens[%c0] : <tensor<8xi32>, device>
    boa.launch @k reads(%x : <tensor<8xi32>, device>)
    boa.release %x retain %true : <tensor<8xi32>, device>
  }
}

// -----

// A kernel's operands are packed entries.

module {
  boa.storage @x[1] : tensor<16384xf32> on ssd role checkpoints chunks 4 persistent
  boa.step @step(%step, %pending) {
    %c0 = arith.constant 0 : index
    %x = boa.prefetch @x[%c0] chunk %c0 count 1 : <tensor<16384xf32>, device>
    // expected-error @below {{'boa.launch' op takes 1 chunks of @x: expected whole entries}}
    boa.launch @k reads(%x : <tensor<16384xf32>, device>)
    boa.release %x : <tensor<16384xf32>, device>
  }
}

// -----

// In a loop over chunks each iteration takes its own: of a buffer outside only its chunk.

module {
  boa.config @machine {memory = "separate"}
  boa.storage @x[1] : tensor<16384xf32> on ssd role checkpoints chunks 4 persistent
  boa.step @step(%step, %pending) {
    %c0 = arith.constant 0 : index
    %whole = boa.create @x[%c0] : <tensor<16384xf32>, host>
    boa.loop chunk %c = 0 to 4 forward {
      %part = boa.prefetch @x[%c0] chunk %c count 1 : <tensor<16384xf32>, device>
      // expected-error @below {{'boa.copy' op copies chunks that its first buffer does not hold}}
      boa.copy %part to %whole : <tensor<16384xf32>, device>, <tensor<16384xf32>, host>
      boa.release %part : <tensor<16384xf32>, device>
    }
    boa.release %whole : <tensor<16384xf32>, host>
  }
}

// -----

// Nor is a buffer copied to that holds something already.

module {
  boa.storage @x[1] : tensor<8xf32> on ssd role checkpoints persistent
  boa.step @step(%step, %pending) {
    %c0 = arith.constant 0 : index
    %from = boa.prefetch @x[%c0] : <tensor<8xf32>, device>
    %to = boa.prefetch @x[%c0] : <tensor<8xf32>, host>
    // expected-error @below {{'boa.copy' op expected a buffer to fill that boa.create made}}
    boa.copy %from to %to : <tensor<8xf32>, device>, <tensor<8xf32>, host>
    boa.release %from : <tensor<8xf32>, device>
    boa.release %to : <tensor<8xf32>, host>
  }
}

// -----

// An offload makes a retained copy of its chunks stale also where it moves nothing.

module {
  boa.storage @x[1] : tensor<16384xf32> on host 1, ssd role checkpoints chunks 4 persistent
  // expected-error @below {{'boa.step' op retains a copy of @x entry 0 that nothing takes up}}
  boa.step @step(%step, %pending) {
    %c0 = arith.constant 0 : index
    %true = arith.constant true
    %all = boa.prefetch @x[%c0] : <tensor<16384xf32>, device>
    boa.launch @k updates(%all : <tensor<16384xf32>, device>)
    boa.release %all retain %true : <tensor<16384xf32>, device>
    %home = boa.prefetch @x[%c0] chunk %c0 count 1 : <tensor<16384xf32>, host>
    boa.offload %home, @x[%c0] chunk %c0 count 1 : <tensor<16384xf32>, host>
    boa.release %home : <tensor<16384xf32>, host>
    %again = boa.prefetch @x[%c0] : <tensor<16384xf32>, device>
    boa.launch @k reads(%again : <tensor<16384xf32>, device>)
    boa.release %again : <tensor<16384xf32>, device>
  }
}

// -----

// Each memory keeps a copy of its own: nothing is wrong with two.

module {
  boa.config @machine {memory = "separate"}
  boa.storage @x[1] : tensor<8xf32> on ssd role weights persistent
  boa.step @step(%step, %pending) {
    %c0 = arith.constant 0 : index
    %true = arith.constant true
    %a = boa.prefetch @x[%c0] : <tensor<8xf32>, device>
    boa.release %a retain %true : <tensor<8xf32>, device>
    %b = boa.prefetch @x[%c0] : <tensor<8xf32>, host>
    boa.release %b retain %true : <tensor<8xf32>, host>
    %c = boa.prefetch @x[%c0] : <tensor<8xf32>, device>
    boa.release %c : <tensor<8xf32>, device>
    %d = boa.prefetch @x[%c0] : <tensor<8xf32>, host>
    boa.release %d : <tensor<8xf32>, host>
  }
}

// -----

// An update mixes no layers.

module {
  boa.config @train {optimizer = {kind = "sgd", momentum = 0.9}}
  boa.group @a repeat 2 {
    boa.param @w : tensor<2048xf32> = "ones"
  }
  boa.storage @weights.a[2] : tensor<2048xf32> on ssd role weights persistent
  boa.storage @gradients.a[2] : tensor<2048xf32> on ssd role gradients persistent
  boa.storage @momentum.a[2] : tensor<2048xf32> on ssd role state persistent
  boa.step @step(%step, %pending) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %g = boa.prefetch @gradients.a[%c0] : <tensor<2048xf32>, host>
    %w = boa.prefetch @weights.a[%c0] : <tensor<2048xf32>, host>
    %m = boa.prefetch @momentum.a[%c1] : <tensor<2048xf32>, host>
    // expected-error @below {{'boa.update' op updates @momentum.a entry 1 with @weights.a entry 0}}
    boa.update @a chunk %c0 step %step weights(%w : <tensor<2048xf32>, host>) gradient(%g : <tensor<2048xf32>, host>) states(%m : <tensor<2048xf32>, host>)
    boa.release %g : <tensor<2048xf32>, host>
    boa.release %w : <tensor<2048xf32>, host>
    boa.release %m : <tensor<2048xf32>, host>
  }
}

// -----

// The optimizer has two states,

module {
  boa.optimizer @adamw {} states {momentum = f32, variance = f32}
  boa.group @a repeat 1 {
    boa.param @w : tensor<2048xf32> = "ones"
  }
  boa.storage @weights.a[1] : tensor<2048xf32> on ssd role weights persistent
  boa.storage @gradients.a[1] : tensor<2048xf32> on ssd role gradients persistent
  boa.storage @momentum.a[1] : tensor<2048xf32> on ssd role state persistent
  boa.step @step(%step, %pending) {
    %c0 = arith.constant 0 : index
    %g = boa.prefetch @gradients.a[%c0] : <tensor<2048xf32>, host>
    %w = boa.prefetch @weights.a[%c0] : <tensor<2048xf32>, host>
    %m = boa.prefetch @momentum.a[%c0] : <tensor<2048xf32>, host>
    // expected-error @below {{'boa.update' op expected the state @variance.a of 'tensor<2048xf32>', which @adamw updates}}
    boa.update @a chunk %c0 step %step weights(%w : <tensor<2048xf32>, host>) gradient(%g : <tensor<2048xf32>, host>) states(%m : <tensor<2048xf32>, host>)
    boa.release %g : <tensor<2048xf32>, host>
    boa.release %w : <tensor<2048xf32>, host>
    boa.release %m : <tensor<2048xf32>, host>
  }
}

// -----

// or another number than the group.

module {
  boa.optimizer @sgd {} states {}
  boa.group @a repeat 1 {
    boa.param @w : tensor<2048xf32> = "ones"
  }
  boa.storage @weights.a[1] : tensor<2048xf32> on ssd role weights persistent
  boa.storage @gradients.a[1] : tensor<2048xf32> on ssd role gradients persistent
  boa.storage @momentum.a[1] : tensor<2048xf32> on ssd role state persistent
  boa.step @step(%step, %pending) {
    %c0 = arith.constant 0 : index
    %g = boa.prefetch @gradients.a[%c0] : <tensor<2048xf32>, host>
    %w = boa.prefetch @weights.a[%c0] : <tensor<2048xf32>, host>
    %m = boa.prefetch @momentum.a[%c0] : <tensor<2048xf32>, host>
    // expected-error @below {{'boa.update' op expected 0 states of @sgd but found 1}}
    boa.update @a chunk %c0 step %step weights(%w : <tensor<2048xf32>, host>) gradient(%g : <tensor<2048xf32>, host>) states(%m : <tensor<2048xf32>, host>)
    boa.release %g : <tensor<2048xf32>, host>
    boa.release %w : <tensor<2048xf32>, host>
    boa.release %m : <tensor<2048xf32>, host>
  }
}

// -----

// Slots that storages share are as many for each of them, and no more buffers are live.

module {
  boa.storage @a[1] : tensor<1024xf32> on ssd role weights persistent slots device 1 x 1 shared 1
  // expected-error @below {{'boa.storage' op expected 1 slots in device memory in pool 1, as another storage has}}
  boa.storage @b[1] : tensor<1024xf32> on ssd role weights persistent slots device 2 x 1 shared 1
}

// -----

module {
  boa.storage @a[1] : tensor<1024xf32> on ssd role weights persistent slots device 1 x 1 shared 1
  boa.storage @b[1] : tensor<1024xf32> on ssd role weights persistent slots device 1 x 1 shared 1
  boa.step @step(%step, %pending) {
    %c0 = arith.constant 0 : index
    %a = boa.prefetch @a[%c0] : <tensor<1024xf32>, device>
    // expected-error @below {{'boa.prefetch' op needs more slots of @b than the 1 assigned}}
    %b = boa.prefetch @b[%c0] : <tensor<1024xf32>, device>
    boa.release %a : <tensor<1024xf32>, device>
    boa.release %b : <tensor<1024xf32>, device>
  }
}
