// RUN: boa-opt %s --split-input-file --verify-diagnostics

// Shapes are checked by each op. A weight is a matrix.

func.func @f(%x: tensor<2x4x8xf32>, %w: tensor<8xf32>) -> tensor<2x4x8xf32> {
  // expected-error @below {{'boa.linear' op expected a weight of rank 2 but found 'tensor<8xf32>'}}
  %0 = boa.linear %x, %w : (tensor<2x4x8xf32>, tensor<8xf32>) -> tensor<2x4x8xf32>
  return %0 : tensor<2x4x8xf32>
}

// -----

// [in, out], or with `transpose` [out, in].

func.func @f(%x: tensor<2x4x8xf32>, %w: tensor<6x8xf32>) -> tensor<2x4x8xf32> {
  // expected-error @below {{'boa.linear' op expected the last dimension of x to be 6 but found 8}}
  %0 = boa.linear %x, %w : (tensor<2x4x8xf32>, tensor<6x8xf32>) -> tensor<2x4x8xf32>
  return %0 : tensor<2x4x8xf32>
}

// -----

func.func @f(%x: tensor<2x4x8xf32>, %w: tensor<6x8xf32>) -> tensor<2x4x8xf32> {
  // expected-error @below {{'boa.linear' op expected a result whose last dimension is 6 but found 'tensor<2x4x8xf32>'}}
  %0 = boa.linear %x, %w transpose : (tensor<2x4x8xf32>, tensor<6x8xf32>) -> tensor<2x4x8xf32>
  return %0 : tensor<2x4x8xf32>
}

// -----

func.func @f(%x: tensor<2x4x8xf32>, %w: tensor<8x6xf32>, %b: tensor<8xf32>) -> tensor<2x4x6xf32> {
  // expected-error @below {{'boa.linear' op expected a bias of 6 elements but found 'tensor<8xf32>'}}
  %0 = boa.linear %x, %w bias %b : (tensor<2x4x8xf32>, tensor<8x6xf32>, tensor<8xf32>) -> tensor<2x4x6xf32>
  return %0 : tensor<2x4x6xf32>
}

// -----

// Broadcasting is over leading dimensions, and of the right operand.

func.func @f(%x: tensor<2x4x8xf32>, %y: tensor<4xf32>) -> tensor<2x4x8xf32> {
  // expected-error @below {{'boa.add' op expected the shape of rhs to be a suffix of that of lhs, found 'tensor<2x4x8xf32>' and 'tensor<4xf32>'}}
  %0 = boa.add %x, %y : tensor<2x4x8xf32>, tensor<4xf32>
  return %0 : tensor<2x4x8xf32>
}

// -----

func.func @f(%x: tensor<8xf32>, %y: tensor<2x4x8xf32>) -> tensor<8xf32> {
  // expected-error @below {{'boa.mul' op expected the shape of rhs to be a suffix of that of lhs, found 'tensor<8xf32>' and 'tensor<2x4x8xf32>'}}
  %0 = boa.mul %x, %y : tensor<8xf32>, tensor<2x4x8xf32>
  return %0 : tensor<8xf32>
}

// -----

// The parts of a split are all of it.

func.func @f(%x: tensor<2x4x8xf32>) -> tensor<2x4x4xf32> {
  // expected-error @below {{'boa.split' op expected parts that add up to 8 but found 6}}
  %0:2 = boa.split %x : (tensor<2x4x8xf32>) -> (tensor<2x4x4xf32>, tensor<2x4x2xf32>)
  return %0#0 : tensor<2x4x4xf32>
}

// -----

// Heads divide the width, and are shared evenly.

func.func @f(%x: tensor<2x4x8xf32>) -> tensor<2x4x8xf32> {
  // expected-error @below {{'boa.attention' op expected kv_heads to divide heads, found 4 and 3}}
  %0, %1 = boa.attention %x, %x, %x heads 4, 3 causal : (tensor<2x4x8xf32>, tensor<2x4x8xf32>, tensor<2x4x8xf32>) -> (tensor<2x4x8xf32>, tensor<2x4x4xf32>)
  return %0 : tensor<2x4x8xf32>
}

