// RUN: boa-opt %s --boa-cache-attention=prefill=2 --split-input-file --verify-diagnostics | FileCheck %s

// Rows of learned positions and of rotations are those of the positions. The caches are arguments
// that come back.

// CHECK-LABEL: func.func @a_prefill(
// CHECK-SAME:    %[[TOKENS:.*]]: tensor<1x2xi32>, %[[TABLE:[^:]*]]: tensor<16x8xf32> {boa.param
// CHECK-SAME:    %[[POS:[^:]*]]: tensor<4x8xf32> {boa.param
// CHECK-SAME:    %[[AT:[^:]*]]: tensor<1x2xi32>) -> tensor<1x2x8xf32>
// CHECK-NEXT:    %[[X:.*]] = boa.embedding %[[TABLE]], %[[TOKENS]]
// CHECK-NEXT:    %[[ROWS:.*]] = boa.embedding %[[POS]], %[[AT]] : (tensor<4x8xf32>, tensor<1x2xi32>) -> tensor<1x2x8xf32>
// CHECK-NEXT:    boa.add %[[X]], %[[ROWS]] : tensor<1x2x8xf32>, tensor<1x2x8xf32>

// CHECK-LABEL: func.func @b_generate(
// CHECK-SAME:    %[[X:.*]]: tensor<1x1x8xf32>, %[[AT:[^:]*]]: tensor<1x1xi32>
// CHECK-SAME:    %[[KEYS:[^:]*]]: tensor<1x4x8xf32> {boa.cache}, %[[VALUES:[^:]*]]: tensor<1x4x8xf32> {boa.cache})
// CHECK-SAME:    -> (tensor<1x1x8xf32>, tensor<1x4x8xf32> {boa.cache = 2 : i64}, tensor<1x4x8xf32> {boa.cache = 3 : i64})
// CHECK-NEXT:    %[[Q:.*]] = boa.rotary %[[X]] heads 2 at %[[AT]] of 4 : tensor<1x1x8xf32>, tensor<1x1xi32>
// CHECK-NEXT:    %[[Y:.*]], %[[K1:.*]], %[[V1:.*]] = boa.cached_attention %[[Q]], %[[X]], %[[X]], %[[KEYS]], %[[VALUES]] at %[[AT]] heads 2, 2 {window = 3 : i64}
// CHECK-NEXT:    return %[[Y]], %[[K1]], %[[V1]]

// What follows earlier tokens of a prompt is known.

// CHECK-NOT:   @c_prefill
// CHECK-LABEL: func.func @c_generate(
// CHECK-SAME:    -> tensor<1x1x8xf32>
// CHECK-NOT:   @c_prefill
module {
  boa.group @params.a repeat 1 {
    boa.param @table : tensor<16x8xf32> = "zeros"
    boa.param @pos : tensor<4x8xf32> = "zeros"
  }
  boa.input @tokens from data : tensor<1x4xi32>
  boa.input @targets from data : tensor<1x4xi32>
  boa.stage @a_forward(@tokens)
  boa.stage @b_forward(@a_forward)
  boa.stage @c_forward(@b_forward, @targets)
  func.func @a_forward(%tokens: tensor<1x4xi32>, %table: tensor<16x8xf32> {boa.param = @params.a::@table},
                       %pos: tensor<4x8xf32> {boa.param = @params.a::@pos}) -> tensor<1x4x8xf32> {
    %0 = boa.embedding %table, %tokens : (tensor<16x8xf32>, tensor<1x4xi32>) -> tensor<1x4x8xf32>
    %1 = boa.add %0, %pos : tensor<1x4x8xf32>, tensor<4x8xf32>
    return %1 : tensor<1x4x8xf32>
  }
  func.func @b_forward(%x: tensor<1x4x8xf32>) -> tensor<1x4x8xf32> {
    %q = boa.rotary %x heads 2 : tensor<1x4x8xf32>
    %y, %lse = boa.attention %q, %x, %x heads 2, 2 causal {window = 3 : i64}
        : (tensor<1x4x8xf32>, tensor<1x4x8xf32>, tensor<1x4x8xf32>) -> (tensor<1x4x8xf32>, tensor<1x2x4xf32>)
    return %y : tensor<1x4x8xf32>
  }
  func.func @c_forward(%x: tensor<1x4x8xf32>, %t: tensor<1x4xi32>) -> tensor<f32> {
    %0 = boa.cross_entropy %x, %t : (tensor<1x4x8xf32>, tensor<1x4xi32>) -> tensor<f32>
    return %0 : tensor<f32>
  }
}

