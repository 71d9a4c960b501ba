// RUN: boa-opt %s --boa-cache-attention=prefill=2 --boa-build-generation | FileCheck %s
// RUN: boa-opt %s --boa-cache-attention=prefill=2 --boa-build-generation --boa-verify-step \
// RUN:   --boa-insert-offload --boa-verify-storage | FileCheck %s --check-prefix=STORAGE

// Both entry points share weights and caches. The prompt needs no head.

// CHECK-DAG: boa.storage @input.tokens.prefill[1] : tensor<1x2xi32>
// CHECK-DAG: boa.storage @input.positions.generate[1] : tensor<1x1xi32>
// CHECK-DAG: boa.storage @checkpoints.prefill[4] : tensor<1x2x8xf32>
// CHECK-DAG: boa.storage @logits[1] : tensor<1x1x8xf32>
// CHECK-DAG: boa.storage @cache.b[3] : tensor<64xf32> on device role cache

// CHECK-LABEL: boa.step @prefill(
// CHECK:         boa.call @a_prefill
// CHECK:         boa.loop layer %l = 0 to 3 forward {
// CHECK:           boa.call @b_prefill
// CHECK-NOT:     @c_
// CHECK-LABEL: boa.step @generate(
// CHECK:         boa.loop layer %l = 0 to 3 forward {
// CHECK-DAG:       %[[X:.*]] = boa.read @checkpoints.generate[%l]
// CHECK-DAG:       %[[AT:.*]] = boa.read @input.positions.generate[
// CHECK:           %[[Y:.*]], %[[CACHE:.*]] = boa.call @b_generate(%[[X]], %[[AT]])
// CHECK:           boa.write %[[Y]], @checkpoints.generate[%{{next.*}}]
// CHECK:           boa.accumulate %[[CACHE]], @cache.b[%l] initial %false
// CHECK:         boa.call @c_generate
// CHECK:         boa.write %{{.*}}, @logits[

// A launch updates the cache where it lies.

// STORAGE: %[[CACHE:.*]] = boa.prefetch @cache.b[%l]
// STORAGE: boa.launch @b_prefill reads({{.*}}) updates(%[[CACHE]] : {{.*}}) writes(
module {
  boa.input @tokens from data : tensor<1x4xi32>
  boa.input @targets from data : tensor<1x4xi32>
  boa.stage @a_forward(@tokens)
  boa.stage @b_forward(@a_forward) repeat 3
  boa.stage @c_forward(@b_forward, @targets)
  func.func @a_forward(%tokens: tensor<1x4xi32>) -> tensor<1x4x8xf32> {
    %0 = arith.constant dense<0.0> : tensor<16x8xf32>
    %1 = boa.embedding %0, %tokens : (tensor<16x8xf32>, tensor<1x4xi32>) -> tensor<1x4x8xf32>
    return %1 : tensor<1x4x8xf32>
  }
  func.func @b_forward(%x: tensor<1x4x8xf32>) -> tensor<1x4x8xf32> {
    %y, %lse = boa.attention %x, %x, %x heads 2, 2 causal
        : (tensor<1x4x8xf32>, tensor<1x4x8xf32>, tensor<1x4x8xf32>) -> (tensor<1x4x8xf32>, tensor<1x2x4xf32>)
    return %y : tensor<1x4x8xf32>
  }
  func.func @c_forward(%x: tensor<1x4x8xf32>, %t: tensor<1x4xi32>) -> tensor<f32> {
    %0 = boa.cross_entropy %x, %t : (tensor<1x4x8xf32>, tensor<1x4xi32>) -> tensor<f32>
    return %0 : tensor<f32>
  }
}
