// What the plan says of each inner activation of a layer: its name, whether it is saved, its place.
// The layers below save their activations. Their backward functions need the results of the norm,
// of the first product and of the gelu.

// DEFINE: %{differentiate} = boa-opt --boa-verify-model --boa-differentiate=recompute=false
// DEFINE: %{store} = boa-opt --boa-build-step --boa-verify-step --boa-insert-offload --boa-verify-storage

// RUN: %{differentiate} %s | FileCheck %s --check-prefix=ALL
// ALL-LABEL: func.func @block_forward_saving
// ALL-SAME:    -> (tensor<2x16x64xf32>, tensor<2x16x64xf32> {boa.saved}, tensor<2x16x128xf32> {boa.saved}, tensor<2x16x128xf32> {boa.saved})
// ALL-LABEL: func.func @block_backward
// ALL-NOT:     boa.rms_norm %
// ALL-NOT:     boa.gelu %
// ALL:         return

// One that is not saved is computed again from one that is: gelu from the product.

// RUN: sed 's|boa.name = "m"|boa.activation = {save = false}|' %s | %{differentiate} | FileCheck %s --check-prefix=GELU
// GELU-LABEL: func.func @block_forward_saving
// GELU-SAME:    -> (tensor<2x16x64xf32>, tensor<2x16x64xf32> {boa.saved}, tensor<2x16x128xf32> {boa.saved})
// GELU-LABEL: func.func @block_backward
// GELU-SAME:    %[[N:[a-z0-9_]+]]: tensor<2x16x64xf32> {boa.saved}, %[[U:[a-z0-9_]+]]: tensor<2x16x128xf32> {boa.saved})
// GELU:         %[[M:.*]] = boa.gelu %[[U]] : tensor<2x16x128xf32>
// GELU-NOT:     boa.activation
// GELU:         boa.linear_weight_grad %[[M]]
// GELU:         boa.gelu_grad %[[U]]
// GELU:         boa.linear_weight_grad %[[N]]

// What it needs may be computed again in turn, down to the layer's input, which is a checkpoint.

// RUN: sed -E 's/boa.name = "(n|u)"/boa.activation = {save = false}/' %s | %{differentiate} | FileCheck %s --check-prefix=CHAIN
// CHAIN-LABEL: func.func @block_forward_saving
// CHAIN-SAME:    -> (tensor<2x16x64xf32>, tensor<2x16x128xf32> {boa.saved})
// CHAIN-LABEL: func.func @block_backward
// CHAIN-SAME:    %[[X:x]]: tensor<2x16x64xf32>
// CHAIN-SAME:    %[[M:[a-z0-9_]+]]: tensor<2x16x128xf32> {boa.saved})
// CHAIN:         %[[N:.*]] = boa.rms_norm %[[X]]
// CHAIN:         %[[U:.*]] = boa.linear %[[N]]
// CHAIN-NOT:     boa.gelu %
// CHAIN:         boa.linear_weight_grad %[[M]]
// CHAIN:         boa.gelu_grad %[[U]]

// With all of them computed again nothing is left to save. This is the program that recomputes.

// RUN: sed -E 's/boa.name = "(n|u|m)"/boa.activation = {save = false}/' %s > %t.none
// RUN: %{differentiate} %t.none | %{store} > %t.computed
// RUN: sed -E 's/boa.name = "(n|u|m)"/boa.activation = {save = false}/' %s | boa-opt --boa-differentiate=recompute=true | %{store} | diff %t.computed -
// RUN: not grep 'saving\|@saved' %t.computed

// Those with a place of their own lie in storages of their own; all others share one.

