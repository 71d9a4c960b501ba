// RUN: boa-opt %s --kernel-bind-arguments | FileCheck %s

// Places become views of the buffers; an accumulator and its result are one view.

// CHECK-LABEL: func.func @k
// CHECK-SAME:    (%[[BUFFERS:.*]]: !llvm.ptr, %{{.*}}: !llvm.ptr, %{{.*}}: !llvm.ptr) attributes {boa.kernel}
// CHECK-DAG:     %[[P0:.*]] = kernel.argument %[[BUFFERS]][0]
// CHECK-DAG:     %[[X:.*]] = kernel.view %[[P0]] + 0 : memref<8xf32>
// CHECK-DAG:     %[[XT:.*]] = bufferization.to_tensor %[[X]] restrict : memref<8xf32>
// CHECK-DAG:     %[[P3:.*]] = kernel.argument %[[BUFFERS]][3]
// CHECK-DAG:     %[[G:.*]] = kernel.view %[[P3]] + 64 : memref<8xf32>
// CHECK-DAG:     %[[GT:.*]] = bufferization.to_tensor %[[G]] restrict writable
// CHECK-DAG:     %[[P1:.*]] = kernel.argument %[[BUFFERS]][1]
// CHECK-DAG:     %[[Y:.*]] = kernel.view %[[P1]] + 128 : memref<8xf32>
// CHECK:         %[[S:.*]] = boa.add %[[GT]], %[[XT]]
// CHECK:         bufferization.materialize_in_destination %[[XT]] in restrict writable %[[Y]]
// CHECK:         bufferization.materialize_in_destination %[[S]] in restrict writable %[[G]]
// CHECK-NEXT:    return
func.func @k(%x: tensor<8xf32> {boa.buffer = 0 : i32, boa.offset = 0 : i64},
             %g: tensor<8xf32> {boa.buffer = 3 : i32, boa.offset = 64 : i64, boa.result = 1 : i32})
    -> (tensor<8xf32> {boa.buffer = 1 : i32, boa.offset = 128 : i64},
        tensor<8xf32> {boa.buffer = 3 : i32, boa.offset = 64 : i64}) attributes {boa.kernel} {
  %0 = boa.add %g, %x : tensor<8xf32>, tensor<8xf32>
  return %x, %0 : tensor<8xf32>, tensor<8xf32>
}

// Other functions are left alone.

// CHECK-LABEL: func.func @other(%{{.*}}: tensor<8xf32>) -> tensor<8xf32>
func.func @other(%x: tensor<8xf32>) -> tensor<8xf32> {
  return %x : tensor<8xf32>
}
