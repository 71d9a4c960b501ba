// RUN: boa-opt %s --convert-boa-to-blas | FileCheck %s
// RUN: boa-opt %s --convert-boa-to-blas --mlir-disable-threading --remarks-filter=boa-kernel 2>&1 \
// RUN:   | FileCheck %s --check-prefix=REMARK

// The bias is the product's own business.

// CHECK-LABEL: func.func @linear_with_bias
// CHECK-SAME:    (%[[X:.*]]: tensor<2x3x4xf32>, %[[W:.*]]: tensor<4x5xf32>, %[[B:.*]]: tensor<5xf32>)
// CHECK:         %[[INIT:.*]] = tensor.empty() : tensor<2x3x5xf32>
// CHECK:         kernel.gemm %[[X]], %[[W]] bias %[[B]] into %[[INIT]] :
// REMARK: Passed] convert-to-blas | {{.*}}Remark=linear_with_bias, {{.*}} accumulated=0, products=1
func.func @linear_with_bias(%x: tensor<2x3x4xf32>, %w: tensor<4x5xf32>, %b: tensor<5xf32>) -> tensor<2x3x5xf32> {
  %y = boa.linear %x, %w bias %b : (tensor<2x3x4xf32>, tensor<4x5xf32>, tensor<5xf32>) -> tensor<2x3x5xf32>
  return %y : tensor<2x3x5xf32>
}

// Without one nothing is accumulated: what the result held does not matter.

// CHECK-LABEL: func.func @linear_transposed
// CHECK:         %[[INIT:.*]] = tensor.empty
// CHECK:         kernel.gemm %{{.*}}, %{{.*}} into %[[INIT]] {transpose_b}
func.func @linear_transposed(%x: tensor<2x3x4xf32>, %w: tensor<5x4xf32>) -> tensor<2x3x5xf32> {
  %y = boa.linear %x, %w transpose : (tensor<2x3x4xf32>, tensor<5x4xf32>) -> tensor<2x3x5xf32>
  return %y : tensor<2x3x5xf32>
}

// A residual is what the product is added to.

// CHECK-LABEL: func.func @residual
// CHECK-SAME:    (%[[X:.*]]: tensor<3x4xf32>, %{{.*}}: tensor<4x4xf32>, %[[B:.*]]: tensor<4xf32>)
// CHECK:         %[[Y:.*]] = kernel.gemm %{{.*}}, %{{.*}} bias %[[B]] into %[[X]] {accumulate}
// CHECK-NOT:     boa.add
// CHECK:         return %[[Y]]
func.func @residual(%x: tensor<3x4xf32>, %w: tensor<4x4xf32>, %b: tensor<4xf32>) -> tensor<3x4xf32> {
  %0 = boa.linear %x, %w bias %b : (tensor<3x4xf32>, tensor<4x4xf32>, tensor<4xf32>) -> tensor<3x4xf32>
  %y = boa.add %x, %0 : tensor<3x4xf32>, tensor<3x4xf32>
  return %y : tensor<3x4xf32>
}

// A product that something else uses too is left whole.

// CHECK-LABEL: func.func @used_twice
// CHECK:         %[[P:.*]] = kernel.gemm
// CHECK:         boa.add %{{.*}}, %[[P]]
func.func @used_twice(%x: tensor<3x4xf32>, %w: tensor<4x4xf32>) -> (tensor<3x4xf32>, tensor<3x4xf32>) {
  %0 = boa.linear %x, %w : (tensor<3x4xf32>, tensor<4x4xf32>) -> tensor<3x4xf32>
  %y = boa.add %x, %0 : tensor<3x4xf32>, tensor<3x4xf32>
  return %0, %y : tensor<3x4xf32>, tensor<3x4xf32>
}

// The gradient of a weight that is used twice (a tied head): both products go to
// the accumulator, one after the other, in whatever order the sums were written.

