// RUN: boa-opt %s --boa-verify-model --boa-differentiate --boa-build-step --boa-verify-step \
// RUN:   | FileCheck %s
// RUN: boa-opt %s --boa-differentiate --boa-build-step --boa-vertical-schedule --boa-split-optimizer \
// RUN:     --boa-verify-step --boa-insert-offload --boa-hoist-prefetch --boa-elide-transfers \
// RUN:     --boa-retain-buffers --boa-elide-offloads --boa-verify-storage \
// RUN:   | FileCheck %s --check-prefix=VERTICAL
// RUN: boa-opt %s --boa-build-step=predict=true | FileCheck %s --check-prefix=PREDICT
// RUN: sed 's/ frozen {/ {/; s/@frozen[.]/@params.f_/g' %s | boa-opt --boa-differentiate \
// RUN:   | FileCheck %s --check-prefix=TRAINED

// Nothing that is trained is behind the embedding and the first layers: they have no backward
// function. The embedding's result, which the head takes, too, has no gradient.

// CHECK-NOT:   @embed_backward
// CHECK-NOT:   @embed_sum
// CHECK-NOT:   @block_backward

// Of the mixer's layers half is trained. Each gives a gradient to the one before.

// CHECK-LABEL: func.func @mix_backward
// CHECK-SAME:    -> (tensor<2x4x8xf32>, tensor<8xf32> {boa.param = @params.mix::@scale})

// A frozen stage behind them gives its gradient, and takes no product for its own.

// CHECK-LABEL: func.func @bridge_backward
// CHECK-SAME:    -> tensor<2x4x8xf32> {
// CHECK-NEXT:    %[[DX:.*]] = boa.linear %{{.*}}, %{{.*}} transpose
// CHECK-NEXT:    return %[[DX]]
// CHECK-LABEL: func.func @head_backward
// CHECK-SAME:    -> (tensor<f32>, tensor<2x4x8xf32>, tensor<8x16xf32> {boa.param = @params.head::@w}) {

// TRAINED-LABEL: func.func @embed_sum
// TRAINED-LABEL: func.func @embed_backward
// TRAINED-LABEL: func.func @block_backward
// TRAINED-LABEL: func.func @mix_backward
// TRAINED-SAME:    -> (tensor<2x4x8xf32>, tensor<8xf32> {boa.param = @params.mix::@scale}, tensor<8x8xf32> {boa.param = @params.f_mix::@w})

// Six results have three gradients: of the mixers and the bridge. The first mixer gives one, too.

// CHECK-DAG: boa.storage @checkpoints[6, 2]
// CHECK-DAG: boa.storage @boundary_gradients[4, 2]
// CHECK-DAG: boa.storage @weights.frozen.mix[2]
// CHECK-DAG: boa.storage @momentum.mix[2]
// CHECK-NOT: boa.storage @{{(gradients|low|momentum)}}.frozen
// CHECK-NOT: boa.storage @boundary_gradients.

// CHECK-LABEL: boa.step @step
// CHECK:         boa.call @head_backward
// CHECK:         boa.write %{{.*}}, @boundary_gradients[%[[THREE:.*]], %[[M:.*]]]
// CHECK:         boa.call @bridge_backward
// CHECK:         boa.loop layer %[[L:.*]] = 0 to 2 reverse {
// CHECK:           %[[FROM:.*]] = boa.shift %[[L]], 1
// CHECK-NEXT:      %[[DY:.*]] = boa.read @boundary_gradients[%[[FROM]], %[[M]]]
// CHECK:           boa.call @mix_backward
// CHECK:           boa.write %{{.*}}, @boundary_gradients[%[[L]], %[[M]]]
// CHECK:           boa.accumulate %{{.*}}, @gradients.mix[%[[L]]]
// CHECK-NOT:       _backward
// CHECK-COUNT-2: boa.optimizer_update @params.
// CHECK-NOT:     boa.optimizer_update

// VERTICAL-LABEL: boa.step @step
// VERTICAL:         boa.launch @mix_backward
// VERTICAL-NOT:     _backward
// VERTICAL-NOT:     offload {{.*}} @weights.frozen

// PREDICT-DAG: boa.storage @weights.frozen.mix[2]
// PREDICT:     boa.call @mix_forward