// -----

module {
  boa.input @tokens from data : tensor<1x4x8xf32>
  boa.input @targets from data : tensor<1x4xi32>
  boa.stage @b_forward(@tokens)
  boa.stage @c_forward(@b_forward, @targets)
  func.func @b_forward(%x: tensor<1x4x8xf32>) -> tensor<1x4x8xf32> {
    // expected-error @below {{a text cannot be continued: attention sees later tokens; expected causal}}
    %y, %lse = boa.attention %x, %x, %x heads 2, 2
        : (tensor<1x4x8xf32>, tensor<1x4x8xf32>, tensor<1x4x8xf32>) -> (tensor<1x4x8xf32>, tensor<1x2x4xf32>)
    return %y : tensor<1x4x8xf32>
  }
  func.func @c_forward(%x: tensor<1x4x8xf32>, %t: tensor<1x4xi32>) -> tensor<f32> {
    %0 = boa.cross_entropy %x, %t : (tensor<1x4x8xf32>, tensor<1x4xi32>) -> tensor<f32>
    return %0 : tensor<f32>
  }
}

// -----

module {
  boa.input @tokens from data : tensor<1x4x8xf32>
  boa.input @targets from data : tensor<1x4xi32>
  boa.stage @b_forward(@tokens)
  boa.stage @c_forward(@b_forward, @targets)
  func.func @b_forward(%x: tensor<1x4x8xf32>) -> tensor<1x4x8xf32> {
    // expected-error @below {{is not computed row by row: a text cannot be continued one token at a time}}
    %0 = boa.sum_leading %x : tensor<1x4x8xf32> to tensor<4x8xf32>
    %1 = boa.add %x, %0 : tensor<1x4x8xf32>, tensor<4x8xf32>
    return %1 : tensor<1x4x8xf32>
  }
  func.func @c_forward(%x: tensor<1x4x8xf32>, %t: tensor<1x4xi32>) -> tensor<f32> {
    %0 = boa.cross_entropy %x, %t : (tensor<1x4x8xf32>, tensor<1x4xi32>) -> tensor<f32>
    return %0 : tensor<f32>
  }
}

// -----

module {
  boa.input @tokens from data : tensor<1x4x8xf32>
  boa.input @targets from data : tensor<1x4xi32>
  boa.input @document_starts from data : tensor<1x4xi32>
  boa.stage @b_forward(@tokens, @document_starts)
  boa.stage @c_forward(@b_forward, @targets)
  func.func @b_forward(%x: tensor<1x4x8xf32>, %starts: tensor<1x4xi32>) -> tensor<1x4x8xf32> {
    // expected-error @below {{expected a text of one document}}
    %y, %lse = boa.attention %x, %x, %x documents %starts heads 2, 2 causal
        : (tensor<1x4x8xf32>, tensor<1x4x8xf32>, tensor<1x4x8xf32>, tensor<1x4xi32>) -> (tensor<1x4x8xf32>, tensor<1x2x4xf32>)
    return %y : tensor<1x4x8xf32>
  }
  func.func @c_forward(%x: tensor<1x4x8xf32>, %t: tensor<1x4xi32>) -> tensor<f32> {
    %0 = boa.cross_entropy %x, %t : (tensor<1x4x8xf32>, tensor<1x4xi32>) -> tensor<f32>
    return %0 : tensor<f32>
  }
}