// -----

func.func @f(%x: tensor<2x4x8xf32>) -> tensor<2x4x8xf32> {
  // expected-error @below {{'boa.attention' op expected heads to divide the width 8}}
  %0, %1 = boa.attention %x, %x, %x heads 3, 3 : (tensor<2x4x8xf32>, tensor<2x4x8xf32>, tensor<2x4x8xf32>) -> (tensor<2x4x8xf32>, tensor<2x3x4xf32>)
  return %0 : tensor<2x4x8xf32>
}

// -----

// Grouped queries: 4 heads of width 2 share 2 heads of keys, of width 4 together.

func.func @f(%x: tensor<2x4x8xf32>) -> tensor<2x4x8xf32> {
  // expected-error @below {{'boa.attention' op expected k and v of width 4 but found 8 and 8}}
  %0, %1 = boa.attention %x, %x, %x heads 4, 2 : (tensor<2x4x8xf32>, tensor<2x4x8xf32>, tensor<2x4x8xf32>) -> (tensor<2x4x8xf32>, tensor<2x4x4xf32>)
  return %0 : tensor<2x4x8xf32>
}

// -----

// Each token is in one document.

func.func @f(%x: tensor<2x4x8xf32>, %starts: tensor<4xi32>) -> tensor<2x4x8xf32> {
  // expected-error @below {{'boa.attention' op expected document starts of shape [2, 4] but found 'tensor<4xi32>'}}
  %0, %1 = boa.attention %x, %x, %x documents %starts heads 4, 4 : (tensor<2x4x8xf32>, tensor<2x4x8xf32>, tensor<2x4x8xf32>, tensor<4xi32>) -> (tensor<2x4x8xf32>, tensor<2x4x4xf32>)
  return %0 : tensor<2x4x8xf32>
}

// -----

// A window is of causal attention.

func.func @f(%x: tensor<2x4x8xf32>) -> tensor<2x4x8xf32> {
  // expected-error @below {{'boa.attention' op expected causal attention with a window}}
  %0, %1 = boa.attention %x, %x, %x heads 4, 4 {window = 2 : i64} : (tensor<2x4x8xf32>, tensor<2x4x8xf32>, tensor<2x4x8xf32>) -> (tensor<2x4x8xf32>, tensor<2x4x4xf32>)
  return %0 : tensor<2x4x8xf32>
}

// -----

func.func @f(%x: tensor<2x4x8xf32>) -> tensor<2x4x8xf32> {
  // expected-error @below {{'boa.attention' op expected a window of 1 or more keys but found 0}}
  %0, %1 = boa.attention %x, %x, %x heads 4, 4 causal {window = 0 : i64} : (tensor<2x4x8xf32>, tensor<2x4x8xf32>, tensor<2x4x8xf32>) -> (tensor<2x4x8xf32>, tensor<2x4x4xf32>)
  return %0 : tensor<2x4x8xf32>
}

// -----

// The weight of a norm is as wide as a head.

func.func @f(%x: tensor<2x4x8xf32>, %w: tensor<8xf32>) -> tensor<2x4x8xf32> {
  // expected-error @below {{'boa.rms_norm' op expected a weight of shape [4] but found 'tensor<8xf32>'}}
  %0 = boa.rms_norm %x, %w {heads = 2 : i64} : (tensor<2x4x8xf32>, tensor<8xf32>) -> tensor<2x4x8xf32>
  return %0 : tensor<2x4x8xf32>
}

// -----

func.func @f(%x: tensor<2x4x8xf32>, %w: tensor<8xf32>) -> tensor<2x4x8xf32> {
  // expected-error @below {{'boa.rms_norm' op expected heads to divide the width 8 but found 3}}
  %0 = boa.rms_norm %x, %w {heads = 3 : i64} : (tensor<2x4x8xf32>, tensor<8xf32>) -> tensor<2x4x8xf32>
  return %0 : tensor<2x4x8xf32>
}

// -----

