// RUN: boa-opt %s --boa-verify-model --split-input-file --verify-diagnostics

// A model has an end and a beginning.

// expected-error @below {{expected at least two stages but found 1}}
module {
  boa.input @tokens from data : tensor<2x4xi32>
  boa.stage @a_forward(@tokens)
  func.func @a_forward(%x: tensor<2x4xi32>) -> tensor<f32> {
    %0 = arith.constant dense<0.0> : tensor<f32>
    return %0 : tensor<f32>
  }
}

// -----

// A model learns from tokens,

// expected-error @below {{expected an input @tokens}}
module {
  boa.input @targets from data : tensor<2x4xi32>
  boa.stage @a_forward()
  boa.stage @b_forward(@a_forward, @targets)
  func.func @a_forward() -> tensor<2x4xf32> {
    %0 = arith.constant dense<0.0> : tensor<2x4xf32>
    return %0 : tensor<2x4xf32>
  }
  func.func @b_forward(%x: tensor<2x4xf32>, %t: tensor<2x4xi32>) -> tensor<f32> {
    %0 = arith.constant dense<0.0> : tensor<f32>
    return %0 : tensor<f32>
  }
}

// -----

// of which all stages take the same,

module {
  boa.input @tokens from data : tensor<2x4xi32>
  boa.input @targets from data : tensor<2x4xi32>
  boa.stage @a_forward(@tokens)
  // expected-error @below {{'boa.stage' op takes 'tensor<2x5xi32>' of @tokens, which is 'tensor<2x4xi32>'}}
  boa.stage @b_forward(@a_forward, @targets, @tokens)
  func.func @a_forward(%x: tensor<2x4xi32>) -> tensor<2x4xf32> {
    %0 = arith.constant dense<0.0> : tensor<2x4xf32>
    return %0 : tensor<2x4xf32>
  }
  func.func @b_forward(%x: tensor<2x4xf32>, %t: tensor<2x4xi32>, %tokens: tensor<2x5xi32>) -> tensor<f32> {
    %0 = arith.constant dense<0.0> : tensor<f32>
    return %0 : tensor<f32>
  }
}

// -----

// and from what stages return.

