// RUN: boa-opt %s --pass-pipeline='builtin.module(boa.kernel(cpu-keep-outer-loops,convert-scf-to-cf),cpu-convert-kernel-to-llvm)' | FileCheck %s
// RUN: boa-opt %s --cpu-keep-outer-loops --remarks-filter=boa-kernel 2>&1 \
// RUN:   | FileCheck %s --check-prefix=REMARK

// A loop around a loop is not unrolled, also with a condition between them; the innermost one may be.

// CHECK-DAG:   #[[UNROLL:.*]] = #llvm.loop_unroll<disable = true>
// CHECK-DAG:   #[[KEEP:.*]] = #llvm.loop_annotation<unroll = #[[UNROLL]]>
// CHECK-LABEL: boa.kernel @nested
// CHECK:         llvm.store
// CHECK:         llvm.br ^{{[^{]*$}}
// CHECK:         llvm.br {{.*}} {loop_annotation = #[[KEEP]]}
// CHECK-NOT:   loop_annotation
// REMARK: Passed] keep-outer-loops | {{.*}}Remark=nested, {{.*}} kept=1, loops=2
boa.kernel @nested(%y: !llvm.ptr, %p: i1) {
  %x = kernel.view %y + 0 : memref<4x8xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  %zero = arith.constant 0.0 : f32
  scf.for %i = %c0 to %c4 step %c1 {
    scf.if %p {
      scf.for %j = %c0 to %c8 step %c1 {
        memref.store %zero, %x[%i, %j] : memref<4x8xf32>
      }
    }
  }
  boa.return
}