// Scaled angles have a factor, and all of the bands or none.

func.func @f(%x: tensor<2x4x8xf32>) {
  // expected-error @below {{'boa.rotary' op expected low, high and original_context together, and a factor with them}}
  %0 = boa.rotary %x heads 4 {factor = 8.0 : f64, low = 1.0 : f64} : tensor<2x4x8xf32>
  return
}

// -----

func.func @f(%x: tensor<2x4x8xf32>) {
  // expected-error @below {{'boa.rotary' op expected a factor above 0 but found 0.000000e+00}}
  %0 = boa.rotary %x heads 4 {factor = 0.0 : f64} : tensor<2x4x8xf32>
  return
}

// -----

func.func @f(%x: tensor<2x4x8xf32>) {
  // expected-error @below {{'boa.rotary' op expected 0 < low < high but found 4.000000e+00 and 1.000000e+00}}
  %0 = boa.rotary %x heads 4 {factor = 8.0 : f64, low = 4.0 : f64, high = 1.0 : f64, original_context = 64 : i64} : tensor<2x4x8xf32>
  return
}

// -----

// Values are f32, f64 or bf16, one of them in an op; indices are i32.

func.func @f(%x: tensor<2x4x8xf16>) {
  // expected-error @below {{'boa.gelu' op operand #0 must be tensor of f32, bf16 or f64 of static shape, of 1 to 2^40 elements, but got 'tensor<2x4x8xf16>'}}
  %0 = boa.gelu %x : tensor<2x4x8xf16>
  return
}

// -----

func.func @f(%x: tensor<2x4xi32>) {
  // expected-error @below {{'boa.scale' op operand #0 must be tensor of f32, bf16 or f64 of static shape, of 1 to 2^40 elements, but got 'tensor<2x4xi32>'}}
  %0 = boa.scale %x by 2.0 : tensor<2x4xi32>
  return
}

// -----

func.func @f(%x: tensor<2x4x8xf32>, %w: tensor<8x6xbf16>) {
  // expected-error @below {{'boa.linear' op expected one floating-point type but found 'f32' and 'bf16'}}
  %0 = boa.linear %x, %w : (tensor<2x4x8xf32>, tensor<8x6xbf16>) -> tensor<2x4x6xf32>
  return
}

// -----

func.func @f(%table: tensor<16x8xf32>, %tokens: tensor<2x4xi64>) {
  // expected-error @below {{'boa.embedding' op operand #1 must be tensor of i32 token indices of static shape, of 1 to 2^40 elements, but got 'tensor<2x4xi64>'}}
  %0 = boa.embedding %table, %tokens : (tensor<16x8xf32>, tensor<2x4xi64>) -> tensor<2x4x8xf32>
  return
}

// -----

// A matrix product needs a dimension to multiply.

func.func @f(%x: tensor<f32>, %w: tensor<8x6xf32>) {
  // expected-error @below {{'boa.linear' op expected x of rank 1 or more but found 'tensor<f32>'}}
  %0 = boa.linear %x, %w : (tensor<f32>, tensor<8x6xf32>) -> tensor<f32>
  return
}

// -----

// Parts differ in the last dimension only.

func.func @f(%x: tensor<2x4x8xf32>) {
  // expected-error @below {{'boa.split' op expected parts that differ from 'tensor<2x4x8xf32>' in the last dimension only but found 'tensor<2x2x4xf32>'}}
  %0:2 = boa.split %x : (tensor<2x4x8xf32>) -> (tensor<2x2x4xf32>, tensor<2x2x4xf32>)
  return
}

// -----

func.func @f(%x: tensor<2x4x4xf32>) {
  // expected-error @below {{'boa.concat' op expected parts that add up to 6 but found 8}}
  %0 = boa.concat %x, %x : (tensor<2x4x4xf32>, tensor<2x4x4xf32>) -> tensor<2x4x6xf32>
  return
}

// -----

// Of what is bf16, sums over rows and what is known of a row are f32.

