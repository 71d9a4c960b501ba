// RUN: boa-opt %s --boa-differentiate --boa-build-step --boa-verify-step | FileCheck %s

// Each input of a model has its own shape and type. A trainer fills in an entry for each micro-batch;
// of one from the seed also for each layer that takes any of these.

// A backward function loses the activations that it does not use, and nothing reads them: the gradient
// of a sum needs neither operand, that of a product the other one.

// CHECK:      func.func @b_backward(%noise: tensor<8xf32>, %dy: tensor<1x4x8xf32>) -> tensor<1x4x8xf32>
// CHECK:      func.func @c_backward(%dy: tensor<1x4x8xf32>) -> tensor<1x4x8xf32>

// CHECK:      boa.storage @input.tokens[2] : tensor<1x4xi32> on device role input
// CHECK-NEXT: boa.storage @input.targets[2] : tensor<1x4xi32> on device role input
// CHECK-NEXT: boa.storage @input.pixels[2] : tensor<1x4x3xf32> on device role input
// CHECK-NEXT: boa.storage @input.noise[5, 2] : tensor<8xf32> on device role input

// CHECK:      boa.step @step
// CHECK:        boa.loop micro_batch %[[M:.*]] = 0 to 2
// CHECK:          %pixels = boa.read @input.pixels[%[[M]]] : tensor<1x4x3xf32>
// CHECK:          boa.call @a_forward(%tokens, %pixels,
// CHECK:          boa.loop layer %[[L:.*]] = 0 to 3
// CHECK:            %noise = boa.read @input.noise[%[[L]], %[[M]]] : tensor<8xf32>
// CHECK:            boa.call @b_forward(%{{.*}}, %noise)
// CHECK:          boa.loop layer %[[L:.*]] = 0 to 2
// CHECK:            boa.read @checkpoints
// CHECK-NEXT:       %[[AT:.*]] = boa.shift %[[L]], 3
// CHECK:            %noise{{.*}} = boa.read @input.noise[%[[AT]], %[[M]]] : tensor<8xf32>
// CHECK:            boa.call @c_forward(%{{.*}}, %noise{{.*}})
// CHECK:          boa.loop layer %{{.*}} = 0 to 2 reverse
// CHECK-NEXT:       boa.shift
// CHECK-NEXT:       boa.read @boundary_gradients
// CHECK-NEXT:       boa.call @c_backward(%dy)
// CHECK:          boa.loop layer %[[L:.*]] = 0 to 3 reverse
// CHECK-NEXT:       %noise{{.*}} = boa.read @input.noise[%[[L]], %[[M]]]
// CHECK-NEXT:       boa.shift
// CHECK-NEXT:       boa.read @boundary_gradients
// CHECK-NEXT:       boa.call @b_backward(%noise{{.*}}, %dy)

module {
  boa.config @train {batch = 2 : i64}
  boa.config @plan {micro_batch = 1 : i64}
  boa.group @a repeat 1 {
    boa.param @w : tensor<16x8xf32> = "ones"
    boa.param @v : tensor<3x8xf32> = "ones"
  }
  boa.input @tokens from data : tensor<1x4xi32>
  boa.input @targets from data : tensor<1x4xi32>
  boa.input @pixels from data : tensor<1x4x3xf32>
  boa.input @noise from seed : tensor<8xf32>
  boa.stage @a_forward(@tokens, @pixels)
  boa.stage @b_forward(@a_forward, @noise) repeat 3
  boa.stage @c_forward(@b_forward, @noise) repeat 2
  boa.stage @d_forward(@c_forward, @targets)
  func.func @a_forward(%t: tensor<1x4xi32>, %p: tensor<1x4x3xf32>, %w: tensor<16x8xf32> {boa.param = @a::@w}, %v: tensor<3x8xf32> {boa.param = @a::@v}) -> tensor<1x4x8xf32> {
    %0 = boa.embedding %w, %t : (tensor<16x8xf32>, tensor<1x4xi32>) -> tensor<1x4x8xf32>
    %1 = boa.linear %p, %v : (tensor<1x4x3xf32>, tensor<3x8xf32>) -> tensor<1x4x8xf32>
    %2 = boa.add %0, %1 : tensor<1x4x8xf32>, tensor<1x4x8xf32>
    return %2 : tensor<1x4x8xf32>
  }
  func.func @b_forward(%x: tensor<1x4x8xf32>, %n: tensor<8xf32>) -> tensor<1x4x8xf32> {
    %0 = boa.mul %x, %n : tensor<1x4x8xf32>, tensor<8xf32>
    return %0 : tensor<1x4x8xf32>
  }
  func.func @c_forward(%x: tensor<1x4x8xf32>, %n: tensor<8xf32>) -> tensor<1x4x8xf32> {
    %0 = boa.add %x, %n : tensor<1x4x8xf32>, tensor<8xf32>
    return %0 : tensor<1x4x8xf32>
  }
  func.func @d_forward(%x: tensor<1x4x8xf32>, %t: tensor<1x4xi32>) -> tensor<f32> {
    %0 = boa.cross_entropy %x, %t : (tensor<1x4x8xf32>, tensor<1x4xi32>) -> tensor<f32>
    return %0 : tensor<f32>
  }
}