// CHECK-LABEL: func.func @tied_gradient
// CHECK-SAME:    %[[G:[a-z0-9]*]]: tensor<5x4xf32>)
// CHECK:         %[[ONE:.*]] = kernel.gemm %{{.*}}, %{{.*}} into %[[G]] {accumulate, transpose_a}
// CHECK:         %[[TWO:.*]] = kernel.scatter_rows %{{.*}}, %{{.*}} into %[[ONE]]
// CHECK-NOT:     boa.add
// CHECK:         return %[[TWO]]
func.func @tied_gradient(%x: tensor<3x4xf32>, %dy: tensor<3x5xf32>, %tokens: tensor<3xi32>, %dx: tensor<3x4xf32>, %g: tensor<5x4xf32>) -> tensor<5x4xf32> {
  %0 = boa.linear_weight_grad %x, %dy transpose : (tensor<3x4xf32>, tensor<3x5xf32>) -> tensor<5x4xf32>
  %1 = boa.embedding_grad %tokens, %dx : (tensor<3xi32>, tensor<3x4xf32>) -> tensor<5x4xf32>
  %2 = boa.add %0, %1 : tensor<5x4xf32>, tensor<5x4xf32>
  %3 = boa.add %g, %2 : tensor<5x4xf32>, tensor<5x4xf32>
  return %3 : tensor<5x4xf32>
}

// Of a block of a table, rows of other tokens are left out.

// CHECK-LABEL: func.func @tied_gradient_of_a_block
// CHECK-SAME:    %[[G:[a-z0-9]*]]: tensor<5x4xf32>)
// CHECK:         %[[ONE:.*]] = kernel.gemm %{{.*}}, %{{.*}} into %[[G]] {accumulate, transpose_a}
// CHECK:         kernel.scatter_rows some %{{.*}}, %{{.*}} into %[[ONE]] : (tensor<2x3xi32>, tensor<2x3x4xf32>, tensor<5x4xf32>)
// CHECK-NOT:     boa.add
func.func @tied_gradient_of_a_block(%x: tensor<2x3x4xf32>, %dy: tensor<2x3x5xf32>, %tokens: tensor<2x3xi32>, %drows: tensor<2x3x4xf32>, %g: tensor<5x4xf32>) -> tensor<5x4xf32> {
  %0 = boa.linear_weight_grad %x, %dy transpose : (tensor<2x3x4xf32>, tensor<2x3x5xf32>) -> tensor<5x4xf32>
  %1 = boa.embedding_grad %tokens, %drows partial : (tensor<2x3xi32>, tensor<2x3x4xf32>) -> tensor<5x4xf32>
  %2 = boa.add %0, %1 : tensor<5x4xf32>, tensor<5x4xf32>
  %3 = boa.add %g, %2 : tensor<5x4xf32>, tensor<5x4xf32>
  return %3 : tensor<5x4xf32>
}

// A weight stored as bf16 goes into the product as it is; it is widened on the way.

// CHECK-LABEL: func.func @narrow_weight
// CHECK-SAME:    %[[W:[a-z0-9]*]]: tensor<4x5xbf16>)
// CHECK-NOT:     boa.cast
// CHECK:         kernel.gemm %{{.*}}, %[[W]] into
func.func @narrow_weight(%x: tensor<3x4xf32>, %w: tensor<4x5xbf16>) -> tensor<3x5xf32> {
  %0 = boa.cast %w : tensor<4x5xbf16> to tensor<4x5xf32>
  %y = boa.linear %x, %0 : (tensor<3x4xf32>, tensor<4x5xf32>) -> tensor<3x5xf32>
  return %y : tensor<3x5xf32>
}

// Where both operands are bf16, both go into the product so. What nothing else uses in f32
// is never made.

