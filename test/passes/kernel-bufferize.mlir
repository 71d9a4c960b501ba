// RUN: boa-opt %s --convert-boa-to-blas --convert-boa-to-linalg --kernel-bind-arguments --kernel-bufferize --cse --canonicalize --kernel-elide-copies --canonicalize --split-input-file | FileCheck %s
// RUN: boa-opt %s --convert-boa-to-blas --convert-boa-to-linalg --kernel-bind-arguments --kernel-bufferize --split-input-file --remarks-filter=boa-kernel 2>&1 \
// RUN:   | FileCheck %s --check-prefix=REMARK

// The gradient of a weight is accumulated where it lies: no temporary, no copy.

// CHECK-LABEL: boa.kernel @accumulator
// CHECK:         %[[P:.*]] = kernel.argument %{{.*}}[2]
// CHECK:         %[[G:.*]] = kernel.view %[[P]] + 0 : memref<4x5xf32>
// CHECK-NOT:     memref.alloc
// CHECK:         kernel.gemm %{{.*}}, %{{.*}} into %[[G]] {accumulate, transpose_a} : (memref<3x4xf32>, memref<3x5xf32>, memref<4x5xf32>) -> ()
// CHECK-NEXT:    return
// REMARK: Analysis] bufferize | {{.*}}Remark=accumulator, {{.*}} copies=0, temporaries=0
boa.kernel @accumulator(%x: tensor<3x4xf32> {boa.buffer = 0 : i32, boa.offset = 0 : i64},
                       %dy: tensor<3x5xf32> {boa.buffer = 1 : i32, boa.offset = 0 : i64},
                       %g: tensor<4x5xf32> {boa.buffer = 2 : i32, boa.offset = 0 : i64, boa.result = 0 : i32})
    -> (tensor<4x5xf32> {boa.buffer = 2 : i32, boa.offset = 0 : i64}) reads [tensor<3x4xf32>, tensor<3x5xf32>] updates [tensor<4x5xf32>] {
  %0 = boa.linear_weight_grad %x, %dy : (tensor<3x4xf32>, tensor<3x5xf32>) -> tensor<4x5xf32>
  %1 = boa.add %g, %0 : tensor<4x5xf32>, tensor<4x5xf32>
  boa.return %1 : tensor<4x5xf32>
}

// -----

// What one op computes and a concatenation joins is computed in place, in strided
// slices; what a split gives is read where it lies.

// CHECK-LABEL: boa.kernel @slices
// CHECK:         %[[IN:.*]] = kernel.view %{{.*}} + 0 : memref<1x8x12xf32>
// CHECK:         %[[OUT:.*]] = kernel.view %{{.*}} + 0 : memref<1x8x12xf32>
// CHECK-NOT:     memref.alloc
// CHECK-DAG:     memref.subview %[[IN]][0, 0, 4] [1, 8, 4] [1, 1, 1]
// CHECK-DAG:     memref.subview %[[OUT]][0, 0, 4] [1, 8, 4] [1, 1, 1]
// CHECK:         kernel.attention_grad
// CHECK-SAME:      memref<1x8x4xf32, strided<[96, 12, 1], offset: 8>>
// CHECK-NOT:     linalg.generic
// CHECK:         return
boa.kernel @slices(%qkv: tensor<1x8x12xf32> {boa.buffer = 0 : i32, boa.offset = 0 : i64},
                  %y: tensor<1x8x4xf32> {boa.buffer = 1 : i32, boa.offset = 0 : i64},
                  %lse: tensor<1x2x8xf32> {boa.buffer = 2 : i32, boa.offset = 0 : i64},
                  %dy: tensor<1x8x4xf32> {boa.buffer = 3 : i32, boa.offset = 0 : i64})
    -> (tensor<1x8x12xf32> {boa.buffer = 4 : i32, boa.offset = 0 : i64}) reads [tensor<1x8x12xf32>, tensor<1x8x4xf32>, tensor<1x2x8xf32>, tensor<1x8x4xf32>] writes [tensor<1x8x12xf32>] {
  %q, %k, %v = boa.split %qkv : (tensor<1x8x12xf32>) -> (tensor<1x8x4xf32>, tensor<1x8x4xf32>, tensor<1x8x4xf32>)
  %dq, %dk, %dv = boa.attention_grad %q, %k, %v, %y, %lse, %dy heads 2, 2 causal
      : (tensor<1x8x4xf32>, tensor<1x8x4xf32>, tensor<1x8x4xf32>, tensor<1x8x4xf32>, tensor<1x2x8xf32>, tensor<1x8x4xf32>)
      -> (tensor<1x8x4xf32>, tensor<1x8x4xf32>, tensor<1x8x4xf32>)
  %dqkv = boa.concat %dq, %dk, %dv : (tensor<1x8x4xf32>, tensor<1x8x4xf32>, tensor<1x8x4xf32>) -> tensor<1x8x12xf32>
  boa.return %dqkv : tensor<1x8x12xf32>
}

