// RUN: boa-opt %s --split-input-file --verify-diagnostics

// A parameter has a size, and an initial value that the runtime can make.

boa.group @a repeat 1 {
  boa.param @zeros : tensor<4xf32> = "zeros"
  boa.param @ones : tensor<1048576x1048576xf32> = "ones"
  boa.param @normal : tensor<4x4xf32> = "normal" 1.0e+06
  boa.param @uniform : tensor<f32> = "uniform" 0.02
}

// -----

boa.group @a repeat 1 {
  // expected-error @below {{expected "zeros", "ones", "normal" or "uniform" but found "gauss"}}
  boa.param @w : tensor<4xf32> = "gauss" 0.02
}

// -----

boa.group @a repeat 1 {
  // expected-error @below {{'boa.param' op attribute 'type' failed to satisfy constraint: type attribute of statically shaped tensor of 32-bit float values}}
  boa.param @w : i32 = "zeros"
}

// -----

boa.group @a repeat 1 {
  // expected-error @below {{'boa.param' op attribute 'type' failed to satisfy constraint: type attribute of statically shaped tensor of 32-bit float values}}
  boa.param @w : tensor<4xbf16> = "zeros"
}

// -----

boa.group @a repeat 1 {
  // expected-error @below {{'boa.param' op attribute 'type' failed to satisfy constraint: type attribute of statically shaped tensor of 32-bit float values}}
  boa.param @w : tensor<?xf32> = "zeros"
}

// -----

boa.group @a repeat 1 {
  // expected-error @below {{'boa.param' op expected between 1 and 2^40 elements but found 'tensor<4x0xf32>'}}
  boa.param @w : tensor<4x0xf32> = "zeros"
}

// -----

// Not even in 64 bits.

boa.group @a repeat 1 {
  // expected-error @below {{'boa.param' op expected between 1 and 2^40 elements but found 'tensor<4294967296x4294967296xf32>'}}
  boa.param @w : tensor<4294967296x4294967296xf32> = "zeros"
}

// -----

boa.group @a repeat 1 {
  // expected-error @below {{'boa.param' op expected no scale of "ones"}}
  boa.param @w : tensor<4xf32> = "ones" 2.0
}

// -----

boa.group @a repeat 1 {
  // expected-error @below {{'boa.param' op expected a scale between 0 and 1e6 but found -1.000000e+00 : f64}}
  boa.param @w : tensor<4xf32> = "normal" -1.0
}

// -----

boa.group @a repeat 1 {
  // expected-error @below {{'boa.param' op expected a scale between 0 and 1e6 but found 0x7FF8000000000000 : f64}}
  boa.param @w : tensor<4xf32> = "uniform" 0x7FF8000000000000
}

// -----

// expected-error @below {{'boa.group' op attribute 'repeat' failed to satisfy constraint: 64-bit signless integer attribute whose minimum value is 1 whose maximum value is 65536}}
boa.group @params.block repeat 0 {
}

// -----

boa.input @tokens from data : tensor<2x4xi32>
// expected-error @below {{'boa.stage' op attribute 'repeat' failed to satisfy constraint: 64-bit signless integer attribute whose minimum value is 1 whose maximum value is 65536}}
boa.stage @block_forward(@tokens) repeat 4611686018427387904
func.func private @block_forward()

// -----

boa.group @a repeat 1 {
  // expected-error @below {{'boa.param' op expected a number of at least 0 but found -1}}
  boa.param @w : tensor<4xf32> = "zeros" number -1
}

// -----

boa.group @a repeat 1 {
  // expected-error @below {{'boa.param' op expected lr_scale between 0 and 1000 but found 1.001000e+03}}
  boa.param @w : tensor<4xf32> = "zeros" lr_scale 1001.0
}

// -----

boa.group @a repeat 1 {
  // expected-error @below {{'boa.param' op expected weight_decay between 0 and 1 but found -1.000000e-01}}
  boa.param @w : tensor<4xf32> = "zeros" weight_decay -0.1
}

// -----

// What is frozen is known by its name, in states too.

// expected-error @below {{'boa.group' op expected a frozen group, and no other, to be named @frozen.NAME but found @a frozen}}
boa.group @a repeat 1 frozen {
  boa.param @w : tensor<4xf32> = "zeros"
}

// -----

// expected-error @below {{'boa.group' op expected a frozen group, and no other, to be named @frozen.NAME but found @frozen.a}}
boa.group @frozen.a repeat 1 {
  boa.param @w : tensor<4xf32> = "zeros"
}

// -----

boa.group @a repeat 1 {
  // expected-error @below {{'boa.param' op expected scale to fit f32: 0, or at least 1.18e-38 but found 1.000000e-50 : f64}}
  boa.param @w : tensor<4xf32> = "normal" 1.0e-50
}

// -----

boa.group @frozen.a repeat 1 frozen {
  // expected-error @below {{'boa.param' op expected the alpha of its adapter to be above 0 and to fit f32 but found 9.9999999999999994E+38 : f64}}
  boa.param @w : tensor<4x4xf32> = "zeros" adapter <"a", "b", 1.0e+39 : f64, false>
}
