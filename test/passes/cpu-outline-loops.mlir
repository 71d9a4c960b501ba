// RUN: boa-opt %s --cpu-outline-loops --split-input-file --verify-diagnostics | FileCheck %s
// RUN: not boa-opt %s --cpu-outline-loops --split-input-file --remarks-filter=boa-kernel 2>&1 \
// RUN:   | FileCheck %s --check-prefix=REMARK

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
// CHECK-LABEL: boa.kernel @k
// CHECK:         %[[OFFSET:.*]] = llvm.mlir.constant(5000000000 : i64)
// CHECK:         %[[FIRST:.*]] = llvm.getelementptr %{{.*}}[%[[OFFSET]]]
// CHECK:         llvm.store %[[FIRST]]
// CHECK:         %[[F:.*]] = func.constant @k_part0
// CHECK:         call @boa_rt_parallel_for
// CHECK-NOT:     kernel.parallel
// REMARK: Passed] outline-loops | {{.*}} functions=1, loops=1
boa.kernel @k(%p: !llvm.ptr, %w: !llvm.ptr) {
  %x = kernel.view %p + 5000000000 : memref<8x8xf32>
  %part = memref.subview %x[0, 4] [8, 4] [1, 1] : memref<8x8xf32> to memref<8x4xf32, strided<[8, 1], offset: 4>>
  %y = kernel.view %w + 0 : memref<8xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  kernel.parallel 8 grain 4 {
  ^bb0(%begin: index, %end: index):
    scf.for %r = %begin to %end step %c1 {
      %0 = memref.load %part[%r, %c0] : memref<8x4xf32, strided<[8, 1], offset: 4>>
      memref.store %0, %y[%r] : memref<8xf32>
    }
  }
  boa.return
}

// -----

// Loops that do the same with other rows are one function: rows side by side, where the body
// knows no others, are an argument by themselves.

// CHECK-LABEL: func.func private @same_loop0
// CHECK:         %[[ROWS:.*]] = kernel.view %{{.*}} + 0 : memref<1x16xf32>
// CHECK-NOT:     memref.subview
// CHECK:         memref.load %[[ROWS]]
// CHECK-LABEL: func.func private @same_part0
// CHECK-NOT:   @same_loop1
// CHECK-NOT:   @same_part1
// CHECK-LABEL: boa.kernel @same(
// CHECK:         constant @same_part0
// CHECK:         %[[NEXT:.*]] = llvm.mlir.constant(64 : i64)
// CHECK:         llvm.getelementptr %{{.*}}[%[[NEXT]]]
// CHECK:         constant @same_part0
// REMARK: Passed] outline-loops | {{.*}} functions=1, loops=2
boa.kernel @same(%p: !llvm.ptr, %w: !llvm.ptr) {
  %x = kernel.view %p + 0 : memref<2x16xf32>
  %x0 = memref.subview %x[0, 0] [1, 16] [1, 1] : memref<2x16xf32> to memref<1x16xf32, strided<[16, 1]>>
  %x1 = memref.subview %x[1, 0] [1, 16] [1, 1] : memref<2x16xf32> to memref<1x16xf32, strided<[16, 1], offset: 16>>
  %y0 = kernel.view %w + 0 : memref<16xf32>
  %y1 = kernel.view %w + 64 : memref<16xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  kernel.parallel 16 grain 16 {
  ^bb0(%begin: index, %end: index):
    scf.for %c = %begin to %end step %c1 {
      %0 = memref.load %x0[%c0, %c] : memref<1x16xf32, strided<[16, 1]>>
      memref.store %0, %y0[%c] : memref<16xf32>
    }
  }
  kernel.parallel 16 grain 16 {
  ^bb0(%begin: index, %end: index):
    scf.for %c = %begin to %end step %c1 {
      %0 = memref.load %x1[%c0, %c] : memref<1x16xf32, strided<[16, 1], offset: 16>>
      memref.store %0, %y1[%c] : memref<16xf32>
    }
  }
  boa.return
}

// -----

// Kernels share them, too: a backward pass computes a forward pass again by the same code.

// CHECK-LABEL: func.func private @forward_part0
// CHECK-LABEL: boa.kernel @forward(
// CHECK:         constant @forward_part0
// CHECK-NOT:   @backward_
// CHECK-LABEL: boa.kernel @backward(
// CHECK:         constant @forward_part0
boa.kernel @forward(%p: !llvm.ptr) {
  %x = kernel.view %p + 0 : memref<16xf32>
  %zero = arith.constant 0.0 : f32
  kernel.parallel 16 grain 16 {
  ^bb0(%begin: index, %end: index):
    memref.store %zero, %x[%begin] : memref<16xf32>
  }
  boa.return
}
boa.kernel @backward(%p: !llvm.ptr, %w: !llvm.ptr) {
  %x = kernel.view %w + 128 : memref<16xf32>
  %zero = arith.constant 0.0 : f32
  kernel.parallel 16 grain 16 {
  ^bb0(%begin: index, %end: index):
    memref.store %zero, %x[%begin] : memref<16xf32>
  }
  boa.return
}

// -----

// Arguments are disjoint, as far as LLVM knows: of what a body uses other parts of, too, rows are none
// by themselves; nor are those of which it uses a part, whose type says where they are.