// -----

// What is accumulated is read by the sum alone, and the sum is where it lies. So nothing that comes
// before may be there.

// CHECK-LABEL: boa.kernel @sum_of_products
// CHECK:         %[[P:.*]] = kernel.argument %{{.*}}[3]
// CHECK:         %[[SUM:.*]] = kernel.view %[[P]] + 0 : memref<3x4xf32>
// CHECK:         %[[HALF:.*]] = memref.alloc
// CHECK:         linalg.generic {{.*}} outs(%[[HALF]] :
// CHECK:           arith.mulf
// CHECK:         kernel.gemm %{{.*}}, %{{.*}} into %[[HALF]] {accumulate}
// CHECK:         linalg.generic {{.*}} ins(%[[SUM]], %[[HALF]] : {{.*}} outs(%[[SUM]] :
// CHECK:           arith.addf
// CHECK:         kernel.gemm %{{.*}}, %{{.*}} into %[[SUM]] {accumulate}
// CHECK-NOT:     linalg.generic
// CHECK:         return
boa.kernel @sum_of_products(%dy: tensor<3x4xf32> {boa.buffer = 0 : i32, boa.offset = 0 : i64},
                           %a: tensor<4x4xf32> {boa.buffer = 1 : i32, boa.offset = 0 : i64},
                           %b: tensor<4x4xf32> {boa.buffer = 2 : i32, boa.offset = 0 : i64},
                           %sum: tensor<3x4xf32> {boa.buffer = 3 : i32, boa.offset = 0 : i64, boa.result = 0 : i32})
    -> (tensor<3x4xf32> {boa.buffer = 3 : i32, boa.offset = 0 : i64}) reads [tensor<3x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>] updates [tensor<3x4xf32>] {
  %half = boa.scale %dy by 5.0e-01 : tensor<3x4xf32>
  %0 = boa.linear %dy, %a : (tensor<3x4xf32>, tensor<4x4xf32>) -> tensor<3x4xf32>
  %1 = boa.add %half, %0 : tensor<3x4xf32>, tensor<3x4xf32>
  %2 = boa.linear %dy, %b : (tensor<3x4xf32>, tensor<4x4xf32>) -> tensor<3x4xf32>
  %3 = boa.add %1, %2 : tensor<3x4xf32>, tensor<3x4xf32>
  %4 = boa.add %sum, %3 : tensor<3x4xf32>, tensor<3x4xf32>
  boa.return %4 : tensor<3x4xf32>
}

// -----

// The first result is the second one and a product. It is not computed where the second one lies
// until that is where it belongs.