func.func @f(%x: tensor<2x4x8xbf16>, %dy: tensor<2x4x6xbf16>) {
  // expected-error @below {{'boa.linear_weight_grad' op expected sums of 'f32' but found 'bf16'}}
  %0 = boa.linear_weight_grad %x, %dy : (tensor<2x4x8xbf16>, tensor<2x4x6xbf16>) -> tensor<8x6xbf16>
  return
}

// -----

func.func @f(%q: tensor<2x4x8xbf16>) {
  // expected-error @below {{'boa.attention' op expected sums of 'f32' but found 'bf16'}}
  %y, %lse = boa.attention %q, %q, %q heads 2, 2 : (tensor<2x4x8xbf16>, tensor<2x4x8xbf16>, tensor<2x4x8xbf16>) -> (tensor<2x4x8xbf16>, tensor<2x2x4xbf16>)
  return
}

// -----

func.func @f(%logits: tensor<2x4x8xbf16>, %targets: tensor<2x4xi32>) {
  // expected-error @below {{'boa.cross_entropy' op expected sums of 'f32' but found 'bf16'}}
  %0 = boa.cross_entropy %logits, %targets : (tensor<2x4x8xbf16>, tensor<2x4xi32>) -> tensor<bf16>
  return
}

// -----

func.func @f(%logits: tensor<2x4x8xbf16>, %targets: tensor<2x4xi32>, %dloss: tensor<bf16>) {
  // expected-error @below {{'boa.cross_entropy_grad' op expected sums of 'f32' but found 'bf16'}}
  %0 = boa.cross_entropy_grad %logits, %targets, %dloss : (tensor<2x4x8xbf16>, tensor<2x4xi32>, tensor<bf16>) -> tensor<2x4x8xbf16>
  return
}

// -----

func.func @f(%x: tensor<2x4x8xbf16>) {
  // expected-error @below {{'boa.sum_leading' op expected sums of 'f32' but found 'bf16'}}
  %0 = boa.sum_leading %x : tensor<2x4x8xbf16> to tensor<8xbf16>
  return
}

// -----

func.func @f(%tokens: tensor<2x4xi32>, %dy: tensor<2x4x8xbf16>) {
  // expected-error @below {{'boa.embedding_grad' op expected sums of 'f32' but found 'bf16'}}
  %0 = boa.embedding_grad %tokens, %dy : (tensor<2x4xi32>, tensor<2x4x8xbf16>) -> tensor<16x8xbf16>
  return
}

// -----

func.func @f(%x: tensor<2x4x8xbf16>, %w: tensor<8xbf16>) {
  // expected-error @below {{'boa.rms_norm_grad' op expected sums of 'f32' but found 'bf16'}}
  %0, %1 = boa.rms_norm_grad %x, %w, %x : (tensor<2x4x8xbf16>, tensor<8xbf16>, tensor<2x4x8xbf16>) -> (tensor<2x4x8xbf16>, tensor<8xbf16>)
  return
}

// -----

func.func @f(%x: tensor<2x4x8xbf16>, %w: tensor<8xbf16>) {
  // expected-error @below {{'boa.layer_norm_grad' op expected sums of 'f32' but found 'bf16'}}
  %0, %1, %2 = boa.layer_norm_grad %x, %w, %x : (tensor<2x4x8xbf16>, tensor<8xbf16>, tensor<2x4x8xbf16>) -> (tensor<2x4x8xbf16>, tensor<8xf32>, tensor<8xbf16>)
  return
}

// -----

func.func @f(%q: tensor<2x4x8xbf16>, %lse: tensor<2x2x4xbf16>) {
  // expected-error @below {{'boa.attention_grad' op expected sums of 'f32' but found 'bf16'}}
  %0, %1, %2 = boa.attention_grad %q, %q, %q, %q, %lse, %q heads 2, 2 : (tensor<2x4x8xbf16>, tensor<2x4x8xbf16>, tensor<2x4x8xbf16>, tensor<2x4x8xbf16>, tensor<2x2x4xbf16>, tensor<2x4x8xbf16>) -> (tensor<2x4x8xbf16>, tensor<2x4x8xbf16>, tensor<2x4x8xbf16>)
  return
}

