// RUN: boa-opt %s --boa-verify-model --boa-differentiate --boa-build-step --boa-verify-step \
// RUN:   | FileCheck %s
// RUN: boa-opt %s --boa-differentiate --boa-build-step --boa-vertical-schedule --boa-verify-step \
// RUN:     --boa-insert-offload --boa-hoist-prefetch --boa-elide-transfers --boa-retain-buffers \
// RUN:     --boa-elide-offloads --boa-verify-storage \
// RUN:   | FileCheck %s --check-prefix=VERTICAL

// A stage takes and returns lists of any types. The blocks carry three results of the embedding. Two kinds of
// layers begin with its first result, and the head takes it, too. Nobody takes the blocks' second result.

// The gradients of all uses are added up in f32, those that are given first, and rounded once.

// CHECK-LABEL: func.func @embed_sum
// CHECK-SAME:    (%[[A:.*]]: tensor<2x4x8xbf16>, %[[B:.*]]: tensor<2x4x8xbf16>, %[[S:.*]]: tensor<2x4x8xf32>) -> tensor<2x4x8xbf16>
// CHECK-DAG:     %[[A32:.*]] = boa.cast %[[A]]
// CHECK-DAG:     %[[B32:.*]] = boa.cast %[[B]]
// CHECK:         %[[AB:.*]] = boa.add %[[A32]], %[[B32]]
// CHECK-NEXT:    %[[ALL:.*]] = boa.add %[[AB]], %[[S]]
// CHECK-NEXT:    boa.cast %[[ALL]]

// Integers have no gradient. The others are returned in the order of arguments. The last block gets zeros
// for what nobody takes.

// CHECK-LABEL: func.func @embed_backward(%{{.*}}: tensor<2x4xi32>, %{{.*}}: tensor<2x4x8xbf16>, %{{.*}}: tensor<2x4x8xf32>) -> (tensor<16x8xf32>
// CHECK-LABEL: func.func @block.1_sum() -> tensor<2x4x8xf32>
// CHECK-NEXT:    arith.constant dense<0.0
// CHECK-LABEL: func.func @block_backward(
// CHECK-SAME:    -> (tensor<2x4x8xbf16>, tensor<2x4x8xf32>, tensor<8x8xf32> {boa.param = @block::@w})
// CHECK-LABEL: func.func @head_backward(
// CHECK-SAME:    -> (tensor<f32>, tensor<2x4x8xbf16>, tensor<2x4x8xbf16>, tensor<2x4x8xf32> {boa.sum}, tensor<8x4xf32>

// Each result has entries of its type. Results of layers stand behind what the first layer takes, but for
// a second kind of layers that begin with it. The first two uses of the first result give gradients.

// CHECK-DAG: boa.storage @checkpoints.embed[4, 2] : tensor<2x4x8xbf16>
// CHECK-DAG: boa.storage @boundary_gradients.embed[6, 2] : tensor<2x4x8xbf16>
// CHECK-DAG: boa.storage @checkpoints.embed.1[4, 2] : tensor<2x4x8xf32>
// CHECK-DAG: boa.storage @boundary_gradients.embed.1[4, 2] : tensor<2x4x8xf32>
// CHECK-DAG: boa.storage @checkpoints.embed.2[4, 2] : tensor<2x4xi32>
// CHECK-DAG: boa.storage @checkpoints.other[2, 2] : tensor<2x4x8xbf16>
// CHECK-NOT: boa.storage @boundary_gradients.embed.2
// CHECK-DAG: boa.storage @boundary_gradients.embed.sum[2] : tensor<2x4x8xf32>

// CHECK-LABEL: boa.step @step
// CHECK:         boa.loop layer %[[L:.*]] = 0 to 3 forward {
// CHECK-NEXT:      %[[X:.*]] = boa.read @checkpoints.embed[%[[L]]
// CHECK-NEXT:      %[[Y:.*]] = boa.read @checkpoints.embed.1[%[[L]]
// CHECK-NEXT:      %[[T:.*]] = boa.read @checkpoints.embed.2[%[[L]]
// CHECK:           %{{.*}}, %{{.*}}, %[[NEXT:.*]] = boa.call @block_forward(%[[X]], %[[Y]], %[[T]],
// CHECK:           boa.write %[[NEXT]], @checkpoints.embed.2[

// The first layer of the other kind reads elsewhere, and gives its gradient there.

// CHECK:         boa.loop layer %{{.*}} = 0 to 1 forward {
// CHECK-NEXT:      %[[ZERO:.*]] = arith.constant 0
// CHECK-NEXT:      boa.read @checkpoints.embed[%[[ZERO]]
// CHECK:           boa.call @other_forward
// CHECK:         boa.loop layer %[[L:.*]] = 1 to 2 forward {
// CHECK-NEXT:      %[[P:.*]] = boa.shift %[[L]], -1
// CHECK-NEXT:      boa.read @checkpoints.other[%[[P]]
// CHECK:           boa.call @other_forward
// CHECK:         boa.loop layer %{{.*}} = 1 to 2 reverse {
// CHECK:           boa.write %{{.*}}, @boundary_gradients.other[
// CHECK:         boa.loop layer %{{.*}} = 0 to 1 reverse {
// CHECK:           %[[FIVE:.*]] = arith.constant 5
// CHECK-NEXT:      boa.write %{{.*}}, @boundary_gradients.embed[%[[FIVE]]
// CHECK:         %[[ZEROS:.*]] = boa.call @block.1_sum()
// CHECK:         boa.write %[[ZEROS]], @boundary_gradients.embed.1[
// CHECK:         boa.loop layer %{{.*}} = 0 to 3 reverse {
// CHECK:           boa.call @block_backward
// CHECK:         boa.call @embed_sum(
// CHECK:         boa.call @embed_backward

