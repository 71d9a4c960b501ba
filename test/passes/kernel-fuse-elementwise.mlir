// RUN: boa-opt %s --convert-boa-to-linalg --kernel-fuse-elementwise --canonicalize | FileCheck %s
// RUN: boa-opt %s --convert-boa-to-linalg --kernel-fuse-elementwise --mlir-disable-threading --remarks-filter=boa-kernel 2>&1 \
// RUN:   | FileCheck %s --check-prefix=REMARK

// One consumer: fused, whatever it costs.

// CHECK-LABEL: boa.kernel @chain
// CHECK-COUNT-1: linalg.generic
// CHECK:           math.exp
// CHECK:           arith.mulf
// CHECK:           arith.addf
// CHECK-NOT:     linalg.generic
// CHECK:         return
// REMARK: Passed] fuse-elementwise | {{.*}}Remark=chain, {{.*}} after=1, before=3
boa.kernel @chain(%x: tensor<8x4xf32>, %y: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %0 = boa.silu %x : tensor<8x4xf32>
  %1 = boa.mul %0, %y : tensor<8x4xf32>, tensor<8x4xf32>
  %2 = boa.add %1, %x : tensor<8x4xf32>, tensor<8x4xf32>
  boa.return %2 : tensor<8x4xf32>
}

// Several consumers: an exponential is computed once and kept.

// CHECK-LABEL: boa.kernel @expensive
// CHECK:         %[[G:.*]] = linalg.generic
// CHECK:           math.exp
// CHECK:         linalg.generic {{.*}} ins(%[[G]]
// CHECK-NOT:       math.exp
// CHECK:         linalg.generic {{.*}} ins(%[[G]]
// CHECK-NOT:       math.exp
// CHECK:         return
// REMARK: Passed] fuse-elementwise | {{.*}}Remark=expensive, {{.*}} after=3, before=3
boa.kernel @expensive(%x: tensor<8x4xf32>) -> (tensor<8x4xf32>, tensor<4xf32>) {
  %0 = boa.silu %x : tensor<8x4xf32>
  %1 = boa.mul %0, %0 : tensor<8x4xf32>, tensor<8x4xf32>
  %2 = boa.sum_leading %0 : tensor<8x4xf32> to tensor<4xf32>
  boa.return %1, %2 : tensor<8x4xf32>, tensor<4xf32>
}

// Several consumers: arithmetic is kept, however cheap. A cast is computed again in each.

// CHECK-LABEL: boa.kernel @cheap
// CHECK-SAME:    (%[[X:.*]]: tensor<8x4xbf16>)
// CHECK:         %[[TWICE:.*]] = linalg.generic {{.*}} ins(%[[X]] :
// CHECK:           arith.extf
// CHECK:         linalg.generic {{.*}} ins(%[[TWICE]], %[[X]] :
// CHECK:           arith.extf
// CHECK:         linalg.generic {{.*}} ins(%[[TWICE]] :
// CHECK-NOT:     linalg.generic
// CHECK:         return
#same = affine_map<(d0, d1) -> (d0, d1)>
boa.kernel @cheap(%x: tensor<8x4xbf16>) -> (tensor<8x4xf32>, tensor<4xf32>) {
  %empty = tensor.empty() : tensor<8x4xf32>
  %wide = linalg.generic {indexing_maps = [#same, #same], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<8x4xbf16>) outs(%empty : tensor<8x4xf32>) {
  ^bb0(%element: bf16, %unused: f32):
    %cast = arith.extf %element : bf16 to f32
    linalg.yield %cast : f32
  } -> tensor<8x4xf32>
  %twice = boa.scale %wide by 2.0 : tensor<8x4xf32>
  %product = boa.mul %twice, %wide : tensor<8x4xf32>, tensor<8x4xf32>
  %sum = boa.sum_leading %twice : tensor<8x4xf32> to tensor<4xf32>
  boa.return %product, %sum : tensor<8x4xf32>, tensor<4xf32>
}