// RUN: sed 's|boa.name = "m"|&, boa.activation = {place = ["host", 1, "ssd"]}|; s|boa.name = "n"|boa.activation = {place = "ssd"}|' %s \
// RUN:   | %{differentiate} > %t.placed
// RUN: FileCheck %s --check-prefix=PLACE < %t.placed
// RUN: boa-opt %t.placed --boa-build-step | FileCheck %s --check-prefix=STEP
// RUN: %{store} %t.placed | FileCheck %s --check-prefix=STORE
// PLACE-LABEL: func.func @block_forward_saving
// PLACE-SAME:    -> (tensor<2x16x64xf32>, tensor<2x16x64xf32> {boa.place = "ssd", boa.saved = "rms_norm"}, tensor<2x16x128xf32> {boa.saved}, tensor<2x16x128xf32> {boa.place = ["host", 1, "ssd"], boa.saved = "m"})
// PLACE-LABEL: func.func @block_backward
// PLACE-SAME:    %rms_norm: tensor<2x16x64xf32> {boa.saved = "rms_norm"}, %saved: tensor<2x16x128xf32> {boa.saved}, %m: tensor<2x16x128xf32> {boa.saved = "m"})
// STEP:          boa.storage @saved.block.rms_norm[3, 1] : tensor<2048xf32> on device role saved {boa.place = "ssd"}
// STEP:          boa.storage @saved.block[3, 1] : tensor<4096xf32> on device role saved{{$}}
// STEP:          boa.storage @saved.block.m[3, 1] : tensor<4096xf32> on device role saved {boa.place = ["host", 1, "ssd"]}
// STORE:         boa.storage @saved.block.rms_norm[3, 1] : tensor<2048xf32> on ssd role saved{{$}}
// STORE:         boa.storage @saved.block[3, 1] : tensor<4096xf32> on device role saved{{$}}
// STORE:         boa.storage @saved.block.m[3, 1] : tensor<4096xf32> on [0 to 1: host, 1 to 3: ssd] role saved{{$}}
// STORE-LABEL:   boa.step @step
// STORE:           boa.launch @block_forward_saving {{.*}} writes(%y, %saved.rms_norm, %saved, %saved.m : 

// Of layers of which only the last save, these follow the policy.

// RUN: sed -E 's/boa.name = "(n|m)"/boa.activation = {save = false}/' %s | boa-opt --boa-verify-model --boa-differentiate --boa-build-step \
// RUN:   | FileCheck %s --check-prefix=SOME
// SOME:       boa.stage @block_forward(@embed_forward) repeat 3 saves 2
// SOME-LABEL: func.func @block_backward_saved
// SOME:         boa.rms_norm
// SOME-NOT:     boa.linear {{.*}} -> tensor<2x16x128xf32>
// SOME:         boa.gelu %
// SOME-LABEL: func.func @block_backward(
// SOME:         boa.rms_norm
// SOME:         boa.linear {{.*}} -> tensor<2x16x128xf32>
// SOME:       boa.storage @saved.block[2, 1] : tensor<4096xf32>

boa.config @train {batch = 2 : i64}
boa.config @plan {keep = 2 : i64}
boa.group @embed repeat 1 {
  boa.param @wte : tensor<32x64xf32> = "ones"
}
boa.group @block repeat 3 {
  boa.param @norm : tensor<64xf32> = "ones"
  boa.param @up : tensor<64x128xf32> = "ones"
  boa.param @down : tensor<128x64xf32> = "ones"
}
boa.input @tokens from data : tensor<2x16xi32>
boa.input @targets from data : tensor<2x16xi32>
boa.stage @embed_forward(@tokens)
boa.stage @block_forward(@embed_forward) repeat 3
boa.stage @head_forward(@block_forward, @targets)
func.func @embed_forward(%tokens: tensor<2x16xi32>, %wte: tensor<32x64xf32> {boa.param = @embed::@wte}) -> tensor<2x16x64xf32> {
  %0 = boa.embedding %wte, %tokens : (tensor<32x64xf32>, tensor<2x16xi32>) -> tensor<2x16x64xf32>
  return %0 : tensor<2x16x64xf32>
}
func.func @block_forward(%x: tensor<2x16x64xf32>, %norm: tensor<64xf32> {boa.param = @block::@norm}, %up: tensor<64x128xf32> {boa.param = @block::@up}, %down: tensor<128x64xf32> {boa.param = @block::@down}) -> tensor<2x16x64xf32> {
  %n = boa.rms_norm %x, %norm {boa.name = "n"} : (tensor<2x16x64xf32>, tensor<64xf32>) -> tensor<2x16x64xf32>
  %u = boa.linear %n, %up {boa.name = "u"} : (tensor<2x16x64xf32>, tensor<64x128xf32>) -> tensor<2x16x128xf32>
  %m = boa.gelu %u {boa.name = "m"} : tensor<2x16x128xf32>
  %d = boa.linear %m, %down : (tensor<2x16x128xf32>, tensor<128x64xf32>) -> tensor<2x16x64xf32>
  %y = boa.add %x, %d : tensor<2x16x64xf32>, tensor<2x16x64xf32>
  return %y : tensor<2x16x64xf32>
}
func.func @head_forward(%x: tensor<2x16x64xf32>, %targets: tensor<2x16xi32>, %wte: tensor<32x64xf32> {boa.param = @embed::@wte}) -> tensor<f32> {
  %0 = boa.linear %x, %wte transpose : (tensor<2x16x64xf32>, tensor<32x64xf32>) -> tensor<2x16x32xf32>
  %1 = boa.cross_entropy %0, %targets : (tensor<2x16x32xf32>, tensor<2x16xi32>) -> tensor<f32>
  return %1 : tensor<f32>
}