// -----

// Sums of f64 are f64, of f32 f32.

func.func @f(%x: tensor<2x4x8xf64>) {
  // expected-error @below {{'boa.sum_leading' op expected one floating-point type but found 'f64' and 'f32'}}
  %0 = boa.sum_leading %x : tensor<2x4x8xf64> to tensor<8xf32>
  return
}

// -----

// A cast and a sum keep the shape, or its end.

func.func @f(%x: tensor<8xf32>) {
  // expected-error @below {{'boa.cast' op expected a result of shape [8] but found 'tensor<4xbf16>'}}
  %0 = boa.cast %x : tensor<8xf32> to tensor<4xbf16>
  return
}

// -----

func.func @f(%x: tensor<8xi32>) {
  // expected-error @below {{'boa.cast' op operand #0 must be tensor of f32, bf16 or f64 of static shape, of 1 to 2^40 elements, but got 'tensor<8xi32>'}}
  %0 = boa.cast %x : tensor<8xi32> to tensor<8xf32>
  return
}

// -----

func.func @f(%x: tensor<8xf32>) {
  // expected-error @below {{'boa.cast' op result #0 must be tensor of f32, bf16 or f64 of static shape, of 1 to 2^40 elements, but got 'tensor<8xf16>'}}
  %0 = boa.cast %x : tensor<8xf32> to tensor<8xf16>
  return
}

// -----

func.func @f(%x: tensor<2x4x8xf32>) {
  // expected-error @below {{'boa.sum_leading' op expected the shape of y to be a suffix of that of x, found 'tensor<2x4x8xf32>' and 'tensor<4xf32>'}}
  %0 = boa.sum_leading %x : tensor<2x4x8xf32> to tensor<4xf32>
  return
}

// -----

// Norms are over the last dimension, whose size their vectors have.

func.func @f(%x: tensor<2x4x8xf32>, %w: tensor<4xf32>, %b: tensor<8xf32>) {
  // expected-error @below {{'boa.layer_norm' op expected a weight of shape [8] but found 'tensor<4xf32>'}}
  %0 = boa.layer_norm %x, %w, %b : (tensor<2x4x8xf32>, tensor<4xf32>, tensor<8xf32>) -> tensor<2x4x8xf32>
  return
}

// -----

func.func @f(%x: tensor<2x4x8xf32>, %w: tensor<8xf32>, %b: tensor<1x8xf32>) {
  // expected-error @below {{'boa.layer_norm' op expected a bias of shape [8] but found 'tensor<1x8xf32>'}}
  %0 = boa.layer_norm %x, %w, %b : (tensor<2x4x8xf32>, tensor<8xf32>, tensor<1x8xf32>) -> tensor<2x4x8xf32>
  return
}

// -----

func.func @f(%x: tensor<2x4x8xf32>, %w: tensor<8xf32>) {
  // expected-error @below {{'boa.layer_norm_grad' op expected dbias of shape [8] but found 'tensor<4xf32>'}}
  %0:3 = boa.layer_norm_grad %x, %w, %x : (tensor<2x4x8xf32>, tensor<8xf32>, tensor<2x4x8xf32>) -> (tensor<2x4x8xf32>, tensor<8xf32>, tensor<4xf32>)
  return
}

// -----

func.func @f(%x: tensor<2x4x8xf32>, %w: tensor<8xf32>) {
  // expected-error @below {{'boa.rms_norm' op expected a result of shape [2, 4, 8] but found 'tensor<2x8x4xf32>'}}
  %0 = boa.rms_norm %x, %w : (tensor<2x4x8xf32>, tensor<8xf32>) -> tensor<2x8x4xf32>
  return
}

// -----

func.func @f(%x: tensor<2x4x8xf32>, %w: tensor<8xf32>) {
  // expected-error @below {{'boa.rms_norm' op expected an eps of 0 or more but found -1.000000e+00}}
  %0 = boa.rms_norm %x, %w {eps = -1.0 : f64} : (tensor<2x4x8xf32>, tensor<8xf32>) -> tensor<2x4x8xf32>
  return
}