module {
  boa.input @tokens from data : tensor<2x4xi32>
  boa.input @targets from data : tensor<2x4xi32>
  boa.stage @a_forward(@tokens)
  // expected-error @below {{'boa.stage' op returns what no later stage takes}}
  boa.stage @b_forward(@a_forward)
  boa.stage @c_forward(@a_forward, @targets)
  func.func @a_forward(%x: tensor<2x4xi32>) -> tensor<2x4xf32> {
    %0 = arith.constant dense<0.0> : tensor<2x4xf32>
    return %0 : tensor<2x4xf32>
  }
  func.func @b_forward(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {
    return %x : tensor<2x4xf32>
  }
  func.func @c_forward(%x: tensor<2x4xf32>, %t: tensor<2x4xi32>) -> tensor<f32> {
    %0 = arith.constant dense<0.0> : tensor<f32>
    return %0 : tensor<f32>
  }
}

// -----

// An input is one that a trainer has, where it is known what is trained on,

module {
  boa.config @train { batch = 2 : i64 }
  boa.input @tokens from data : tensor<2x4xi32>
  boa.input @targets from data : tensor<2x4xi32>
  // expected-error @below {{'boa.input' op expected tokens, targets, document_starts or dropout_keys, which a trainer has, but found pixels}}
  boa.input @pixels from data : tensor<2x4xi32>
  boa.stage @a_forward(@tokens)
  boa.stage @b_forward(@a_forward, @targets, @pixels)
  func.func @a_forward(%x: tensor<2x4xi32>) -> tensor<2x4xf32> {
    %0 = arith.constant dense<0.0> : tensor<2x4xf32>
    return %0 : tensor<2x4xf32>
  }
  func.func @b_forward(%x: tensor<2x4xf32>, %t: tensor<2x4xi32>, %p: tensor<2x4xi32>) -> tensor<f32> {
    %0 = arith.constant dense<0.0> : tensor<f32>
    return %0 : tensor<f32>
  }
}

// -----

// from the source that a trainer has it from,

module {
  // expected-error @below {{'boa.input' op is from seed, but a trainer has tokens from data}}
  boa.input @tokens from seed : tensor<2x4xi32>
  boa.input @targets from data : tensor<2x4xi32>
  boa.stage @a_forward(@tokens)
  boa.stage @b_forward(@a_forward, @targets)
  func.func @a_forward(%x: tensor<2x4xi32>) -> tensor<2x4xf32> {
    %0 = arith.constant dense<0.0> : tensor<2x4xf32>
    return %0 : tensor<2x4xf32>
  }
  func.func @b_forward(%x: tensor<2x4xf32>, %t: tensor<2x4xi32>) -> tensor<f32> {
    %0 = arith.constant dense<0.0> : tensor<f32>
    return %0 : tensor<f32>
  }
}

// -----

module {
  boa.input @tokens from data : tensor<2x4xi32>
  // expected-error @below {{'boa.input' op is from seed, but a trainer has targets from data}}
  boa.input @targets from seed : tensor<2x4xi32>
  boa.stage @a_forward(@tokens)
  boa.stage @b_forward(@a_forward, @targets)
  func.func @a_forward(%x: tensor<2x4xi32>) -> tensor<2x4xf32> {
    %0 = arith.constant dense<0.0> : tensor<2x4xf32>
    return %0 : tensor<2x4xf32>
  }
  func.func @b_forward(%x: tensor<2x4xf32>, %t: tensor<2x4xi32>) -> tensor<f32> {
    %0 = arith.constant dense<0.0> : tensor<f32>
    return %0 : tensor<f32>
  }
}

// -----

module {
  boa.input @tokens from data : tensor<2x4xi32>
  boa.input @targets from data : tensor<2x4xi32>
  // expected-error @below {{'boa.input' op is from seed, but a trainer has document_starts from data}}
  boa.input @document_starts from seed : tensor<2x4xi32>
  boa.stage @a_forward(@tokens)
  boa.stage @b_forward(@a_forward, @targets, @document_starts)
  func.func @a_forward(%x: tensor<2x4xi32>) -> tensor<2x4xf32> {
    %0 = arith.constant dense<0.0> : tensor<2x4xf32>
    return %0 : tensor<2x4xf32>
  }
  func.func @b_forward(%x: tensor<2x4xf32>, %t: tensor<2x4xi32>, %k: tensor<2x4xi32>) -> tensor<f32> {
    %0 = arith.constant dense<0.0> : tensor<f32>
    return %0 : tensor<f32>
  }
}

// -----

module {
  boa.input @tokens from data : tensor<2x4xi32>
  boa.input @targets from data : tensor<2x4xi32>
  // expected-error @below {{'boa.input' op is from data, but a trainer has dropout_keys from seed}}
  boa.input @dropout_keys from data : tensor<2x4xi32>
  boa.stage @a_forward(@tokens)
  boa.stage @b_forward(@a_forward, @targets, @dropout_keys)
  func.func @a_forward(%x: tensor<2x4xi32>) -> tensor<2x4xf32> {
    %0 = arith.constant dense<0.0> : tensor<2x4xf32>
    return %0 : tensor<2x4xf32>
  }
  func.func @b_forward(%x: tensor<2x4xf32>, %t: tensor<2x4xi32>, %k: tensor<2x4xi32>) -> tensor<f32> {
    %0 = arith.constant dense<0.0> : tensor<f32>
    return %0 : tensor<f32>
  }
}

// -----

// not named as a storage of the compiler,

module {
  boa.input @tokens from data : tensor<2x4xi32>
  boa.input @targets from data : tensor<2x4xi32>
  // expected-error @below {{'boa.input' op has the name of a storage or step that is made of the model: expected another one than @loss}}
  boa.input @loss from data : tensor<2x4xi32>
  boa.stage @a_forward(@tokens)
  boa.stage @b_forward(@a_forward, @targets, @loss)
  func.func @a_forward(%x: tensor<2x4xi32>) -> tensor<2x4xf32> {
    %0 = arith.constant dense<0.0> : tensor<2x4xf32>
    return %0 : tensor<2x4xf32>
  }
  func.func @b_forward(%x: tensor<2x4xf32>, %t: tensor<2x4xi32>, %p: tensor<2x4xi32>) -> tensor<f32> {
    %0 = arith.constant dense<0.0> : tensor<f32>
    return %0 : tensor<f32>
  }
}

// -----

module {
  boa.optimizer @sgd {} states {speed = f32}
  boa.input @tokens from data : tensor<2x4xi32>
  boa.input @targets from data : tensor<2x4xi32>
  // expected-error @below {{'boa.input' op has the name of a storage or step that is made of the model: expected another one than @speed}}
  boa.input @speed from data : tensor<2x4xi32>
  boa.stage @a_forward(@tokens)
  boa.stage @b_forward(@a_forward, @targets, @speed)
  func.func @a_forward(%x: tensor<2x4xi32>) -> tensor<2x4xf32> {
    %0 = arith.constant dense<0.0> : tensor<2x4xf32>
    return %0 : tensor<2x4xf32>
  }
  func.func @b_forward(%x: tensor<2x4xf32>, %t: tensor<2x4xi32>, %p: tensor<2x4xi32>) -> tensor<f32> {
    %0 = arith.constant dense<0.0> : tensor<f32>
    return %0 : tensor<f32>
  }
}

// -----

// taken by a stage,

module {
  boa.input @tokens from data : tensor<2x4xi32>
  boa.input @targets from data : tensor<2x4xi32>
  // expected-error @below {{'boa.input' op is taken by no stage}}
  boa.input @pixels from data : tensor<2x3x4xf32>
  boa.stage @a_forward(@tokens)
  boa.stage @b_forward(@a_forward, @targets)
  func.func @a_forward(%x: tensor<2x4xi32>) -> tensor<2x4xf32> {
    %0 = arith.constant dense<0.0> : tensor<2x4xf32>
    return %0 : tensor<2x4xf32>
  }
  func.func @b_forward(%x: tensor<2x4xf32>, %t: tensor<2x4xi32>) -> tensor<f32> {
    %0 = arith.constant dense<0.0> : tensor<f32>
    return %0 : tensor<f32>
  }
}

// -----

// and known to the stage. Of some, later passes look for one argument.

module {
  boa.input @tokens from data : tensor<2x4xi32>
  // expected-error @below {{'boa.stage' op takes @pixels, which is no input and no earlier stage}}
  boa.stage @a_forward(@tokens, @pixels)
  func.func @a_forward(%x: tensor<2x4xi32>, %p: tensor<2x3x4xf32>) -> tensor<2x4xi32> {
    return %x : tensor<2x4xi32>
  }
}

// -----

module {
  boa.input @tokens from data : tensor<2x4xi32>
  boa.input @targets from data : tensor<2x4xi32>
  boa.stage @a_forward(@tokens)
  // expected-error @below {{'boa.stage' op takes @targets twice}}
  boa.stage @b_forward(@a_forward, @targets, @targets)
  func.func @a_forward(%x: tensor<2x4xi32>) -> tensor<2x4xf32> {
    %0 = arith.constant dense<0.0> : tensor<2x4xf32>
    return %0 : tensor<2x4xf32>
  }
  func.func @b_forward(%x: tensor<2x4xf32>, %t: tensor<2x4xi32>, %p: tensor<2x4xi32>) -> tensor<f32> {
    %0 = arith.constant dense<0.0> : tensor<f32>
    return %0 : tensor<f32>
  }
}

// -----

// A result is one that its stage returns.

module {
  boa.input @tokens from data : tensor<2x4xi32>
  boa.input @targets from data : tensor<2x4xi32>
  boa.stage @a_forward(@tokens)
  // expected-error @below {{'boa.stage' op takes result 1 of @a_forward, which returns 1}}
  boa.stage @b_forward(@a_forward[1], @targets)
  func.func @a_forward(%x: tensor<2x4xi32>) -> tensor<2x4xf32> {
    %0 = arith.constant dense<0.0> : tensor<2x4xf32>
    return %0 : tensor<2x4xf32>
  }
  func.func @b_forward(%x: tensor<2x4xf32>, %t: tensor<2x4xi32>) -> tensor<f32> {
    %0 = arith.constant dense<0.0> : tensor<f32>
    return %0 : tensor<f32>
  }
}

// -----

// Storages of results are named after them.

module {
  boa.input @tokens from data : tensor<2x4xi32>
  boa.input @targets from data : tensor<2x4xi32>
  boa.stage @a_forward(@tokens)
  // expected-error @below {{'boa.stage' op expected a name of its own but a.1 is that of an earlier stage, or of a result of one}}
  boa.stage @a.1_forward(@a_forward)
  boa.stage @b_forward(@a.1_forward, @targets)
  func.func @a_forward(%x: tensor<2x4xi32>) -> (tensor<2x4xf32>, tensor<2x4xi32>) {
    %0 = arith.constant dense<0.0> : tensor<2x4xf32>
    return %0, %x : tensor<2x4xf32>, tensor<2x4xi32>
  }
  func.func @a.1_forward(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {
    return %x : tensor<2x4xf32>
  }
  func.func @b_forward(%x: tensor<2x4xf32>, %t: tensor<2x4xi32>) -> tensor<f32> {
    %0 = arith.constant dense<0.0> : tensor<f32>
    return %0 : tensor<f32>
  }
}

// -----

// What it takes has the type of its argument.

module {
  boa.group @a repeat 1 {
    boa.param @w : tensor<16x8xf32> = "ones"
  }
  boa.input @tokens from data : tensor<2x4xi32>
  boa.input @targets from data : tensor<2x4xi32>
  boa.stage @a_forward(@tokens)
  // expected-error @below {{'boa.stage' op takes 'tensor<2x4x16xf32>' of @a_forward, which is 'tensor<2x4x8xf32>'}}
  boa.stage @b_forward(@a_forward, @targets)
  func.func @a_forward(%x: tensor<2x4xi32>, %w: tensor<16x8xf32> {boa.param = @a::@w}) -> tensor<2x4x8xf32> {
    %0 = boa.embedding %w, %x : (tensor<16x8xf32>, tensor<2x4xi32>) -> tensor<2x4x8xf32>
    return %0 : tensor<2x4x8xf32>
  }
  func.func @b_forward(%x: tensor<2x4x16xf32>, %t: tensor<2x4xi32>) -> tensor<f32> {
    %0 = boa.cross_entropy %x, %t : (tensor<2x4x16xf32>, tensor<2x4xi32>) -> tensor<f32>
    return %0 : tensor<f32>
  }
}

// -----

// The last stage has the targets, and returns a loss.

module {
  boa.group @a repeat 1 {
    boa.param @w : tensor<16x8xf32> = "ones"
  }
  boa.input @tokens from data : tensor<2x4xi32>
  boa.stage @a_forward(@tokens)
  // expected-error @below {{'boa.stage' op expected the last stage to take the targets}}
  boa.stage @b_forward(@a_forward)
  func.func @a_forward(%x: tensor<2x4xi32>, %w: tensor<16x8xf32> {boa.param = @a::@w}) -> tensor<2x4x8xf32> {
    %0 = boa.embedding %w, %x : (tensor<16x8xf32>, tensor<2x4xi32>) -> tensor<2x4x8xf32>
    return %0 : tensor<2x4x8xf32>
  }
  func.func @b_forward(%x: tensor<2x4x8xf32>) -> tensor<2x4x8xf32> {
    return %x : tensor<2x4x8xf32>
  }
}

// -----

module {
  boa.group @a repeat 1 {
    boa.param @w : tensor<16x8xf32> = "ones"
  }
  boa.input @tokens from data : tensor<2x4xi32>
  boa.input @targets from data : tensor<2x4xi32>
  boa.stage @a_forward(@tokens)
  // expected-error @below {{'boa.stage' op expected the last stage to return a scalar loss but found 'tensor<2x4x8xf32>'}}
  boa.stage @b_forward(@a_forward, @targets)
  func.func @a_forward(%x: tensor<2x4xi32>, %w: tensor<16x8xf32> {boa.param = @a::@w}) -> tensor<2x4x8xf32> {
    %0 = boa.embedding %w, %x : (tensor<16x8xf32>, tensor<2x4xi32>) -> tensor<2x4x8xf32>
    return %0 : tensor<2x4x8xf32>
  }
  func.func @b_forward(%x: tensor<2x4x8xf32>, %t: tensor<2x4xi32>) -> tensor<2x4x8xf32> {
    return %x : tensor<2x4x8xf32>
  }
}

// -----

// Activations may be bf16; the loss is stored in f32.

module {
  boa.group @a repeat 1 {
    boa.param @w : tensor<16x8xf32> = "ones"
  }
  boa.input @tokens from data : tensor<2x4xi32>
  boa.input @targets from data : tensor<2x4xi32>
  boa.stage @a_forward(@tokens)
  // expected-error @below {{'boa.stage' op expected the last stage to return a loss of f32 but found 'tensor<bf16>'}}
  boa.stage @b_forward(@a_forward, @targets)
  func.func @a_forward(%x: tensor<2x4xi32>, %w: tensor<16x8xf32> {boa.param = @a::@w}) -> tensor<2x4x8xf32> {
    %0 = boa.embedding %w, %x : (tensor<16x8xf32>, tensor<2x4xi32>) -> tensor<2x4x8xf32>
    return %0 : tensor<2x4x8xf32>
  }
  func.func @b_forward(%x: tensor<2x4x8xf32>, %t: tensor<2x4xi32>) -> tensor<bf16> {
    %0 = boa.cross_entropy %x, %t : (tensor<2x4x8xf32>, tensor<2x4xi32>) -> tensor<f32>
    %1 = boa.cast %0 : tensor<f32> to tensor<bf16>
    return %1 : tensor<bf16>
  }
}

// -----

// A layer that repeats returns what it takes.

module {
  boa.group @a repeat 1 {
    boa.param @w : tensor<16x8xf32> = "ones"
  }
  boa.input @tokens from data : tensor<2x4xi32>
  boa.input @targets from data : tensor<2x4xi32>
  boa.stage @a_forward(@tokens)
  // expected-error @below {{'boa.stage' op repeats, so its result must have the type of its input: 'tensor<2x4x8xf32>' but it returns 'tensor<2x4x4xf32>'}}
  boa.stage @b_forward(@a_forward) repeat 2
  boa.stage @c_forward(@b_forward, @targets)
  func.func @a_forward(%x: tensor<2x4xi32>, %w: tensor<16x8xf32> {boa.param = @a::@w}) -> tensor<2x4x8xf32> {
    %0 = boa.embedding %w, %x : (tensor<16x8xf32>, tensor<2x4xi32>) -> tensor<2x4x8xf32>
    return %0 : tensor<2x4x8xf32>
  }
  func.func @b_forward(%x: tensor<2x4x8xf32>) -> tensor<2x4x4xf32> {
    %0:2 = boa.split %x : (tensor<2x4x8xf32>) -> (tensor<2x4x4xf32>, tensor<2x4x4xf32>)
    return %0#0 : tensor<2x4x4xf32>
  }
  func.func @c_forward(%x: tensor<2x4x4xf32>, %t: tensor<2x4xi32>) -> tensor<f32> {
    %0 = boa.cross_entropy %x, %t : (tensor<2x4x4xf32>, tensor<2x4xi32>) -> tensor<f32>
    return %0 : tensor<f32>
  }
}

// -----

// A stage is found by its function.

module {
  boa.group @a repeat 1 {
    boa.param @w : tensor<16x8xf32> = "ones"
  }
  boa.input @tokens from data : tensor<2x4xi32>
  boa.input @targets from data : tensor<2x4xi32>
  boa.stage @a_forward(@tokens)
  boa.stage @b_forward(@a_forward) repeat 2
  // expected-error @below {{'boa.stage' op expected a name of its own but b is that of an earlier stage, or of a result of one}}
  boa.stage @b_forward(@b_forward) repeat 3
  boa.stage @c_forward(@b_forward, @targets)
  func.func @a_forward(%x: tensor<2x4xi32>, %w: tensor<16x8xf32> {boa.param = @a::@w}) -> tensor<2x4x8xf32> {
    %0 = boa.embedding %w, %x : (tensor<16x8xf32>, tensor<2x4xi32>) -> tensor<2x4x8xf32>
    return %0 : tensor<2x4x8xf32>
  }
  func.func @b_forward(%x: tensor<2x4x8xf32>) -> tensor<2x4x8xf32> {
    %0 = boa.gelu %x : tensor<2x4x8xf32>
    return %0 : tensor<2x4x8xf32>
  }
  func.func @c_forward(%x: tensor<2x4x8xf32>, %t: tensor<2x4xi32>) -> tensor<f32> {
    %0 = boa.cross_entropy %x, %t : (tensor<2x4x8xf32>, tensor<2x4xi32>) -> tensor<f32>
    return %0 : tensor<f32>
  }
}

// -----

// Layers carry results. Tokens that they change would not be rows of a table.

module {
  boa.group @b repeat 1 {
    boa.param @w : tensor<16x8xf32> = "ones"
  }
  boa.input @tokens from data : tensor<2x4xi32>
  boa.input @targets from data : tensor<2x4xi32>
  boa.stage @a_forward(@tokens)
  // expected-error @below {{'boa.stage' op carries @tokens from layer to layer: expected the result of a stage}}
  boa.stage @l_forward(@tokens, @a_forward) repeat 2
  boa.stage @c_forward(@l_forward[1], @targets)
  func.func @a_forward(%t: tensor<2x4xi32>) -> tensor<2x4x8xf32> {
    %0 = arith.constant dense<0.0> : tensor<2x4x8xf32>
    return %0 : tensor<2x4x8xf32>
  }
  func.func @l_forward(%t: tensor<2x4xi32>, %x: tensor<2x4x8xf32>, %w: tensor<16x8xf32> {boa.param = @b::@w}) -> (tensor<2x4xi32>, tensor<2x4x8xf32>) {
    %0 = boa.embedding %w, %t : (tensor<16x8xf32>, tensor<2x4xi32>) -> tensor<2x4x8xf32>
    %1 = boa.add %x, %0 : tensor<2x4x8xf32>, tensor<2x4x8xf32>
    %2 = boa.rebase %t by 8 : tensor<2x4xi32>
    return %2, %1 : tensor<2x4xi32>, tensor<2x4x8xf32>
  }
  func.func @c_forward(%x: tensor<2x4x8xf32>, %t: tensor<2x4xi32>) -> tensor<f32> {
    %0 = boa.cross_entropy %x, %t : (tensor<2x4x8xf32>, tensor<2x4xi32>) -> tensor<f32>
    return %0 : tensor<f32>
  }
}

// -----

// An argument takes the result of an earlier stage: not of the stage itself,

module {
  boa.group @a repeat 1 {
    boa.param @w : tensor<16x8xf32> = "ones"
  }
  boa.input @tokens from data : tensor<2x4xi32>
  boa.input @targets from data : tensor<2x4xi32>
  boa.stage @a_forward(@tokens)
  // expected-error @below {{'boa.stage' op takes @b_forward, which is no input and no earlier stage}}
  boa.stage @b_forward(@a_forward, @b_forward) repeat 2
  boa.stage @c_forward(@b_forward, @targets)
  func.func @a_forward(%x: tensor<2x4xi32>, %w: tensor<16x8xf32> {boa.param = @a::@w}) -> tensor<2x4x8xf32> {
    %0 = boa.embedding %w, %x : (tensor<16x8xf32>, tensor<2x4xi32>) -> tensor<2x4x8xf32>
    return %0 : tensor<2x4x8xf32>
  }
  func.func @b_forward(%x: tensor<2x4x8xf32>, %a: tensor<2x4x8xf32>) -> tensor<2x4x8xf32> {
    %0 = boa.add %x, %a : tensor<2x4x8xf32>, tensor<2x4x8xf32>
    return %0 : tensor<2x4x8xf32>
  }
  func.func @c_forward(%x: tensor<2x4x8xf32>, %t: tensor<2x4xi32>) -> tensor<f32> {
    %0 = boa.cross_entropy %x, %t : (tensor<2x4x8xf32>, tensor<2x4xi32>) -> tensor<f32>
    return %0 : tensor<f32>
  }
}

// -----

// nor of a later one,

module {
  boa.group @a repeat 1 {
    boa.param @w : tensor<16x8xf32> = "ones"
  }
  boa.input @tokens from data : tensor<2x4xi32>
  boa.input @targets from data : tensor<2x4xi32>
  boa.stage @a_forward(@tokens)
  // expected-error @below {{'boa.stage' op takes @c_forward, which is no input and no earlier stage}}
  boa.stage @b_forward(@a_forward, @c_forward) repeat 2
  boa.stage @c_forward(@b_forward, @targets)
  func.func @a_forward(%x: tensor<2x4xi32>, %w: tensor<16x8xf32> {boa.param = @a::@w}) -> tensor<2x4x8xf32> {
    %0 = boa.embedding %w, %x : (tensor<16x8xf32>, tensor<2x4xi32>) -> tensor<2x4x8xf32>
    return %0 : tensor<2x4x8xf32>
  }
  func.func @b_forward(%x: tensor<2x4x8xf32>, %a: tensor<2x4x8xf32>) -> tensor<2x4x8xf32> {
    %0 = boa.add %x, %a : tensor<2x4x8xf32>, tensor<2x4x8xf32>
    return %0 : tensor<2x4x8xf32>
  }
  func.func @c_forward(%x: tensor<2x4x8xf32>, %t: tensor<2x4xi32>) -> tensor<f32> {
    %0 = boa.cross_entropy %x, %t : (tensor<2x4x8xf32>, tensor<2x4xi32>) -> tensor<f32>
    return %0 : tensor<f32>
  }
}

// -----

// once,

module {
  boa.group @a repeat 1 {
    boa.param @w : tensor<16x8xf32> = "ones"
  }
  boa.input @tokens from data : tensor<2x4xi32>
  boa.input @targets from data : tensor<2x4xi32>
  boa.stage @a_forward(@tokens)
  // expected-error @below {{'boa.stage' op takes @a_forward twice}}
  boa.stage @b_forward(@a_forward, @a_forward, @a_forward) repeat 2
  boa.stage @c_forward(@b_forward, @targets)
  func.func @a_forward(%x: tensor<2x4xi32>, %w: tensor<16x8xf32> {boa.param = @a::@w}) -> tensor<2x4x8xf32> {
    %0 = boa.embedding %w, %x : (tensor<16x8xf32>, tensor<2x4xi32>) -> tensor<2x4x8xf32>
    return %0 : tensor<2x4x8xf32>
  }
  func.func @b_forward(%x: tensor<2x4x8xf32>, %a: tensor<2x4x8xf32>, %b: tensor<2x4x8xf32>) -> tensor<2x4x8xf32> {
    %0 = boa.add %x, %a : tensor<2x4x8xf32>, tensor<2x4x8xf32>
    return %0 : tensor<2x4x8xf32>
  }
  func.func @c_forward(%x: tensor<2x4x8xf32>, %t: tensor<2x4xi32>) -> tensor<f32> {
    %0 = boa.cross_entropy %x, %t : (tensor<2x4x8xf32>, tensor<2x4xi32>) -> tensor<f32>
    return %0 : tensor<f32>
  }
}

// -----

// an argument of its function,

module {
  boa.group @a repeat 1 {
    boa.param @w : tensor<16x8xf32> = "ones"
  }
  boa.input @tokens from data : tensor<2x4xi32>
  boa.input @targets from data : tensor<2x4xi32>
  boa.stage @a_forward(@tokens)
  // expected-error @below {{'boa.stage' op takes 2 values but @b_forward has 1 arguments before its parameters}}
  boa.stage @b_forward(@a_forward, @a_forward) repeat 2
  boa.stage @c_forward(@b_forward, @targets)
  func.func @a_forward(%x: tensor<2x4xi32>, %w: tensor<16x8xf32> {boa.param = @a::@w}) -> tensor<2x4x8xf32> {
    %0 = boa.embedding %w, %x : (tensor<16x8xf32>, tensor<2x4xi32>) -> tensor<2x4x8xf32>
    return %0 : tensor<2x4x8xf32>
  }
  func.func @b_forward(%x: tensor<2x4x8xf32>) -> tensor<2x4x8xf32> {
    %0 = boa.gelu %x : tensor<2x4x8xf32>
    return %0 : tensor<2x4x8xf32>
  }
  func.func @c_forward(%x: tensor<2x4x8xf32>, %t: tensor<2x4xi32>) -> tensor<f32> {
    %0 = boa.cross_entropy %x, %t : (tensor<2x4x8xf32>, tensor<2x4xi32>) -> tensor<f32>
    return %0 : tensor<f32>
  }
}

// -----

// and of its type. The last stage takes it after the targets.

module {
  boa.group @a repeat 1 {
    boa.param @w : tensor<16x8xf32> = "ones"
  }
  boa.input @tokens from data : tensor<2x4xi32>
  boa.input @targets from data : tensor<2x4xi32>
  boa.stage @a_forward(@tokens)
  boa.stage @b_forward(@a_forward)
  // expected-error @below {{'boa.stage' op takes 'tensor<2x4x4xf32>' of @a_forward, which is 'tensor<2x4x8xf32>'}}
  boa.stage @c_forward(@b_forward, @targets, @a_forward)
  func.func @a_forward(%x: tensor<2x4xi32>, %w: tensor<16x8xf32> {boa.param = @a::@w}) -> tensor<2x4x8xf32> {
    %0 = boa.embedding %w, %x : (tensor<16x8xf32>, tensor<2x4xi32>) -> tensor<2x4x8xf32>
    return %0 : tensor<2x4x8xf32>
  }
  func.func @b_forward(%x: tensor<2x4x8xf32>) -> tensor<2x4x8xf32> {
    %0 = boa.gelu %x : tensor<2x4x8xf32>
    return %0 : tensor<2x4x8xf32>
  }
  func.func @c_forward(%x: tensor<2x4x8xf32>, %t: tensor<2x4xi32>, %a: tensor<2x4x4xf32>) -> tensor<f32> {
    %0 = boa.cross_entropy %x, %t : (tensor<2x4x8xf32>, tensor<2x4xi32>) -> tensor<f32>
    return %0 : tensor<f32>
  }
}

// -----

// An argument that no stage gives is refused.

module {
  boa.group @a repeat 1 {
    boa.param @w : tensor<16x8xf32> = "ones"
  }
  boa.input @tokens from data : tensor<2x4xi32>
  boa.input @targets from data : tensor<2x4xi32>
  boa.stage @a_forward(@tokens)
  // expected-error @below {{'boa.stage' op takes 1 values but @b_forward has 2 arguments before its parameters}}
  boa.stage @b_forward(@a_forward) repeat 2
  boa.stage @c_forward(@b_forward, @targets)
  func.func @a_forward(%x: tensor<2x4xi32>, %w: tensor<16x8xf32> {boa.param = @a::@w}) -> tensor<2x4x8xf32> {
    %0 = boa.embedding %w, %x : (tensor<16x8xf32>, tensor<2x4xi32>) -> tensor<2x4x8xf32>
    return %0 : tensor<2x4x8xf32>
  }
  func.func @b_forward(%x: tensor<2x4x8xf32>, %a: tensor<2x4x8xf32>) -> tensor<2x4x8xf32> {
    %0 = boa.add %x, %a : tensor<2x4x8xf32>, tensor<2x4x8xf32>
    return %0 : tensor<2x4x8xf32>
  }
  func.func @c_forward(%x: tensor<2x4x8xf32>, %t: tensor<2x4xi32>) -> tensor<f32> {
    %0 = boa.cross_entropy %x, %t : (tensor<2x4x8xf32>, tensor<2x4xi32>) -> tensor<f32>
    return %0 : tensor<f32>
  }
}

// -----

// A body is tensor code: what knows no cost and no gradient has no place there.

module {
  boa.group @a repeat 1 {
    boa.param @w : tensor<16x8xf32> = "ones"
  }
  boa.input @tokens from data : tensor<2x4xi32>
  boa.input @targets from data : tensor<2x4xi32>
  boa.stage @a_forward(@tokens)
  boa.stage @c_forward(@a_forward, @targets)
  func.func @a_forward(%x: tensor<2x4xi32>, %w: tensor<16x8xf32> {boa.param = @a::@w}) -> tensor<2x4x8xf32> {
    %0 = boa.embedding %w, %x : (tensor<16x8xf32>, tensor<2x4xi32>) -> tensor<2x4x8xf32>
    // expected-error @below {{'arith.addf' op is not a compute op}}
    %1 = arith.addf %0, %0 : tensor<2x4x8xf32>
    return %1 : tensor<2x4x8xf32>
  }
  func.func @c_forward(%x: tensor<2x4x8xf32>, %t: tensor<2x4xi32>) -> tensor<f32> {
    %0 = boa.cross_entropy %x, %t : (tensor<2x4x8xf32>, tensor<2x4xi32>) -> tensor<f32>
    return %0 : tensor<f32>
  }
}

// -----

// A stage's function has a body,

module {
  boa.input @tokens from data : tensor<2x4xi32>
  boa.input @targets from data : tensor<2x4xi32>
  // expected-error @below {{'boa.stage' op expected a func.func of one block named @a_forward}}
  boa.stage @a_forward(@tokens)
  boa.stage @b_forward(@a_forward, @targets)
  func.func private @a_forward(%x: tensor<2x4xi32>) -> tensor<2x4x8xf32>
  func.func @b_forward(%x: tensor<2x4x8xf32>, %t: tensor<2x4xi32>) -> tensor<f32> {
    %0 = arith.constant dense<0.0> : tensor<f32>
    return %0 : tensor<f32>
  }
}

// -----

// the name that later passes look for,

module {
  boa.input @tokens from data : tensor<2x4xi32>
  boa.input @targets from data : tensor<2x4xi32>
  // expected-error @below {{'boa.stage' op expected a function named NAME_forward but found @a}}
  boa.stage @a(@tokens)
  boa.stage @b_forward(@a, @targets)
  func.func @a(%x: tensor<2x4xi32>) -> tensor<2x4x8xf32> {
    %0 = arith.constant dense<0.0> : tensor<2x4x8xf32>
    return %0 : tensor<2x4x8xf32>
  }
  func.func @b_forward(%x: tensor<2x4x8xf32>, %t: tensor<2x4xi32>) -> tensor<f32> {
    %0 = arith.constant dense<0.0> : tensor<f32>
    return %0 : tensor<f32>
  }
}

// -----

// and computes on tensors of static shape.

module {
  boa.input @tokens from data : tensor<2x4xi32>
  boa.input @targets from data : tensor<2x4xi32>
  boa.stage @a_forward(@tokens)
  // expected-error @below {{'boa.stage' op expected tensors of static shape in the type of @b_forward but found 'f32'}}
  boa.stage @b_forward(@a_forward, @targets)
  func.func @a_forward(%x: tensor<2x4xi32>) -> tensor<2x4x8xf32> {
    %0 = arith.constant dense<0.0> : tensor<2x4x8xf32>
    return %0 : tensor<2x4x8xf32>
  }
  func.func @b_forward(%x: tensor<2x4x8xf32>, %t: tensor<2x4xi32>) -> f32 {
    %0 = arith.constant 0.0 : f32
    return %0 : f32
  }
}

// -----

// All its arguments after the activations are parameters,

module {
  boa.group @a repeat 1 {
    boa.param @w : tensor<16x8xf32> = "ones"
  }
  boa.input @tokens from data : tensor<2x4xi32>
  boa.input @targets from data : tensor<2x4xi32>
  // expected-error @below {{'boa.stage' op expected only parameters after the activations of @a_forward but argument 2 is none}}
  boa.stage @a_forward(@tokens)
  boa.stage @b_forward(@a_forward, @targets)
  func.func @a_forward(%x: tensor<2x4xi32>, %w: tensor<16x8xf32> {boa.param = @a::@w}, %y: tensor<8xf32>) -> tensor<2x4x8xf32> {
    %0 = boa.embedding %w, %x : (tensor<16x8xf32>, tensor<2x4xi32>) -> tensor<2x4x8xf32>
    return %0 : tensor<2x4x8xf32>
  }
  func.func @b_forward(%x: tensor<2x4x8xf32>, %t: tensor<2x4xi32>) -> tensor<f32> {
    %0 = arith.constant dense<0.0> : tensor<f32>
    return %0 : tensor<f32>
  }
}

// -----

// each once.

module {
  boa.group @a repeat 1 {
    boa.param @w : tensor<16x8xf32> = "ones"
  }
  boa.input @tokens from data : tensor<2x4xi32>
  boa.input @targets from data : tensor<2x4xi32>
  // expected-error @below {{'boa.stage' op takes @a::@w twice: their gradients would be stored in one place}}
  boa.stage @a_forward(@tokens)
  boa.stage @b_forward(@a_forward, @targets)
  func.func @a_forward(%x: tensor<2x4xi32>, %v: tensor<16x8xf32> {boa.param = @a::@w}, %w: tensor<16x8xf32> {boa.param = @a::@w}) -> tensor<2x4x8xf32> {
    %0 = boa.embedding %v, %x : (tensor<16x8xf32>, tensor<2x4xi32>) -> tensor<2x4x8xf32>
    %1 = boa.embedding %w, %x : (tensor<16x8xf32>, tensor<2x4xi32>) -> tensor<2x4x8xf32>
    %2 = boa.add %0, %1 : tensor<2x4x8xf32>, tensor<2x4x8xf32>
    return %2 : tensor<2x4x8xf32>
  }
  func.func @b_forward(%x: tensor<2x4x8xf32>, %t: tensor<2x4xi32>) -> tensor<f32> {
    %0 = arith.constant dense<0.0> : tensor<f32>
    return %0 : tensor<f32>
  }
}

// -----

// A layer takes its own entry of a group that repeats: there are as many entries as layers.

module {
  boa.group @other repeat 2 {
    boa.param @w : tensor<8xf32> = "ones"
  }
  boa.input @tokens from data : tensor<2x4xi32>
  boa.input @targets from data : tensor<2x4xi32>
  boa.stage @a_forward(@tokens)
  // expected-error @below {{'boa.stage' op repeats 3 times but takes @other::@w of a group that repeats 2 times}}
  boa.stage @block_forward(@a_forward) repeat 3
  boa.stage @b_forward(@block_forward, @targets)
  func.func @a_forward(%x: tensor<2x4xi32>) -> tensor<2x4x8xf32> {
    %0 = arith.constant dense<0.0> : tensor<2x4x8xf32>
    return %0 : tensor<2x4x8xf32>
  }
  func.func @block_forward(%x: tensor<2x4x8xf32>, %w: tensor<8xf32> {boa.param = @other::@w}) -> tensor<2x4x8xf32> {
    %0 = boa.mul %x, %w : tensor<2x4x8xf32>, tensor<8xf32>
    return %0 : tensor<2x4x8xf32>
  }
  func.func @b_forward(%x: tensor<2x4x8xf32>, %t: tensor<2x4xi32>) -> tensor<f32> {
    %0 = arith.constant dense<0.0> : tensor<f32>
    return %0 : tensor<f32>
  }
}

// -----

// A layer's own group has an entry for each layer, though layers may share that of a stage.

module {
  boa.group @block repeat 1 {
    boa.param @w : tensor<8xf32> = "ones"
  }
  boa.input @tokens from data : tensor<2x4xi32>
  boa.input @targets from data : tensor<2x4xi32>
  boa.stage @a_forward(@tokens)
  // expected-error @below {{'boa.stage' op repeats 3 times but takes @block::@w of a group that repeats 1 times}}
  boa.stage @block_forward(@a_forward) repeat 3
  boa.stage @b_forward(@block_forward, @targets)
  func.func @a_forward(%x: tensor<2x4xi32>) -> tensor<2x4x8xf32> {
    %0 = arith.constant dense<0.0> : tensor<2x4x8xf32>
    return %0 : tensor<2x4x8xf32>
  }
  func.func @block_forward(%x: tensor<2x4x8xf32>, %w: tensor<8xf32> {boa.param = @block::@w}) -> tensor<2x4x8xf32> {
    %0 = boa.mul %x, %w : tensor<2x4x8xf32>, tensor<8xf32>
    return %0 : tensor<2x4x8xf32>
  }
  func.func @b_forward(%x: tensor<2x4x8xf32>, %t: tensor<2x4xi32>) -> tensor<f32> {
    %0 = arith.constant dense<0.0> : tensor<f32>
    return %0 : tensor<f32>
  }
}

// -----

// A trainer fills the micro-batches that its config describes: in size,

module {
  boa.config @model {context = 8 : i64, vocab = 4 : i64}
  boa.config @train {batch = 4 : i64}
  boa.config @plan {micro_batch = 1 : i64}
  boa.group @a repeat 1 {
    boa.param @w : tensor<4x4xf32> = "ones"
  }
  // expected-error @below {{'boa.input' op is 'tensor<2x8xi32>', but boa.config has micro_batch = 1, context = 8: expected i32 for each token}}
  boa.input @tokens from data : tensor<2x8xi32>
  boa.input @targets from data : tensor<2x8xi32>
  boa.stage @a_forward(@tokens)
  boa.stage @b_forward(@a_forward, @targets)
  func.func @a_forward(%x: tensor<2x8xi32>, %w: tensor<4x4xf32> {boa.param = @a::@w}) -> tensor<2x8x4xf32> {
    %0 = boa.embedding %w, %x : (tensor<4x4xf32>, tensor<2x8xi32>) -> tensor<2x8x4xf32>
    return %0 : tensor<2x8x4xf32>
  }
  func.func @b_forward(%x: tensor<2x8x4xf32>, %t: tensor<2x8xi32>) -> tensor<f32> {
    %0 = boa.cross_entropy %x, %t : (tensor<2x8x4xf32>, tensor<2x8xi32>) -> tensor<f32>
    return %0 : tensor<f32>
  }
}

// -----

// in length,

module {
  boa.config @model {context = 16 : i64, vocab = 4 : i64}
  boa.config @train {batch = 4 : i64}
  boa.config @plan {micro_batch = 2 : i64}
  boa.group @a repeat 1 {
    boa.param @w : tensor<4x4xf32> = "ones"
  }
  // expected-error @below {{'boa.input' op is 'tensor<2x8xi32>', but boa.config has micro_batch = 2, context = 16: expected i32 for each token}}
  boa.input @tokens from data : tensor<2x8xi32>
  boa.input @targets from data : tensor<2x8xi32>
  boa.stage @a_forward(@tokens)
  boa.stage @b_forward(@a_forward, @targets)
  func.func @a_forward(%x: tensor<2x8xi32>, %w: tensor<4x4xf32> {boa.param = @a::@w}) -> tensor<2x8x4xf32> {
    %0 = boa.embedding %w, %x : (tensor<4x4xf32>, tensor<2x8xi32>) -> tensor<2x8x4xf32>
    return %0 : tensor<2x8x4xf32>
  }
  func.func @b_forward(%x: tensor<2x8x4xf32>, %t: tensor<2x8xi32>) -> tensor<f32> {
    %0 = boa.cross_entropy %x, %t : (tensor<2x8x4xf32>, tensor<2x8xi32>) -> tensor<f32>
    return %0 : tensor<f32>
  }
}

// -----

// in the targets,

module {
  boa.config @model {context = 8 : i64, vocab = 4 : i64}
  boa.config @train {batch = 4 : i64}
  boa.config @plan {micro_batch = 2 : i64}
  boa.group @a repeat 1 {
    boa.param @w : tensor<4x4xf32> = "ones"
  }
  boa.input @tokens from data : tensor<2x8xi32>
  // expected-error @below {{'boa.input' op is 'tensor<2x9xi32>', but boa.config has micro_batch = 2, context = 8: expected i32 for each token}}
  boa.input @targets from data : tensor<2x9xi32>
  boa.stage @a_forward(@tokens)
  boa.stage @b_forward(@a_forward, @targets)
  func.func @a_forward(%x: tensor<2x8xi32>, %w: tensor<4x4xf32> {boa.param = @a::@w}) -> tensor<2x8x4xf32> {
    %0 = boa.embedding %w, %x : (tensor<4x4xf32>, tensor<2x8xi32>) -> tensor<2x8x4xf32>
    return %0 : tensor<2x8x4xf32>
  }
  func.func @b_forward(%x: tensor<2x8x4xf32>, %t: tensor<2x9xi32>) -> tensor<f32> {
    %0 = arith.constant dense<0.0> : tensor<f32>
    return %0 : tensor<f32>
  }
}

// -----

// and with its tokens: each has a row of a table

module {
  boa.config @model {context = 8 : i64, vocab = 256 : i64}
  boa.config @train {batch = 4 : i64}
  boa.config @plan {micro_batch = 2 : i64}
  boa.group @a repeat 1 {
    boa.param @w : tensor<16x4xf32> = "ones"
  }
  boa.input @tokens from data : tensor<2x8xi32>
  boa.input @targets from data : tensor<2x8xi32>
  boa.stage @a_forward(@tokens)
  boa.stage @b_forward(@a_forward, @targets)
  func.func @a_forward(%x: tensor<2x8xi32>, %w: tensor<16x4xf32> {boa.param = @a::@w}) -> tensor<2x8x4xf32> {
    // expected-error @below {{'boa.embedding' op has a table of 16 tokens, but boa.config has vocab = 256}}
    %0 = boa.embedding %w, %x : (tensor<16x4xf32>, tensor<2x8xi32>) -> tensor<2x8x4xf32>
    return %0 : tensor<2x8x4xf32>
  }
  func.func @b_forward(%x: tensor<2x8x4xf32>, %t: tensor<2x8xi32>) -> tensor<f32> {
    %0 = boa.cross_entropy %x, %t : (tensor<2x8x4xf32>, tensor<2x8xi32>) -> tensor<f32>
    return %0 : tensor<f32>
  }
}

// -----

// and a logit.

module {
  boa.config @model {context = 8 : i64, vocab = 5 : i64}
  boa.config @train {batch = 4 : i64}
  boa.config @plan {micro_batch = 2 : i64}
  boa.group @a repeat 1 {
    boa.param @w : tensor<5x4xf32> = "ones"
  }
  boa.input @tokens from data : tensor<2x8xi32>
  boa.input @targets from data : tensor<2x8xi32>
  boa.stage @a_forward(@tokens)
  boa.stage @b_forward(@a_forward, @targets)
  func.func @a_forward(%x: tensor<2x8xi32>, %w: tensor<5x4xf32> {boa.param = @a::@w}) -> tensor<2x8x4xf32> {
    %0 = boa.embedding %w, %x : (tensor<5x4xf32>, tensor<2x8xi32>) -> tensor<2x8x4xf32>
    return %0 : tensor<2x8x4xf32>
  }
  func.func @b_forward(%x: tensor<2x8x4xf32>, %t: tensor<2x8xi32>) -> tensor<f32> {
    // expected-error @below {{'boa.cross_entropy' op has logits of 4 tokens, but boa.config has vocab = 5}}
    %0 = boa.cross_entropy %x, %t : (tensor<2x8x4xf32>, tensor<2x8xi32>) -> tensor<f32>
    return %0 : tensor<f32>
  }
}

// -----

// A module brings no step or storage with it: those would be of any size.

module {
  boa.input @tokens from data : tensor<2x4xi32>
  boa.input @targets from data : tensor<2x4xi32>
  boa.stage @a_forward(@tokens)
  boa.stage @b_forward(@a_forward, @targets)
  func.func @a_forward(%x: tensor<2x4xi32>) -> tensor<2x4x8xf32> {
    %0 = arith.constant dense<0.0> : tensor<2x4x8xf32>
    return %0 : tensor<2x4x8xf32>
  }
  func.func @b_forward(%x: tensor<2x4x8xf32>, %t: tensor<2x4xi32>) -> tensor<f32> {
    %0 = arith.constant dense<0.0> : tensor<f32>
    return %0 : tensor<f32>
  }
  // expected-error @below {{'boa.step' op belongs to a later phase: expected only the model}}
  boa.step @predict(%step, %pending) {
    boa.loop micro_batch %m = 0 to 100000 forward {
    }
  }
}

// -----

module {
  // expected-error @below {{'boa.storage' op belongs to a later phase: expected only the model}}
  boa.storage @x[100000] : tensor<8xf32> on device role checkpoints
}

// -----

// Tokens alone are rows of a table: targets that are left out are negative.

module {
  boa.group @a repeat 1 {
    boa.param @w : tensor<16x4xf32> = "ones"
  }
  boa.input @tokens from data : tensor<2x8xi32>
  boa.input @targets from data : tensor<2x8xi32>
  boa.stage @a_forward(@tokens)
  boa.stage @b_forward(@a_forward, @targets)
  func.func @a_forward(%x: tensor<2x8xi32>, %w: tensor<16x4xf32> {boa.param = @a::@w}) -> tensor<2x8x4xf32> {
    %0 = boa.embedding %w, %x : (tensor<16x4xf32>, tensor<2x8xi32>) -> tensor<2x8x4xf32>
    return %0 : tensor<2x8x4xf32>
  }
  func.func @b_forward(%x: tensor<2x8x4xf32>, %t: tensor<2x8xi32>, %w: tensor<16x4xf32> {boa.param = @a::@w}) -> tensor<f32> {
    // expected-error @below {{'boa.embedding' op expected the tokens that its stage takes}}
    %0 = boa.embedding %w, %t : (tensor<16x4xf32>, tensor<2x8xi32>) -> tensor<2x8x4xf32>
    %1 = boa.add %x, %0 : tensor<2x8x4xf32>, tensor<2x8x4xf32>
    %2 = boa.cross_entropy %1, %t : (tensor<2x8x4xf32>, tensor<2x8xi32>) -> tensor<f32>
    return %2 : tensor<f32>
  }
}

// -----

// Attention that sees later tokens would see the next one, which is the target.

module {
  boa.config @model {vocab = 4 : i64}
  boa.config @train {batch = 2 : i64}
  boa.config @plan {micro_batch = 2 : i64}
  boa.input @tokens from data : tensor<2x8xi32>
  boa.input @targets from data : tensor<2x8xi32>
  boa.stage @a_forward(@tokens)
  boa.stage @b_forward(@a_forward, @targets)
  func.func @a_forward(%x: tensor<2x8xi32>) -> tensor<2x8x4xf32> {
    %0 = arith.constant dense<0.0> : tensor<2x8x4xf32>
    // expected-error @below {{'boa.attention' op sees the token that it is to predict: expected causal attention for the objective next_token}}
    %1, %lse = boa.attention %0, %0, %0 heads 1, 1 : (tensor<2x8x4xf32>, tensor<2x8x4xf32>, tensor<2x8x4xf32>) -> (tensor<2x8x4xf32>, tensor<2x1x8xf32>)
    return %1 : tensor<2x8x4xf32>
  }
  func.func @b_forward(%x: tensor<2x8x4xf32>, %t: tensor<2x8xi32>) -> tensor<f32> {
    %0 = boa.cross_entropy %x, %t : (tensor<2x8x4xf32>, tensor<2x8xi32>) -> tensor<f32>
    return %0 : tensor<f32>
  }
}

// -----

// A step is a whole number of micro-batches.

// expected-error @below {{boa.config: expected batch to be a multiple of micro_batch but found 9 and 2}}
module {
  boa.config @train {batch = 9 : i64}
  boa.config @plan {micro_batch = 2 : i64}
}

// -----

// expected-error @below {{boa.config: expected optimizer.floor to be at most optimizer.peak but found 0.002 and 0.001}}
module {
  boa.config @train {optimizer = {rate = "linear", peak = 0.001, floor = 0.002}}
}

// -----

// expected-error @below {{boa.config: expected mask_token to be below vocab but found 256 and 256}}
module {
  boa.config @model {vocab = 256 : i64}
  boa.config @train {objective = "masked", mask_token = 256 : i64}
}

// -----

// Starts of documents come behind x and the targets, and are indices.

module {
  boa.input @tokens from data : tensor<2x4xi32>
  boa.input @targets from data : tensor<2x4xi32>
  boa.input @document_starts from data : tensor<2x4xi32>
  boa.stage @a_forward(@tokens)
  // expected-error @below {{'boa.stage' op takes 3 values but @b_forward has 2 arguments before its parameters}}
  boa.stage @b_forward(@a_forward, @targets, @document_starts)
  func.func @a_forward(%x: tensor<2x4xi32>) -> tensor<2x4xf32> {
    %0 = arith.constant dense<0.0> : tensor<2x4xf32>
    return %0 : tensor<2x4xf32>
  }
  func.func @b_forward(%x: tensor<2x4xf32>, %t: tensor<2x4xi32>) -> tensor<f32> {
    %0 = arith.constant dense<0.0> : tensor<f32>
    return %0 : tensor<f32>
  }
}

// -----

module {
  boa.config @train { batch = 2 : i64 }
  boa.config @plan { micro_batch = 2 : i64 }
  boa.input @tokens from data : tensor<2x4xi32>
  boa.input @targets from data : tensor<2x4xi32>
  // expected-error @below {{'boa.input' op is 'tensor<2x4xf32>', but boa.config has micro_batch = 2: expected i32 for each token}}
  boa.input @document_starts from data : tensor<2x4xf32>
  boa.stage @a_forward(@tokens)
  boa.stage @b_forward(@a_forward, @document_starts) repeat 3
  boa.stage @c_forward(@b_forward, @targets)
  func.func @a_forward(%x: tensor<2x4xi32>) -> tensor<2x4xf32> {
    %0 = arith.constant dense<0.0> : tensor<2x4xf32>
    return %0 : tensor<2x4xf32>
  }
  func.func @b_forward(%x: tensor<2x4xf32>, %starts: tensor<2x4xf32>) -> tensor<2x4xf32> {
    return %x : tensor<2x4xf32>
  }
  func.func @c_forward(%x: tensor<2x4xf32>, %t: tensor<2x4xi32>) -> tensor<f32> {
    %0 = arith.constant dense<0.0> : tensor<f32>
    return %0 : tensor<f32>
  }
}

// -----

// No other indices are starts of documents.

module {
  boa.input @tokens from data : tensor<2x4xi32>
  boa.input @targets from data : tensor<2x4xi32>
  boa.input @document_starts from data : tensor<2x4xi32>
  boa.stage @a_forward(@tokens)
  boa.stage @b_forward(@a_forward, @targets, @document_starts)
  func.func @a_forward(%x: tensor<2x4xi32>) -> tensor<2x4x8xf32> {
    %0 = arith.constant dense<0.0> : tensor<2x4x8xf32>
    return %0 : tensor<2x4x8xf32>
  }
  func.func @b_forward(%x: tensor<2x4x8xf32>, %t: tensor<2x4xi32>, %starts: tensor<2x4xi32>) -> tensor<f32> {
    // expected-error @below {{'boa.attention' op expected the starts of documents that its stage takes}}
    %y, %lse = boa.attention %x, %x, %x documents %t heads 2, 2 causal
        : (tensor<2x4x8xf32>, tensor<2x4x8xf32>, tensor<2x4x8xf32>, tensor<2x4xi32>) -> (tensor<2x4x8xf32>, tensor<2x2x4xf32>)
    %0 = boa.cross_entropy %y, %t : (tensor<2x4x8xf32>, tensor<2x4xi32>) -> tensor<f32>
    return %0 : tensor<f32>
  }
}

// -----

// Keys of dropout come behind them, and nothing else is one.

module {
  boa.input @tokens from data : tensor<2x4xi32>
  boa.input @targets from data : tensor<2x4xi32>
  boa.input @dropout_keys from seed : tensor<2x4xi32>
  boa.stage @a_forward(@tokens)
  boa.stage @b_forward(@a_forward, @targets, @dropout_keys)
  func.func @a_forward(%x: tensor<2x4xi32>) -> tensor<2x4x8xf32> {
    %0 = arith.constant dense<0.0> : tensor<2x4x8xf32>
    return %0 : tensor<2x4x8xf32>
  }
  func.func @b_forward(%x: tensor<2x4x8xf32>, %t: tensor<2x4xi32>, %keys: tensor<2x4xi32>) -> tensor<f32> {
    // expected-error @below {{'boa.dropout' op expected the keys of dropout that its stage takes}}
    %y = boa.dropout %x keys %t : tensor<2x4xi32> by 0.5 site 0 : tensor<2x4x8xf32>
    %0 = boa.cross_entropy %y, %t : (tensor<2x4x8xf32>, tensor<2x4xi32>) -> tensor<f32>
    return %0 : tensor<f32>
  }
}

// -----

// What later phases set is not taken for their own.

module {
  boa.input @tokens from data : tensor<2x4xi32>
  boa.input @targets from data : tensor<2x4xi32>
  boa.stage @a_forward(@tokens)
  boa.stage @b_forward(@a_forward, @targets)
  // expected-error @below {{'func.func' op has boa.saved, which belongs to a later phase}}
  func.func @a_forward(%x: tensor<2x4xi32> {boa.saved}) -> tensor<2x4x8xf32> {
    %0 = arith.constant dense<0.0> : tensor<2x4x8xf32>
    return %0 : tensor<2x4x8xf32>
  }
  func.func @b_forward(%x: tensor<2x4x8xf32>, %t: tensor<2x4xi32>) -> tensor<f32> {
    %0 = arith.constant dense<0.0> : tensor<f32>
    return %0 : tensor<f32>
  }
}

// -----

module {
  boa.input @tokens from data : tensor<2x4xi32>
  boa.input @targets from data : tensor<2x4xi32>
  boa.stage @a_forward(@tokens)
  boa.stage @b_forward(@a_forward, @targets)
  func.func @a_forward(%x: tensor<2x4xi32>) -> tensor<2x4x8xf32> {
    %0 = arith.constant dense<0.0> : tensor<2x4x8xf32>
    return %0 : tensor<2x4x8xf32>
  }
  // expected-error @below {{'func.func' op has boa.param, which belongs to a later phase}}
  func.func @b_forward(%x: tensor<2x4x8xf32>, %t: tensor<2x4xi32>) -> (tensor<f32> {boa.param = @a::@w}) {
    %0 = arith.constant dense<0.0> : tensor<f32>
    return %0 : tensor<f32>
  }
}

// -----

// No tensor is empty, or larger than 64 bits count.

module {
  boa.input @tokens from data : tensor<0x4xi32>
  boa.input @targets from data : tensor<2x4xi32>
  // expected-error @below {{'boa.stage' op expected tensors of 1 to 2^40 elements of whole bytes in the type of @a_forward but found 'tensor<0x4xi32>'}}
  boa.stage @a_forward(@tokens)
  boa.stage @b_forward(@a_forward, @targets)
  func.func @a_forward(%x: tensor<0x4xi32>) -> tensor<2x4x8xf32> {
    %0 = arith.constant dense<0.0> : tensor<2x4x8xf32>
    return %0 : tensor<2x4x8xf32>
  }
  func.func @b_forward(%x: tensor<2x4x8xf32>, %t: tensor<2x4xi32>) -> tensor<f32> {
    %0 = arith.constant dense<0.0> : tensor<f32>
    return %0 : tensor<f32>
  }
}

// -----

// Names that later phases give are free.

module {
  boa.input @tokens from data : tensor<2x4xi32>
  boa.input @targets from data : tensor<2x4xi32>
  boa.stage @a_forward(@tokens)
  boa.stage @b_forward(@a_forward, @targets)
  func.func @a_forward(%x: tensor<2x4xi32>) -> tensor<2x4xf32> {
    %0 = arith.constant dense<0.0> : tensor<2x4xf32>
    return %0 : tensor<2x4xf32>
  }
  // expected-error @below {{'func.func' op is no stage's function: a model has only those}}
  func.func @a_backward(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {
    return %x : tensor<2x4xf32>
  }
  func.func @b_forward(%x: tensor<2x4xf32>, %t: tensor<2x4xi32>) -> tensor<f32> {
    %0 = arith.constant dense<0.0> : tensor<f32>
    return %0 : tensor<f32>
  }
}

// -----

module {
  boa.optimizer @sgd {} states {speed = f32}
  // expected-error @below {{'boa.group' op has the name of a storage or step that is made of the model: expected another one than @speed.a}}
  boa.group @speed.a repeat 1 {
    boa.param @w : tensor<8xf32> = "ones"
  }
  boa.input @tokens from data : tensor<2x4xi32>
  boa.input @targets from data : tensor<2x4xi32>
  boa.stage @a_forward(@tokens)
  boa.stage @b_forward(@a_forward, @targets)
  func.func @a_forward(%x: tensor<2x4xi32>) -> tensor<2x4xf32> {
    %0 = arith.constant dense<0.0> : tensor<2x4xf32>
    return %0 : tensor<2x4xf32>
  }
  func.func @b_forward(%x: tensor<2x4xf32>, %t: tensor<2x4xi32>) -> tensor<f32> {
    %0 = arith.constant dense<0.0> : tensor<f32>
    return %0 : tensor<f32>
  }
}

// -----

module {
  // expected-error @below {{'boa.optimizer' op has the name of a storage or step that is made of the model: expected another one than @evaluate}}
  boa.optimizer @evaluate {} states {}
  boa.input @tokens from data : tensor<2x4xi32>
  boa.input @targets from data : tensor<2x4xi32>
  boa.stage @a_forward(@tokens)
  boa.stage @b_forward(@a_forward, @targets)
  func.func @a_forward(%x: tensor<2x4xi32>) -> tensor<2x4xf32> {
    %0 = arith.constant dense<0.0> : tensor<2x4xf32>
    return %0 : tensor<2x4xf32>
  }
  func.func @b_forward(%x: tensor<2x4xf32>, %t: tensor<2x4xi32>) -> tensor<f32> {
    %0 = arith.constant dense<0.0> : tensor<f32>
    return %0 : tensor<f32>
  }
}

// -----

// Nothing else has the name of an input, which a training may add.

module {
  // expected-error @below {{'boa.group' op has the name of an input that a trainer has: expected another one than @document_starts}}
  boa.group @document_starts repeat 1 {
    boa.param @w : tensor<8xf32> = "ones"
  }
  boa.input @tokens from data : tensor<2x4xi32>
  boa.input @targets from data : tensor<2x4xi32>
  boa.stage @a_forward(@tokens)
  boa.stage @b_forward(@a_forward, @targets)
  func.func @a_forward(%x: tensor<2x4xi32>) -> tensor<2x4xf32> {
    %0 = arith.constant dense<0.0> : tensor<2x4xf32>
    return %0 : tensor<2x4xf32>
  }
  func.func @b_forward(%x: tensor<2x4xf32>, %t: tensor<2x4xi32>) -> tensor<f32> {
    %0 = arith.constant dense<0.0> : tensor<f32>
    return %0 : tensor<f32>
  }
}

// -----

module {
  // expected-error @below {{'boa.group' op has the name of an input that a trainer has: expected another one than @dropout_keys}}
  boa.group @dropout_keys repeat 1 {
    boa.param @w : tensor<8xf32> = "ones"
  }
  boa.input @tokens from data : tensor<2x4xi32>
  boa.input @targets from data : tensor<2x4xi32>
  boa.stage @a_forward(@tokens)
  boa.stage @b_forward(@a_forward, @targets)
  func.func @a_forward(%x: tensor<2x4xi32>) -> tensor<2x4xf32> {
    %0 = arith.constant dense<0.0> : tensor<2x4xf32>
    return %0 : tensor<2x4xf32>
  }
  func.func @b_forward(%x: tensor<2x4xf32>, %t: tensor<2x4xi32>) -> tensor<f32> {
    %0 = arith.constant dense<0.0> : tensor<f32>
    return %0 : tensor<f32>
  }
}
