// RUN: boa-opt %s --kernel-elide-copies --canonicalize --split-input-file | FileCheck %s
// RUN: boa-opt %s --kernel-elide-copies --split-input-file --remarks-filter=boa-kernel 2>&1 \
// RUN:   | FileCheck %s --check-prefix=REMARK

#map = affine_map<(r, c) -> (r, c)>

// A temporary that is only copied gives way to its destination.

// CHECK-LABEL: func.func @in_place
// CHECK-NOT:     memref.alloc
// CHECK:         %[[SLICE:.*]] = memref.subview
// CHECK:         kernel.gemm %{{.*}}, %{{.*}} into %[[SLICE]]
// CHECK-NEXT:    return
// REMARK: Passed] elide-copies | {{.*}}Remark=in_place, {{.*}} copies=1, elided=1
func.func @in_place(%p: !llvm.ptr, %w: !llvm.ptr) attributes {boa.kernel} {
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
  return
}

// -----

#map = affine_map<(r, c) -> (r, c)>

// Not where the destination is read in between.

// CHECK-LABEL: func.func @read_between
// CHECK:         memref.alloc
// CHECK:         linalg.generic
// REMARK: Passed] elide-copies | {{.*}}Remark=read_between, {{.*}} copies=1, elided=0
func.func @read_between(%p: !llvm.ptr, %w: !llvm.ptr) attributes {boa.kernel} {
  %x = kernel.view %p + 0 : memref<8x8xf32>
  %y = kernel.view %w + 0 : memref<8x8xf32>
  %a = memref.alloc() : memref<8x8xf32>
  kernel.gemm %x, %y into %a : (memref<8x8xf32>, memref<8x8xf32>, memref<8x8xf32>) -> ()
  linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]}
      ins(%a : memref<8x8xf32>) outs(%y : memref<8x8xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  }
  return
}

// -----

#map = affine_map<(r, c) -> (r, c)>

// Nor where the destination changes while the temporary is still read.

// CHECK-LABEL: func.func @changed_after
// CHECK:         memref.alloc
// CHECK:         linalg.generic
func.func @changed_after(%p: !llvm.ptr, %w: !llvm.ptr) attributes {boa.kernel} {
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
  return
}

// -----

#map = affine_map<(r, c) -> (r, c)>

// A copy of memory to itself is no copy.

// CHECK-LABEL: func.func @itself
// CHECK-NOT:     linalg.generic
func.func @itself(%p: !llvm.ptr, %w: !llvm.ptr) attributes {boa.kernel} {
  %x = kernel.view %p + 0 : memref<8x8xf32>
  linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]}
      ins(%x : memref<8x8xf32>) outs(%x : memref<8x8xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  }
  return
}