module {
  boa.config @machine {device_memory = 0 : i64, host_memory = 0 : i64}
  boa.config @model {name = "frozen"}
  boa.config @train {batch = 4 : i64, weights = "bf16", optimizer = {kind = "sgd", momentum = 0.9}}
  boa.config @plan {
    micro_batch = 2 : i64,
    place = {weights = "ssd", gradients = "ssd", optimizer = "ssd", checkpoints = "ssd", boundary_gradients = "ssd"}
  }
  boa.group @frozen.embed repeat 1 frozen {
    boa.param @table : tensor<16x8xf32> = "ones"
  }
  boa.group @frozen.block repeat 2 frozen {
    boa.param @w : tensor<8x8xf32> = "ones"
  }
  boa.group @params.mix repeat 2 {
    boa.param @scale : tensor<8xf32> = "ones" lr_scale 0.5 weight_decay 0.1
  }
  boa.group @frozen.mix repeat 2 frozen {
    boa.param @w : tensor<8x8xf32> = "ones" number 1
  }
  boa.group @frozen.bridge repeat 1 frozen {
    boa.param @w : tensor<8x8xf32> = "ones"
  }
  boa.group @params.head repeat 1 {
    boa.param @w : tensor<8x16xf32> = "ones"
  }
  boa.input @tokens from data : tensor<2x4xi32>
  boa.input @targets from data : tensor<2x4xi32>
  boa.stage @embed_forward(@tokens)
  boa.stage @block_forward(@embed_forward) repeat 2
  boa.stage @mix_forward(@block_forward) repeat 2
  boa.stage @bridge_forward(@mix_forward)
  boa.stage @head_forward(@bridge_forward, @targets, @embed_forward)

  func.func @embed_forward(%tokens: tensor<2x4xi32>, %table: tensor<16x8xf32> {boa.param = @frozen.embed::@table}) -> tensor<2x4x8xf32> {
    %0 = boa.embedding %table, %tokens : (tensor<16x8xf32>, tensor<2x4xi32>) -> tensor<2x4x8xf32>
    return %0 : tensor<2x4x8xf32>
  }
  func.func @block_forward(%x: tensor<2x4x8xf32>, %w: tensor<8x8xf32> {boa.param = @frozen.block::@w}) -> tensor<2x4x8xf32> {
    %0 = boa.linear %x, %w : (tensor<2x4x8xf32>, tensor<8x8xf32>) -> tensor<2x4x8xf32>
    return %0 : tensor<2x4x8xf32>
  }
  func.func @mix_forward(%x: tensor<2x4x8xf32>, %scale: tensor<8xf32> {boa.param = @params.mix::@scale}, %w: tensor<8x8xf32> {boa.param = @frozen.mix::@w}) -> tensor<2x4x8xf32> {
    %0 = boa.mul %x, %scale : tensor<2x4x8xf32>, tensor<8xf32>
    %1 = boa.linear %0, %w : (tensor<2x4x8xf32>, tensor<8x8xf32>) -> tensor<2x4x8xf32>
    return %1 : tensor<2x4x8xf32>
  }
  func.func @bridge_forward(%x: tensor<2x4x8xf32>, %w: tensor<8x8xf32> {boa.param = @frozen.bridge::@w}) -> tensor<2x4x8xf32> {
    %0 = boa.linear %x, %w : (tensor<2x4x8xf32>, tensor<8x8xf32>) -> tensor<2x4x8xf32>
    return %0 : tensor<2x4x8xf32>
  }
  func.func @head_forward(%x: tensor<2x4x8xf32>, %targets: tensor<2x4xi32>, %embed: tensor<2x4x8xf32>, %w: tensor<8x16xf32> {boa.param = @params.head::@w}) -> tensor<f32> {
    %0 = boa.add %x, %embed : tensor<2x4x8xf32>, tensor<2x4x8xf32>
    %1 = boa.linear %0, %w : (tensor<2x4x8xf32>, tensor<8x16xf32>) -> tensor<2x4x16xf32>
    %2 = boa.cross_entropy %1, %targets : (tensor<2x4x16xf32>, tensor<2x4xi32>) -> tensor<f32>
    return %2 : tensor<f32>
  }
}
