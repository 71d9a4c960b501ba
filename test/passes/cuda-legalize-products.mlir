// RUN: boa-opt %s --cuda-legalize-products | FileCheck %s
// RUN: boa-opt %s --cuda-legalize-products --remarks-filter=boa-kernel 2>&1 \
// RUN:   | FileCheck %s --check-prefix=REMARK
// RUN: boa-opt %s --cuda-legalize-products --kernel-form-groups --kernel-assign-workspace \
// RUN:   | FileCheck %s --check-prefix=GROUPS

// The narrower operand is widened into a temporary, and every product has scratch. Groups take
// the cast.

// CHECK-LABEL: boa.kernel @widened
// CHECK-DAG:     %[[X:.*]] = kernel.view %{{.*}} + 0 : memref<2x32x64xf32>
// CHECK-DAG:     %[[W:.*]] = kernel.view %{{.*}} + 0 : memref<64x16xbf16>
// CHECK:         %[[WIDE:.*]] = memref.alloc() : memref<64x16xf32>
// CHECK:         linalg.generic {{.*}} ["parallel", "parallel"]} ins(%[[W]] : memref<64x16xbf16>) outs(%[[WIDE]] : memref<64x16xf32>)
// CHECK:           arith.extf
// CHECK:         %[[SCRATCH:.*]] = memref.alloc() {alignment = 256 : i64} : memref<33554432xi8>
// CHECK:         kernel.gemm %[[X]], %[[WIDE]] into %{{.*}} scratch %[[SCRATCH]] {accumulate} : (memref<2x32x64xf32>, memref<64x16xf32>, memref<2x32x16xf32>, memref<33554432xi8>) -> ()
// GROUPS-LABEL: boa.kernel @widened
// GROUPS-SAME:    workspace
// GROUPS:         kernel.group rows [64]
// GROUPS:         kernel.gemm
boa.kernel @widened(%p: !llvm.ptr, %w: !llvm.ptr, %q: !llvm.ptr) {
  %0 = kernel.argument %p[0]
  %1 = kernel.argument %p[1]
  %2 = kernel.argument %p[2]
  %x = kernel.view %0 + 0 : memref<2x32x64xf32>
  %b = kernel.view %1 + 0 : memref<64x16xbf16>
  %y = kernel.view %2 + 0 : memref<2x32x16xf32>
  kernel.gemm %x, %b into %y {accumulate} : (memref<2x32x64xf32>, memref<64x16xbf16>, memref<2x32x16xf32>) -> ()
  boa.return
}

// A bias is of the result's type.

// CHECK-LABEL: boa.kernel @bias
// CHECK:         %[[BIAS:.*]] = memref.alloc() : memref<16xbf16>
// CHECK:         linalg.generic {{.*}} outs(%[[BIAS]] : memref<16xbf16>)
// CHECK:           arith.truncf
// CHECK:         kernel.gemm %{{.*}}, %{{.*}} bias %[[BIAS]] into %{{.*}} scratch
// CHECK-NOT:     linalg.generic
// CHECK:         kernel.gemm %{{.*}}, %{{.*}} bias %{{.*}} into %{{.*}} scratch %{{.*}} : (memref<32x64xbf16>, memref<64x16xbf16>, memref<16xf32>, memref<32x16xf32>, memref<33554432xi8>)
boa.kernel @bias(%p: !llvm.ptr, %w: !llvm.ptr, %q: !llvm.ptr) {
  %x = kernel.view %p + 0 : memref<32x64xbf16>
  %b = kernel.view %p + 4096 : memref<64x16xbf16>
  %bias = kernel.view %p + 8192 : memref<16xf32>
  %y = kernel.view %p + 16384 : memref<32x16xbf16>
  %z = kernel.view %p + 32768 : memref<32x16xf32>
  kernel.gemm %x, %b bias %bias into %y : (memref<32x64xbf16>, memref<64x16xbf16>, memref<16xf32>, memref<32x16xbf16>) -> ()
  kernel.gemm %x, %b bias %bias into %z : (memref<32x64xbf16>, memref<64x16xbf16>, memref<16xf32>, memref<32x16xf32>) -> ()
  boa.return
}

// Of products of one weight, one after another, it is widened once; but anew when another was, or when
// it was written.

// CHECK-LABEL: boa.kernel @blocks
// CHECK-DAG:     %[[W:.*]] = kernel.view %{{.*}} + 0 : memref<64x16xbf16>
// CHECK-DAG:     %[[V:.*]] = kernel.view %{{.*}} + 2048 : memref<64x16xbf16>
// CHECK:         linalg.generic {{.*}} ins(%[[W]] : {{.*}}) outs(%[[WIDE:[^ ]*]] :
// CHECK-NOT:     linalg.generic
// CHECK-COUNT-2: kernel.gemm %{{.*}}, %[[WIDE]] into
// CHECK:         linalg.generic {{.*}} ins(%[[V]] : {{.*}}) outs(%[[OTHER:[^ ]*]] :
// CHECK:         kernel.gemm %{{.*}}, %[[OTHER]] into
// CHECK:         linalg.generic {{.*}} ins(%[[W]] : {{.*}}) outs(%[[AGAIN:[^ ]*]] :
// CHECK:         kernel.gemm %{{.*}}, %[[AGAIN]] into
// CHECK:         linalg.fill {{.*}} outs(%[[W]] :
// CHECK:         linalg.generic {{.*}} ins(%[[W]] : {{.*}}) outs(%[[CHANGED:[^ ]*]] :
// CHECK:         kernel.gemm %{{.*}}, %[[CHANGED]] into
// REMARK: :[[#@LINE+9]]:3: remark: [Passed] legalize-products | {{.*}}reads an operand that an earlier product widened
// REMARK-NOT: remark:
boa.kernel @blocks(%p: !llvm.ptr, %w: !llvm.ptr, %q: !llvm.ptr) {
  %b = kernel.view %w + 0 : memref<64x16xbf16>
  %c = kernel.view %w + 2048 : memref<64x16xbf16>
  %x = kernel.view %p + 0 : memref<32x64xf32>
  %y = kernel.view %p + 8192 : memref<32x16xf32>
  %zero = arith.constant 0.0 : bf16
  kernel.gemm %x, %b into %y : (memref<32x64xf32>, memref<64x16xbf16>, memref<32x16xf32>) -> ()
  kernel.gemm %x, %b into %y {accumulate} : (memref<32x64xf32>, memref<64x16xbf16>, memref<32x16xf32>) -> ()
  kernel.gemm %x, %c into %y {accumulate} : (memref<32x64xf32>, memref<64x16xbf16>, memref<32x16xf32>) -> ()
  kernel.gemm %x, %b into %y {accumulate} : (memref<32x64xf32>, memref<64x16xbf16>, memref<32x16xf32>) -> ()
  linalg.fill ins(%zero : bf16) outs(%b : memref<64x16xbf16>)
  kernel.gemm %x, %b into %y {accumulate} : (memref<32x64xf32>, memref<64x16xbf16>, memref<32x16xf32>) -> ()
  boa.return
}
