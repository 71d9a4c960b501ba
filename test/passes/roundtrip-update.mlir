// RUN: boa-opt %s | boa-opt | FileCheck %s

// An update takes what state the optimizer has: any of the three may be absent.

// CHECK-LABEL: boa.step @update
// CHECK:         boa.update @a chunk %{{.*}} step %{{.*}} weights(%{{.*}} : <tensor<8xf32>>) gradient(%{{.*}} : <tensor<8xf32>>){{$}}
// CHECK-NEXT:    boa.update @a {{.*}} low(%{{.*}} : !boa.buffer<tensor<8xi16>>){{$}}
// CHECK-NEXT:    boa.update @a {{.*}} momentum(%{{.*}} : !boa.buffer<tensor<8xf32>>){{$}}
// CHECK-NEXT:    boa.update @a {{.*}} momentum(%{{.*}}) variance(%{{.*}} : !boa.buffer<tensor<8xf32>>){{$}}

boa.storage @s[1] : tensor<8xf32> on ssd role "state" persistent
boa.storage @low[1] : tensor<8xi16> on ssd role "master" persistent
boa.step @update(%step, %pending) {
  %c0 = arith.constant 0 : index
  %0 = boa.prefetch @s[%c0]
  %s = boa.await %0 : <tensor<8xf32>>
  %1 = boa.prefetch @low[%c0]
  %low = boa.await %1 : <tensor<8xi16>>
  boa.update @a chunk %c0 step %step weights(%s : <tensor<8xf32>>) gradient(%s : <tensor<8xf32>>)
  boa.update @a chunk %c0 step %step weights(%s : <tensor<8xf32>>) gradient(%s : <tensor<8xf32>>) low(%low : !boa.buffer<tensor<8xi16>>)
  boa.update @a chunk %c0 step %step weights(%s : <tensor<8xf32>>) gradient(%s : <tensor<8xf32>>) momentum(%s : !boa.buffer<tensor<8xf32>>)
  boa.update @a chunk %c0 step %step weights(%s : <tensor<8xf32>>) gradient(%s : <tensor<8xf32>>) momentum(%s : !boa.buffer<tensor<8xf32>>) variance(%s : !boa.buffer<tensor<8xf32>>)
}