// CHECK-LABEL: boa.kernel @result_over_result
// CHECK-DAG:     %[[P2:.*]] = kernel.argument %{{.*}}[2]
// CHECK-DAG:     %[[P3:.*]] = kernel.argument %{{.*}}[3]
// CHECK-DAG:     %[[Y:.*]] = kernel.view %[[P2]] + 0 : memref<3x4xf32>
// CHECK-DAG:     %[[H:.*]] = kernel.view %[[P3]] + 0 : memref<3x4xf32>
// CHECK:         linalg.generic {{.*}} outs(%[[H]] :
// CHECK:           arith.addf
// CHECK:         linalg.generic {{.*}} ins(%[[H]] : {{.*}} outs(%[[Y]] :
// CHECK:         kernel.gemm %{{.*}}, %{{.*}} into %[[Y]] {accumulate}
// CHECK-NOT:     linalg.generic
// CHECK:         return
boa.kernel @result_over_result(%x: tensor<3x4xf32> {boa.buffer = 0 : i32, boa.offset = 0 : i64},
                              %w: tensor<4x4xf32> {boa.buffer = 1 : i32, boa.offset = 0 : i64})
    -> (tensor<3x4xf32> {boa.buffer = 2 : i32, boa.offset = 0 : i64},
        tensor<3x4xf32> {boa.buffer = 3 : i32, boa.offset = 0 : i64}) reads [tensor<3x4xf32>, tensor<4x4xf32>] writes [tensor<3x4xf32>, tensor<3x4xf32>] {
  %h = boa.add %x, %x : tensor<3x4xf32>, tensor<3x4xf32>
  %0 = boa.linear %x, %w : (tensor<3x4xf32>, tensor<4x4xf32>) -> tensor<3x4xf32>
  %y = boa.add %h, %0 : tensor<3x4xf32>, tensor<3x4xf32>
  boa.return %y, %h : tensor<3x4xf32>, tensor<3x4xf32>
}

// -----

// Two sums have one product in common. Both are results, and neither may lie where the other does.

// CHECK-LABEL: boa.kernel @sums_of_one_product
// CHECK:         %[[P:.*]] = kernel.argument %{{.*}}[2]
// CHECK:         %[[A:.*]] = kernel.view %[[P]] + 0 : memref<3x4xf32>
// CHECK:         %[[B:.*]] = kernel.view %[[P]] + 64 : memref<3x4xf32>
// CHECK:         kernel.gemm {{.*}} into %[[B]] :
// CHECK:         linalg.generic {{.*}} ins(%[[B]] : {{.*}} outs(%[[A]] :
// CHECK:         kernel.gemm {{.*}} into %[[A]] {accumulate}
// CHECK:         kernel.gemm {{.*}} into %[[B]] {accumulate}
// CHECK-NOT:     linalg.generic
// CHECK:         return
boa.kernel @sums_of_one_product(
    %x: tensor<3x4xf32> {boa.buffer = 0 : i32, boa.offset = 0 : i64},
    %w: tensor<4x4xf32> {boa.buffer = 1 : i32, boa.offset = 0 : i64},
    %a: tensor<4x4xf32> {boa.buffer = 1 : i32, boa.offset = 64 : i64},
    %b: tensor<4x4xf32> {boa.buffer = 1 : i32, boa.offset = 128 : i64})
    -> (tensor<3x4xf32> {boa.buffer = 2 : i32, boa.offset = 0 : i64},
        tensor<3x4xf32> {boa.buffer = 2 : i32, boa.offset = 64 : i64}) reads [tensor<3x4xf32>, tensor<48xf32>] writes [tensor<28xf32>] {
  %0 = boa.linear %x, %w : (tensor<3x4xf32>, tensor<4x4xf32>) -> tensor<3x4xf32>
  %1 = boa.linear %x, %a : (tensor<3x4xf32>, tensor<4x4xf32>) -> tensor<3x4xf32>
  %2 = boa.add %0, %1 : tensor<3x4xf32>, tensor<3x4xf32>
  %3 = boa.linear %x, %b : (tensor<3x4xf32>, tensor<4x4xf32>) -> tensor<3x4xf32>
  %4 = boa.add %0, %3 : tensor<3x4xf32>, tensor<3x4xf32>
  boa.return %2, %4 : tensor<3x4xf32>, tensor<3x4xf32>
}

// -----

// An elementwise op writes over an operand that nothing needs afterwards.

