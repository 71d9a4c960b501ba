// RUN: boa-opt %s --boa-verify-model --boa-differentiate --boa-build-step --boa-verify-step \
// RUN:   | FileCheck %s
// RUN: boa-opt %s --boa-differentiate --boa-build-step --boa-vertical-schedule --boa-verify-step \
// RUN:     --boa-insert-offload --boa-hoist-prefetch --boa-elide-transfers --boa-retain-buffers \
// RUN:     --boa-elide-offloads --boa-verify-storage \
// RUN:   | FileCheck %s --check-prefix=VERTICAL
// RUN: boa-opt %s --boa-build-step=predict=true | FileCheck %s --check-prefix=PREDICT

// Two kinds of layers of another depth and width. The mirror's layers take the parameters of the
// encoder's one by one, besides their own scale. The decoder's layers and the head take the
// encoder's result, too: its gradient is summed over them, in f32.

// CHECK:       boa.stage @decoder_forward(@bridge_forward, @encoder_forward) repeat 3
// CHECK-LABEL: func.func @encoder_sum
// CHECK-SAME:    (%[[DY:.*]]: tensor<2x4x8xbf16>, %[[SUM:.*]]: tensor<2x4x8xf32>) -> tensor<2x4x8xbf16>
// CHECK-NEXT:    %[[WIDE:.*]] = boa.cast %[[DY]]
// CHECK-NEXT:    %[[ALL:.*]] = boa.add %[[WIDE]], %[[SUM]] : tensor<2x4x8xf32>
// CHECK-NEXT:    boa.cast %[[ALL]] : tensor<2x4x8xf32> to tensor<2x4x8xbf16>
// CHECK-LABEL: func.func @decoder_backward
// CHECK-SAME:    -> (tensor<2x4x4xbf16>, tensor<2x4x8xf32> {boa.sum}, tensor<8x4xf32> {boa.param = @decoder::@w})

// Instances of one type that follow one another are entries of one storage. A result that others
// take, too, has two entries among the gradients.

// CHECK-DAG: boa.storage @checkpoints.embed[5, 2] : tensor<2x4x8xbf16>
// CHECK-DAG: boa.storage @boundary_gradients.embed[6, 2] : tensor<2x4x8xbf16>
// CHECK-DAG: boa.storage @checkpoints.bridge[4, 2] : tensor<2x4x4xbf16>
// CHECK-DAG: boa.storage @boundary_gradients.bridge[4, 2] : tensor<2x4x4xbf16>
// CHECK-DAG: boa.storage @boundary_gradients.encoder.sum[2] : tensor<2x4x8xf32> {{.*}} role boundary_gradients

// CHECK-LABEL: boa.step @step
// CHECK:         boa.loop micro_batch %[[M:.*]] = 0 to 2 forward {
// CHECK:           boa.call @embed_forward
// CHECK:           boa.loop layer %[[L:.*]] = 0 to 2 forward {
// CHECK:             boa.call @encoder_forward
// The mirror's layers follow the encoder's two.
// CHECK:           boa.loop layer %[[L:.*]] = 0 to 2 forward {
// CHECK-NEXT:        %[[AT:.*]] = boa.shift %[[L]], 2
// CHECK-NEXT:        %[[X:.*]] = boa.read @checkpoints.embed[%[[AT]], %[[M]]]
// CHECK-NEXT:        %[[OWN:.*]] = boa.read @weights.mirror[%[[L]]]
// CHECK-NEXT:        %[[SHARED:.*]] = boa.read @weights.encoder[%[[L]]]
// CHECK-NEXT:        boa.call @mirror_forward(%[[X]], %[[OWN]], %[[SHARED]])
// The bridge begins the entries of another type.
// CHECK:           %[[X:.*]] = boa.read @checkpoints.embed[%{{.*}}, %[[M]]]
// CHECK:           %[[Y:.*]] = boa.call @bridge_forward(%[[X]],
// CHECK:           boa.write %[[Y]], @checkpoints.bridge[%{{.*}}, %[[M]]]
// All layers of the decoder take the encoder's last result.
// CHECK:           boa.loop layer %[[L:.*]] = 0 to 3 forward {
// CHECK-NEXT:        %[[X:.*]] = boa.read @checkpoints.bridge[%[[L]], %[[M]]]
// CHECK-NEXT:        %[[LAST:.*]] = arith.constant 2
// CHECK-NEXT:        %[[SIDE:.*]] = boa.read @checkpoints.embed[%[[LAST]], %[[M]]]
// CHECK:             boa.call @decoder_forward(%[[X]], %[[SIDE]],

