// A tensor that is made of parts, and then only read, takes its memory once, and each part is computed in
// its place. Here it is made of 256 parts. Upstream's analysis of the insertions alone takes over 100 s.

// DEFINE: %{after} = --kernel-bind-arguments --kernel-bufferize --cse --canonicalize \
// DEFINE:   --kernel-elide-copies --canonicalize
// RUN: boa-opt %s --convert-boa-to-blas --convert-boa-to-linalg --cse --canonicalize --cse \
// RUN:   --kernel-block-rows=rows=1 %{after} --split-input-file | FileCheck %s

// CHECK-LABEL: boa.kernel @head
// CHECK:         %[[Y:.*]] = kernel.view {{.*}} : memref<1x256x4xf32>
// CHECK:         %[[DX:.*]] = memref.alloc() {{.*}}: memref<1x256x4xf32>
// CHECK-COUNT-256: kernel.gemm {{.*}} {transpose_b} : (memref<1x1x32xf32>, memref<4x32xf32>, memref<1x1x4xf32,
// CHECK-NOT:     memref.alloc(){{.*}} : memref<1x256x4xf32>
// CHECK:         kernel.gemm %[[DX]], %{{.*}} into %[[Y]]
// CHECK-NEXT:    return
boa.kernel @head(%x: tensor<1x256x4xf32> {boa.buffer = 0 : i32, boa.offset = 0 : i64},
                %w: tensor<4x32xf32> {boa.buffer = 1 : i32, boa.offset = 0 : i64},
                %t: tensor<1x256xi32> {boa.buffer = 2 : i32, boa.offset = 0 : i64},
                %d: tensor<f32> {boa.buffer = 3 : i32, boa.offset = 0 : i64},
                %v: tensor<4x4xf32> {boa.buffer = 4 : i32, boa.offset = 0 : i64})
    -> (tensor<1x256x4xf32> {boa.buffer = 5 : i32, boa.offset = 0 : i64}) reads [tensor<1x256x4xf32>, tensor<4x32xf32>, tensor<1x256xi32>, tensor<f32>, tensor<4x4xf32>] writes [tensor<1x256x4xf32>] {
  %logits = boa.linear %x, %w : (tensor<1x256x4xf32>, tensor<4x32xf32>) -> tensor<1x256x32xf32>
  %dy = boa.cross_entropy_grad %logits, %t, %d
      : (tensor<1x256x32xf32>, tensor<1x256xi32>, tensor<f32>) -> tensor<1x256x32xf32>
  %dx = boa.linear %dy, %w transpose
      : (tensor<1x256x32xf32>, tensor<4x32xf32>) -> tensor<1x256x4xf32>
  %y = boa.linear %dx, %v : (tensor<1x256x4xf32>, tensor<4x4xf32>) -> tensor<1x256x4xf32>
  boa.return %y : tensor<1x256x4xf32>
}

// -----

// Of two parts with common rows, the one that is inserted last has them. It is not computed there before the
// other one is inserted.

// CHECK-LABEL: boa.kernel @overlap
// CHECK:         %[[LAST:.*]] = memref.alloc() {{.*}}: memref<4x4xf32>
// CHECK:         kernel.gemm %{{.*}} into %[[LAST]] :
// CHECK:         kernel.gemm %[[LAST]], {{.*}} -> ()
// CHECK:         memref.subview %{{.*}}[2, 0] [4, 4]
// CHECK-NEXT:    linalg.generic {{.*}} ins(%[[LAST]] :
boa.kernel @overlap(%x: tensor<4x4xf32> {boa.buffer = 0 : i32, boa.offset = 0 : i64})
    -> (tensor<6x4xf32> {boa.buffer = 1 : i32, boa.offset = 0 : i64}) reads [tensor<4x4xf32>] writes [tensor<6x4xf32>] {
  %e0 = tensor.empty() : tensor<4x4xf32>
  %last = kernel.gemm %x, %x into %e0 : (tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %e1 = tensor.empty() : tensor<4x4xf32>
  %first = kernel.gemm %last, %x into %e1 : (tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %e = tensor.empty() : tensor<6x4xf32>
  %0 = tensor.insert_slice %first into %e[0, 0] [4, 4] [1, 1] : tensor<4x4xf32> into tensor<6x4xf32>
  %1 = tensor.insert_slice %last into %0[2, 0] [4, 4] [1, 1] : tensor<4x4xf32> into tensor<6x4xf32>
  %e2 = tensor.empty() : tensor<6x4xf32>
  %y = kernel.gemm %1, %x into %e2 : (tensor<6x4xf32>, tensor<4x4xf32>, tensor<6x4xf32>) -> tensor<6x4xf32>
  boa.return %y : tensor<6x4xf32>
}

// -----

// Where an op writes over a part after it was inserted, the whole has a copy of the part.

// CHECK-LABEL: boa.kernel @overwritten
// CHECK:         %[[PART:.*]] = memref.alloc() {{.*}}: memref<4x4xf32>
// CHECK:         kernel.gemm %{{.*}} into %[[PART]] :
// CHECK:         linalg.generic {{.*}} ins(%[[PART]] : {{.*}} outs(%{{[^ ]*}} : memref<4x4xf32, strided<[4, 1]>>
// CHECK:         linalg.generic {{.*}} ins(%[[PART]] : {{.*}} outs(%[[PART]] :
// CHECK-NEXT:    ^bb0
// CHECK-NEXT:      math.exp
boa.kernel @overwritten(%x: tensor<4x4xf32> {boa.buffer = 0 : i32, boa.offset = 0 : i64})
    -> (tensor<8x4xf32> {boa.buffer = 1 : i32, boa.offset = 0 : i64},
        tensor<4x4xf32> {boa.buffer = 2 : i32, boa.offset = 0 : i64}) reads [tensor<4x4xf32>] writes [tensor<8x4xf32>, tensor<4x4xf32>] {
  %e = tensor.empty() : tensor<8x4xf32>
  %e0 = tensor.empty() : tensor<4x4xf32>
  %first = kernel.gemm %x, %x into %e0 : (tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %0 = tensor.insert_slice %first into %e[0, 0] [4, 4] [1, 1] : tensor<4x4xf32> into tensor<8x4xf32>
  %e1 = tensor.empty() : tensor<4x4xf32>
  %powers = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>],
      iterator_types = ["parallel", "parallel"]} ins(%first : tensor<4x4xf32>) outs(%e1 : tensor<4x4xf32>) {
  ^bb0(%in: f32, %out: f32):
    %power = math.exp %in : f32
    linalg.yield %power : f32
  } -> tensor<4x4xf32>
  %e2 = tensor.empty() : tensor<4x4xf32>
  %second = kernel.gemm %powers, %x into %e2 : (tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %1 = tensor.insert_slice %second into %0[4, 0] [4, 4] [1, 1] : tensor<4x4xf32> into tensor<8x4xf32>
  %e3 = tensor.empty() : tensor<8x4xf32>
  %y = kernel.gemm %1, %x into %e3 : (tensor<8x4xf32>, tensor<4x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %e4 = tensor.empty() : tensor<4x4xf32>
  %z = kernel.gemm %powers, %powers into %e4 : (tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  boa.return %y, %z : tensor<8x4xf32>, tensor<4x4xf32>
}
