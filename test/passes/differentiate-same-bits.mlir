// Forward and backward compute the same bits, whatever is saved. A product that nothing else uses is
// accumulated into its addend, which may round otherwise than a product that is stored and added.

// The norm's gradient needs the sum, which is computed again, and the plan saves the product. The sum
// is saved in its place, by the product's plan: it is as large.

// RUN: boa-opt %s --boa-differentiate=recompute=false | FileCheck %s
// CHECK-LABEL: func.func @block_forward_saving
// CHECK-SAME:    -> (tensor<2x4x8xf32>, tensor<2x4x8xf32> {boa.place = "host", boa.saved = "p"}, tensor<2x4x8xf32> {boa.saved})
// CHECK:         %[[P:.*]] = boa.linear %x, %{{.*}} :
// CHECK:         %[[S:.*]] = boa.add %x, %[[P]]
// CHECK:         %[[N:.*]] = boa.rms_norm %[[S]]
// CHECK:         return %{{.*}}, %[[S]], %[[N]]
// CHECK-LABEL: func.func @block_backward
// CHECK-SAME:    %[[S:p]]: tensor<2x4x8xf32> {boa.saved = "p"}
// CHECK-NOT:     boa.add %x
// CHECK:         boa.rms_norm_grad %[[S]]

// Two products are accumulated into the addend, one behind the other. So the sum of all three is saved.

// CHECK-LABEL: func.func @nested_forward_saving
// CHECK:         %[[L:.*]] = boa.linear %x, %out :
// CHECK:         %[[T:.*]] = boa.add %{{.*}}, %[[L]]
// CHECK:         %[[S:.*]] = boa.add %x, %[[T]]
// CHECK:         return %{{.*}}, %[[S]], %{{.*}} :
// CHECK-LABEL: func.func @nested_backward
// CHECK-NOT:     boa.add %x
// CHECK:         boa.rms_norm_grad

// Forward uses the other product twice. Backward needs only one of these sums, and knows of the other
// use. In bf16 it would round once instead of twice.

// RUN: boa-opt %s --boa-differentiate=recompute=true > %t
// RUN: FileCheck %s --check-prefix=SHARED < %t
// RUN: boa-opt %t --pass-pipeline='builtin.module(func.func(convert-boa-to-blas))' | FileCheck %s --check-prefix=STORED
// SHARED-LABEL: func.func @twice_backward
// SHARED:         boa.linear %x, %{{.*}} {boa.shared}
// SHARED-NOT:     boa.linear {{.*}} {boa.shared}
// STORED-LABEL: func.func @block_backward
// STORED:         kernel.gemm %x, %{{.*}} into %x {accumulate}
// STORED-LABEL: func.func @twice_backward
// STORED:         %[[NEW:.*]] = tensor.empty
// STORED:         %[[P:.*]] = kernel.gemm %x, %{{.*}} into %[[NEW]] :
// STORED:         boa.add %x, %[[P]]

