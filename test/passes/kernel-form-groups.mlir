// RUN: boa-opt %s --kernel-form-groups --split-input-file | FileCheck %s
// RUN: boa-opt %s --kernel-form-groups --split-input-file --remarks-filter=boa-kernel \
// RUN:   2>&1 | FileCheck %s --check-prefix=REMARK

#row = affine_map<(b, t, c) -> (b, t)>
#all = affine_map<(b, t, c) -> (b, t, c)>

// A reduction of a row and the elementwise op that uses it are one group over rows,
// which still holds linalg; the sum, which nothing else uses, is the group's own.

// CHECK-LABEL: boa.kernel @row_by_row
// CHECK:         %[[X:.*]] = kernel.view
// CHECK-NOT:     memref.alloc
// CHECK:         kernel.group rows [2, 64] {
// CHECK-NEXT:      %[[S:.*]] = memref.alloc() : memref<2x64xf32>
// CHECK-NEXT:      linalg.fill ins(%{{.*}}) outs(%[[S]]
// CHECK-NEXT:      linalg.generic {{.*}}"reduction"{{.*}} ins(%[[X]] {{.*}} outs(%[[S]]
// CHECK:           linalg.generic {{.*}} ins(%[[S]] {{.*}} outs(%[[X]]
// CHECK-NOT:     kernel.group
// CHECK:         return
// REMARK:       Passed] form-groups | {{.*}} axis=rows, ops=3, parts=128, temporaries=1
boa.kernel @row_by_row(%p: !llvm.ptr, %w: !llvm.ptr) {
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
  boa.return
}

// -----

#all = affine_map<(r, c) -> (r, c)>
#turned = affine_map<(r, c) -> (c, r)>

// A row of the second op needs all rows of the first: two groups. What both use is
// neither's own.

// CHECK-LABEL: boa.kernel @not_row_by_row
// CHECK:         memref.alloc
// CHECK-COUNT-2: kernel.group rows [8]
// REMARK:       Missed] form-groups | {{.*}} Reason="shares memory with another op, and one of them writes it, not row by row of [8]"
boa.kernel @not_row_by_row(%p: !llvm.ptr, %w: !llvm.ptr) {
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
  boa.return
}

// -----

#all = affine_map<(r, c) -> (r, c)>

// Two slices of one temporary, each written in its own columns, row by row: the
// temporary and its views move into the group together.

// CHECK-LABEL: boa.kernel @slices
// CHECK:         kernel.group rows [8] {
// CHECK-NEXT:      %[[T:.*]] = memref.alloc() : memref<8x16xf32>
// CHECK-DAG:       memref.subview %[[T]][0, 0]
// CHECK-DAG:       memref.subview %[[T]][0, 8]
// REMARK:       Passed] form-groups | {{.*}} axis=rows, ops=2, parts=8, temporaries=1
boa.kernel @slices(%p: !llvm.ptr, %w: !llvm.ptr) {
  %x = kernel.view %p + 0 : memref<8x8xf32>
  %t = memref.alloc() : memref<8x16xf32>
  %l = memref.subview %t[0, 0] [8, 8] [1, 1] : memref<8x16xf32> to memref<8x8xf32, strided<[16, 1]>>
  %r = memref.subview %t[0, 8] [8, 8] [1, 1] : memref<8x16xf32> to memref<8x8xf32, strided<[16, 1], offset: 8>>
  linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel"]}
      ins(%x : memref<8x8xf32>) outs(%l : memref<8x8xf32, strided<[16, 1]>>) {
  ^bb0(%a: f32, %b: f32):
    linalg.yield %a : f32
  }
  linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel"]}
      ins(%l : memref<8x8xf32, strided<[16, 1]>>) outs(%r : memref<8x8xf32, strided<[16, 1], offset: 8>>) {
  ^bb0(%a: f32, %b: f32):
    linalg.yield %a : f32
  }
  boa.return
}

// -----

#all = affine_map<(r, c) -> (r, c)>
#column = affine_map<(r, c) -> (c)>

// Sums over rows: a group over columns. Two of them share it, the third reads what
// the first is summing.