// CHECK-LABEL: boa.kernel @over_operand
// CHECK-COUNT-1: memref.alloc
// CHECK:         linalg.generic {{.*}} ins(%[[A:.*]] : memref<8x8xf32>) outs(%[[A]] : memref<8x8xf32>)
// CHECK-NOT:     memref.alloc
// CHECK:         return
boa.kernel @over_operand(%x: tensor<8x8xf32> {boa.buffer = 0 : i32, boa.offset = 0 : i64})
    -> (tensor<8x8xf32> {boa.buffer = 4 : i32, boa.offset = 0 : i64}) reads [tensor<8x8xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>] writes [tensor<8x8xf32>] {
  %0 = boa.linear %x, %x : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %1 = boa.gelu %0 : tensor<8x8xf32>
  %2 = boa.linear %1, %x : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  boa.return %2 : tensor<8x8xf32>
}

// -----

// What an accumulator becomes replaces it only when nothing needs the sum any more.

// CHECK-LABEL: boa.kernel @sum_is_read_again
// CHECK:         linalg.generic {{.*}} outs(%[[G:.*]] : memref<4x4xf32>)
// CHECK:           arith.addf
// CHECK:         %[[SILU:.*]] = memref.alloc
// CHECK:         linalg.generic {{.*}} ins(%[[G]] : memref<4x4xf32>) outs(%[[SILU]] : memref<4x4xf32>)
// CHECK:         kernel.gemm %[[G]],
// CHECK:         ins(%[[SILU]] : memref<4x4xf32>) outs(%[[G]] : memref<4x4xf32>)
boa.kernel @sum_is_read_again(
    %s: tensor<4x4xf32> {boa.buffer = 0 : i32, boa.offset = 0 : i64},
    %w: tensor<4x4xf32> {boa.buffer = 1 : i32, boa.offset = 0 : i64},
    %g: tensor<4x4xf32> {boa.buffer = 2 : i32, boa.offset = 0 : i64, boa.result = 0 : i32})
    -> (tensor<4x4xf32> {boa.buffer = 2 : i32, boa.offset = 0 : i64},
        tensor<4x4xf32> {boa.buffer = 3 : i32, boa.offset = 0 : i64}) reads [tensor<4x4xf32>, tensor<4x4xf32>] updates [tensor<4x4xf32>] writes [tensor<4x4xf32>] {
  %0 = boa.add %g, %s : tensor<4x4xf32>, tensor<4x4xf32>
  %1 = boa.silu %0 : tensor<4x4xf32>
  %2 = boa.linear %0, %w : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  boa.return %1, %2 : tensor<4x4xf32>, tensor<4x4xf32>
}

// -----

// Tables are read where the runtime has them, behind the buffers; the module says how much they take:
// here of cosines and sines, two angles at eight times each, 256 bytes at least. The same again, and
// turning back, take nothing more.

// CHECK:         module attributes {boa.constants = 512 : i64}
// CHECK-NOT:     memref.global
// CHECK:         %[[P:.*]] = kernel.argument %{{.*}}[5]
// CHECK:         %[[COSINES:.*]] = kernel.view %[[P]] + 0 : memref<8x2xf32>
// CHECK:         %[[P:.*]] = kernel.argument %{{.*}}[6]
// CHECK:         %[[SINES:.*]] = kernel.view %[[P]] + 0 : memref<8x2xf32>
// CHECK-NOT:     kernel.argument %{{.*}}[7]
// CHECK-COUNT-6: linalg.generic {{.*}} %[[COSINES]], %[[SINES]] :
boa.kernel @tables(%x: tensor<1x8x8xf32> {boa.buffer = 0 : i32, boa.offset = 0 : i64})
    -> (tensor<1x8x8xf32> {boa.buffer = 4 : i32, boa.offset = 0 : i64}) reads [tensor<1x8x8xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>] writes [tensor<1x8x8xf32>] {
  %0 = boa.rotary %x heads 2 : tensor<1x8x8xf32>
  %1 = boa.rotary %0 heads 2 : tensor<1x8x8xf32>
  %2 = boa.rotary %1 heads 2 inverse : tensor<1x8x8xf32>
  boa.return %2 : tensor<1x8x8xf32>
}
