// RUN: boa-opt %s --boa-verify-model --split-input-file --verify-diagnostics

func.func @name(%x: tensor<2x8xf32>) {
  // expected-error @below {{'boa.gelu' op expected boa.name to be letters, digits and '_' but found "block.m"}}
  %0 = boa.gelu %x {boa.name = "block.m"} : tensor<2x8xf32>
  return
}

// -----

func.func @save(%x: tensor<2x8xf32>) {
  // expected-error @below {{'boa.gelu' op expected save to be true or false but found "no"}}
  %0 = boa.gelu %x {boa.activation = {save = "no"}} : tensor<2x8xf32>
  return
}

// -----

func.func @place(%x: tensor<2x8xf32>) {
  // expected-error @below {{'boa.gelu' op expected place to be "device", "host" or "ssd", or a list of them; behind each but the last a number of layers, then shares above 0, together below 1 but found []}}
  %0 = boa.gelu %x {boa.activation = {place = []}} : tensor<2x8xf32>
  return
}

// -----

func.func @setting(%x: tensor<2x8xf32>) {
  // expected-error @below {{'boa.gelu' op boa.activation has no setting 'saved', did you mean 'save'?}}
  %0 = boa.gelu %x {boa.activation = {saved = true}} : tensor<2x8xf32>
  return
}

// -----

func.func @dictionary(%x: tensor<2x8xf32>) {
  // expected-error @below {{'boa.gelu' op expected boa.activation to be a dictionary but found false}}
  %0 = boa.gelu %x {boa.activation = false} : tensor<2x8xf32>
  return
}

// -----

func.func @nowhere(%x: tensor<2x8xf32>) {
  // expected-error @below {{'boa.gelu' op has a place for results that are not saved}}
  %0 = boa.gelu %x {boa.activation = {place = "host", save = false}} : tensor<2x8xf32>
  return
}

// -----

// expected-error @below {{'boa.storage' op expected boa.place to be a place, as in boa.config @plan, but found ["host", 2.000000e+00, "ssd"]}}
boa.storage @saved.a.m[1, 1] : tensor<8xf32> on device role saved {boa.place = ["host", 2.0, "ssd"]}

// -----

// The parts of a split cost nothing: what is split is saved in their stead.

boa.group @a repeat 1 {
  boa.param @w : tensor<16x8xf32> = "ones"
}
boa.input @tokens from data : tensor<2x4xi32>
boa.input @targets from data : tensor<2x4xi32>
boa.stage @a_forward(@tokens)
boa.stage @b_forward(@a_forward, @targets)
func.func @a_forward(%t: tensor<2x4xi32>, %w: tensor<16x8xf32> {boa.param = @a::@w}) -> tensor<2x4x4xf32> {
  %0 = boa.embedding %w, %t : (tensor<16x8xf32>, tensor<2x4xi32>) -> tensor<2x4x8xf32>
  // expected-error @below {{'boa.split' op costs nothing, so it is always computed again: expected boa.activation on what it is computed from}}
  %1:2 = boa.split %0 {boa.activation = {place = "host"}} : (tensor<2x4x8xf32>) -> (tensor<2x4x4xf32>, tensor<2x4x4xf32>)
  return %1#0 : tensor<2x4x4xf32>
}
func.func @b_forward(%x: tensor<2x4x4xf32>, %t: tensor<2x4xi32>) -> tensor<f32> {
  %0 = boa.cross_entropy %x, %t : (tensor<2x4x4xf32>, tensor<2x4xi32>) -> tensor<f32>
  return %0 : tensor<f32>
}

// -----

// Values of one name lie in one storage.

boa.group @a repeat 1 {
  boa.param @w : tensor<16x8xf32> = "ones"
}
boa.input @tokens from data : tensor<2x4xi32>
boa.input @targets from data : tensor<2x4xi32>
boa.stage @a_forward(@tokens)
boa.stage @b_forward(@a_forward, @targets)
func.func @a_forward(%t: tensor<2x4xi32>, %w: tensor<16x8xf32> {boa.param = @a::@w}) -> tensor<2x4x8xf32> {
  %0 = boa.embedding %w, %t : (tensor<16x8xf32>, tensor<2x4xi32>) -> tensor<2x4x8xf32>
  // expected-note @below {{the other value is here}}
  %1 = boa.gelu %0 {boa.activation = {place = "host"}} : tensor<2x4x8xf32>
  %2 = boa.gelu %1 {boa.name = "other"} : tensor<2x4x8xf32>
  %3 = boa.gelu %2 {boa.activation = {save = false}} : tensor<2x4x8xf32>
  // expected-error @below {{'boa.gelu' op has another place than a value of the same name, gelu: expected a boa.name of its own}}
  %4 = boa.gelu %3 : tensor<2x4x8xf32>
  return %4 : tensor<2x4x8xf32>
}
func.func @b_forward(%x: tensor<2x4x8xf32>, %t: tensor<2x4xi32>) -> tensor<f32> {
  %0 = boa.cross_entropy %x, %t : (tensor<2x4x8xf32>, tensor<2x4xi32>) -> tensor<f32>
  return %0 : tensor<f32>
}
