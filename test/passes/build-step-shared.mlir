// RUN: boa-opt %s --boa-differentiate --boa-build-step --boa-verify-step | FileCheck %s
// RUN: boa-opt %s --boa-differentiate --boa-build-step --boa-vertical-schedule --boa-verify-step \
// RUN:     --boa-insert-offload --boa-hoist-prefetch --boa-elide-transfers --boa-retain-buffers \
// RUN:     --boa-elide-offloads --boa-verify-storage \
// RUN:   | FileCheck %s --check-prefix=VERTICAL

// A scale that all layers share: each adds to its gradient, and only the first to
// run, the last layer, sets it.

// CHECK-LABEL: boa.step @step
// CHECK:         boa.loop micro_batch %[[M:.*]] = 0 to 4 forward {
// CHECK:           boa.loop layer %[[L:.*]] = 0 to 3 reverse {
// CHECK-DAG:         %[[FIRST_M:.*]] = boa.at_first %[[M]]
// CHECK-DAG:         %[[FIRST_L:.*]] = boa.at_first %[[L]]
// CHECK:             %[[FIRST:.*]] = arith.andi %[[FIRST_M]], %[[FIRST_L]]
// CHECK:             boa.accumulate %{{.*}}, @gradients.shared[%{{.*}}] initial %[[FIRST]]

// VERTICAL-LABEL: boa.step @step
// VERTICAL:         boa.loop layer %[[L:.*]] = 0 to 3 reverse {
// VERTICAL:           %[[FIRST_L:.*]] = boa.at_first %[[L]]
// VERTICAL:           boa.loop micro_batch %[[M:.*]] = 0 to 4 snake
// VERTICAL:             %[[FIRST_M:.*]] = boa.at_first %[[M]]
// VERTICAL:             %[[FIRST:.*]] = arith.andi %[[FIRST_M]], %[[FIRST_L]]
// VERTICAL:             boa.prefetch @gradients.shared[%{{.*}}] zero %[[FIRST]]

module {
  boa.config @machine {device_memory = 0 : i64, host_memory = 0 : i64}
  boa.config @model {name = "tied"}
  boa.config @train {batch = 8 : i64, weights = "f32", optimizer = {kind = "sgd"}}
  boa.config @plan {
    micro_batch = 2 : i64,
    place = {weights = "ssd", gradients = "ssd", optimizer = "ssd", checkpoints = "ssd", boundary_gradients = "ssd"}
  }
  boa.group @embed repeat 1 {
    boa.param @wte : tensor<64x32xf32> = "normal" 0.02
  }
  boa.group @shared repeat 1 {
    boa.param @scale : tensor<32xf32> = "ones"
  }
  boa.group @head repeat 1 {
    boa.param @ln : tensor<32xf32> = "ones"
  }
  boa.input @tokens from data : tensor<2x16xi32>
  boa.input @targets from data : tensor<2x16xi32>
  boa.stage @embed_forward(@tokens)
  boa.stage @block_forward(@embed_forward) repeat 3
  boa.stage @head_forward(@block_forward, @targets)

  func.func @embed_forward(%tokens: tensor<2x16xi32>, %wte: tensor<64x32xf32> {boa.param = @embed::@wte}) -> tensor<2x16x32xf32> {
    %0 = boa.embedding %wte, %tokens : (tensor<64x32xf32>, tensor<2x16xi32>) -> tensor<2x16x32xf32>
    return %0 : tensor<2x16x32xf32>
  }
  func.func @block_forward(%x: tensor<2x16x32xf32>, %scale: tensor<32xf32> {boa.param = @shared::@scale}) -> tensor<2x16x32xf32> {
    %0 = boa.rms_norm %x, %scale : (tensor<2x16x32xf32>, tensor<32xf32>) -> tensor<2x16x32xf32>
    return %0 : tensor<2x16x32xf32>
  }
  func.func @head_forward(%x: tensor<2x16x32xf32>, %targets: tensor<2x16xi32>, %ln: tensor<32xf32> {boa.param = @head::@ln}, %wte: tensor<64x32xf32> {boa.param = @embed::@wte}) -> tensor<f32> {
    %0 = boa.rms_norm %x, %ln : (tensor<2x16x32xf32>, tensor<32xf32>) -> tensor<2x16x32xf32>
    %1 = boa.linear %0, %wte transpose : (tensor<2x16x32xf32>, tensor<64x32xf32>) -> tensor<2x16x64xf32>
    %2 = boa.cross_entropy %1, %targets : (tensor<2x16x64xf32>, tensor<2x16xi32>) -> tensor<f32>
    return %2 : tensor<f32>
  }
}