// The head contributes first, in each micro-batch. Then no layer does.
// CHECK:           %{{.*}}, %{{.*}}, %[[PART:.*]], %{{.*}} = boa.call @head_backward
// CHECK:           %[[TRUE:.*]] = arith.constant true
// CHECK-NEXT:      boa.accumulate %[[PART]], @boundary_gradients.encoder.sum[%[[M]]] initial %[[TRUE]]
// CHECK:           boa.loop layer %[[L:.*]] = 0 to 3 reverse {
// CHECK:             %{{.*}}, %[[PART:.*]], %{{.*}} = boa.call @decoder_backward
// CHECK:             %[[FALSE:.*]] = arith.constant false
// CHECK-NEXT:        boa.accumulate %[[PART]], @boundary_gradients.encoder.sum[%[[M]]] initial %[[FALSE]]
// CHECK:           boa.call @bridge_backward
// The mirror runs backward before the encoder, so it begins the sum of their gradients, at each
// layer's own entry.
// CHECK:           boa.loop layer %[[L:.*]] = 0 to 2 reverse {
// CHECK:             %{{.*}}, %{{.*}}, %[[G:.*]] = boa.call @mirror_backward
// CHECK:             %[[TO:.*]] = boa.shift %[[L]], 3
// CHECK-NEXT:        boa.write %{{.*}}, @boundary_gradients.embed[%[[TO]], %[[M]]]
// CHECK:             boa.accumulate %{{.*}}, @gradients.mirror[%[[L]]]
// CHECK-NEXT:        %[[FIRST:.*]] = boa.at_first %[[M]]
// CHECK-NEXT:        boa.accumulate %[[G]], @gradients.encoder[%[[L]]] initial %[[FIRST]]
// The mirror's first layer gave the encoder's result a gradient. That and the sum are added up.
// CHECK:           %[[THREE:.*]] = arith.constant 3
// CHECK-NEXT:      %[[GIVEN:.*]] = boa.read @boundary_gradients.embed[%[[THREE]], %[[M]]]
// CHECK-NEXT:      %[[SUM:.*]] = boa.read @boundary_gradients.encoder.sum[%[[M]]]
// CHECK-NEXT:      %[[DY:.*]] = boa.call @encoder_sum(%[[GIVEN]], %[[SUM]])
// CHECK-NEXT:      %[[TWO:.*]] = arith.constant 2
// CHECK-NEXT:      boa.write %[[DY]], @boundary_gradients.embed[%[[TWO]], %[[M]]]
// CHECK:           boa.loop layer %[[L:.*]] = 0 to 2 reverse {
// CHECK:             boa.call @encoder_backward
// CHECK:             boa.accumulate %{{.*}}, @gradients.encoder[%[[L]]] initial %{{.*}}
// CHECK-NOT:       _sum(

// The same in vertical order: each layer adds to the sums of all micro-batches.

// VERTICAL-LABEL: boa.step @step
// VERTICAL:         boa.loop layer %{{.*}} = 0 to 3 reverse {
// VERTICAL:           boa.loop micro_batch %[[M:.*]] = 0 to 2 snake
// VERTICAL:             %[[SUM:.*]] = boa.prefetch @boundary_gradients.encoder.sum[%[[M]]]
// VERTICAL:             boa.launch @decoder_backward
// VERTICAL-SAME:          updates(%[[SUM]],
// VERTICAL:         boa.launch @encoder_sum

// Text is predicted from the same inputs, without the targets.

// PREDICT-LABEL: func.func @head_logits
// PREDICT-SAME:    (%{{.*}}: tensor<2x4x4xbf16>, %{{.*}}: tensor<2x4x8xbf16>, %{{.*}}: tensor<8x4xf32>
// PREDICT-NOT:   _sum
// PREDICT:       boa.call @head_logits(%{{.*}}, %{{.*}}, %{{.*}})

