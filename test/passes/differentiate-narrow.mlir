// RUN: boa-opt %S/Inputs/narrow.mlir --boa-differentiate | FileCheck %s

// What was rounded on the way there has a gradient that is rounded on the way back.

// CHECK-LABEL: func.func @block_backward
// CHECK:         %[[H:.*]] = boa.linear
// CHECK:         %[[N:.*]] = boa.cast %[[H]] : tensor<2x16x32xf32> to tensor<2x16x32xbf16>
// CHECK:         %[[X:.*]] = boa.cast %[[N]] : tensor<2x16x32xbf16> to tensor<2x16x32xf32>
// CHECK:         %[[DX:.*]] = boa.gelu_grad %[[X]]
// CHECK:         %[[DN:.*]] = boa.cast %[[DX]] : tensor<2x16x32xf32> to tensor<2x16x32xbf16>
// CHECK:         %[[DH:.*]] = boa.cast %[[DN]] : tensor<2x16x32xbf16> to tensor<2x16x32xf32>
// CHECK:         boa.linear_weight_grad %{{.*}}, %[[DH]]