// CHECK-LABEL: func.func private @not_alone_loop0
// CHECK:         %[[X:.*]] = kernel.view %{{.*}} + 0 : memref<2x16xf32>
// CHECK:         memref.subview %[[X]][1, 0]
// CHECK:         memref.load
// CHECK-LABEL: func.func private @not_alone_loop1
// CHECK:         kernel.view %{{.*}} + 0 : memref<4x8xf32>
// CHECK:         memref.subview %{{.*}}[1, 0]
boa.kernel @not_alone(%p: !llvm.ptr, %w: !llvm.ptr) {
  %x = kernel.view %p + 0 : memref<2x16xf32>
  %row = memref.subview %x[1, 0] [1, 16] [1, 1] : memref<2x16xf32> to memref<1x16xf32, strided<[16, 1], offset: 16>>
  %y = kernel.view %w + 0 : memref<4x8xf32>
  %short = memref.subview %y[1, 0] [1, 8] [1, 1] : memref<4x8xf32> to memref<1x8xf32, strided<[8, 1], offset: 8>>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  kernel.parallel 16 grain 16 {
  ^bb0(%begin: index, %end: index):
    scf.for %c = %begin to %end step %c1 {
      %0 = memref.load %row[%c0, %c] : memref<1x16xf32, strided<[16, 1], offset: 16>>
      memref.store %0, %x[%c0, %c] : memref<2x16xf32>
    }
  }
  kernel.parallel 8 grain 8 {
  ^bb0(%begin: index, %end: index):
    scf.for %c = %begin to %end step %c1 {
      %part = memref.subview %short[0, 4] [1, 4] [1, 1] : memref<1x8xf32, strided<[8, 1], offset: 8>> to memref<1x4xf32, strided<[8, 1], offset: 12>>
      %0 = memref.load %part[%c0, %c] : memref<1x4xf32, strided<[8, 1], offset: 12>>
      memref.store %0, %part[%c0, %c0] : memref<1x4xf32, strided<[8, 1], offset: 12>>
    }
  }
  boa.return
}

// -----

// Rows that begin anywhere: those of which no less is known share a function. Here they begin at 0,
// 40, 80 and 120 bytes, of which 16 divides the first and the third.

// CHECK-LABEL: func.func private @uneven_loop0
// CHECK-SAME:    (%{{.*}}: !llvm.ptr {llvm.align = 16 : i64,
// CHECK-LABEL: func.func private @uneven_loop1
// CHECK-SAME:    (%{{.*}}: !llvm.ptr {llvm.align = 8 : i64,
// CHECK-NOT:   @uneven_loop2
// CHECK-LABEL: boa.kernel @uneven(
// CHECK:         constant @uneven_part0
// CHECK:         constant @uneven_part1
// CHECK:         constant @uneven_part0
// CHECK:         constant @uneven_part1
boa.kernel @uneven(%p: !llvm.ptr, %w: !llvm.ptr) {
  %x = kernel.view %p + 0 : memref<4x10xf32>
  %x0 = memref.subview %x[0, 0] [1, 10] [1, 1] : memref<4x10xf32> to memref<1x10xf32, strided<[10, 1]>>
  %x1 = memref.subview %x[1, 0] [1, 10] [1, 1] : memref<4x10xf32> to memref<1x10xf32, strided<[10, 1], offset: 10>>
  %x2 = memref.subview %x[2, 0] [1, 10] [1, 1] : memref<4x10xf32> to memref<1x10xf32, strided<[10, 1], offset: 20>>
  %x3 = memref.subview %x[3, 0] [1, 10] [1, 1] : memref<4x10xf32> to memref<1x10xf32, strided<[10, 1], offset: 30>>
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  kernel.parallel 10 grain 10 {
  ^bb0(%begin: index, %end: index):
    memref.store %zero, %x0[%c0, %begin] : memref<1x10xf32, strided<[10, 1]>>
  }
  kernel.parallel 10 grain 10 {
  ^bb0(%begin: index, %end: index):
    memref.store %zero, %x1[%c0, %begin] : memref<1x10xf32, strided<[10, 1], offset: 10>>
  }
  kernel.parallel 10 grain 10 {
  ^bb0(%begin: index, %end: index):
    memref.store %zero, %x2[%c0, %begin] : memref<1x10xf32, strided<[10, 1], offset: 20>>
  }
  kernel.parallel 10 grain 10 {
  ^bb0(%begin: index, %end: index):
    memref.store %zero, %x3[%c0, %begin] : memref<1x10xf32, strided<[10, 1], offset: 30>>
  }
  boa.return
}

// -----

// A bit takes a byte: the second row begins 512 bytes behind the first.

// CHECK-LABEL: boa.kernel @bits(
// CHECK:         %[[NEXT:.*]] = llvm.mlir.constant(512 : i64)
// CHECK:         %[[ROW:.*]] = llvm.getelementptr %{{.*}}[%[[NEXT]]]
// CHECK:         llvm.store %[[ROW]]
boa.kernel @bits(%p: !llvm.ptr, %w: !llvm.ptr) {
  %x = kernel.view %p + 0 : memref<2x512xi1>
  %row = memref.subview %x[1, 0] [1, 512] [1, 1] : memref<2x512xi1> to memref<1x512xi1, strided<[512, 1], offset: 512>>
  %c0 = arith.constant 0 : index
  %true = arith.constant true
  kernel.parallel 512 grain 512 {
  ^bb0(%begin: index, %end: index):
    memref.store %true, %row[%c0, %begin] : memref<1x512xi1, strided<[512, 1], offset: 512>>
  }
  boa.return
}

// -----

// What cannot be computed again in the body is refused.

boa.kernel @captures(%p: !llvm.ptr, %w: !llvm.ptr) {
  %x = kernel.view %p + 0 : memref<8xf32>
  %c0 = arith.constant 0 : index
  %v = memref.load %x[%c0] : memref<8xf32>
  // expected-error @below {{'kernel.parallel' op expected captured values to be views with static offsets}}
  kernel.parallel 8 grain 8 {
  ^bb0(%begin: index, %end: index):
    memref.store %v, %x[%begin] : memref<8xf32>
  }
  boa.return
}