// CHECK-LABEL: boa.kernel @columns
// CHECK:         kernel.group columns [96] {
// CHECK-COUNT-2:   linalg.generic
// CHECK:         kernel.group columns [96] {
// CHECK-COUNT-1:   linalg.generic
// REMARK:       Missed] form-groups | {{.*}} Reason="shares memory with another op, and one of them writes it"
// REMARK:       Passed] form-groups | {{.*}} axis=columns, ops=2, parts=96, temporaries=0
boa.kernel @columns(%p: !llvm.ptr, %w: !llvm.ptr) {
  %x = kernel.view %p + 0 : memref<64x96xf32>
  %s = kernel.view %p + 65536 : memref<96xf32>
  %t = kernel.view %p + 131072 : memref<96xf32>
  %u = kernel.view %p + 262144 : memref<96xf32>
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
  linalg.generic {indexing_maps = [#all, #column, #column], iterator_types = ["reduction", "parallel"]}
      ins(%x, %s : memref<64x96xf32>, memref<96xf32>) outs(%u : memref<96xf32>) {
  ^bb0(%a: f32, %b: f32, %sum: f32):
    %0 = arith.mulf %a, %b : f32
    %1 = arith.addf %sum, %0 : f32
    linalg.yield %1 : f32
  }
  boa.return
}

// -----

#all = affine_map<(r, c) -> (r, c)>

// An op joins a group before a product only if it uses what that group wrote: the last
// one does not, and is computed where it is needed.

// CHECK-LABEL: boa.kernel @around_a_product
// CHECK:         kernel.group rows [8]
// CHECK:         kernel.gemm
// CHECK:         kernel.group rows [8]
// CHECK:         kernel.gemm
boa.kernel @around_a_product(%p: !llvm.ptr, %w: !llvm.ptr) {
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
  boa.return
}

// -----

#all = affine_map<(r, c) -> (r, c)>

// What a product computes is not there before it.

// CHECK-LABEL: boa.kernel @behind_a_product
// CHECK:         kernel.group rows [8]
// CHECK:         kernel.gemm
// CHECK:         kernel.group rows [8]
// REMARK:       Missed] form-groups | {{.*}} Reason="depends on kernel.gemm before it"
boa.kernel @behind_a_product(%p: !llvm.ptr, %w: !llvm.ptr) {
  %x = kernel.view %p + 0 : memref<8x8xf32>
  %y = kernel.view %p + 1024 : memref<8x8xf32>
  %z = kernel.view %p + 2048 : memref<8x8xf32>
  linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel"]}
      ins(%x : memref<8x8xf32>) outs(%y : memref<8x8xf32>) {
  ^bb0(%a: f32, %b: f32):
    linalg.yield %a : f32
  }
  kernel.gemm %y, %y into %z : (memref<8x8xf32>, memref<8x8xf32>, memref<8x8xf32>) -> ()
  linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel"]}
      ins(%z : memref<8x8xf32>) outs(%y : memref<8x8xf32>) {
  ^bb0(%a: f32, %b: f32):
    linalg.yield %a : f32
  }
  boa.return
}

// -----

#all = affine_map<(r, c) -> (r, c)>
#none = affine_map<(r, c) -> ()>

// A sum of everything has one part; nothing joins it.

// CHECK-LABEL: boa.kernel @everything
// CHECK:         kernel.group rows [8]
// CHECK:         kernel.group rows [] {
// CHECK-NEXT:      linalg.generic {{.*}}["reduction", "reduction"]
// REMARK:       Missed] form-groups | {{.*}} Reason="the one is parallel over rows, the other is not"
boa.kernel @everything(%p: !llvm.ptr, %w: !llvm.ptr) {
  %x = kernel.view %p + 0 : memref<8x8xf32>
  %s = kernel.view %p + 1024 : memref<f32>
  %one = arith.constant 1.0 : f32
  linalg.fill ins(%one : f32) outs(%x : memref<8x8xf32>)
  linalg.generic {indexing_maps = [#all, #none], iterator_types = ["reduction", "reduction"]}
      ins(%x : memref<8x8xf32>) outs(%s : memref<f32>) {
  ^bb0(%a: f32, %sum: f32):
    %0 = arith.addf %sum, %a : f32
    linalg.yield %0 : f32
  }
  boa.return
}

// -----

// Scattered rows are divided by columns too: rows may meet in one place.

// CHECK-LABEL: boa.kernel @scatter
// CHECK:         kernel.group columns [96] {
// CHECK-NEXT:      kernel.scatter_rows
boa.kernel @scatter(%p: !llvm.ptr, %w: !llvm.ptr) {
  %i = kernel.view %p + 0 : memref<2x3xi32>
  %x = kernel.view %p + 64 : memref<2x3x96xf32>
  %t = kernel.view %w + 0 : memref<7x96xf32>
  kernel.scatter_rows %i, %x into %t : (memref<2x3xi32>, memref<2x3x96xf32>, memref<7x96xf32>) -> ()
  boa.return
}
