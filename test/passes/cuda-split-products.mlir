// RUN: boa-opt %s --cuda-split-products | FileCheck %s
// RUN: boa-opt %s --cuda-split-products --remarks-filter=boa-kernel 2>&1 \
// RUN:   | FileCheck %s --check-prefix=REMARK

!logits = memref<2x512x4099xbf16, strided<[2101248, 4104, 1]>>

// 4099 columns of logits are 4096 and 3. Each part reads its rows of the table and writes its columns. Of the gradients,
// the first sums over the columns: the few come first, and the many are added to them. The second has a row for
// each column of the logits.

// CHECK-LABEL: boa.kernel @head
// CHECK-DAG:     %[[X:.*]] = kernel.view %{{.*}} + 0 : memref<2x512x256xbf16>
// CHECK-DAG:     %[[TABLE:.*]] = kernel.view %{{.*}} + 1048576 : memref<4099x256xbf16>
// CHECK-DAG:     %[[L:.*]] = memref.subview %{{.*}}[0, 0, 0] [2, 512, 4099] [1, 1, 1]
// CHECK:         %[[FEW_B:.*]] = memref.subview %[[TABLE]][4096, 0] [3, 256] [1, 1]
// CHECK:         %[[FEW_C:.*]] = memref.subview %[[L]][0, 0, 4096] [2, 512, 3] [1, 1, 1]
// CHECK:         kernel.gemm %[[X]], %[[FEW_B]] into %[[FEW_C]] {transpose_b}
// CHECK:         %[[B:.*]] = memref.subview %[[TABLE]][0, 0] [4096, 256] [1, 1]
// CHECK:         %[[C:.*]] = memref.subview %[[L]][0, 0, 0] [2, 512, 4096] [1, 1, 1]
// CHECK:         kernel.gemm %[[X]], %[[B]] into %[[C]] {transpose_b}
// CHECK:         kernel.gemm %{{.*}}, %{{.*}} into %[[Y:.*]] : (memref<2x512x3xbf16, {{.*}}>, memref<3x256xbf16, {{.*}}>, memref<2x512x256xbf16>)
// CHECK:         kernel.gemm %{{.*}}, %{{.*}} into %[[Y]] {accumulate} : (memref<2x512x4096xbf16, {{.*}}>, memref<4096x256xbf16, {{.*}}>, memref<2x512x256xbf16>)
// CHECK:         %[[FEW_ROWS:.*]] = memref.subview %[[D:.*]][4096, 0] [3, 256] [1, 1]
// CHECK:         kernel.gemm %{{.*}}, %[[X]] into %[[FEW_ROWS]] {accumulate, transpose_a}
// CHECK:         %[[ROWS:.*]] = memref.subview %[[D]][0, 0] [4096, 256] [1, 1]
// CHECK:         kernel.gemm %{{.*}}, %[[X]] into %[[ROWS]] {accumulate, transpose_a}
// CHECK-NOT:     kernel.gemm
// CHECK:         return
// REMARK-COUNT-3: Passed] split-products | {{.*}} aligned=4096, columns=4099
// REMARK-NOT: remark:
boa.kernel @head(%p: !llvm.ptr, %w: !llvm.ptr, %q: !llvm.ptr) {
  %0 = kernel.argument %p[0]
  %x = kernel.view %0 + 0 : memref<2x512x256xbf16>
  %table = kernel.view %0 + 1048576 : memref<4099x256xbf16>
  %1 = kernel.argument %p[1]
  %y = kernel.view %1 + 0 : memref<2x512x256xbf16>
  %d = kernel.view %1 + 1048576 : memref<4099x256xf32>
  %padded = memref.alloc() : memref<2x512x4104xbf16>
  %l = memref.subview %padded[0, 0, 0] [2, 512, 4099] [1, 1, 1] : memref<2x512x4104xbf16> to !logits
  kernel.gemm %x, %table into %l {transpose_b} : (memref<2x512x256xbf16>, memref<4099x256xbf16>, !logits) -> ()
  kernel.gemm %l, %table into %y : (!logits, memref<4099x256xbf16>, memref<2x512x256xbf16>) -> ()
  kernel.gemm %l, %x into %d {accumulate, transpose_a} : (!logits, memref<2x512x256xbf16>, memref<4099x256xf32>) -> ()
  boa.return
}

// What stays: rows that begin anywhere, sums that a result in bf16 holds already, products in f32, small ones, and whole 16 bytes.

// CHECK-LABEL: boa.kernel @stay
// CHECK-NOT:     memref.subview
// CHECK:         return
boa.kernel @stay(%p: !llvm.ptr, %w: !llvm.ptr, %q: !llvm.ptr) {
  %0 = kernel.argument %p[0]
  %x = kernel.view %0 + 0 : memref<1024x256xbf16>
  %odd = kernel.view %0 + 1048576 : memref<256x4099xbf16>
  %even = kernel.view %0 + 4194304 : memref<4104x256xbf16>
  %1 = kernel.argument %p[1]
  %dense = kernel.view %1 + 0 : memref<1024x4099xbf16>
  kernel.gemm %x, %odd into %dense : (memref<1024x256xbf16>, memref<256x4099xbf16>, memref<1024x4099xbf16>) -> ()
  %whole = kernel.view %1 + 16777216 : memref<1024x4104xbf16>
  kernel.gemm %x, %even into %whole {transpose_b} : (memref<1024x256xbf16>, memref<4104x256xbf16>, memref<1024x4104xbf16>) -> ()
  %2 = kernel.argument %p[2]
  %few = kernel.view %2 + 0 : memref<16x257xbf16, strided<[264, 1]>>
  %b = kernel.view %2 + 16384 : memref<257x256xbf16>
  %c = kernel.view %2 + 262144 : memref<16x256xbf16>
  kernel.gemm %few, %b into %c : (memref<16x257xbf16, strided<[264, 1]>>, memref<257x256xbf16>, memref<16x256xbf16>) -> ()
  %many = kernel.view %2 + 1048576 : memref<4096x257xbf16, strided<[264, 1]>>
  %held = kernel.view %2 + 4194304 : memref<4096x256xbf16>
  kernel.gemm %many, %b into %held {accumulate} : (memref<4096x257xbf16, strided<[264, 1]>>, memref<257x256xbf16>, memref<4096x256xbf16>) -> ()
  %3 = kernel.argument %p[3]
  %wide = kernel.view %3 + 0 : memref<4096x257xf32, strided<[260, 1]>>
  %wideb = kernel.view %3 + 8388608 : memref<257x256xf32>
  %widec = kernel.view %3 + 16777216 : memref<4096x256xf32>
  kernel.gemm %wide, %wideb into %widec : (memref<4096x257xf32, strided<[260, 1]>>, memref<257x256xf32>, memref<4096x256xf32>) -> ()
  boa.return
}