boa.config @train {batch = 2 : i64}
boa.group @embed repeat 1 {
  boa.param @wte : tensor<16x8xf32> = "ones"
}
boa.group @block repeat 2 {
  boa.param @w : tensor<8x8xf32> = "ones"
  boa.param @norm : tensor<8xf32> = "ones"
  boa.param @out : tensor<8x8xf32> = "ones"
}
boa.group @twice repeat 2 {
  boa.param @w : tensor<8x8xf32> = "ones"
  boa.param @norm : tensor<8xf32> = "ones"
}
boa.group @nested repeat 2 {
  boa.param @w : tensor<8x8xf32> = "ones"
  boa.param @norm : tensor<8xf32> = "ones"
  boa.param @out : tensor<8x8xf32> = "ones"
}
boa.input @tokens from data : tensor<2x4xi32>
boa.input @targets from data : tensor<2x4xi32>
boa.stage @embed_forward(@tokens)
boa.stage @block_forward(@embed_forward) repeat 2
boa.stage @nested_forward(@block_forward) repeat 2
boa.stage @twice_forward(@nested_forward) repeat 2
boa.stage @head_forward(@twice_forward, @targets)
func.func @embed_forward(%tokens: tensor<2x4xi32>, %wte: tensor<16x8xf32> {boa.param = @embed::@wte}) -> tensor<2x4x8xf32> {
  %0 = boa.embedding %wte, %tokens : (tensor<16x8xf32>, tensor<2x4xi32>) -> tensor<2x4x8xf32>
  return %0 : tensor<2x4x8xf32>
}
func.func @block_forward(%x: tensor<2x4x8xf32>, %w: tensor<8x8xf32> {boa.param = @block::@w}, %norm: tensor<8xf32> {boa.param = @block::@norm}, %out: tensor<8x8xf32> {boa.param = @block::@out}) -> tensor<2x4x8xf32> {
  %p = boa.linear %x, %w {boa.name = "p", boa.activation = {place = "host"}} : (tensor<2x4x8xf32>, tensor<8x8xf32>) -> tensor<2x4x8xf32>
  %s = boa.add %x, %p {boa.activation = {save = false}} : tensor<2x4x8xf32>, tensor<2x4x8xf32>
  %n = boa.rms_norm %s, %norm : (tensor<2x4x8xf32>, tensor<8xf32>) -> tensor<2x4x8xf32>
  %y = boa.linear %n, %out : (tensor<2x4x8xf32>, tensor<8x8xf32>) -> tensor<2x4x8xf32>
  return %y : tensor<2x4x8xf32>
}
func.func @nested_forward(%x: tensor<2x4x8xf32>, %w: tensor<8x8xf32> {boa.param = @nested::@w}, %norm: tensor<8xf32> {boa.param = @nested::@norm}, %out: tensor<8x8xf32> {boa.param = @nested::@out}) -> tensor<2x4x8xf32> {
  %p = boa.linear %x, %w {boa.activation = {save = false}} : (tensor<2x4x8xf32>, tensor<8x8xf32>) -> tensor<2x4x8xf32>
  %l = boa.linear %x, %out : (tensor<2x4x8xf32>, tensor<8x8xf32>) -> tensor<2x4x8xf32>
  %t = boa.add %p, %l {boa.activation = {save = false}} : tensor<2x4x8xf32>, tensor<2x4x8xf32>
  %s = boa.add %x, %t {boa.activation = {save = false}} : tensor<2x4x8xf32>, tensor<2x4x8xf32>
  %n = boa.rms_norm %s, %norm : (tensor<2x4x8xf32>, tensor<8xf32>) -> tensor<2x4x8xf32>
  %y = boa.linear %n, %out : (tensor<2x4x8xf32>, tensor<8x8xf32>) -> tensor<2x4x8xf32>
  return %y : tensor<2x4x8xf32>
}
func.func @twice_forward(%x: tensor<2x4x8xf32>, %w: tensor<8x8xf32> {boa.param = @twice::@w}, %norm: tensor<8xf32> {boa.param = @twice::@norm}) -> tensor<2x4x8xf32> {
  %p = boa.linear %x, %w : (tensor<2x4x8xf32>, tensor<8x8xf32>) -> tensor<2x4x8xf32>
  %s = boa.add %x, %p : tensor<2x4x8xf32>, tensor<2x4x8xf32>
  %n = boa.rms_norm %s, %norm : (tensor<2x4x8xf32>, tensor<8xf32>) -> tensor<2x4x8xf32>
  %y = boa.add %p, %n : tensor<2x4x8xf32>, tensor<2x4x8xf32>
  return %y : tensor<2x4x8xf32>
}
func.func @head_forward(%x: tensor<2x4x8xf32>, %targets: tensor<2x4xi32>, %wte: tensor<16x8xf32> {boa.param = @embed::@wte}) -> tensor<f32> {
  %0 = boa.linear %x, %wte transpose : (tensor<2x4x8xf32>, tensor<16x8xf32>) -> tensor<2x4x16xf32>
  %1 = boa.cross_entropy %0, %targets : (tensor<2x4x16xf32>, tensor<2x4xi32>) -> tensor<f32>
  return %1 : tensor<f32>
}
