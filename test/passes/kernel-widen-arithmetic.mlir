// RUN: boa-opt %s --kernel-widen-arithmetic --cse --split-input-file | FileCheck %s

// What is computed of bf16 is computed in f32; every result is rounded, also where the
// next op widens it again. What is a sum already stays as it is.

// CHECK-LABEL: func.func @norm
// CHECK-SAME:    (%[[X:.*]]: tensor<2x3x4xbf16>, %[[W:.*]]: tensor<4xbf16>, %[[DY:.*]]: tensor<2x3x4xbf16>)
// CHECK-DAG:     %[[X32:.*]] = boa.cast %[[X]] : tensor<2x3x4xbf16> to tensor<2x3x4xf32>
// CHECK-DAG:     %[[W32:.*]] = boa.cast %[[W]] : tensor<4xbf16> to tensor<4xf32>
// CHECK:         %[[N:.*]] = boa.rms_norm %[[X32]], %[[W32]] : {{.*}} -> tensor<2x3x4xf32>
// CHECK:         %[[ROUNDED:.*]] = boa.cast %[[N]] : tensor<2x3x4xf32> to tensor<2x3x4xbf16>
// CHECK:         %[[AGAIN:.*]] = boa.cast %[[ROUNDED]] : tensor<2x3x4xbf16> to tensor<2x3x4xf32>
// CHECK:         %[[G:.*]] = boa.gelu %[[AGAIN]] : tensor<2x3x4xf32>
// CHECK:         %[[Y:.*]] = boa.cast %[[G]] : tensor<2x3x4xf32> to tensor<2x3x4xbf16>
// CHECK:         %[[DY32:.*]] = boa.cast %[[DY]]
// CHECK:         %[[DX32:.*]], %[[DW:.*]] = boa.rms_norm_grad %[[X32]], %[[W32]], %[[DY32]] : {{.*}} -> (tensor<2x3x4xf32>, tensor<4xf32>)
// CHECK:         %[[DX:.*]] = boa.cast %[[DX32]] : tensor<2x3x4xf32> to tensor<2x3x4xbf16>
// CHECK:         return %[[Y]], %[[DX]], %[[DW]]
func.func @norm(%x: tensor<2x3x4xbf16>, %w: tensor<4xbf16>, %dy: tensor<2x3x4xbf16>)
    -> (tensor<2x3x4xbf16>, tensor<2x3x4xbf16>, tensor<4xf32>) {
  %0 = boa.rms_norm %x, %w : (tensor<2x3x4xbf16>, tensor<4xbf16>) -> tensor<2x3x4xbf16>
  %1 = boa.gelu %0 : tensor<2x3x4xbf16>
  %2, %3 = boa.rms_norm_grad %x, %w, %dy : (tensor<2x3x4xbf16>, tensor<4xbf16>, tensor<2x3x4xbf16>) -> (tensor<2x3x4xbf16>, tensor<4xf32>)
  return %1, %2, %3 : tensor<2x3x4xbf16>, tensor<2x3x4xbf16>, tensor<4xf32>
}

// -----

// Values that are only moved are moved as they are; f32 is no concern.

// CHECK-LABEL: func.func @moved
// CHECK-NOT:     boa.cast
// CHECK:         boa.embedding %{{.*}} -> tensor<2x3x4xbf16>
// CHECK:         boa.split %{{.*}} -> (tensor<2x3x2xbf16>, tensor<2x3x2xbf16>)
// CHECK:         boa.gelu %{{.*}} : tensor<4xf32>
func.func @moved(%table: tensor<7x4xbf16>, %tokens: tensor<2x3xi32>, %z: tensor<4xf32>)
    -> (tensor<2x3x2xbf16>, tensor<2x3x2xbf16>, tensor<4xf32>) {
  %y = boa.embedding %table, %tokens : (tensor<7x4xbf16>, tensor<2x3xi32>) -> tensor<2x3x4xbf16>
  %a, %b = boa.split %y : (tensor<2x3x4xbf16>) -> (tensor<2x3x2xbf16>, tensor<2x3x2xbf16>)
  %g = boa.gelu %z : tensor<4xf32>
  return %a, %b, %g : tensor<2x3x2xbf16>, tensor<2x3x2xbf16>, tensor<4xf32>
}

// -----

// Attention takes bf16 as it is.

// CHECK-LABEL: func.func @attention
// CHECK-NOT:     boa.cast
// CHECK:         boa.attention {{.*}} -> (tensor<2x3x8xbf16>, tensor<2x4x3xf32>)
// CHECK:         boa.attention_grad {{.*}} -> (tensor<2x3x8xbf16>, tensor<2x3x4xbf16>, tensor<2x3x4xbf16>)
// CHECK-NOT:     boa.cast
// CHECK:         return
func.func @attention(%q: tensor<2x3x8xbf16>, %k: tensor<2x3x4xbf16>, %dy: tensor<2x3x8xbf16>)
    -> (tensor<2x3x8xbf16>, tensor<2x3x4xbf16>, tensor<2x3x4xbf16>) {
  %y, %lse = boa.attention %q, %k, %k heads 4, 2 causal : (tensor<2x3x8xbf16>, tensor<2x3x4xbf16>, tensor<2x3x4xbf16>) -> (tensor<2x3x8xbf16>, tensor<2x4x3xf32>)
  %dq, %dk, %dv = boa.attention_grad %q, %k, %k, %y, %lse, %dy heads 4, 2 causal : (tensor<2x3x8xbf16>, tensor<2x3x4xbf16>, tensor<2x3x4xbf16>, tensor<2x3x8xbf16>, tensor<2x4x3xf32>, tensor<2x3x8xbf16>) -> (tensor<2x3x8xbf16>, tensor<2x3x4xbf16>, tensor<2x3x4xbf16>)
  return %dq, %dk, %dv : tensor<2x3x8xbf16>, tensor<2x3x4xbf16>, tensor<2x3x4xbf16>
}

// -----

// What is turned is widened and rounded where it is read and written: no pass for either.

// CHECK-LABEL: func.func @rotary
// CHECK-NOT:     boa.cast
// CHECK:         boa.rotary %{{.*}} heads 2 : tensor<2x3x8xbf16>
// CHECK-NOT:     boa.cast
// CHECK:         return
func.func @rotary(%x: tensor<2x3x8xbf16>) -> tensor<2x3x8xbf16> {
  %y = boa.rotary %x heads 2 : tensor<2x3x8xbf16>
  return %y : tensor<2x3x8xbf16>
}