// -----

func.func @f(%x: tensor<2x4x8xf32>, %w: tensor<8xf32>, %dy: tensor<8x8xf32>) {
  // expected-error @below {{'boa.rms_norm_grad' op expected dy of shape [2, 4, 8] but found 'tensor<8x8xf32>'}}
  %0:2 = boa.rms_norm_grad %x, %w, %dy : (tensor<2x4x8xf32>, tensor<8xf32>, tensor<8x8xf32>) -> (tensor<2x4x8xf32>, tensor<8xf32>)
  return
}

// -----

// A rotation turns pairs within a head.

func.func @f(%x: tensor<2x4x6xf32>) {
  // expected-error @below {{'boa.rotary' op expected heads of even size, which are rotated in pairs, but found 3}}
  %0 = boa.rotary %x heads 2 : tensor<2x4x6xf32>
  return
}

// -----

func.func @f(%x: tensor<2x4x6xf32>) {
  // expected-error @below {{'boa.rotary' op expected heads to divide the width 6 but found 4}}
  %0 = boa.rotary %x heads 4 : tensor<2x4x6xf32>
  return
}

// -----

func.func @f(%x: tensor<8x6xf32>) {
  // expected-error @below {{'boa.rotary' op expected x of rank 3 but found 'tensor<8x6xf32>'}}
  %0 = boa.rotary %x heads 3 : tensor<8x6xf32>
  return
}

// -----

func.func @f(%x: tensor<2x4x6xf32>) {
  // expected-error @below {{'boa.rotary' op expected a base above 0 but found 0.000000e+00}}
  %0 = boa.rotary %x heads 3 {base = 0.0 : f64} : tensor<2x4x6xf32>
  return
}

// -----

// Keys are as many as values, and the sums of exponentials as rows.

func.func @f(%q: tensor<2x4x8xf32>, %k: tensor<2x5x8xf32>) {
  // expected-error @below {{'boa.attention' op expected k of shape [2, 4, 8] but found 'tensor<2x5x8xf32>'}}
  %0, %1 = boa.attention %q, %k, %k heads 4, 4 : (tensor<2x4x8xf32>, tensor<2x5x8xf32>, tensor<2x5x8xf32>) -> (tensor<2x4x8xf32>, tensor<2x4x4xf32>)
  return
}

// -----

func.func @f(%q: tensor<2x4x8xf32>) {
  // expected-error @below {{'boa.attention' op expected lse of shape [2, 4, 4] but found 'tensor<2x4xf32>'}}
  %0, %1 = boa.attention %q, %q, %q heads 4, 4 : (tensor<2x4x8xf32>, tensor<2x4x8xf32>, tensor<2x4x8xf32>) -> (tensor<2x4x8xf32>, tensor<2x4xf32>)
  return
}

// -----

// A token is a row of the table.

func.func @f(%table: tensor<16x8xf32>, %tokens: tensor<2x4xi32>) {
  // expected-error @below {{'boa.embedding' op expected a result of shape [2, 4, 8] but found 'tensor<2x4x16xf32>'}}
  %0 = boa.embedding %table, %tokens : (tensor<16x8xf32>, tensor<2x4xi32>) -> tensor<2x4x16xf32>
  return
}

// -----

func.func @f(%tokens: tensor<2x4xi32>, %dy: tensor<2x5x8xf32>) {
  // expected-error @below {{'boa.embedding_grad' op expected dy of shape [2, 4, 8] but found 'tensor<2x5x8xf32>'}}
  %0 = boa.embedding_grad %tokens, %dy : (tensor<2x4xi32>, tensor<2x5x8xf32>) -> tensor<16x8xf32>
  return
}

// -----

// A target a position; the loss is one number.

func.func @f(%x: tensor<2x4x8xf32>, %targets: tensor<2x5xi32>) {
  // expected-error @below {{'boa.cross_entropy' op expected targets of shape [2, 4] but found 'tensor<2x5xi32>'}}
  %0 = boa.cross_entropy %x, %targets : (tensor<2x4x8xf32>, tensor<2x5xi32>) -> tensor<f32>
  return
}

