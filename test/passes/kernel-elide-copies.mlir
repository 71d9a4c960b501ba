// RUN: boa-opt %s --kernel-elide-copies --canonicalize --split-input-file | FileCheck %s
// RUN: boa-opt %s --kernel-elide-copies --split-input-file --remarks-filter=boa-kernel 2>&1 \
// RUN:   | FileCheck %s --check-prefix=REMARK

#map = affine_map<(r, c) -> (r, c)>

// A temporary that is only copied gives way to its destination.

// CHECK-LABEL: boa.kernel @in_place
// CHECK-NOT:     memref.alloc
// CHECK:         %[[SLICE:.*]] = memref.subview
// CHECK:         kernel.gemm %{{.*}}, %{{.*}} into %[[SLICE]]
// CHECK-NEXT:    return
// REMARK: Passed] elide-copies | {{.*}}Remark=in_place, {{.*}} copies=1, elided=1
boa.kernel @in_place(%p: !llvm.ptr, %w: !llvm.ptr) {
  %x = kernel.view %p + 0 : memref<8x8xf32>
  %y = kernel.view %w + 0 : memref<8x24xf32>
  %a = memref.alloc() : memref<8x8xf32>
  kernel.gemm %x, %x into %a : (memref<8x8xf32>, memref<8x8xf32>, memref<8x8xf32>) -> ()
  %s = memref.subview %y[0, 8] [8, 8] [1, 1] : memref<8x24xf32> to memref<8x8xf32, strided<[24, 1], offset: 8>>
  linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]}
      ins(%a : memref<8x8xf32>) outs(%s : memref<8x8xf32, strided<[24, 1], offset: 8>>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  }
  boa.return
}

// -----

#map = affine_map<(r, c) -> (r, c)>

// Not where the destination is read in between.

// CHECK-LABEL: boa.kernel @read_between
// CHECK:         memref.alloc
// CHECK:         linalg.generic
// REMARK: Passed] elide-copies | {{.*}}Remark=read_between, {{.*}} copies=1, elided=0
boa.kernel @read_between(%p: !llvm.ptr, %w: !llvm.ptr) {
  %x = kernel.view %p + 0 : memref<8x8xf32>
  %y = kernel.view %w + 0 : memref<8x8xf32>
  %a = memref.alloc() : memref<8x8xf32>
  kernel.gemm %x, %y into %a : (memref<8x8xf32>, memref<8x8xf32>, memref<8x8xf32>) -> ()
  linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]}
      ins(%a : memref<8x8xf32>) outs(%y : memref<8x8xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  }
  boa.return
}

// -----

#map = affine_map<(r, c) -> (r, c)>

// Nor where the destination changes while the temporary is still read.

// CHECK-LABEL: boa.kernel @changed_after
// CHECK:         memref.alloc
// CHECK:         linalg.generic
boa.kernel @changed_after(%p: !llvm.ptr, %w: !llvm.ptr) {
  %x = kernel.view %p + 0 : memref<8x8xf32>
  %y = kernel.view %w + 0 : memref<8x8xf32>
  %a = memref.alloc() : memref<8x8xf32>
  kernel.gemm %x, %x into %a : (memref<8x8xf32>, memref<8x8xf32>, memref<8x8xf32>) -> ()
  linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]}
      ins(%a : memref<8x8xf32>) outs(%y : memref<8x8xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  }
  kernel.gemm %x, %a into %y {accumulate} : (memref<8x8xf32>, memref<8x8xf32>, memref<8x8xf32>) -> ()
  boa.return
}

// -----

#map = affine_map<(r, c) -> (r, c)>

// A copy of memory to itself is no copy.

// CHECK-LABEL: boa.kernel @itself
// CHECK-NOT:     linalg.generic
boa.kernel @itself(%p: !llvm.ptr, %w: !llvm.ptr) {
  %x = kernel.view %p + 0 : memref<8x8xf32>
  linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]}
      ins(%x : memref<8x8xf32>) outs(%x : memref<8x8xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  }
  boa.return
}
