// RUN: boa-opt %s --convert-boa-to-linalg --canonicalize --split-input-file | FileCheck %s

// Statistics of a row, one value each, then elementwise work with them.

// CHECK-LABEL: func.func @rms_norm
// CHECK-SAME:    (%[[X:.*]]: tensor<2x3x4xf32>, %[[W:.*]]: tensor<4xf32>)
// CHECK:         %[[S:.*]] = linalg.generic {{.*}}iterator_types = ["parallel", "parallel", "reduction"]} ins(%[[X]]
// CHECK:           arith.mulf
// CHECK:           arith.addf {{.*}} fastmath<reassoc> :
// CHECK:         %[[R:.*]] = linalg.generic {{.*}}iterator_types = ["parallel", "parallel"]} ins(%[[S]]
// CHECK:           math.sqrt
// CHECK:         linalg.generic {{.*}}iterator_types = ["parallel", "parallel", "parallel"]} ins(%[[X]], %[[R]], %[[W]]
func.func @rms_norm(%x: tensor<2x3x4xf32>, %w: tensor<4xf32>) -> tensor<2x3x4xf32> {
  %y = boa.rms_norm %x, %w : (tensor<2x3x4xf32>, tensor<4xf32>) -> tensor<2x3x4xf32>
  return %y : tensor<2x3x4xf32>
}

// -----

// A sum over rows that is added to something starts from it.

// CHECK-LABEL: func.func @accumulated_sum
// CHECK-SAME:    (%[[DY:.*]]: tensor<2x3x4xf32>, %[[G:.*]]: tensor<4xf32>)
// CHECK-NOT:     linalg.fill
// CHECK:         %[[SUM:.*]] = linalg.generic {{.*}}iterator_types = ["reduction", "reduction", "parallel"]} ins(%[[DY]] : tensor<2x3x4xf32>) outs(%[[G]] : tensor<4xf32>)
// CHECK:         return %[[SUM]]
func.func @accumulated_sum(%dy: tensor<2x3x4xf32>, %g: tensor<4xf32>) -> tensor<4xf32> {
  %0 = boa.sum_leading %dy : tensor<2x3x4xf32> to tensor<4xf32>
  %1 = boa.add %g, %0 : tensor<4xf32>, tensor<4xf32>
  return %1 : tensor<4xf32>
}

// -----

// A position embedding has no batch dimension.

// CHECK: #[[TRAILING:.*]] = affine_map<(d0, d1, d2) -> (d1, d2)>
// CHECK-LABEL: func.func @positions
// CHECK:         linalg.generic {indexing_maps = [#{{.*}}, #[[TRAILING]], #{{.*}}]
func.func @positions(%x: tensor<2x3x4xf32>, %p: tensor<3x4xf32>) -> tensor<2x3x4xf32> {
  %0 = boa.add %x, %p : tensor<2x3x4xf32>, tensor<3x4xf32>
  return %0 : tensor<2x3x4xf32>
}

// -----

// A part of a split is a slice; a concatenation is computed in slices.

// CHECK-LABEL: func.func @parts
// CHECK:         %[[A:.*]] = tensor.extract_slice %{{.*}}[0, 0] [2, 3] [1, 1]
// CHECK:         %[[B:.*]] = tensor.extract_slice %{{.*}}[0, 3] [2, 5] [1, 1]
// CHECK:         %[[Y:.*]] = tensor.empty() : tensor<2x8xf32>
// CHECK:         %[[Y1:.*]] = tensor.insert_slice %[[B]] into %[[Y]][0, 0] [2, 5] [1, 1]
// CHECK:         tensor.insert_slice %[[A]] into %[[Y1]][0, 5] [2, 3] [1, 1]
func.func @parts(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
  %a, %b = boa.split %x : (tensor<2x8xf32>) -> (tensor<2x3xf32>, tensor<2x5xf32>)
  %y = boa.concat %b, %a : (tensor<2x5xf32>, tensor<2x3xf32>) -> tensor<2x8xf32>
  return %y : tensor<2x8xf32>
}

// -----

// Of bf16 each element is widened where it is read, turned by angles in f32 and rounded where it is
// written.

// CHECK-LABEL: func.func @rotary
// CHECK-DAG:     kernel.angles cosine [1.000000e+00, 1.000000e-02] : tensor<3x2xf32>
// CHECK-DAG:     kernel.angles sine [1.000000e+00, 1.000000e-02] : tensor<3x2xf32>
// CHECK-COUNT-2: linalg.generic {{.*}} ins({{.*}} : tensor<2x3x2x2xbf16>, tensor<2x3x2x2xbf16>, tensor<3x2xf32>, tensor<3x2xf32>) outs(%{{.*}} : tensor<2x3x2x2xbf16>)
// CHECK-NOT:     linalg.generic
// CHECK:         return
func.func @rotary(%x: tensor<2x3x8xbf16>) -> tensor<2x3x8xbf16> {
  %y = boa.rotary %x heads 2 : tensor<2x3x8xbf16>
  return %y : tensor<2x3x8xbf16>
}

