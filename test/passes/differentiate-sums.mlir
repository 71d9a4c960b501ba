// RUN: boa-opt %s --boa-differentiate | FileCheck %s

// A gradient that was summed over rows is f32: an op that computed what it is the
// gradient of takes it rounded, where two meet they are added up in f32, and the
// parameter's own is rounded nowhere.

// CHECK-LABEL: func.func @a_backward
// CHECK-SAME:    %[[DY:[a-z0-9]+]]: tensor<2x4x8xbf16>) -> (tensor<4x8xf32> {boa.param = @a::@p})
// CHECK:         %[[P:.*]] = boa.cast %{{.*}} : tensor<4x8xf32> to tensor<4x8xbf16>
// CHECK:         %[[H:.*]] = boa.add
// CHECK:         %[[DH:.*]] = boa.mul %[[DY]], %[[P]] : tensor<2x4x8xbf16>
// CHECK:         %[[H32:.*]] = boa.cast %[[H]]
// CHECK:         %[[DY32:.*]] = boa.cast %[[DY]]
// CHECK:         %[[PRODUCT:.*]] = boa.mul %[[DY32]], %[[H32]] : tensor<2x4x8xf32>
// CHECK:         %[[DP:.*]] = boa.sum_leading %[[PRODUCT]] : tensor<2x4x8xf32> to tensor<4x8xf32>
// CHECK:         %[[DG:.*]] = boa.sum_leading %[[DH]] : tensor<2x4x8xbf16> to tensor<4x8xf32>
// CHECK:         %[[ROUNDED:.*]] = boa.cast %[[DG]] : tensor<4x8xf32> to tensor<4x8xbf16>
// CHECK:         %[[OTHER:.*]] = boa.gelu_grad %[[P]], %[[ROUNDED]] : tensor<4x8xbf16>
// CHECK:         %[[OTHER32:.*]] = boa.cast %[[OTHER]] : tensor<4x8xbf16> to tensor<4x8xf32>
// CHECK:         %[[SUM:.*]] = boa.add %[[DP]], %[[OTHER32]] : tensor<4x8xf32>
// CHECK-NEXT:    return %[[SUM]]
module {
  boa.group @a repeat 1 {
    boa.param @p : tensor<4x8xf32> = "ones"
  }
  boa.input @tokens from data : tensor<2x4x8xbf16>
  boa.stage @a_forward(@tokens)
  func.func @a_forward(%x: tensor<2x4x8xbf16>, %p: tensor<4x8xf32> {boa.param = @a::@p}) -> tensor<2x4x8xbf16> {
    %0 = boa.cast %p : tensor<4x8xf32> to tensor<4x8xbf16>
    %1 = boa.gelu %0 : tensor<4x8xbf16>
    %2 = boa.add %x, %1 : tensor<2x4x8xbf16>, tensor<4x8xbf16>
    %3 = boa.mul %2, %0 : tensor<2x4x8xbf16>, tensor<4x8xbf16>
    return %3 : tensor<2x4x8xbf16>
  }
}