// -----

func.func @f(%x: tensor<2x4x8xf32>, %targets: tensor<2x4xi32>) {
  // expected-error @below {{'boa.cross_entropy' op expected a loss of rank 0 but found 'tensor<1xf32>'}}
  %0 = boa.cross_entropy %x, %targets : (tensor<2x4x8xf32>, tensor<2x4xi32>) -> tensor<1xf32>
  return
}

// -----

func.func @f(%x: tensor<2x4x8xf32>, %targets: tensor<2x4xi32>, %d: tensor<f32>) {
  // expected-error @below {{'boa.cross_entropy_grad' op expected dlogits of shape [2, 4, 8] but found 'tensor<2x4x9xf32>'}}
  %0 = boa.cross_entropy_grad %x, %targets, %d : (tensor<2x4x8xf32>, tensor<2x4xi32>, tensor<f32>) -> tensor<2x4x9xf32>
  return
}

// -----

func.func @cross_entropy_block(%log: tensor<2x4xf32>, %targets: tensor<2x5xi32>, %x: tensor<2x4x8xf32>) {
  // expected-error @below {{'boa.cross_entropy_block' op expected targets of shape [2, 4] but found 'tensor<2x5xi32>'}}
  %0, %1 = boa.cross_entropy_block %log, %log, %targets, %x : (tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x5xi32>, tensor<2x4x8xf32>) -> (tensor<2x4xf32>, tensor<2x4xf32>)
  return
}

// -----

func.func @cross_entropy_block(%log: tensor<2x4xf32>, %logit: tensor<2x5xf32>, %targets: tensor<2x4xi32>, %x: tensor<2x4x8xf32>) {
  // expected-error @below {{'boa.cross_entropy_block' op expected values of tokens of shape [2, 4] but found 'tensor<2x5xf32>'}}
  %0, %1 = boa.cross_entropy_block %log, %logit, %targets, %x : (tensor<2x4xf32>, tensor<2x5xf32>, tensor<2x4xi32>, tensor<2x4x8xf32>) -> (tensor<2x4xf32>, tensor<2x4xf32>)
  return
}

// -----

func.func @positions(%x: tensor<2x4x8xf32>, %at: tensor<2x3xi32>) {
  // expected-error @below {{'boa.rotary' op expected positions of shape [2, 4] but found 'tensor<2x3xi32>'}}
  %0 = boa.rotary %x heads 4 at %at of 64 : tensor<2x4x8xf32>, tensor<2x3xi32>
  return
}

// -----

func.func @cross_entropy_block_grad(%log: tensor<2x4xf32>, %targets: tensor<2x4xi32>, %x: tensor<2x4x8xf32>) {
  // expected-error @below {{'boa.cross_entropy_block_grad' op expected dlogits of shape [2, 4, 8] but found 'tensor<2x4x9xf32>'}}
  %0, %1, %2 = boa.cross_entropy_block_grad %log, %targets, %x, %log, %log : (tensor<2x4xf32>, tensor<2x4xi32>, tensor<2x4x8xf32>, tensor<2x4xf32>, tensor<2x4xf32>) -> (tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4x9xf32>)
  return
}

// -----

func.func @cross_entropy_end(%log: tensor<2x4xf32>, %logit: tensor<2x5xf32>, %targets: tensor<2x4xi32>) {
  // expected-error @below {{'boa.cross_entropy_end' op expected values of tokens of shape [2, 4] but found 'tensor<2x5xf32>'}}
  %0 = boa.cross_entropy_end %log, %logit, %targets : (tensor<2x4xf32>, tensor<2x5xf32>, tensor<2x4xi32>) -> tensor<f32>
  return
}

// -----

func.func @rebase(%tokens: tensor<2x4xi32>) {
  // expected-error @below {{'boa.rebase' op expected a number of 0 to 2147483647 tokens but found -1}}
  %0 = boa.rebase %tokens by -1 : tensor<2x4xi32>
  return
}

