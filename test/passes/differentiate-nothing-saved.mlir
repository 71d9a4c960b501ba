// RUN: boa-opt %s --boa-differentiate=recompute=false --boa-build-step --boa-verify-step \
// RUN:   | FileCheck %s

// A layer whose gradient needs none of its values has nothing to save: there is no
// function that saves, and no storage for what it would.

// CHECK-NOT:   @block_forward_saving
// CHECK:       func.func @block_backward
// CHECK-NOT:   boa.storage @saved
// CHECK-LABEL: boa.step @step
// CHECK:         boa.call @block_forward(

module {
  boa.group @a repeat 1 {
    boa.param @w : tensor<16x8xf32> = "ones"
  }
  boa.group @block repeat 2 {
    boa.param @w : tensor<8xf32> = "ones"
    boa.param @v : tensor<8xf32> = "ones"
  }
  boa.input @tokens from data : tensor<2x4xi32>
  boa.input @targets from data : tensor<2x4xi32>
  boa.stage @a_forward(@tokens)
  boa.stage @block_forward(@a_forward) repeat 2
  boa.stage @b_forward(@block_forward, @targets)
  func.func @a_forward(%x: tensor<2x4xi32>, %w: tensor<16x8xf32> {boa.param = @a::@w}) -> tensor<2x4x8xf32> {
    %0 = boa.embedding %w, %x : (tensor<16x8xf32>, tensor<2x4xi32>) -> tensor<2x4x8xf32>
    return %0 : tensor<2x4x8xf32>
  }
  func.func @block_forward(%x: tensor<2x4x8xf32>, %w: tensor<8xf32> {boa.param = @block::@w}, %v: tensor<8xf32> {boa.param = @block::@v}) -> tensor<2x4x8xf32> {
    return %x : tensor<2x4x8xf32>
  }
  func.func @b_forward(%x: tensor<2x4x8xf32>, %t: tensor<2x4xi32>) -> tensor<f32> {
    %0 = boa.cross_entropy %x, %t : (tensor<2x4x8xf32>, tensor<2x4xi32>) -> tensor<f32>
    return %0 : tensor<f32>
  }
}
