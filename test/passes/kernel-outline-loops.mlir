// RUN: boa-opt %s --kernel-outline-loops --split-input-file --verify-diagnostics | FileCheck %s

// The body becomes a function of noalias pointers and a range; a second one, which
// the pool calls, loads them; the kernel stores them and makes the call. The offset is
// more than a constant index of getelementptr holds.

// CHECK:       func.func private @boa_rt_parallel_for(i64, i64, !llvm.ptr, !llvm.ptr)
// CHECK-LABEL: func.func private @k_loop0
// CHECK-SAME:    (%[[P:.*]]: !llvm.ptr {llvm.align = 64 : i64, llvm.noalias, llvm.noundef}, %[[Q:.*]]: !llvm.ptr {{.*}}, %[[BEGIN:.*]]: index, %[[END:.*]]: index)
// CHECK-SAME:    llvm.linkage = #llvm.linkage<internal>
// CHECK:         %[[X:.*]] = kernel.view %[[P]] + 0 : memref<8x8xf32>
// CHECK:         %[[PART:.*]] = memref.subview %[[X]][0, 4]
// CHECK:         scf.for %{{.*}} = %[[BEGIN]] to %[[END]]
// CHECK-LABEL: func.func private @k_part0
// CHECK-SAME:    (%[[DATA:.*]]: !llvm.ptr, %{{.*}}: i64, %{{.*}}: i64)
// CHECK:         call @k_loop0
// CHECK-LABEL: func.func @k
// CHECK:         %[[OFFSET:.*]] = llvm.mlir.constant(5000000000 : i64)
// CHECK:         %[[FIRST:.*]] = llvm.getelementptr %{{.*}}[%[[OFFSET]]]
// CHECK:         llvm.store %[[FIRST]]
// CHECK:         %[[F:.*]] = constant @k_part0
// CHECK:         call @boa_rt_parallel_for
// CHECK-NOT:     kernel.parallel
func.func @k(%p: !llvm.ptr, %w: !llvm.ptr) attributes {boa.kernel} {
  %x = kernel.view %p + 5000000000 : memref<8x8xf32>
  %part = memref.subview %x[0, 4] [8, 4] [1, 1] : memref<8x8xf32> to memref<8x4xf32, strided<[8, 1], offset: 4>>
  %y = kernel.view %w + 0 : memref<8xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  kernel.parallel (%begin, %end) of 8 grain 4 {
    scf.for %r = %begin to %end step %c1 {
      %0 = memref.load %part[%r, %c0] : memref<8x4xf32, strided<[8, 1], offset: 4>>
      memref.store %0, %y[%r] : memref<8xf32>
    }
  }
  return
}

// -----

// Loops that do the same with other rows are one function: rows side by side, where the body
// knows no others, are a view.

// CHECK-LABEL: func.func private @same_loop0
// CHECK:         %[[ROWS:.*]] = kernel.view %{{.*}} + 0 : memref<1x16xf32>
// CHECK-NOT:     memref.subview
// CHECK:         memref.load %[[ROWS]]
// CHECK-LABEL: func.func private @same_part0
// CHECK-NOT:   @same_loop1
// CHECK-NOT:   @same_part1
// CHECK-LABEL: func.func @same(
// CHECK:         constant @same_part0
// CHECK:         %[[NEXT:.*]] = llvm.mlir.constant(64 : i64)
// CHECK:         llvm.getelementptr %{{.*}}[%[[NEXT]]]
// CHECK:         constant @same_part0
func.func @same(%p: !llvm.ptr, %w: !llvm.ptr) attributes {boa.kernel} {
  %x = kernel.view %p + 0 : memref<2x16xf32>
  %x0 = memref.subview %x[0, 0] [1, 16] [1, 1] : memref<2x16xf32> to memref<1x16xf32, strided<[16, 1]>>
  %x1 = memref.subview %x[1, 0] [1, 16] [1, 1] : memref<2x16xf32> to memref<1x16xf32, strided<[16, 1], offset: 16>>
  %y0 = kernel.view %w + 0 : memref<16xf32>
  %y1 = kernel.view %w + 64 : memref<16xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  kernel.parallel (%begin, %end) of 16 grain 16 {
    scf.for %c = %begin to %end step %c1 {
      %0 = memref.load %x0[%c0, %c] : memref<1x16xf32, strided<[16, 1]>>
      memref.store %0, %y0[%c] : memref<16xf32>
    }
  }
  kernel.parallel (%begin, %end) of 16 grain 16 {
    scf.for %c = %begin to %end step %c1 {
      %0 = memref.load %x1[%c0, %c] : memref<1x16xf32, strided<[16, 1], offset: 16>>
      memref.store %0, %y1[%c] : memref<16xf32>
    }
  }
  return
}

// -----

// Different views are disjoint, as far as LLVM knows: of what a body uses other parts of, too, rows
// are no view; nor are those that do not begin where a view may.

// CHECK-LABEL: func.func private @not_views_loop0
// CHECK:         %[[X:.*]] = kernel.view %{{.*}} + 0 : memref<2x16xf32>
// CHECK:         memref.subview %[[X]][1, 0]
// CHECK:         memref.load
// CHECK-LABEL: func.func private @not_views_loop1
// CHECK:         kernel.view %{{.*}} + 0 : memref<4x8xf32>
// CHECK:         memref.subview %{{.*}}[1, 0]
func.func @not_views(%p: !llvm.ptr, %w: !llvm.ptr) attributes {boa.kernel} {
  %x = kernel.view %p + 0 : memref<2x16xf32>
  %row = memref.subview %x[1, 0] [1, 16] [1, 1] : memref<2x16xf32> to memref<1x16xf32, strided<[16, 1], offset: 16>>
  %y = kernel.view %w + 0 : memref<4x8xf32>
  %short = memref.subview %y[1, 0] [1, 8] [1, 1] : memref<4x8xf32> to memref<1x8xf32, strided<[8, 1], offset: 8>>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  kernel.parallel (%begin, %end) of 16 grain 16 {
    scf.for %c = %begin to %end step %c1 {
      %0 = memref.load %row[%c0, %c] : memref<1x16xf32, strided<[16, 1], offset: 16>>
      memref.store %0, %x[%c0, %c] : memref<2x16xf32>
    }
  }
  kernel.parallel (%begin, %end) of 8 grain 8 {
    scf.for %c = %begin to %end step %c1 {
      %0 = memref.load %short[%c0, %c] : memref<1x8xf32, strided<[8, 1], offset: 8>>
      memref.store %0, %short[%c0, %c0] : memref<1x8xf32, strided<[8, 1], offset: 8>>
    }
  }
  return
}

// -----

// What cannot be computed again in the body is refused.

func.func @captures(%p: !llvm.ptr, %w: !llvm.ptr) attributes {boa.kernel} {
  %x = kernel.view %p + 0 : memref<8xf32>
  %c0 = arith.constant 0 : index
  %v = memref.load %x[%c0] : memref<8xf32>
  // expected-error @below {{'kernel.parallel' op expected captured values to be views with static offsets}}
  kernel.parallel (%begin, %end) of 8 grain 8 {
    memref.store %v, %x[%begin] : memref<8xf32>
  }
  return
}
