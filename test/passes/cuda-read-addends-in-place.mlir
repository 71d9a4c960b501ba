// RUN: boa-opt %s --cuda-read-addends-in-place --split-input-file | FileCheck %s
// RUN: boa-opt %s --cuda-read-addends-in-place --split-input-file --remarks-filter=boa-kernel 2>&1 \
// RUN:   | FileCheck %s --check-prefix=REMARK

#map = affine_map<(r, c) -> (r, c)>
!rows = memref<8x8xf32>

// A residual that others need, too: the product reads it where it is.

// CHECK-LABEL: boa.kernel @residual
// CHECK-DAG:     %[[X:.*]] = kernel.view %arg0 + 0 :
// CHECK-DAG:     %[[H:.*]] = kernel.view %arg1 + 0 :
// CHECK-NOT:     linalg.generic
// CHECK:         kernel.gemm %{{.*}}, %{{.*}} into %[[H]] plus %[[X]] : (
// CHECK-NEXT:    kernel.gemm %{{.*}}, %{{.*}} into %[[H]] {accumulate}
// CHECK-NEXT:    return
// REMARK: Passed] read-addends-in-place | {{.*}} elements=64
boa.kernel @residual(%p: !llvm.ptr, %q: !llvm.ptr) {
  %x = kernel.view %p + 0 : !rows
  %w = kernel.view %p + 256 : !rows
  %h = kernel.view %q + 0 : !rows
  %t = memref.alloc() : !rows
  linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]}
      ins(%x : !rows) outs(%h : !rows) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  }
  kernel.gemm %x, %w into %t : (!rows, !rows, !rows) -> ()
  kernel.gemm %t, %w into %h {accumulate} : (!rows, !rows, !rows) -> ()
  kernel.gemm %t, %t into %h {accumulate} : (!rows, !rows, !rows) -> ()
  boa.return
}

// -----

#map = affine_map<(r, c) -> (r, c)>
!rows = memref<8x8xf32>

// Not where it is written, or the copy read, before the product is.

// CHECK-LABEL: boa.kernel @written_between
// CHECK:         linalg.generic
// CHECK:         kernel.gemm {{.*}} {accumulate}
boa.kernel @written_between(%p: !llvm.ptr, %q: !llvm.ptr) {
  %x = kernel.view %p + 0 : !rows
  %w = kernel.view %p + 256 : !rows
  %h = kernel.view %q + 0 : !rows
  linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]}
      ins(%x : !rows) outs(%h : !rows) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  }
  kernel.gemm %w, %w into %x : (!rows, !rows, !rows) -> ()
  kernel.gemm %w, %w into %h {accumulate} : (!rows, !rows, !rows) -> ()
  boa.return
}

// CHECK-LABEL: boa.kernel @read_between
// CHECK:         linalg.generic
// CHECK:         kernel.gemm {{.*}} {accumulate}
boa.kernel @read_between(%p: !llvm.ptr, %q: !llvm.ptr) {
  %x = kernel.view %p + 0 : !rows
  %w = kernel.view %p + 256 : !rows
  %h = kernel.view %q + 0 : !rows
  %t = memref.alloc() : !rows
  linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]}
      ins(%x : !rows) outs(%h : !rows) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  }
  kernel.gemm %h, %w into %t : (!rows, !rows, !rows) -> ()
  kernel.gemm %t, %w into %h {accumulate} : (!rows, !rows, !rows) -> ()
  boa.return
}

// -----

#map = affine_map<(r, c) -> (r, c)>
!rows = memref<8x8xf32>
!left = memref<8x8xf32, strided<[24, 1]>>
!middle = memref<8x8xf32, strided<[24, 1], offset: 8>>
!late = memref<8x8xf32, strided<[24, 1], offset: 4>>

// Nor where rows lie at other distances, but where both are parts of wider rows, side by side. What
// overlaps stays, too.

// CHECK-LABEL: boa.kernel @strides
// CHECK:         linalg.generic
// CHECK:         kernel.gemm {{.*}} {accumulate}
// CHECK-NOT:     linalg.generic
// CHECK:         kernel.gemm {{.*}} plus
// CHECK:         linalg.generic
// CHECK:         kernel.gemm {{.*}} {accumulate}
boa.kernel @strides(%p: !llvm.ptr, %q: !llvm.ptr) {
  %x = kernel.view %p + 0 : !rows
  %y = kernel.view %q + 0 : memref<8x24xf32>
  %0 = memref.subview %y[0, 0] [8, 8] [1, 1] : memref<8x24xf32> to !left
  %1 = memref.subview %y[0, 8] [8, 8] [1, 1] : memref<8x24xf32> to !middle
  %2 = memref.subview %y[0, 4] [8, 8] [1, 1] : memref<8x24xf32> to !late
  linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]}
      ins(%x : !rows) outs(%0 : !left) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  }
  kernel.gemm %x, %x into %0 {accumulate} : (!rows, !rows, !left) -> ()
  linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]}
      ins(%0 : !left) outs(%1 : !middle) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  }
  kernel.gemm %x, %x into %1 {accumulate} : (!rows, !rows, !middle) -> ()
  linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]}
      ins(%0 : !left) outs(%2 : !late) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  }
  kernel.gemm %x, %x into %2 {accumulate} : (!rows, !rows, !late) -> ()
  boa.return
}
