// RUN: boa-opt %s --convert-boa-to-linalg --kernel-fuse-elementwise --canonicalize | FileCheck %s

// One consumer: fused, whatever it costs.

// CHECK-LABEL: func.func @chain
// CHECK-COUNT-1: linalg.generic
// CHECK:           math.exp
// CHECK:           arith.mulf
// CHECK:           arith.addf
// CHECK-NOT:     linalg.generic
// CHECK:         return
func.func @chain(%x: tensor<8x4xf32>, %y: tensor<8x4xf32>) -> tensor<8x4xf32> attributes {boa.kernel} {
  %0 = boa.silu %x : tensor<8x4xf32>
  %1 = boa.mul %0, %y : tensor<8x4xf32>, tensor<8x4xf32>
  %2 = boa.add %1, %x : tensor<8x4xf32>, tensor<8x4xf32>
  return %2 : tensor<8x4xf32>
}

// Several consumers: an exponential is computed once and kept.

// CHECK-LABEL: func.func @expensive
// CHECK:         %[[G:.*]] = linalg.generic
// CHECK:           math.exp
// CHECK:         linalg.generic {{.*}} ins(%[[G]]
// CHECK-NOT:       math.exp
// CHECK:         linalg.generic {{.*}} ins(%[[G]]
// CHECK-NOT:       math.exp
// CHECK:         return
func.func @expensive(%x: tensor<8x4xf32>) -> (tensor<8x4xf32>, tensor<4xf32>) attributes {boa.kernel} {
  %0 = boa.silu %x : tensor<8x4xf32>
  %1 = boa.mul %0, %0 : tensor<8x4xf32>, tensor<8x4xf32>
  %2 = boa.sum_leading %0 : tensor<8x4xf32> to tensor<4xf32>
  return %1, %2 : tensor<8x4xf32>, tensor<4xf32>
}

// Several consumers: scaling is cheaper than reading again.

// CHECK-LABEL: func.func @cheap
// CHECK-SAME:    (%[[X:.*]]: tensor<8x4xf32>)
// CHECK:         linalg.generic {{.*}} ins(%[[X]]
// CHECK:         linalg.generic {{.*}} ins(%[[X]]
// CHECK-NOT:     linalg.generic
// CHECK:         return
func.func @cheap(%x: tensor<8x4xf32>) -> (tensor<8x4xf32>, tensor<4xf32>) attributes {boa.kernel} {
  %0 = boa.scale %x by 2.0 : tensor<8x4xf32>
  %1 = boa.silu %0 : tensor<8x4xf32>
  %2 = boa.sum_leading %0 : tensor<8x4xf32> to tensor<4xf32>
  return %1, %2 : tensor<8x4xf32>, tensor<4xf32>
}
