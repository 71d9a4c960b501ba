// RUN: boa-opt %s --boa-build-step=predict=true --split-input-file --verify-diagnostics | FileCheck %s

// The prediction is the logits, whatever the head makes of its loss.

// CHECK-LABEL: func.func @b_logits(
// CHECK-SAME:    %[[X:.*]]: tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
// CHECK-NEXT:    %[[LOGITS:.*]] = boa.gelu %[[X]]
// CHECK-NEXT:    return %[[LOGITS]]
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
    %0 = boa.gelu %x : tensor<2x4x8xf32>
    %1 = boa.cross_entropy %0, %t : (tensor<2x4x8xf32>, tensor<2x4xi32>) -> tensor<f32>
    %2 = boa.add %1, %1 : tensor<f32>, tensor<f32>
    %3 = boa.scale %2 by 0.5 : tensor<f32>
    return %3 : tensor<f32>
  }
}

// -----

// Of two losses, neither alone says what is predicted.

module {
  boa.input @tokens from data : tensor<2x4xi32>
  boa.input @targets from data : tensor<2x4xi32>
  boa.stage @a_forward(@tokens)
  boa.stage @b_forward(@a_forward, @targets)
  func.func @a_forward(%x: tensor<2x4xi32>) -> tensor<2x4x8xf32> {
    %0 = arith.constant dense<0.0> : tensor<2x4x8xf32>
    return %0 : tensor<2x4x8xf32>
  }
  // expected-error @below {{cannot predict: expected one boa.cross_entropy, and no other op, to take the targets: its logits are the prediction}}
  func.func @b_forward(%x: tensor<2x4x8xf32>, %t: tensor<2x4xi32>) -> tensor<f32> {
    %0 = boa.gelu %x : tensor<2x4x8xf32>
    %1 = boa.cross_entropy %0, %t : (tensor<2x4x8xf32>, tensor<2x4xi32>) -> tensor<f32>
    %2 = boa.cross_entropy %x, %t : (tensor<2x4x8xf32>, tensor<2x4xi32>) -> tensor<f32>
    %3 = boa.add %1, %2 : tensor<f32>, tensor<f32>
    return %3 : tensor<f32>
  }
}

// -----

// A text has no other inputs than tokens,

module {
  boa.input @tokens from data : tensor<2x4xi32>
  boa.input @targets from data : tensor<2x4xi32>
  boa.input @dropout_keys from seed : tensor<2x4xi32>
  boa.stage @a_forward(@tokens, @dropout_keys)
  boa.stage @b_forward(@a_forward, @targets)
  // expected-error @below {{'func.func' op cannot predict: expected only tokens and results of stages but it takes @dropout_keys}}
  func.func private @a_forward(tensor<2x4xi32>, tensor<2x4xi32>) -> tensor<2x4x8xf32>
  func.func private @b_forward(tensor<2x4x8xf32>, tensor<2x4xi32>) -> tensor<f32>
}

// -----

// and no targets but those that only the loss needs.

module {
  boa.input @tokens from data : tensor<2x4xi32>
  boa.input @targets from data : tensor<2x4xi32>
  boa.stage @a_forward(@tokens, @targets)
  boa.stage @b_forward(@a_forward, @targets)
  // expected-error @below {{'func.func' op cannot predict: expected only tokens and results of stages but it takes @targets}}
  func.func private @a_forward(tensor<2x4xi32>, tensor<2x4xi32>) -> tensor<2x4x8xf32>
  func.func private @b_forward(tensor<2x4x8xf32>, tensor<2x4xi32>) -> tensor<f32>
}