// CHECK-LABEL: func.func @narrow
// CHECK-SAME:    (%[[X:[a-z0-9]*]]: tensor<3x4xbf16>, %[[DY:[a-z0-9]*]]: tensor<3x5xbf16>, %[[W:[a-z0-9]*]]: tensor<4x5xbf16>, %[[B:[a-z0-9]*]]: tensor<5xbf16>, %[[G:[a-z0-9]*]]: tensor<4x5xf32>)
// CHECK-NOT:     boa.cast
// CHECK-DAG:     %[[B32:.*]] = boa.cast %[[B]] : tensor<5xbf16> to tensor<5xf32>
// CHECK-DAG:     kernel.gemm %[[X]], %[[W]] bias %[[B32]] into {{.*}} : (tensor<3x4xbf16>, tensor<4x5xbf16>, tensor<5xf32>, tensor<3x5xf32>) -> tensor<3x5xf32>
// CHECK-DAG:     kernel.gemm %[[DY]], %[[W]] into {{.*}} {transpose_b} : (tensor<3x5xbf16>, tensor<4x5xbf16>, tensor<3x4xf32>) -> tensor<3x4xf32>
// CHECK-DAG:     kernel.gemm %[[X]], %[[DY]] into %[[G]] {accumulate, transpose_a} : (tensor<3x4xbf16>, tensor<3x5xbf16>, tensor<4x5xf32>) -> tensor<4x5xf32>
// CHECK-NOT:     boa.cast
// CHECK:         return
// REMARK: Passed] convert-to-blas | {{.*}}Remark=narrow, {{.*}} accumulated=1, products=3
func.func @narrow(%x: tensor<3x4xbf16>, %dy: tensor<3x5xbf16>, %w: tensor<4x5xbf16>, %b: tensor<5xbf16>, %g: tensor<4x5xf32>) -> (tensor<3x5xf32>, tensor<3x4xf32>, tensor<4x5xf32>) {
  %x32 = boa.cast %x : tensor<3x4xbf16> to tensor<3x4xf32>
  %dy32 = boa.cast %dy : tensor<3x5xbf16> to tensor<3x5xf32>
  %w32 = boa.cast %w : tensor<4x5xbf16> to tensor<4x5xf32>
  %b32 = boa.cast %b : tensor<5xbf16> to tensor<5xf32>
  %y = boa.linear %x32, %w32 bias %b32 : (tensor<3x4xf32>, tensor<4x5xf32>, tensor<5xf32>) -> tensor<3x5xf32>
  %dx = boa.linear %dy32, %w32 transpose : (tensor<3x5xf32>, tensor<4x5xf32>) -> tensor<3x4xf32>
  %dw = boa.linear_weight_grad %x32, %dy32 : (tensor<3x4xf32>, tensor<3x5xf32>) -> tensor<4x5xf32>
  %sum = boa.add %g, %dw : tensor<4x5xf32>, tensor<4x5xf32>
  return %y, %dx, %sum : tensor<3x5xf32>, tensor<3x4xf32>, tensor<4x5xf32>
}

// A result in bf16 is rounded by the product, once: a sum of which it is a part is made
// in f32. What is used as it was rounded stays so.

// CHECK-LABEL: func.func @rounded
// CHECK-SAME:    (%[[X:[a-z0-9]*]]: tensor<3x4xbf16>, %[[W:[a-z0-9]*]]: tensor<4x5xbf16>, %[[R:[a-z0-9]*]]: tensor<3x5xbf16>)
// CHECK:         %[[EMPTY:.*]] = tensor.empty() : tensor<3x5xbf16>
// CHECK:         %[[Y:.*]] = kernel.gemm %[[X]], %[[W]] into %[[EMPTY]] : (tensor<3x4xbf16>, tensor<4x5xbf16>, tensor<3x5xbf16>) -> tensor<3x5xbf16>
// CHECK:         %[[H:.*]] = kernel.gemm %[[X]], %[[W]] into %[[R]] {accumulate} : (tensor<3x4xbf16>, tensor<4x5xbf16>, tensor<3x5xbf16>) -> tensor<3x5xbf16>
// CHECK-NOT:     boa
// CHECK:         return %[[Y]], %[[H]]
func.func @rounded(%x: tensor<3x4xbf16>, %w: tensor<4x5xbf16>, %r: tensor<3x5xbf16>) -> (tensor<3x5xbf16>, tensor<3x5xbf16>) {
  %x32 = boa.cast %x : tensor<3x4xbf16> to tensor<3x4xf32>
  %w32 = boa.cast %w : tensor<4x5xbf16> to tensor<4x5xf32>
  %r32 = boa.cast %r : tensor<3x5xbf16> to tensor<3x5xf32>
  %0 = boa.linear %x32, %w32 : (tensor<3x4xf32>, tensor<4x5xf32>) -> tensor<3x5xf32>
  %y = boa.cast %0 : tensor<3x5xf32> to tensor<3x5xbf16>
  %1 = boa.linear %x32, %w32 : (tensor<3x4xf32>, tensor<4x5xf32>) -> tensor<3x5xf32>
  %2 = boa.cast %1 : tensor<3x5xf32> to tensor<3x5xbf16>
  %3 = boa.cast %2 : tensor<3x5xbf16> to tensor<3x5xf32>
  %4 = boa.add %r32, %3 : tensor<3x5xf32>, tensor<3x5xf32>
  %h = boa.cast %4 : tensor<3x5xf32> to tensor<3x5xbf16>
  return %y, %h : tensor<3x5xbf16>, tensor<3x5xbf16>
}

