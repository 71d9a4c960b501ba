// RUN: boa-opt %s --kernel-form-loops --split-input-file | FileCheck %s

#row = affine_map<(b, t, c) -> (b, t)>
#all = affine_map<(b, t, c) -> (b, t, c)>
#column = affine_map<(b, t, c) -> (c)>

// A reduction of a row and the elementwise op that uses it share one loop over rows;
// the sum is carried in a register.

// CHECK-LABEL: func.func @row_by_row
// CHECK-COUNT-1: kernel.parallel (%[[BEGIN:.*]], %[[END:.*]]) of 128 grain
// CHECK:           scf.for %{{.*}} = %[[BEGIN]] to %[[END]]
// CHECK:             scf.for {{.*}} iter_args(
// CHECK:             memref.store %{{.*}} : memref<2x64xf32>
// CHECK:             scf.for
// CHECK:             memref.store %{{.*}} : memref<2x64x96xf32>
// CHECK-NOT:     kernel.parallel
// CHECK:         return
func.func @row_by_row(%p: !llvm.ptr, %w: !llvm.ptr) attributes {boa.kernel} {
  %x = kernel.view %p + 0 : memref<2x64x96xf32>
  %s = memref.alloc() : memref<2x64xf32>
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%s : memref<2x64xf32>)
  linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x : memref<2x64x96xf32>) outs(%s : memref<2x64xf32>) {
  ^bb0(%a: f32, %sum: f32):
    %0 = arith.addf %sum, %a fastmath<reassoc> : f32
    linalg.yield %0 : f32
  }
  linalg.generic {indexing_maps = [#row, #all], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%s : memref<2x64xf32>) outs(%x : memref<2x64x96xf32>) {
  ^bb0(%sum: f32, %a: f32):
    %0 = arith.mulf %sum, %a : f32
    linalg.yield %0 : f32
  }
  return
}

// -----

#all = affine_map<(r, c) -> (r, c)>
#turned = affine_map<(r, c) -> (c, r)>

// A row of the second op needs all rows of the first: two loops.

// CHECK-LABEL: func.func @not_row_by_row
// CHECK-COUNT-2: kernel.parallel
func.func @not_row_by_row(%p: !llvm.ptr, %w: !llvm.ptr) attributes {boa.kernel} {
  %x = kernel.view %p + 0 : memref<8x8xf32>
  %y = memref.alloc() : memref<8x8xf32>
  %z = kernel.view %p + 4096 : memref<8x8xf32>
  linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel"]}
      ins(%x : memref<8x8xf32>) outs(%y : memref<8x8xf32>) {
  ^bb0(%a: f32, %b: f32):
    %0 = arith.addf %a, %a : f32
    linalg.yield %0 : f32
  }
  linalg.generic {indexing_maps = [#turned, #all], iterator_types = ["parallel", "parallel"]}
      ins(%y : memref<8x8xf32>) outs(%z : memref<8x8xf32>) {
  ^bb0(%a: f32, %b: f32):
    linalg.yield %a : f32
  }
  return
}

// -----

#all = affine_map<(r, c) -> (r, c)>
#column = affine_map<(r, c) -> (c)>

// Sums over rows: divided by columns, rows in order inside. Two of them share a loop.

// CHECK-LABEL: func.func @columns
// CHECK-COUNT-1: kernel.parallel (%[[BEGIN:.*]], %[[END:.*]]) of 96 grain
// CHECK:           scf.for %[[R:.*]] = %{{.*}} to %{{.*}} step
// CHECK:             scf.for %[[C:.*]] = %[[BEGIN]] to %[[END]] step
// CHECK:               memref.load %{{.*}}[%[[R]], %[[C]]]
// CHECK-NOT:     kernel.parallel
// CHECK:         return
func.func @columns(%p: !llvm.ptr, %w: !llvm.ptr) attributes {boa.kernel} {
  %x = kernel.view %p + 0 : memref<64x96xf32>
  %s = kernel.view %p + 65536 : memref<96xf32>
  %t = kernel.view %p + 131072 : memref<96xf32>
  linalg.generic {indexing_maps = [#all, #column], iterator_types = ["reduction", "parallel"]}
      ins(%x : memref<64x96xf32>) outs(%s : memref<96xf32>) {
  ^bb0(%a: f32, %sum: f32):
    %0 = arith.addf %sum, %a : f32
    linalg.yield %0 : f32
  }
  linalg.generic {indexing_maps = [#all, #column], iterator_types = ["reduction", "parallel"]}
      ins(%x : memref<64x96xf32>) outs(%t : memref<96xf32>) {
  ^bb0(%a: f32, %sum: f32):
    %0 = arith.mulf %a, %a : f32
    %1 = arith.addf %sum, %0 : f32
    linalg.yield %1 : f32
  }
  return
}

// -----

#all = affine_map<(r, c) -> (r, c)>

// An op joins a loop before a product only if it uses what that loop wrote: the last
// one does not, and is computed where it is needed.

// CHECK-LABEL: func.func @around_a_product
// CHECK:         kernel.parallel
// CHECK:         kernel.gemm
// CHECK:         kernel.parallel
// CHECK:         kernel.gemm
func.func @around_a_product(%p: !llvm.ptr, %w: !llvm.ptr) attributes {boa.kernel} {
  %x = kernel.view %p + 0 : memref<8x8xf32>
  %y = kernel.view %p + 1024 : memref<8x8xf32>
  %z = kernel.view %p + 2048 : memref<8x8xf32>
  %v = kernel.view %p + 4096 : memref<8x8xf32>
  linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel"]}
      ins(%x : memref<8x8xf32>) outs(%y : memref<8x8xf32>) {
  ^bb0(%a: f32, %b: f32):
    linalg.yield %a : f32
  }
  kernel.gemm %y, %y into %z : (memref<8x8xf32>, memref<8x8xf32>, memref<8x8xf32>) -> ()
  linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel"]}
      ins(%x : memref<8x8xf32>) outs(%v : memref<8x8xf32>) {
  ^bb0(%a: f32, %b: f32):
    linalg.yield %a : f32
  }
  kernel.gemm %y, %z into %v {accumulate} : (memref<8x8xf32>, memref<8x8xf32>, memref<8x8xf32>) -> ()
  return
}

// -----

// Scattered rows are divided by columns too: rows may meet in one place.

// CHECK-LABEL: func.func @scatter
// CHECK:         kernel.parallel (%[[BEGIN:.*]], %[[END:.*]]) of 96 grain
// CHECK:           %[[TOKEN:.*]] = memref.load %{{.*}} : memref<2x3xi32>
// CHECK:           %[[ROW:.*]] = arith.index_cast %[[TOKEN]]
// CHECK:           scf.for %[[C:.*]] = %[[BEGIN]] to %[[END]] step
// CHECK:             memref.store %{{.*}}, %{{.*}}[%[[ROW]], %[[C]]] : memref<7x96xf32>
func.func @scatter(%p: !llvm.ptr, %w: !llvm.ptr) attributes {boa.kernel} {
  %i = kernel.view %p + 0 : memref<2x3xi32>
  %x = kernel.view %p + 64 : memref<2x3x96xf32>
  %t = kernel.view %w + 0 : memref<7x96xf32>
  kernel.scatter_rows %i, %x into %t : (memref<2x3xi32>, memref<2x3x96xf32>, memref<7x96xf32>) -> ()
  return
}
