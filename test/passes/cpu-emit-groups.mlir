// RUN: boa-opt %s --cpu-emit-groups --canonicalize --split-input-file | FileCheck %s

#row = affine_map<(b, t, c) -> (b, t)>
#all = affine_map<(b, t, c) -> (b, t, c)>

// One loop over rows of both leading dimensions; inside, each op's own loops over
// what remains of it. The temporary becomes the kernel's. A range is worth starting
// a thread for: 8192 iterations, which are 86 rows of 96.

// CHECK-LABEL: boa.kernel @rows
// CHECK:         %[[S:.*]] = memref.alloc() : memref<2x64xf32>
// CHECK:         kernel.parallel 128 grain 86
// CHECK-NEXT:    ^bb0(%[[BEGIN:.*]]: index, %[[END:.*]]: index):
// CHECK-NEXT:      scf.for %[[ROW:.*]] = %[[BEGIN]] to %[[END]]
// CHECK:             %[[T:.*]] = arith.remui %[[ROW]], %c64
// CHECK-NEXT:        %[[B:.*]] = arith.divui %[[ROW]], %c64
// CHECK-NEXT:        memref.store %{{.*}}, %[[S]][%[[B]], %[[T]]]
// CHECK-NEXT:        scf.for %[[C:.*]] = %c0 to %c96
// CHECK-NEXT:          memref.load %[[X:.*]][%[[B]], %[[T]], %[[C]]]
// CHECK-NEXT:          memref.load %[[S]][%[[B]], %[[T]]]
// CHECK-NEXT:          arith.addf
// CHECK-NEXT:          memref.store %{{.*}}, %[[S]]
// CHECK:             scf.for
// CHECK:               memref.store %{{.*}}, %[[X]]
// CHECK-NOT:     linalg
// CHECK-NOT:     kernel.group
// CHECK:         return
boa.kernel @rows(%p: !llvm.ptr, %w: !llvm.ptr) {
  %x = kernel.view %p + 0 : memref<2x64x96xf32>
  %zero = arith.constant 0.0 : f32
  kernel.group rows [2, 64] {
    %s = memref.alloc() : memref<2x64xf32>
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
  }
  boa.return
}

// -----

#all = affine_map<(r, c) -> (r, c)>
#column = affine_map<(r, c) -> (c)>

// Columns are divided, rows come in order, and a range of columns is the innermost
// loop: at least a cache line of them, and 8192 iterations.

// CHECK-LABEL: boa.kernel @columns
// CHECK:         kernel.parallel 96 grain 16
// CHECK-NEXT:    ^bb0(%[[BEGIN:.*]]: index, %[[END:.*]]: index):
// CHECK-NEXT:      scf.for %[[R:.*]] = %{{.*}} to %c1024
// CHECK-NEXT:        scf.for %[[C:.*]] = %[[BEGIN]] to %[[END]]
// CHECK-NEXT:          memref.load %{{.*}}[%[[R]], %[[C]]]
boa.kernel @columns(%p: !llvm.ptr, %w: !llvm.ptr) {
  %x = kernel.view %p + 0 : memref<1024x96xf32>
  %s = kernel.view %p + 1048576 : memref<96xf32>
  kernel.group columns [96] {
    linalg.generic {indexing_maps = [#all, #column], iterator_types = ["reduction", "parallel"]}
        ins(%x : memref<1024x96xf32>) outs(%s : memref<96xf32>) {
    ^bb0(%a: f32, %sum: f32):
      %0 = arith.addf %sum, %a : f32
      linalg.yield %0 : f32
    }
  }
  boa.return
}

// -----

// Scattered rows: each range of columns goes through all rows in order.

// CHECK-LABEL: boa.kernel @scatter
// CHECK:         kernel.parallel 96 grain
// CHECK-NEXT:    ^bb0(%[[BEGIN:.*]]: index, %[[END:.*]]: index):
// CHECK:           scf.for %[[C:.*]] = %[[BEGIN]] to %[[END]]
// CHECK:             %[[TOKEN:.*]] = memref.load %{{.*}} : memref<2x3xi32>
// CHECK:             %[[ROW:.*]] = arith.index_cast %[[TOKEN]]
// CHECK:             memref.store %{{.*}}, %{{.*}}[%[[ROW]], %[[C]]] : memref<7x96xf32>
boa.kernel @scatter(%p: !llvm.ptr, %w: !llvm.ptr) {
  %i = kernel.view %p + 0 : memref<2x3xi32>
  %x = kernel.view %p + 64 : memref<2x3x96xf32>
  %t = kernel.view %w + 0 : memref<7x96xf32>
  kernel.group columns [96] {
    kernel.scatter_rows %i, %x into %t : (memref<2x3xi32>, memref<2x3x96xf32>, memref<7x96xf32>) -> ()
  }
  boa.return
}

// -----

#all = affine_map<(r) -> (r)>
#none = affine_map<(r) -> ()>

// A group of one part has no loop over parts.

// CHECK-LABEL: boa.kernel @everything
// CHECK:         kernel.parallel 1 grain
// CHECK-NEXT:    ^bb0(
// CHECK-NEXT:      scf.for %[[R:.*]] = %c0 to %c64
// CHECK-NEXT:        memref.load %{{.*}}[%[[R]]]
// CHECK-NOT:     scf.for
boa.kernel @everything(%p: !llvm.ptr, %w: !llvm.ptr) {
  %x = kernel.view %p + 0 : memref<64xf32>
  %s = kernel.view %p + 1024 : memref<f32>
  kernel.group rows [] {
    linalg.generic {indexing_maps = [#all, #none], iterator_types = ["reduction"]}
        ins(%x : memref<64xf32>) outs(%s : memref<f32>) {
    ^bb0(%a: f32, %sum: f32):
      %0 = arith.addf %sum, %a : f32
      linalg.yield %0 : f32
    }
  }
  boa.return
}
