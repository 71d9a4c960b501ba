// RUN: boa-opt %s --canonicalize --split-input-file | FileCheck %s
// RUN: boa-opt %s --convert-boa-to-linalg --split-input-file | FileCheck %s --check-prefix=LINALG

// To the same type.

// CHECK-LABEL: func.func @same
// CHECK-SAME:    (%[[X:.*]]: tensor<8xf32>)
// CHECK-NEXT:    return %[[X]]
// LINALG-LABEL: func.func @same
// LINALG-NEXT:    return
func.func @same(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = boa.cast %x : tensor<8xf32> to tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// Widened and back: what it was.

// CHECK-LABEL: func.func @widened
// CHECK-SAME:    (%[[X:.*]]: tensor<8xbf16>)
// CHECK-NEXT:    return %[[X]]
func.func @widened(%x: tensor<8xbf16>) -> tensor<8xbf16> {
  %0 = boa.cast %x : tensor<8xbf16> to tensor<8xf32>
  %1 = boa.cast %0 : tensor<8xf32> to tensor<8xbf16>
  return %1 : tensor<8xbf16>
}

// -----

// Rounded and back: not what it was.

// CHECK-LABEL: func.func @rounded
// CHECK-NEXT:    %[[Y:.*]] = boa.cast %{{.*}} : tensor<8xf32> to tensor<8xbf16>
// CHECK-NEXT:    %[[Z:.*]] = boa.cast %[[Y]] : tensor<8xbf16> to tensor<8xf32>
// CHECK-NEXT:    return %[[Z]]
// LINALG-LABEL: func.func @rounded
// LINALG:         arith.truncf %{{.*}} : f32 to bf16
// LINALG:         arith.extf %{{.*}} : bf16 to f32
func.func @rounded(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = boa.cast %x : tensor<8xf32> to tensor<8xbf16>
  %1 = boa.cast %0 : tensor<8xbf16> to tensor<8xf32>
  return %1 : tensor<8xf32>
}

// -----

// By way of a type that holds it: straight. By way of one that does not: no.

// CHECK-LABEL: func.func @between
// CHECK-SAME:    (%[[X:.*]]: tensor<8xbf16>, %[[Y:.*]]: tensor<8xf64>)
// CHECK-NEXT:    %[[Z:.*]] = boa.cast %[[X]] : tensor<8xbf16> to tensor<8xf32>
// CHECK-NEXT:    %[[ONCE:.*]] = boa.cast %[[Y]] : tensor<8xf64> to tensor<8xf32>
// CHECK-NEXT:    %[[TWICE:.*]] = boa.cast %[[ONCE]] : tensor<8xf32> to tensor<8xbf16>
// CHECK-NEXT:    return %[[Z]], %[[TWICE]]
func.func @between(%x: tensor<8xbf16>, %y: tensor<8xf64>) -> (tensor<8xf32>, tensor<8xbf16>) {
  %0 = boa.cast %x : tensor<8xbf16> to tensor<8xf64>
  %1 = boa.cast %0 : tensor<8xf64> to tensor<8xf32>
  %2 = boa.cast %y : tensor<8xf64> to tensor<8xf32>
  %3 = boa.cast %2 : tensor<8xf32> to tensor<8xbf16>
  return %1, %3 : tensor<8xf32>, tensor<8xbf16>
}
