// RUN: boa-opt %s --boa-differentiate --boa-build-step --boa-split-optimizer=delay=0.25 \
// RUN:   | FileCheck %s

// An entry is divided into equal chunks of whole blocks. Their size is chosen first,
// then as many as the parameters need: a chunk of nothing but padding would be
// moved in vain, and a delayed one would delay nothing.

// One element is one chunk of one block (of bf16).
// CHECK-DAG: boa.storage @weights.one[1] : tensor<2048xf32> {{.*}} role weights persistent
// CHECK-DAG: boa.storage @weights.few[1] : tensor<8192xf32> {{.*}} chunks 2 persistent
// 16 chunks would be of 3124 elements, so 4096: 12 are full, the 13th holds 832.
// CHECK-DAG: boa.storage @weights.uneven[1] : tensor<53248xf32> {{.*}} chunks 13 persistent
// A little over 16 x 4096: 11 of 6144.
// CHECK-DAG: boa.storage @weights.more[1] : tensor<67584xf32> {{.*}} chunks 11 persistent
// CHECK-DAG: boa.storage @weights.even[1] : tensor<1048576xf32> {{.*}} chunks 16 persistent
// Chunks of at most 2 Mi elements, a multiple of four where there are more than 16.
// CHECK-DAG: boa.storage @weights.large[1] : tensor<33587200xf32> {{.*}} chunks 20 persistent

// What is delayed are the last chunks, of which none is empty.
// CHECK:     boa.step @drain
// CHECK-DAG:   boa.optimizer_update @uneven[%{{.*}}] chunks 10 to 13
// CHECK-DAG:   boa.optimizer_update @more[%{{.*}}] chunks 8 to 11
// CHECK-DAG:   boa.optimizer_update @even[%{{.*}}] chunks 12 to 16
// CHECK-DAG:   boa.optimizer_update @large[%{{.*}}] chunks 15 to 20
// CHECK:     boa.step @evaluate

module {
  boa.config @train {batch = 1 : i64, optimizer = {kind = "sgd"}}
  boa.config @plan {micro_batch = 1 : i64}
  boa.group @embed repeat 1 {
    boa.param @table : tensor<16x64xf32> = "zeros"
  }
  boa.group @one repeat 1 {
    boa.param @w : tensor<1xf32> = "zeros"
  }
  boa.group @few repeat 1 {
    boa.param @w : tensor<4097xf32> = "zeros"
  }
  boa.group @uneven repeat 1 {
    boa.param @w : tensor<49984xf32> = "zeros"
  }
  boa.group @more repeat 1 {
    boa.param @w : tensor<66000xf32> = "zeros"
  }
  boa.group @even repeat 1 {
    boa.param @w : tensor<1048576xf32> = "zeros"
  }
  boa.group @large repeat 1 {
    boa.param @w : tensor<33554433xf32> = "zeros"
  }
  boa.input @tokens from data : tensor<1x4xi32>
  boa.input @targets from data : tensor<1x4xi32>
  boa.stage @embed_forward(@tokens)
  boa.stage @head_forward(@embed_forward, @targets)
  func.func @embed_forward(%tokens: tensor<1x4xi32>, %table: tensor<16x64xf32> {boa.param = @embed::@table}) -> tensor<1x4x64xf32> {
    %0 = boa.embedding %table, %tokens : (tensor<16x64xf32>, tensor<1x4xi32>) -> tensor<1x4x64xf32>
    return %0 : tensor<1x4x64xf32>
  }
  func.func @head_forward(%x: tensor<1x4x64xf32>, %targets: tensor<1x4xi32>) -> tensor<f32> {
    %0 = boa.cross_entropy %x, %targets : (tensor<1x4x64xf32>, tensor<1x4xi32>) -> tensor<f32>
    return %0 : tensor<f32>
  }
}
