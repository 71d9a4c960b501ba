// RUN: boa-opt %s | boa-opt | FileCheck %s

// An update takes what state the optimizer has: any of the three may be absent.

// CHECK-LABEL: boa.step @update
// CHECK:         boa.update @a chunk %{{.*}} step %{{.*}} weights(%{{.*}} : <tensor<2048xf32>>) gradient(%{{.*}} : <tensor<2048xf32>>){{$}}
// CHECK-NEXT:    boa.update @b {{.*}} low(%{{.*}} : !boa.buffer<tensor<2048xi16>>){{$}}
// CHECK-NEXT:    boa.update @a {{.*}} momentum(%{{.*}} : !boa.buffer<tensor<2048xf32>>){{$}}
// CHECK-NEXT:    boa.update @a {{.*}} momentum(%{{.*}}) variance(%{{.*}} : !boa.buffer<tensor<2048xf32>>){{$}}
// CHECK-NEXT:    boa.norm @b gradient %{{.*}} : <tensor<2048xf32>>

boa.group @a repeat 1 {
  boa.param @w : tensor<8xf32> = "ones"
}
boa.group @b repeat 1 {
  boa.param @w : tensor<8xf32> = "ones"
}
boa.storage @weights.a[1] : tensor<2048xf32> on ssd role "weights" persistent
boa.storage @gradients.a[1] : tensor<2048xf32> on ssd role "gradients"
boa.storage @momentum.a[1] : tensor<2048xf32> on ssd role "momentum" persistent
boa.storage @variance.a[1] : tensor<2048xf32> on ssd role "variance" persistent
boa.storage @weights.b[1] : tensor<2048xbf16> on ssd role "weights" persistent
boa.storage @gradients.b[1] : tensor<2048xf32> on ssd role "gradients"
boa.storage @low.b[1] : tensor<2048xi16> on ssd role "master" persistent
boa.step @update(%step, %pending) {
  %c0 = arith.constant 0 : index
  %0 = boa.prefetch @weights.a[%c0]
  %w = boa.await %0 : <tensor<2048xf32>>
  %1 = boa.prefetch @gradients.a[%c0]
  %g = boa.await %1 : <tensor<2048xf32>>
  %2 = boa.prefetch @momentum.a[%c0]
  %m = boa.await %2 : <tensor<2048xf32>>
  %3 = boa.prefetch @variance.a[%c0]
  %v = boa.await %3 : <tensor<2048xf32>>
  %4 = boa.prefetch @weights.b[%c0]
  %bw = boa.await %4 : <tensor<2048xbf16>>
  %5 = boa.prefetch @gradients.b[%c0]
  %bg = boa.await %5 : <tensor<2048xf32>>
  %6 = boa.prefetch @low.b[%c0]
  %low = boa.await %6 : <tensor<2048xi16>>
  boa.update @a chunk %c0 step %step weights(%w : <tensor<2048xf32>>) gradient(%g : <tensor<2048xf32>>)
  boa.update @b chunk %c0 step %step weights(%bw : <tensor<2048xbf16>>) gradient(%bg : <tensor<2048xf32>>) low(%low : !boa.buffer<tensor<2048xi16>>)
  boa.update @a chunk %c0 step %step weights(%w : <tensor<2048xf32>>) gradient(%g : <tensor<2048xf32>>) momentum(%m : !boa.buffer<tensor<2048xf32>>)
  boa.update @a chunk %c0 step %step weights(%w : <tensor<2048xf32>>) gradient(%g : <tensor<2048xf32>>) momentum(%m : !boa.buffer<tensor<2048xf32>>) variance(%v : !boa.buffer<tensor<2048xf32>>)
  boa.norm @b gradient %bg : <tensor<2048xf32>>
}
