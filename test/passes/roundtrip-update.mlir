// RUN: boa-opt %s | boa-opt | FileCheck %s

// An update takes what state the optimizer has: any of the three may be absent.

// CHECK-LABEL: boa.step @evaluate
// CHECK:         boa.update @a chunk %{{.*}} step %{{.*}} weights(%{{.*}} : <tensor<2048xf32>, host>) gradient(%{{.*}} : <tensor<2048xf32>, host>){{$}}
// CHECK-NEXT:    boa.update @b {{.*}} low(%{{.*}} : <tensor<2048xi16>, host>){{$}}
// CHECK-NEXT:    boa.update @a {{.*}} momentum(%{{.*}} : <tensor<2048xf32>, host>){{$}}
// CHECK-NEXT:    boa.update @a {{.*}} momentum(%{{.*}}) variance(%{{.*}} : <tensor<2048xf32>, host>){{$}}
// CHECK-NEXT:    boa.norm @b gradient %{{.*}} : <tensor<2048xf32>, host>

boa.group @a repeat 1 {
  boa.param @w : tensor<8xf32> = "ones"
}
boa.group @b repeat 1 {
  boa.param @w : tensor<8xf32> = "ones"
}
boa.storage @weights.a[1] : tensor<2048xf32> on ssd role weights persistent
boa.storage @gradients.a[1] : tensor<2048xf32> on ssd role gradients
boa.storage @momentum.a[1] : tensor<2048xf32> on ssd role momentum persistent
boa.storage @variance.a[1] : tensor<2048xf32> on ssd role variance persistent
boa.storage @weights.b[1] : tensor<2048xbf16> on ssd role weights persistent
boa.storage @gradients.b[1] : tensor<2048xf32> on ssd role gradients
boa.storage @low.b[1] : tensor<2048xi16> on ssd role master persistent
boa.step @evaluate(%step, %pending) {
  %c0 = arith.constant 0 : index
  %w = boa.prefetch @weights.a[%c0] : <tensor<2048xf32>, host>
  %g = boa.prefetch @gradients.a[%c0] : <tensor<2048xf32>, host>
  %m = boa.prefetch @momentum.a[%c0] : <tensor<2048xf32>, host>
  %v = boa.prefetch @variance.a[%c0] : <tensor<2048xf32>, host>
  %bw = boa.prefetch @weights.b[%c0] : <tensor<2048xbf16>, host>
  %bg = boa.prefetch @gradients.b[%c0] : <tensor<2048xf32>, host>
  %low = boa.prefetch @low.b[%c0] : <tensor<2048xi16>, host>
  boa.update @a chunk %c0 step %step weights(%w : <tensor<2048xf32>, host>) gradient(%g : <tensor<2048xf32>, host>)
  boa.update @b chunk %c0 step %step weights(%bw : <tensor<2048xbf16>, host>) gradient(%bg : <tensor<2048xf32>, host>) low(%low : <tensor<2048xi16>, host>)
  boa.update @a chunk %c0 step %step weights(%w : <tensor<2048xf32>, host>) gradient(%g : <tensor<2048xf32>, host>) momentum(%m : <tensor<2048xf32>, host>)
  boa.update @a chunk %c0 step %step weights(%w : <tensor<2048xf32>, host>) gradient(%g : <tensor<2048xf32>, host>) momentum(%m : <tensor<2048xf32>, host>) variance(%v : <tensor<2048xf32>, host>)
  boa.norm @b gradient %bg : <tensor<2048xf32>, host>
}
