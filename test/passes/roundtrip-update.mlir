// RUN: boa-opt %s | boa-opt | FileCheck %s

// An update takes all states that its group has.

// CHECK-LABEL: boa.step @evaluate
// CHECK:         boa.update @a chunk %{{.*}} step %{{.*}} weights(%{{.*}} : <tensor<2048xf32>, host>) gradient(%{{.*}} : <tensor<2048xf32>, host>){{$}}
// CHECK-NEXT:    boa.update @b {{.*}} low(%{{.*}} : <tensor<2048xi16>, host>){{$}}
// CHECK-NEXT:    boa.update @c {{.*}} states(%{{.*}}, %{{.*}} : <tensor<4096xi8>, host>, <tensor<2048xf32>, host>){{$}}
// CHECK-NEXT:    boa.norm @b gradient %{{.*}} : <tensor<2048xf32>, host>

boa.group @a repeat 1 {
  boa.param @w : tensor<8xf32> = "ones"
}
boa.group @b repeat 1 {
  boa.param @w : tensor<8xf32> = "ones"
}
boa.group @c repeat 1 {
  boa.param @w : tensor<8xf32> = "ones"
}
boa.storage @weights.a[1] : tensor<2048xf32> on ssd role weights persistent
boa.storage @gradients.a[1] : tensor<2048xf32> on ssd role gradients
boa.storage @weights.b[1] : tensor<2048xbf16> on ssd role weights persistent
boa.storage @gradients.b[1] : tensor<2048xf32> on ssd role gradients
boa.storage @low.b[1] : tensor<2048xi16> on ssd role master persistent
boa.storage @weights.c[1] : tensor<2048xf32> on ssd role weights persistent
boa.storage @gradients.c[1] : tensor<2048xf32> on ssd role gradients
boa.storage @variance.c[1] : tensor<2048xf32> on ssd role state persistent
boa.storage @momentum.c[1] : tensor<4096xi8> on ssd role state persistent
boa.step @evaluate(%step, %pending) {
  %c0 = arith.constant 0 : index
  %w = boa.prefetch @weights.a[%c0] : <tensor<2048xf32>, host>
  %g = boa.prefetch @gradients.a[%c0] : <tensor<2048xf32>, host>
  %bw = boa.prefetch @weights.b[%c0] : <tensor<2048xbf16>, host>
  %bg = boa.prefetch @gradients.b[%c0] : <tensor<2048xf32>, host>
  %low = boa.prefetch @low.b[%c0] : <tensor<2048xi16>, host>
  %cw = boa.prefetch @weights.c[%c0] : <tensor<2048xf32>, host>
  %cg = boa.prefetch @gradients.c[%c0] : <tensor<2048xf32>, host>
  %m = boa.prefetch @momentum.c[%c0] : <tensor<4096xi8>, host>
  %v = boa.prefetch @variance.c[%c0] : <tensor<2048xf32>, host>
  boa.update @a chunk %c0 step %step weights(%w : <tensor<2048xf32>, host>) gradient(%g : <tensor<2048xf32>, host>)
  boa.update @b chunk %c0 step %step weights(%bw : <tensor<2048xbf16>, host>) gradient(%bg : <tensor<2048xf32>, host>) low(%low : <tensor<2048xi16>, host>)
  boa.update @c chunk %c0 step %step weights(%cw : <tensor<2048xf32>, host>) gradient(%cg : <tensor<2048xf32>, host>) states(%m, %v : <tensor<4096xi8>, host>, <tensor<2048xf32>, host>)
  boa.norm @b gradient %bg : <tensor<2048xf32>, host>
}