module {
  boa.config @machine {device_memory = 0 : i64, host_memory = 0 : i64}
  boa.config @model {name = "stages"}
  boa.config @train {batch = 4 : i64, optimizer = {kind = "sgd"}}
  boa.config @plan {
    micro_batch = 2 : i64,
    place = {weights = "ssd", gradients = "ssd", optimizer = "ssd", checkpoints = "ssd", boundary_gradients = "ssd"}
  }
  boa.group @embed repeat 1 {
    boa.param @table : tensor<16x8xf32> = "ones"
  }
  boa.group @encoder repeat 2 {
    boa.param @w : tensor<8x8xf32> = "ones"
  }
  boa.group @mirror repeat 2 {
    boa.param @scale : tensor<8xf32> = "ones"
  }
  boa.group @bridge repeat 1 {
    boa.param @down : tensor<8x4xf32> = "ones"
  }
  boa.group @decoder repeat 3 {
    boa.param @w : tensor<8x4xf32> = "ones"
  }
  boa.input @tokens from data : tensor<2x4xi32>
  boa.input @targets from data : tensor<2x4xi32>
  boa.stage @embed_forward(@tokens)
  boa.stage @encoder_forward(@embed_forward) repeat 2
  boa.stage @mirror_forward(@encoder_forward) repeat 2
  boa.stage @bridge_forward(@mirror_forward)
  boa.stage @decoder_forward(@bridge_forward, @encoder_forward) repeat 3
  boa.stage @head_forward(@decoder_forward, @targets, @encoder_forward)

  func.func @embed_forward(%tokens: tensor<2x4xi32>, %table: tensor<16x8xf32> {boa.param = @embed::@table}) -> tensor<2x4x8xbf16> {
    %0 = boa.cast %table : tensor<16x8xf32> to tensor<16x8xbf16>
    %1 = boa.embedding %0, %tokens : (tensor<16x8xbf16>, tensor<2x4xi32>) -> tensor<2x4x8xbf16>
    return %1 : tensor<2x4x8xbf16>
  }
  func.func @encoder_forward(%x: tensor<2x4x8xbf16>, %w: tensor<8x8xf32> {boa.param = @encoder::@w}) -> tensor<2x4x8xbf16> {
    %0 = boa.cast %w : tensor<8x8xf32> to tensor<8x8xbf16>
    %1 = boa.linear %x, %0 : (tensor<2x4x8xbf16>, tensor<8x8xbf16>) -> tensor<2x4x8xbf16>
    return %1 : tensor<2x4x8xbf16>
  }
  func.func @mirror_forward(%x: tensor<2x4x8xbf16>, %scale: tensor<8xf32> {boa.param = @mirror::@scale}, %w: tensor<8x8xf32> {boa.param = @encoder::@w}) -> tensor<2x4x8xbf16> {
    %0 = boa.cast %scale : tensor<8xf32> to tensor<8xbf16>
    %1 = boa.cast %w : tensor<8x8xf32> to tensor<8x8xbf16>
    %2 = boa.mul %x, %0 : tensor<2x4x8xbf16>, tensor<8xbf16>
    %3 = boa.linear %2, %1 : (tensor<2x4x8xbf16>, tensor<8x8xbf16>) -> tensor<2x4x8xbf16>
    return %3 : tensor<2x4x8xbf16>
  }
  func.func @bridge_forward(%x: tensor<2x4x8xbf16>, %down: tensor<8x4xf32> {boa.param = @bridge::@down}) -> tensor<2x4x4xbf16> {
    %0 = boa.cast %down : tensor<8x4xf32> to tensor<8x4xbf16>
    %1 = boa.linear %x, %0 : (tensor<2x4x8xbf16>, tensor<8x4xbf16>) -> tensor<2x4x4xbf16>
    return %1 : tensor<2x4x4xbf16>
  }
  func.func @decoder_forward(%x: tensor<2x4x4xbf16>, %memory: tensor<2x4x8xbf16>, %w: tensor<8x4xf32> {boa.param = @decoder::@w}) -> tensor<2x4x4xbf16> {
    %0 = boa.cast %w : tensor<8x4xf32> to tensor<8x4xbf16>
    %1 = boa.linear %memory, %0 : (tensor<2x4x8xbf16>, tensor<8x4xbf16>) -> tensor<2x4x4xbf16>
    %2 = boa.add %x, %1 : tensor<2x4x4xbf16>, tensor<2x4x4xbf16>
    return %2 : tensor<2x4x4xbf16>
  }
  func.func @head_forward(%x: tensor<2x4x4xbf16>, %targets: tensor<2x4xi32>, %memory: tensor<2x4x8xbf16>, %w: tensor<8x4xf32> {boa.param = @bridge::@down}) -> tensor<f32> {
    %0 = boa.cast %w : tensor<8x4xf32> to tensor<8x4xbf16>
    %1 = boa.linear %memory, %0 : (tensor<2x4x8xbf16>, tensor<8x4xbf16>) -> tensor<2x4x4xbf16>
    %2 = boa.add %x, %1 : tensor<2x4x4xbf16>, tensor<2x4x4xbf16>
    %3 = boa.cross_entropy %2, %targets : (tensor<2x4x4xbf16>, tensor<2x4xi32>) -> tensor<f32>
    return %3 : tensor<f32>
  }
}
