// RUN: boa-opt %s --split-input-file --verify-diagnostics

// The ops of the model, step and storage phases check themselves. A stage needs its
// function,

boa.input @tokens from data : tensor<2x4xi32>
// expected-error @below {{'boa.stage' op expected a function named @none}}
boa.stage @none(@tokens)

// -----

// and the function its parameters,

boa.group @a repeat 1 {
  boa.param @w : tensor<8xf32> = "ones"
}
boa.input @tokens from data : tensor<8xf32>
// expected-error @below {{'boa.stage' op argument 0 of @f names a parameter that does not exist: @a::@v}}
boa.stage @f(@tokens)
func.func @f(%v: tensor<8xf32> {boa.param = @a::@v}) {
  return
}

// -----

// of the type that they have.

boa.group @a repeat 1 {
  boa.param @w : tensor<8xf32> = "ones"
}
boa.input @tokens from data : tensor<4xf32>
// expected-error @below {{'boa.stage' op argument 0 of @f has type 'tensor<4xf32>' but @a::@w has type 'tensor<8xf32>'}}
boa.stage @f(@tokens)
func.func @f(%w: tensor<4xf32> {boa.param = @a::@w}) {
  return
}

// -----

// Storage has a static size,

// expected-error @below {{'boa.storage' op expected entries of a static tensor type but found 'tensor<?xf32>'}}
boa.storage @x[2] : tensor<?xf32> on ssd role checkpoints

// -----

// expected-error @below {{'boa.storage' op expected positive dimensions}}
boa.storage @x[2, 0] : tensor<8xf32> on ssd role checkpoints

// -----

// and equal chunks.

// expected-error @below {{'boa.storage' op expected a number of chunks that divides 8 elements but found 3}}
boa.storage @x[2] : tensor<8xf32> on ssd role checkpoints chunks 3

// -----

// A loop runs,

boa.step @step(%step, %pending) {
  // expected-error @below {{'boa.loop' op expected at least one iteration}}
  boa.loop layer %l = 2 to 2 forward {
  }
}

// -----

// and its ends are those of a loop.

boa.step @step(%step, %pending) {
  // expected-error @below {{'boa.at_first' op expected the induction variable of a boa.loop}}
  %0 = boa.at_first %step
}

// -----

boa.step @step(%step, %pending) {
  boa.loop layer %l = 0 to 2 forward {
    %next = boa.shift %l, 1
    // expected-error @below {{'boa.at_last' op expected the induction variable of a boa.loop}}
    %0 = boa.at_last %next
  }
}

// -----

// An entry point has a name by which it is called,

// expected-error @below {{'boa.step' op expected @step, @drain, @evaluate, @predict, @prefill or @generate but found @train}}
boa.step @train(%step, %pending) {
}

// -----

// and is given two numbers.

// expected-error @below {{expected two arguments: step, pending}}
boa.step @step(%step) {
}

// -----

boa.storage @x[2] : tensor<8xf32> on ssd role checkpoints
boa.step @step(%step, %pending) {
  boa.loop layer %l = 0 to 2 forward {
    %x = boa.read @x[%l] : tensor<8xf32>
    // expected-error @below {{'boa.call' op expected a function named @none}}
    boa.call @none(%x) : (tensor<8xf32>) -> ()
  }
}

// -----

// What is read or written is an entry of the storage, in type and shape,

// expected-note @below {{the storage is declared here}}
boa.storage @x[2] : tensor<8xf32> on ssd role checkpoints persistent
boa.step @step(%step, %pending) {
  %c0 = arith.constant 0 : index
  // expected-error @below {{'boa.read' op expected an entry of @x, 'tensor<8xf32>', but found 'tensor<16xf32>'}}
  %x = boa.read @x[%c0] : tensor<16xf32>
}

// -----

// expected-note @below {{the storage is declared here}}
boa.storage @y[2] : tensor<8xbf16> on ssd role checkpoints persistent
boa.storage @x[2] : tensor<8xf32> on ssd role checkpoints persistent
boa.step @step(%step, %pending) {
  %c0 = arith.constant 0 : index
  %x = boa.read @x[%c0] : tensor<8xf32>
  // expected-error @below {{'boa.write' op expected an entry of @y, 'tensor<8xbf16>', but found 'tensor<8xf32>'}}
  boa.write %x, @y[%c0] : tensor<8xf32>
}

// -----

// expected-note @below {{the storage is declared here}}
boa.storage @g[2] : tensor<4xf32> on ssd role gradients persistent
boa.storage @x[2] : tensor<8xf32> on ssd role checkpoints persistent
boa.step @step(%step, %pending) {
  %c0 = arith.constant 0 : index
  %true = arith.constant true
  %x = boa.read @x[%c0] : tensor<8xf32>
  // expected-error @below {{'boa.accumulate' op expected an entry of @g, 'tensor<4xf32>', but found 'tensor<8xf32>'}}
  boa.accumulate %x, @g[%c0] initial %true : tensor<8xf32>
}

// -----

// and so is what a buffer holds.

