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
