// RUN: boa-opt %S/Inputs/tiny.mlir --boa-differentiate --boa-build-step --boa-vertical-schedule \
// RUN:     --boa-insert-offload --boa-outline-kernels | FileCheck %s
// RUN: sed 's/weights = "bf16"/weights = "f32"/' %S/Inputs/tiny.mlir \
// RUN:   | boa-opt --boa-differentiate --boa-build-step --boa-vertical-schedule \
// RUN:     --boa-insert-offload --boa-outline-kernels | FileCheck %s --check-prefix=F32

// Stages have done their work.

// CHECK-NOT: boa.stage

// Every argument has a place in a buffer of the launch: the activation is buffer 0;
// the layer's parameters are one packed buffer, the bias behind 512 * 512 weights of
// 2 bytes. bf16 weights are widened at the top. Reads 2 buffers, updates none,
// writes 1. It costs 2 * 32 * 512 * 512 operations of a product, and gelu and add move 2 and 3
// activations of 64 KiB.

// CHECK-LABEL: boa.kernel @block_forward
// CHECK-SAME:    (%[[X:[a-z0-9]+]]: tensor<2x16x512xf32> {boa.buffer = 0 : i32, boa.offset = 0 : i64},
// CHECK-SAME:     %[[W:[a-z0-9]+]]: tensor<512x512xbf16> {boa.buffer = 1 : i32, boa.offset = 0 : i64},
// CHECK-SAME:     %[[B:[a-z0-9]+]]: tensor<512xbf16> {boa.buffer = 1 : i32, boa.offset = 524288 : i64})
// CHECK-SAME:    -> (tensor<2x16x512xf32> {boa.buffer = 2 : i32, boa.offset = 0 : i64})
// CHECK-SAME:    reads [tensor<2x16x512xf32>, tensor<276480xbf16>] writes [tensor<2x16x512xf32>]
// CHECK-SAME:    costs {f32 = #boa.cost<flops = {{[0-9]*}}, bytes = {{[0-9]*}}, product_flops = 16777216, elementwise_bytes = 327680>} {
// CHECK-NEXT:    %[[W32:.*]] = boa.cast %[[W]]
// CHECK-NEXT:    %[[B32:.*]] = boa.cast %[[B]]
// CHECK-NEXT:    boa.linear %[[X]], %[[W32]] bias %[[B32]]

// The gradients of parameters are accumulators: arguments in the packed f32 gradient
// (buffer 3; the bias behind 512 * 512 * 4 bytes), tied to the results 1 and 2. The
// gradient of the activation is written whole, after them.

// CHECK-LABEL: boa.kernel @block_backward
// CHECK-SAME:    %[[DW:[a-z0-9]+]]: tensor<512x512xf32> {boa.buffer = 3 : i32, boa.offset = 0 : i64, boa.result = 1 : i32}
// CHECK-SAME:    %[[DB:[a-z0-9]+]]: tensor<512xf32> {boa.buffer = 3 : i32, boa.offset = 1048576 : i64, boa.result = 2 : i32}
// CHECK-SAME:    -> (tensor<2x16x512xf32> {boa.buffer = 4 : i32, boa.offset = 0 : i64}, tensor<512x512xf32> {boa.buffer = 3 : i32, boa.offset = 0 : i64}, tensor<512xf32> {boa.buffer = 3 : i32, boa.offset = 1048576 : i64})
// CHECK-SAME:    reads [tensor<2x16x512xf32>, tensor<2x16x512xf32>, tensor<276480xbf16>] updates [tensor<276480xf32>] writes [tensor<2x16x512xf32>]
// CHECK:         %[[NEW_W:.*]] = boa.linear_weight_grad
// CHECK:         %[[NEW_B:.*]] = boa.sum_leading
// CHECK:         %[[DX:.*]] = boa.add
// CHECK:         %[[SUM_W:.*]] = boa.add %[[DW]], %[[NEW_W]]
// CHECK:         %[[SUM_B:.*]] = boa.add %[[DB]], %[[NEW_B]]
// CHECK:         return %[[DX]], %[[SUM_W]], %[[SUM_B]]

// Weights of two groups are two buffers (the tied table comes fifth).

// CHECK-LABEL: boa.kernel @head_backward
// CHECK-SAME:    tensor<512xbf16> {boa.buffer = 3 : i32
// CHECK-SAME:    tensor<64x512xbf16> {boa.buffer = 4 : i32
// CHECK-SAME:    reads [{{([^,]*, ){4}[^,]*}}] updates [{{[^,]*, [^,]*}}] writes [{{[^,]*, [^,]*}}]

// f32 weights need no widening.

// F32-LABEL: boa.kernel @block_forward
// F32-SAME:    tensor<512x512xf32> {boa.buffer = 1 : i32, boa.offset = 0 : i64}
// F32-SAME:    tensor<512xf32> {boa.buffer = 1 : i32, boa.offset = 1048576 : i64}
// F32-NOT:     boa.cast
// F32-LABEL: boa.kernel @block_backward
