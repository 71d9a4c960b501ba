// What is computed of a wide product is computed for some rows, then for the next. The
// functions are heads as a model has them, brought to where the pass runs.

// DEFINE: %{before} = --convert-boa-to-blas --convert-boa-to-linalg --cse \
// DEFINE:   --kernel-fuse-elementwise --canonicalize --cse
// RUN: boa-opt %s %{before} --split-input-file --kernel-block-rows=rows=16 | FileCheck %s
// RUN: boa-opt %s %{before} --split-input-file --kernel-block-rows=rows=16 \
// RUN:   --remarks-filter=boa-kernel 2>&1 | FileCheck %s --check-prefix=REMARK

// What fits is left as it is, to the letter.

// RUN: boa-opt %s %{before} --split-input-file > %t.before
// RUN: boa-opt %s %{before} --split-input-file --kernel-block-rows | diff %t.before -

// By default it is what takes more than 32 MiB, and 128 rows: here logits would take 3 KiB a sequence.
// Of fewer than twice the least there are no two blocks.

// RUN: boa-opt %s %{before} --split-input-file --kernel-block-rows="bytes=6144 least=1" | diff %t.before -
// RUN: boa-opt %s %{before} --split-input-file --kernel-block-rows="bytes=6143 least=25" | diff %t.before -
// RUN: boa-opt %s %{before} --split-input-file --kernel-block-rows="bytes=6143 least=24" | not diff %t.before - > /dev/null

// 2 sequences of 24 rows, each in a block of 16 and one of 8. The sum of the losses goes on from
// block to block.

// CHECK-LABEL: boa.kernel @forward
// CHECK-NOT:     2x24x32xf32
// CHECK:         %[[X0:.*]] = tensor.extract_slice %[[X:.*]][0, 0, 0] [1, 16, 4] [1, 1, 1]
// CHECK:         %[[L0:.*]] = kernel.gemm %[[X0]], %[[W:.*]] into %{{.*}} {transpose_b} : {{.*}} -> tensor<1x16x32xf32>
// CHECK:         linalg.generic {{.*}}"reduction"{{.*}} ins(%[[L0]] : tensor<1x16x32xf32>)
// CHECK:         %[[T0:.*]] = tensor.extract_slice %[[T:.*]][0, 0] [1, 16] [1, 1]
// CHECK:         %[[SUM0:.*]] = linalg.generic {{.*}} ins(%[[T0]], {{.*}}) outs({{.*}} : tensor<f32>)
// CHECK:           tensor.extract %[[L0]]
// CHECK:         tensor.extract_slice %[[X]][0, 16, 0] [1, 8, 4] [1, 1, 1]
// CHECK:         %[[SUM1:.*]] = linalg.generic {{.*}} ins({{.*}}tensor<1x8xi32>{{.*}}) outs(%[[SUM0]] : tensor<f32>)
// CHECK:         tensor.extract_slice %[[X]][1, 0, 0] [1, 16, 4] [1, 1, 1]
// CHECK:         %[[SUM2:.*]] = linalg.generic {{.*}} outs(%[[SUM1]] : tensor<f32>)
// CHECK:         tensor.extract_slice %[[X]][1, 16, 0] [1, 8, 4] [1, 1, 1]
// CHECK:         %[[SUM3:.*]] = linalg.generic {{.*}} outs(%[[SUM2]] : tensor<f32>)
// CHECK-NOT:     kernel.gemm
// CHECK:         linalg.generic {{.*}} ins(%[[SUM3]]
// CHECK:         return
// REMARK: [Passed] block-rows | {{.*}}blocks=4, of=16, rows=48, to=8
boa.kernel @forward(%x: tensor<2x24x4xf32>, %w: tensor<32x4xf32>, %t: tensor<2x24xi32>)
    -> tensor<f32> {
  %y = boa.linear %x, %w transpose
      : (tensor<2x24x4xf32>, tensor<32x4xf32>) -> tensor<2x24x32xf32>
  %loss = boa.cross_entropy %y, %t : (tensor<2x24x32xf32>, tensor<2x24xi32>) -> tensor<f32>
  boa.return %loss : tensor<f32>
}

// -----

// The gradients of weight and bias go on from block to block, beginning with what is
// given, and nothing as wide as the logits is left of all rows.

