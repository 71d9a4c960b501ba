// RUN: boa-opt %s --split-input-file --verify-diagnostics

func.func @columns() {
  // expected-error @below {{'kernel.angles' op expected a frequency for each of 3 columns but found 2}}
  %0 = kernel.angles cosine [1.0, 0.5] : tensor<8x3xf32>
  return
}

// -----

func.func @rank() {
  // expected-error @below {{'kernel.angles' op expected a table of f32 or f64 of rank 2 but found 'tensor<2xf32>'}}
  %0 = kernel.angles cosine [1.0, 0.5] : tensor<2xf32>
  return
}

// -----

func.func @element() {
  // expected-error @below {{'kernel.angles' op expected a table of f32 or f64 of rank 2 but found 'tensor<8x2xbf16>'}}
  %0 = kernel.angles cosine [1.0, 0.5] : tensor<8x2xbf16>
  return
}
