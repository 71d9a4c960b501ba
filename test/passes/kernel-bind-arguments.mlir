// RUN: boa-opt %s --kernel-bind-arguments | FileCheck %s

// Places become views of the buffers; an accumulator and its result are one view.

// CHECK-LABEL: boa.kernel @k
// CHECK-SAME:    (%[[BUFFERS:.*]]: !llvm.ptr, %{{.*}}: !llvm.ptr, %{{.*}}: !llvm.ptr) reads [tensor<8xf32>] updates [tensor<24xf32>] writes [tensor<40xf32>] {
// CHECK-DAG:     %[[P0:.*]] = kernel.argument %[[BUFFERS]][0]
// CHECK-DAG:     %[[X:.*]] = kernel.view %[[P0]] + 0 : memref<8xf32>
// CHECK-DAG:     %[[XT:.*]] = bufferization.to_tensor %[[X]] restrict : memref<8xf32>
// CHECK-DAG:     %[[P3:.*]] = kernel.argument %[[BUFFERS]][1]
// CHECK-DAG:     %[[G:.*]] = kernel.view %[[P3]] + 64 : memref<8xf32>
// CHECK-DAG:     %[[GT:.*]] = bufferization.to_tensor %[[G]] restrict writable
// CHECK-DAG:     %[[P1:.*]] = kernel.argument %[[BUFFERS]][2]
// CHECK-DAG:     %[[Y:.*]] = kernel.view %[[P1]] + 128 : memref<8xf32>
// CHECK:         %[[S:.*]] = boa.add %[[GT]], %[[XT]]
// CHECK:         bufferization.materialize_in_destination %[[XT]] in restrict writable %[[Y]]
// CHECK:         bufferization.materialize_in_destination %[[S]] in restrict writable %[[G]]
// CHECK-NEXT:    return
boa.kernel @k(%x: tensor<8xf32> {boa.buffer = 0 : i32, boa.offset = 0 : i64},
               %g: tensor<8xf32> {boa.buffer = 1 : i32, boa.offset = 64 : i64, boa.result = 1 : i32})
    -> (tensor<8xf32> {boa.buffer = 2 : i32, boa.offset = 128 : i64},
        tensor<8xf32> {boa.buffer = 1 : i32, boa.offset = 64 : i64})
    reads [tensor<8xf32>] updates [tensor<24xf32>] writes [tensor<40xf32>] {
  %0 = boa.add %g, %x : tensor<8xf32>, tensor<8xf32>
  boa.return %x, %0 : tensor<8xf32>, tensor<8xf32>
}

// Other functions are left alone.

// CHECK-LABEL: func.func @other(%{{.*}}: tensor<8xf32>) -> tensor<8xf32>
func.func @other(%x: tensor<8xf32>) -> tensor<8xf32> {
  return %x : tensor<8xf32>
}

// Tables lie behind all buffers that the kernel is called with, each once, in the order of first use.

// CHECK-LABEL: boa.kernel @tables
// CHECK-SAME:    tables [{frequencies = [5.000000e-01, 2.500000e-01], function = "sine", type = tensor<4x2xf32>},
// CHECK-SAME:                  {frequencies = [5.000000e-01, 2.500000e-01], function = "cosine", type = tensor<4x2xf32>}]
// CHECK:         %[[P4:.*]] = kernel.argument %{{.*}}[4]
// CHECK:         %[[S:.*]] = kernel.view %[[P4]] + 0 : memref<4x2xf32>
// CHECK:         %[[SINES:.*]] = bufferization.to_tensor %[[S]] restrict : memref<4x2xf32>
// CHECK:         %[[P5:.*]] = kernel.argument %{{.*}}[5]
// CHECK:         %[[C:.*]] = kernel.view %[[P5]] + 0 : memref<4x2xf32>
// CHECK:         %[[COSINES:.*]] = bufferization.to_tensor %[[C]] restrict : memref<4x2xf32>
// CHECK-NOT:     kernel.angles
// CHECK:         %[[A:.*]] = boa.add %[[SINES]], %[[COSINES]]
// CHECK:         boa.mul %[[A]], %[[SINES]]
boa.kernel @tables() -> (tensor<4x2xf32> {boa.buffer = 1 : i32, boa.offset = 0 : i64})
    reads [tensor<4xf32>] writes [tensor<4x2xf32>, tensor<4xf32>, tensor<4xf32>] {
  %0 = kernel.angles sine [0.5, 0.25] : tensor<4x2xf32>
  %1 = kernel.angles cosine [0.5, 0.25] : tensor<4x2xf32>
  %2 = boa.add %0, %1 : tensor<4x2xf32>, tensor<4x2xf32>
  %3 = kernel.angles sine [0.5, 0.25] : tensor<4x2xf32>
  %4 = boa.mul %2, %3 : tensor<4x2xf32>, tensor<4x2xf32>
  boa.return %4 : tensor<4x2xf32>
}