// CHECK-LABEL: boa.kernel @backward
// CHECK-SAME:    %[[DW:arg[0-9]+]]: tensor<4x32xf32>, %[[DB:arg[0-9]+]]: tensor<32xf32>)
// CHECK-NOT:     2x24x32xf32
// CHECK:         %[[L0:.*]] = kernel.gemm {{.*}} bias {{.*}} -> tensor<1x16x32xf32>
// CHECK-DAG:     %[[DB0:.*]] = linalg.generic {{.*}} outs(%[[DB]] : tensor<32xf32>)
// CHECK-DAG:     %[[DX0:.*]] = kernel.gemm {{.*}} {transpose_b} : {{.*}} -> tensor<1x16x4xf32>
// CHECK-DAG:     tensor.insert_slice %[[DX0]] into {{.*}} : tensor<1x16x4xf32> into tensor<2x24x4xf32>
// CHECK-DAG:     %[[DW0:.*]] = kernel.gemm {{.*}} into %[[DW]] {accumulate, transpose_a}
// CHECK:         %[[L1:.*]] = kernel.gemm {{.*}} -> tensor<1x8x32xf32>
// CHECK-DAG:     %{{.*}} = linalg.generic {{.*}} outs(%[[DB0]] : tensor<32xf32>)
// CHECK-DAG:     %{{.*}} = kernel.gemm {{.*}} into %[[DW0]] {accumulate, transpose_a}
// REMARK: [Passed] block-rows | {{.*}}blocks=4, of=16, rows=48, to=8
boa.kernel @backward(%x: tensor<2x24x4xf32>, %w: tensor<4x32xf32>, %b: tensor<32xf32>,
                    %t: tensor<2x24xi32>, %d: tensor<f32>, %dw0: tensor<4x32xf32>,
                    %db0: tensor<32xf32>)
    -> (tensor<2x24x4xf32>, tensor<4x32xf32>, tensor<32xf32>) {
  %y = boa.linear %x, %w bias %b
      : (tensor<2x24x4xf32>, tensor<4x32xf32>, tensor<32xf32>) -> tensor<2x24x32xf32>
  %dy = boa.cross_entropy_grad %y, %t, %d
      : (tensor<2x24x32xf32>, tensor<2x24xi32>, tensor<f32>) -> tensor<2x24x32xf32>
  %dx = boa.linear %dy, %w transpose
      : (tensor<2x24x32xf32>, tensor<4x32xf32>) -> tensor<2x24x4xf32>
  %dw = boa.linear_weight_grad %x, %dy
      : (tensor<2x24x4xf32>, tensor<2x24x32xf32>) -> tensor<4x32xf32>
  %db = boa.sum_leading %dy : tensor<2x24x32xf32> to tensor<32xf32>
  %dw1 = boa.add %dw0, %dw : tensor<4x32xf32>, tensor<4x32xf32>
  %db1 = boa.add %db0, %db : tensor<32xf32>, tensor<32xf32>
  boa.return %dx, %dw1, %db1 : tensor<2x24x4xf32>, tensor<4x32xf32>, tensor<32xf32>
}

// -----

// A gradient that nothing is added to begins with the first block.

// CHECK-LABEL: boa.kernel @sum_begins
// CHECK:         %[[FIRST:.*]] = kernel.gemm {{.*}} {transpose_a} : {{.*}} -> tensor<4x32xf32>
// CHECK:         %[[SECOND:.*]] = kernel.gemm {{.*}} into %[[FIRST]] {accumulate, transpose_a}
// CHECK:         kernel.gemm {{.*}} into %[[SECOND]] {accumulate, transpose_a}
boa.kernel @sum_begins(%x: tensor<1x48x4xf32>, %w: tensor<4x32xf32>, %t: tensor<1x48xi32>,
                      %d: tensor<f32>) -> tensor<4x32xf32> {
  %y = boa.linear %x, %w : (tensor<1x48x4xf32>, tensor<4x32xf32>) -> tensor<1x48x32xf32>
  %dy = boa.cross_entropy_grad %y, %t, %d
      : (tensor<1x48x32xf32>, tensor<1x48xi32>, tensor<f32>) -> tensor<1x48x32xf32>
  %dw = boa.linear_weight_grad %x, %dy
      : (tensor<1x48x4xf32>, tensor<1x48x32xf32>) -> tensor<4x32xf32>
  boa.return %dw : tensor<4x32xf32>
}

// -----

// Of short sequences a block holds several, whole: 5 of 6 rows are 2, 2 and 1.

// CHECK-LABEL: boa.kernel @sequences
// CHECK:         kernel.gemm {{.*}} -> tensor<2x6x32xf32>
// CHECK:         kernel.gemm {{.*}} -> tensor<2x6x32xf32>
// CHECK:         kernel.gemm {{.*}} -> tensor<1x6x32xf32>
// CHECK-NOT:     kernel.gemm
boa.kernel @sequences(%x: tensor<5x6x4xf32>, %w: tensor<4x32xf32>, %t: tensor<5x6xi32>)
    -> tensor<f32> {
  %y = boa.linear %x, %w : (tensor<5x6x4xf32>, tensor<4x32xf32>) -> tensor<5x6x32xf32>
  %loss = boa.cross_entropy %y, %t : (tensor<5x6x32xf32>, tensor<5x6xi32>) -> tensor<f32>
  boa.return %loss : tensor<f32>
}

// -----

// Of one sequence canonicalization has made the place in the batch a constant.