// CHECK-LABEL: func.func @rounded_twice
// CHECK:         %[[Y:.*]] = kernel.gemm {{.*}} -> tensor<3x5xbf16>
// CHECK:         %[[WIDE:.*]] = boa.cast %[[Y]]
// CHECK:         boa.add %{{.*}}, %[[WIDE]]
func.func @rounded_twice(%x: tensor<3x4xbf16>, %w: tensor<4x5xbf16>, %r: tensor<3x5xf32>) -> (tensor<3x5xbf16>, tensor<3x5xf32>) {
  %x32 = boa.cast %x : tensor<3x4xbf16> to tensor<3x4xf32>
  %w32 = boa.cast %w : tensor<4x5xbf16> to tensor<4x5xf32>
  %0 = boa.linear %x32, %w32 : (tensor<3x4xf32>, tensor<4x5xf32>) -> tensor<3x5xf32>
  %y = boa.cast %0 : tensor<3x5xf32> to tensor<3x5xbf16>
  %1 = boa.cast %y : tensor<3x5xbf16> to tensor<3x5xf32>
  %h = boa.add %r, %1 : tensor<3x5xf32>, tensor<3x5xf32>
  return %y, %h : tensor<3x5xbf16>, tensor<3x5xf32>
}

// There is no product of bf16 by f32.

// CHECK-LABEL: func.func @narrow_input
// CHECK:         %[[X:.*]] = boa.cast
// CHECK:         kernel.gemm %[[X]], %{{.*}} : (tensor<3x4xf32>, tensor<4x5xf32>, tensor<3x5xf32>)
func.func @narrow_input(%x: tensor<3x4xbf16>, %w: tensor<4x5xf32>) -> tensor<3x5xf32> {
  %0 = boa.cast %x : tensor<3x4xbf16> to tensor<3x4xf32>
  %y = boa.linear %0, %w : (tensor<3x4xf32>, tensor<4x5xf32>) -> tensor<3x5xf32>
  return %y : tensor<3x5xf32>
}

// The gradient of a weight moves up to where its operands are: %h is dead before the
// next activation of its size is made.

// CHECK-LABEL: func.func @early
// CHECK:         %[[H:.*]] = boa.silu
// CHECK-NEXT:    tensor.empty
// CHECK-NEXT:    kernel.gemm %[[H]], %{{.*}} into %{{.*}} {transpose_a}
// CHECK:         kernel.gemm %{{.*}}, %{{.*}} into %{{.*}} {transpose_b}
func.func @early(%x: tensor<3x4xf32>, %dy: tensor<3x5xf32>, %w: tensor<4x5xf32>) -> (tensor<3x4xf32>, tensor<4x5xf32>) {
  %h = boa.silu %x : tensor<3x4xf32>
  %dh = boa.linear %dy, %w transpose : (tensor<3x5xf32>, tensor<4x5xf32>) -> tensor<3x4xf32>
  %dw = boa.linear_weight_grad %h, %dy : (tensor<3x4xf32>, tensor<3x5xf32>) -> tensor<4x5xf32>
  return %dh, %dw : tensor<3x4xf32>, tensor<4x5xf32>
}

// CHECK-LABEL: func.func @attention
// CHECK:         kernel.attention %{{.*}}, %{{.*}}, %{{.*}} into %{{.*}}, %{{.*}} {causal, heads = 4 : i64, kv_heads = 2 : i64}
func.func @attention(%q: tensor<2x3x8xf32>, %k: tensor<2x3x4xf32>, %v: tensor<2x3x4xf32>) -> tensor<2x3x8xf32> {
  %y, %lse = boa.attention %q, %k, %v heads 4, 2 causal : (tensor<2x3x8xf32>, tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> (tensor<2x3x8xf32>, tensor<2x4x3xf32>)
  return %y : tensor<2x3x8xf32>
}