// -----

// A row of the table for each token.

// CHECK-LABEL: func.func @embedding
// CHECK-SAME:    (%[[T:.*]]: tensor<7x4xf32>, %[[I:.*]]: tensor<2x3xi32>)
// CHECK:         linalg.generic {{.*}} ins(%[[I]] : tensor<2x3xi32>)
// CHECK:         ^bb0(%[[TOKEN:.*]]: i32, %{{.*}}: f32):
// CHECK:           %[[ROW:.*]] = arith.index_cast %[[TOKEN]]
// CHECK:           %[[COLUMN:.*]] = linalg.index 2
// CHECK:           tensor.extract %[[T]][%[[ROW]], %[[COLUMN]]]
func.func @embedding(%table: tensor<7x4xf32>, %tokens: tensor<2x3xi32>) -> tensor<2x3x4xf32> {
  %y = boa.embedding %table, %tokens : (tensor<7x4xf32>, tensor<2x3xi32>) -> tensor<2x3x4xf32>
  return %y : tensor<2x3x4xf32>
}

// -----

// A token outside a block of a table reads the first row, and takes zeros.

// CHECK-LABEL: func.func @block_of_a_table
// CHECK-SAME:    (%[[T:.*]]: tensor<7x4xf32>, %[[I:.*]]: tensor<2x3xi32>)
// CHECK:         ^bb0(%[[TOKEN:.*]]: i32, %{{.*}}: f32):
// CHECK:           %[[WITHIN:.*]] = arith.cmpi ult, %[[TOKEN]], %{{.*}} : i32
// CHECK:           %[[NUMBER:.*]] = arith.select %[[WITHIN]], %[[TOKEN]], %{{.*}} : i32
// CHECK:           %[[ROW:.*]] = arith.index_cast %[[NUMBER]]
// CHECK:           %[[ELEMENT:.*]] = tensor.extract %[[T]][%[[ROW]], %{{.*}}]
// CHECK:           arith.select %[[WITHIN]], %[[ELEMENT]], %{{.*}} : f32
func.func @block_of_a_table(%table: tensor<7x4xf32>, %tokens: tensor<2x3xi32>) -> tensor<2x3x4xf32> {
  %y = boa.embedding %table, %tokens partial : (tensor<7x4xf32>, tensor<2x3xi32>) -> tensor<2x3x4xf32>
  return %y : tensor<2x3x4xf32>
}

// -----

// The elements of a constant of one value are no part of the program.

// CHECK-LABEL: func.func @one_value
// CHECK:         %[[VALUE:.*]] = arith.constant -1.000000e+30 : f32
// CHECK-NOT:     dense
// CHECK:         linalg.fill ins(%[[VALUE]] : f32) outs(%{{.*}} : tensor<2x3xf32>)
func.func @one_value() -> tensor<2x3xf32> {
  %0 = arith.constant dense<-1.0e30> : tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}

// -----

// Of logits that are widened the loss widens the one it looks up: all of them stay narrow.

// CHECK-LABEL: func.func @narrow_logits
// CHECK-SAME:    (%[[L:.*]]: tensor<2x3x5xbf16>,
// CHECK:         %[[ONE:.*]] = tensor.extract %[[L]]
// CHECK-NEXT:    arith.extf %[[ONE]] : bf16 to f32
func.func @narrow_logits(%logits: tensor<2x3x5xbf16>, %targets: tensor<2x3xi32>) -> tensor<f32> {
  %wide = boa.cast %logits : tensor<2x3x5xbf16> to tensor<2x3x5xf32>
  %loss = boa.cross_entropy %wide, %targets : (tensor<2x3x5xf32>, tensor<2x3xi32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// Loss and gradient share the row's log-sum-exp once CSE has run.

// CHECK-LABEL: func.func @cross_entropy
// CHECK:         arith.maximumf
// CHECK:         math.exp
// CHECK:         math.log
// CHECK:         arith.cmpi sge
func.func @cross_entropy(%logits: tensor<2x3x5xf32>, %targets: tensor<2x3xi32>) -> tensor<f32> {
  %y = boa.cross_entropy %logits, %targets : (tensor<2x3x5xf32>, tensor<2x3xi32>) -> tensor<f32>
  return %y : tensor<f32>
}
