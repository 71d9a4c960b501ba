// RUN: boa-opt %S/Inputs/narrow.mlir --boa-differentiate=recompute=true | FileCheck %s
// RUN: boa-opt %S/Inputs/narrow.mlir --boa-differentiate | FileCheck %s --check-prefix=SAVE
// RUN: boa-opt %S/Inputs/narrow.mlir --boa-differentiate=recompute=false --boa-build-step \
// RUN:   | FileCheck %s --check-prefix=STEP
// RUN: boa-opt %S/Inputs/narrow.mlir --boa-differentiate=recompute=false --boa-build-step \
// RUN:     --boa-insert-offload | FileCheck %s --check-prefix=STORAGE

// The plan says recompute = false; the option wins over it.

// What was rounded on the way there has a gradient that is rounded on the way back.

// CHECK-LABEL: func.func @block_backward
// CHECK:         %[[H:.*]] = boa.linear
// CHECK:         %[[N:.*]] = boa.cast %[[H]] : tensor<2x16x64xf32> to tensor<2x16x64xbf16>
// CHECK:         %[[X:.*]] = boa.cast %[[N]] : tensor<2x16x64xbf16> to tensor<2x16x64xf32>
// CHECK:         %[[DX:.*]] = boa.gelu_grad %[[X]]
// CHECK:         %[[DN:.*]] = boa.cast %[[DX]] : tensor<2x16x64xf32> to tensor<2x16x64xbf16>
// CHECK:         %[[DH:.*]] = boa.cast %[[DN]] : tensor<2x16x64xbf16> to tensor<2x16x64xf32>
// CHECK:         boa.linear_weight_grad %{{.*}}, %[[DH]]

// Of a value that was rounded the narrow one is saved and widened again.

// SAVE-LABEL: func.func @block_forward_saving
// SAVE-SAME:    -> (tensor<2x16x64xf32>, tensor<2x16x64xbf16> {boa.saved}, tensor<2x16x64xf32> {boa.saved})
// SAVE:         %[[N:.*]] = boa.cast %{{.*}} to tensor<2x16x64xbf16>
// SAVE:         %[[G:.*]] = boa.gelu
// SAVE:         return %{{.*}}, %[[N]], %[[G]]
// SAVE-LABEL: func.func @block_backward
// SAVE-SAME:    %[[N:[a-z0-9_]+]]: tensor<2x16x64xbf16> {boa.saved}, %[[G:[a-z0-9_]+]]: tensor<2x16x64xf32> {boa.saved})
// SAVE-NOT:     boa.gelu %
// SAVE:         %[[X:.*]] = boa.cast %[[N]]
// SAVE-DAG:     boa.gelu_grad %[[X]]
// SAVE-DAG:     boa.linear_weight_grad %[[G]]

// What is saved lies in one storage for each element type: packs, and no byte more.

// STEP-DAG:   boa.storage @saved.block.bf16[3, 4] : tensor<2048xbf16> on device role saved
// STEP-DAG:   boa.storage @saved.block[3, 4] : tensor<2048xf32> on device role saved
// STEP-LABEL: boa.step @step
// STEP:         %{{.*}}, %[[N:.*]], %[[G:.*]] = boa.call @block_forward_saving
// STEP:         boa.write %[[N]], @saved.block.bf16[%{{.*}}, %{{.*}}]
// STEP:         boa.write %[[G]], @saved.block[%{{.*}}, %{{.*}}]
// STEP:         %[[N:.*]] = boa.read @saved.block.bf16[%{{.*}}, %{{.*}}]
// STEP:         %[[G:.*]] = boa.read @saved.block[%{{.*}}, %{{.*}}]
// STEP:         boa.call @block_backward(%{{.*}}, %[[N]], %[[G]])

// STORAGE-DAG:   boa.storage @saved.block.bf16[3, 4] : tensor<2048xbf16> on ssd role saved
// STORAGE-DAG:   boa.storage @saved.block[3, 4] : tensor<2048xf32> on ssd role saved
// STORAGE-LABEL: boa.step @step
// STORAGE:         boa.launch @block_forward_saving
// STORAGE-DAG:     boa.offload %{{.*}}, @saved.block.bf16[%{{.*}}, %{{.*}}] : <tensor<2048xbf16>, device>
// STORAGE-DAG:     boa.offload %{{.*}}, @saved.block[%{{.*}}, %{{.*}}] : <tensor<2048xf32>, device>
// STORAGE:         %[[N:.*]] = boa.prefetch @saved.block.bf16[%{{.*}}, %{{.*}}] : <tensor<2048xbf16>, device>
// STORAGE:         %[[G:.*]] = boa.prefetch @saved.block[%{{.*}}, %{{.*}}] : <tensor<2048xf32>, device>
// STORAGE:         boa.launch @block_backward reads({{.*}}, %[[N]], %[[G]] :