// -----

func.func @cache(%q: tensor<1x2x8xf32>, %k: tensor<1x2x4xf32>, %c: tensor<1x1x4xf32>, %at: tensor<1x2xi32>) {
  // expected-error @below {{'boa.cached_attention' op expected at most 1 rows but found 2}}
  %y, %k1, %v1 = boa.cached_attention %q, %k, %k, %c, %c at %at heads 4, 2
      : (tensor<1x2x8xf32>, tensor<1x2x4xf32>, tensor<1x2x4xf32>, tensor<1x1x4xf32>, tensor<1x1x4xf32>, tensor<1x2xi32>)
      -> (tensor<1x2x8xf32>, tensor<1x1x4xf32>, tensor<1x1x4xf32>)
  return
}

// -----

func.func @cache(%q: tensor<1x2x8xf32>, %k: tensor<1x2x4xf32>, %c: tensor<1x16x8xf32>, %at: tensor<1x2xi32>) {
  // expected-error @below {{'boa.cached_attention' op expected keys of shape [1, 16, 4] but found 'tensor<1x16x8xf32>'}}
  %y, %k1, %v1 = boa.cached_attention %q, %k, %k, %c, %c at %at heads 4, 2
      : (tensor<1x2x8xf32>, tensor<1x2x4xf32>, tensor<1x2x4xf32>, tensor<1x16x8xf32>, tensor<1x16x8xf32>, tensor<1x2xi32>)
      -> (tensor<1x2x8xf32>, tensor<1x16x8xf32>, tensor<1x16x8xf32>)
  return
}

// -----

// Constants are those of f32: no kernel computes with infinity or 0 in their place.

func.func @f(%x: tensor<2x4x8xf32>) {
  // expected-error @below {{'boa.scale' op attribute 'factor' failed to satisfy constraint: 64-bit float attribute that f32 holds: 0, or between 1.18e-38 and 3.4e38}}
  %0 = boa.scale %x by 1.0e+39 : tensor<2x4x8xf32>
  return
}

// -----

func.func @f(%x: tensor<2x4x8xf32>) {
  // expected-error @below {{'boa.scale' op attribute 'factor' failed to satisfy constraint: 64-bit float attribute that f32 holds}}
  %0 = boa.scale %x by -1.0e-50 : tensor<2x4x8xf32>
  return
}

// -----

func.func @f(%x: tensor<2x4x8xf32>, %w: tensor<8xf32>) {
  // expected-error @below {{'boa.rms_norm' op attribute 'eps' failed to satisfy constraint: 64-bit float attribute that f32 holds}}
  %0 = boa.rms_norm %x, %w {eps = 1.0e-60 : f64} : (tensor<2x4x8xf32>, tensor<8xf32>) -> tensor<2x4x8xf32>
  return
}

// -----

// Angles are computed in f64.

func.func @f(%x: tensor<2x4x8xf32>) {
  // expected-error @below {{'boa.rotary' op expected finite frequencies: its base or its factor is too near to 0}}
  %0 = boa.rotary %x heads 4 {factor = 1.0e-320 : f64} : tensor<2x4x8xf32>
  return
}

// -----

// Dropout leaves something, and has a key for each row.

func.func @f(%x: tensor<2x4x8xf32>) -> tensor<2x4x8xf32> {
  // expected-error @below {{'boa.dropout' op expected a probability of at least 0 and below 1 but found 1}}
  %0 = boa.dropout %x by 1.0 site 0 : tensor<2x4x8xf32>
  return %0 : tensor<2x4x8xf32>
}

// -----

func.func @f(%x: tensor<2x4x8xf32>, %k: tensor<2xi32>) -> tensor<2x4x8xf32> {
  // expected-error @below {{'boa.dropout' op expected one key for each row of 'tensor<2x4x8xf32>' but found 'tensor<2xi32>'}}
  %0 = boa.dropout %x keys %k : tensor<2xi32> by 0.5 site 0 : tensor<2x4x8xf32>
  return %0 : tensor<2x4x8xf32>
}
