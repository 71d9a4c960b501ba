// A program that updates one parameter.
boa.config @plan {update = "device"}
boa.optimizer @sgd {} states {} prepare {
^bb0(%t: f64):
  boa.yield
} update {
^bb0(%w: f32, %g: f32, %rate: f32, %weight_decay: f32):
  %change = arith.mulf %rate, %g : f32
  %next = arith.subf %w, %change : f32
  boa.yield %next : f32
}
boa.group @a repeat 1 {
  boa.param @w : tensor<64xf32> = "ones"
}
boa.storage @weights.a[1] : tensor<2048xf32> on device role weights persistent
boa.storage @gradients.a[1] : tensor<2048xf32> on device role gradients
boa.step @step(%step, %pending) {
  %c0 = arith.constant 0 : index
  %w = boa.prefetch @weights.a[%c0] : <tensor<2048xf32>, device>
  %g = boa.prefetch @gradients.a[%c0] : <tensor<2048xf32>, device>
  boa.update @a chunk %c0 step %step weights(%w : <tensor<2048xf32>, device>) gradient(%g : <tensor<2048xf32>, device>)
}