// CHECK-LABEL: boa.kernel @one_sequence
// CHECK:         kernel.gemm {{.*}} -> tensor<1x16x32xf32>
// CHECK:         tensor.extract %{{.*}}[%c0,
// CHECK:         kernel.gemm {{.*}} -> tensor<1x8x32xf32>
// CHECK:         tensor.extract %{{.*}}[%c0,
// CHECK-NOT:     kernel.gemm
boa.kernel @one_sequence(%x: tensor<1x24x4xf32>, %w: tensor<4x32xf32>, %t: tensor<1x24xi32>)
    -> tensor<f32> {
  %y = boa.linear %x, %w : (tensor<1x24x4xf32>, tensor<4x32xf32>) -> tensor<1x24x32xf32>
  %loss = boa.cross_entropy %y, %t : (tensor<1x24x32xf32>, tensor<1x24xi32>) -> tensor<f32>
  boa.return %loss : tensor<f32>
}

// -----

// A hidden layer is not reduced by rows, and left alone.

// CHECK-LABEL: boa.kernel @hidden
// CHECK:         kernel.gemm {{.*}} -> tensor<1x48x32xf32>
// REMARK: [Missed] block-rows | {{.*}}Reason="nothing reduces its rows"
boa.kernel @hidden(%x: tensor<1x48x4xf32>, %w: tensor<4x32xf32>, %v: tensor<32x4xf32>)
    -> tensor<1x48x4xf32> {
  %y = boa.linear %x, %w : (tensor<1x48x4xf32>, tensor<4x32xf32>) -> tensor<1x48x32xf32>
  %g = boa.gelu %y : tensor<1x48x32xf32>
  %z = boa.linear %g, %v : (tensor<1x48x32xf32>, tensor<32x4xf32>) -> tensor<1x48x4xf32>
  boa.return %z : tensor<1x48x4xf32>
}

// -----

// Logits that are wanted as they are.

// CHECK-LABEL: boa.kernel @logits
// CHECK:         kernel.gemm {{.*}} -> tensor<1x48x32xf32>
// REMARK: [Missed] block-rows | {{.*}}Reason="boa.return does not take it row by row"
boa.kernel @logits(%x: tensor<1x48x4xf32>, %w: tensor<4x32xf32>, %t: tensor<1x48xi32>)
    -> (tensor<f32>, tensor<1x48x32xf32>) {
  %y = boa.linear %x, %w : (tensor<1x48x4xf32>, tensor<4x32xf32>) -> tensor<1x48x32xf32>
  %loss = boa.cross_entropy %y, %t : (tensor<1x48x32xf32>, tensor<1x48xi32>) -> tensor<f32>
  boa.return %loss, %y : tensor<f32>, tensor<1x48x32xf32>
}

// -----

// A gradient that is scaled by the loss needs all rows before the first of it is known.

// CHECK-LABEL: boa.kernel @all_rows_first
// CHECK:         kernel.gemm {{.*}} -> tensor<1x48x32xf32>
// REMARK: [Missed] block-rows | {{.*}}Reason="linalg.generic in the middle does not take rows one by one"
boa.kernel @all_rows_first(%x: tensor<1x48x4xf32>, %w: tensor<4x32xf32>, %t: tensor<1x48xi32>)
    -> tensor<1x48x4xf32> {
  %y = boa.linear %x, %w : (tensor<1x48x4xf32>, tensor<4x32xf32>) -> tensor<1x48x32xf32>
  %loss = boa.cross_entropy %y, %t : (tensor<1x48x32xf32>, tensor<1x48xi32>) -> tensor<f32>
  %dy = boa.cross_entropy_grad %y, %t, %loss
      : (tensor<1x48x32xf32>, tensor<1x48xi32>, tensor<f32>) -> tensor<1x48x32xf32>
  %dx = boa.linear %dy, %w transpose
      : (tensor<1x48x32xf32>, tensor<4x32xf32>) -> tensor<1x48x4xf32>
  boa.return %dx : tensor<1x48x4xf32>
}

// -----

// Of a product of which both operands are taken the other way round, rows are summed over in the one
// and what a row of the result is in the other: here both are 48.

// CHECK-LABEL: boa.kernel @both_transposed
// CHECK:         kernel.gemm {{.*}} -> tensor<1x48x64xf32>
// REMARK: [Missed] block-rows | {{.*}}Reason="kernel.gemm does not take it row by row"
boa.kernel @both_transposed(%x: tensor<1x48x4xf32>, %w: tensor<4x64xf32>, %t: tensor<1x48xi32>,
                           %v: tensor<1x48x48xf32>, %into: tensor<64x48xf32>)
    -> (tensor<f32>, tensor<64x48xf32>) {
  %y = boa.linear %x, %w : (tensor<1x48x4xf32>, tensor<4x64xf32>) -> tensor<1x48x64xf32>
  %loss = boa.cross_entropy %y, %t : (tensor<1x48x64xf32>, tensor<1x48xi32>) -> tensor<f32>
  %z = kernel.gemm %y, %v into %into {transpose_a, transpose_b}
      : (tensor<1x48x64xf32>, tensor<1x48x48xf32>, tensor<64x48xf32>) -> tensor<64x48xf32>
  boa.return %loss, %z : tensor<f32>, tensor<64x48xf32>
}