// expected-note @below {{the storage is declared here}}
boa.storage @x[2] : tensor<8xf32> on ssd role checkpoints persistent
boa.step @step(%step, %pending) {
  %c0 = arith.constant 0 : index
  // expected-error @below {{'boa.prefetch' op expected an entry of @x, 'tensor<8xf32>', but found 'tensor<8xbf16>'}}
  %x = boa.prefetch @x[%c0] : <tensor<8xbf16>, device>
  boa.release %x : <tensor<8xbf16>, device>
}

// -----

// expected-note @below {{the storage is declared here}}
boa.storage @x[2] : tensor<8xf32> on ssd role checkpoints persistent
boa.step @step(%step, %pending) {
  %c0 = arith.constant 0 : index
  // expected-error @below {{'boa.create' op expected an entry of @x, 'tensor<8xf32>', but found 'tensor<4xf32>'}}
  %x = boa.create @x[%c0] : <tensor<4xf32>, device>
  boa.release %x : <tensor<4xf32>, device>
}

// -----

// expected-note @below {{the storage is declared here}}
boa.storage @y[2] : tensor<4xf32> on ssd role checkpoints persistent
boa.storage @x[2] : tensor<8xf32> on ssd role checkpoints persistent
boa.step @step(%step, %pending) {
  %c0 = arith.constant 0 : index
  %x = boa.create @x[%c0] : <tensor<8xf32>, device>
  // expected-error @below {{'boa.offload' op expected an entry of @y, 'tensor<4xf32>', but found 'tensor<8xf32>'}}
  boa.offload %x, @y[%c0] : <tensor<8xf32>, device>
  boa.release %x : <tensor<8xf32>, device>
}

// -----

// What is copied stays an entry of its storage.

boa.storage @x[2] : tensor<8xf32> on ssd role checkpoints persistent
boa.storage @y[2] : tensor<8xf32> on ssd role checkpoints persistent
boa.step @step(%step, %pending) {
  %c0 = arith.constant 0 : index
  %x = boa.prefetch @x[%c0] : <tensor<8xf32>, device>
  %y = boa.create @y[%c0] : <tensor<8xf32>, host>
  // expected-error @below {{'boa.copy' op expected two buffers of one storage}}
  boa.copy %x to %y : <tensor<8xf32>, device>, <tensor<8xf32>, host>
  boa.release %x : <tensor<8xf32>, device>
  boa.release %y : <tensor<8xf32>, host>
}

// -----

// Every chunk has a home.

// expected-error @below {{'boa.storage' op expected homes for 4 chunks but found 5}}
boa.storage @x[1] : tensor<4096xf32> on host 3, device 2 role weights chunks 4

// -----

// expected-error @below {{'boa.storage' op expected a number of chunks for every home but the last}}
boa.storage @x[1] : tensor<4096xf32> on host, ssd role weights chunks 4

// -----

// Every entry has homes, once.

// expected-error @below {{'boa.storage' op expected homes for 6 entries but found 5}}
boa.storage @x[3, 2] : tensor<4096xf32> on [0 to 2: host, 2 to 5: ssd] role checkpoints

// -----

// expected-error @below {{'boa.storage' op expected homes for 6 entries but found 7}}
boa.storage @x[3, 2] : tensor<4096xf32> on [0 to 2: host, 2 to 7: ssd] role checkpoints

// -----

// expected-error @below {{'boa.storage' op expected entry ranges in order: one ends at 2, behind one that ends at 4}}
boa.storage @x[6] : tensor<4096xf32> on [0 to 4: host, 4 to 2: ssd, 2 to 6: host] role checkpoints

// -----

// expected-error @below {{'boa.storage' op expected homes for 4 chunks but found 3}}
boa.storage @x[6] : tensor<4096xf32> on [0 to 4: ssd, 4 to 6: host 2, ssd 1] role weights chunks 4

// -----

// expected-error @below {{expected the entries from 4 on}}
boa.storage @x[6] : tensor<4096xf32> on [0 to 4: host, 3 to 6: ssd] role checkpoints

// -----

// expected-error @below {{expected a range of entries: 0 to 8: host}}
boa.storage @x[6] : tensor<4096xf32> on [host, 3 to 6: ssd] role checkpoints

// -----

// expected-error @below {{'boa.storage' op expected pools of slots of 1 to 4 chunks}}
boa.storage @x[1] : tensor<4096xf32> on ssd role weights chunks 4 slots device 1 x 5

// -----

// An update is of a group that there is.

boa.step @step(%step, %pending) {
  boa.loop layer %l = 0 to 1 forward {
    // expected-error @below {{'boa.optimizer_update' op names a group that does not exist: @nosuch}}
    boa.optimizer_update @nosuch[%l] chunks 0 to 4 step %step
  }
}

// -----

// Indices are what the passes that enumerate the program can compute.

boa.storage @x[2] : tensor<8xf32> on ssd role checkpoints persistent
boa.step @step(%step, %pending) {
  boa.loop layer %l = 0 to 1 forward {
    %c1 = arith.constant 1 : index
    // expected-error @below {{'arith.addi' op computes an index or a condition in a boa.step: expected boa.shift, boa.at_first, boa.at_last, arith.andi or a constant}}
    %next = arith.addi %l, %c1 : index
    %x = boa.read @x[%next] : tensor<8xf32>
  }
}