// VERTICAL:      boa.launch @block_forward
// VERTICAL:      boa.launch @embed_sum

module {
  boa.config @machine {device_memory = 0 : i64, host_memory = 0 : i64}
  boa.config @model {name = "lists", context = 4 : i64, vocab = 4 : i64}
  boa.config @train {batch = 4 : i64, optimizer = {kind = "sgd"}}
  boa.config @plan {
    micro_batch = 2 : i64,
    place = {weights = "ssd", gradients = "ssd", optimizer = "ssd", checkpoints = "ssd", boundary_gradients = "ssd"}
  }
  boa.group @embed repeat 1 {
    boa.param @table : tensor<16x8xf32> = "ones"
  }
  boa.group @block repeat 3 {
    boa.param @w : tensor<8x8xf32> = "ones"
  }
  boa.group @other repeat 2 {
    boa.param @w : tensor<8x8xf32> = "ones"
  }
  boa.group @head repeat 1 {
    boa.param @w : tensor<8x4xf32> = "ones"
  }
  boa.input @tokens from data : tensor<2x4xi32>
  boa.input @targets from data : tensor<2x4xi32>
  boa.stage @embed_forward(@tokens)
  boa.stage @block_forward(@embed_forward, @embed_forward[1], @embed_forward[2]) repeat 3
  boa.stage @other_forward(@embed_forward) repeat 2
  boa.stage @head_forward(@block_forward, @targets, @other_forward, @embed_forward, @block_forward[2])

  func.func @embed_forward(%tokens: tensor<2x4xi32>, %table: tensor<16x8xf32> {boa.param = @embed::@table}) -> (tensor<2x4x8xbf16>, tensor<2x4x8xf32>, tensor<2x4xi32>) {
    %0 = boa.embedding %table, %tokens : (tensor<16x8xf32>, tensor<2x4xi32>) -> tensor<2x4x8xf32>
    %1 = boa.cast %0 : tensor<2x4x8xf32> to tensor<2x4x8xbf16>
    return %1, %0, %tokens : tensor<2x4x8xbf16>, tensor<2x4x8xf32>, tensor<2x4xi32>
  }
  func.func @block_forward(%x: tensor<2x4x8xbf16>, %y: tensor<2x4x8xf32>, %t: tensor<2x4xi32>, %w: tensor<8x8xf32> {boa.param = @block::@w}) -> (tensor<2x4x8xbf16>, tensor<2x4x8xf32>, tensor<2x4xi32>) {
    %0 = boa.linear %y, %w : (tensor<2x4x8xf32>, tensor<8x8xf32>) -> tensor<2x4x8xf32>
    %1 = boa.cast %0 : tensor<2x4x8xf32> to tensor<2x4x8xbf16>
    %2 = boa.add %x, %1 : tensor<2x4x8xbf16>, tensor<2x4x8xbf16>
    return %2, %0, %t : tensor<2x4x8xbf16>, tensor<2x4x8xf32>, tensor<2x4xi32>
  }
  func.func @other_forward(%x: tensor<2x4x8xbf16>, %w: tensor<8x8xf32> {boa.param = @other::@w}) -> tensor<2x4x8xbf16> {
    %0 = boa.cast %w : tensor<8x8xf32> to tensor<8x8xbf16>
    %1 = boa.linear %x, %0 : (tensor<2x4x8xbf16>, tensor<8x8xbf16>) -> tensor<2x4x8xbf16>
    return %1 : tensor<2x4x8xbf16>
  }
  func.func @head_forward(%x: tensor<2x4x8xbf16>, %targets: tensor<2x4xi32>, %other: tensor<2x4x8xbf16>, %start: tensor<2x4x8xbf16>, %t: tensor<2x4xi32>, %w: tensor<8x4xf32> {boa.param = @head::@w}) -> tensor<f32> {
    %0 = boa.add %x, %other : tensor<2x4x8xbf16>, tensor<2x4x8xbf16>
    %1 = boa.add %0, %start : tensor<2x4x8xbf16>, tensor<2x4x8xbf16>
    %2 = boa.cast %1 : tensor<2x4x8xbf16> to tensor<2x4x8xf32>
    %3 = boa.linear %2, %w : (tensor<2x4x8xf32>, tensor<8x4xf32>) -> tensor<2x4x4xf32>
    %4 = boa.cross_entropy %3, %targets : (tensor<2x4x4xf32>, tensor<2x4xi32>) -> tensor<f32>
    %5 = boa.cross_entropy %3, %t : (tensor<2x4x4xf32>, tensor<2x4xi32>) -> tensor<f32>
    %6 = boa.add %4, %5 : tensor<f32>, tensor<f32>
    return %6 : tensor<f32>
  }
}
