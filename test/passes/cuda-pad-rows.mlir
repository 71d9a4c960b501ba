// RUN: boa-opt %s --cuda-pad-rows | FileCheck %s
// RUN: boa-opt %s --cuda-pad-rows --remarks-filter=boa-kernel 2>&1 \
// RUN:   | FileCheck %s --check-prefix=REMARK
// RUN: boa-opt %s --cuda-pad-rows --kernel-form-groups --cuda-emit-groups --canonicalize --kernel-assign-workspace \
// RUN:   --cuda-outline-launches --cuda-emulate | FileCheck %s --check-prefix=CODE

#map = affine_map<(b, r, c) -> (b, r, c)>
#row = affine_map<(b, r, c) -> (b, r)>
!logits = memref<2x16x50257xbf16>

// Rows of 50257 bf16 are padded to 50264 where products read and write them, and what else does looks at
// the columns that there are. The workspace is as large as that, 2 x 16 x 50264 x 2 bytes: `max` is in
// registers.

// CHECK-LABEL: boa.kernel @logits
// CHECK:         %[[PADDED:.*]] = memref.alloc() : memref<2x16x50264xbf16>
// CHECK:         %[[L:.*]] = memref.subview %[[PADDED]][0, 0, 0] [2, 16, 50257] [1, 1, 1]
// CHECK:         kernel.gemm %{{.*}}, %{{.*}} into %[[L]] {transpose_b} : (memref<2x16x64xbf16>, memref<50257x64xbf16>, memref<2x16x50257xbf16, strided<[804224, 50264, 1]>>)
// CHECK:         linalg.generic {{.*}} ins(%[[L]] :
// CHECK:         kernel.gemm %[[L]], %{{.*}} into %{{.*}} :
// CODE-LABEL: boa.kernel @logits
// CODE-SAME:    workspace 3216896 {
// REMARK: Passed] pad-rows | {{.*}} columns=50257, padded=50264
// REMARK-NOT: remark:
boa.kernel @logits(%p: !llvm.ptr, %w: !llvm.ptr, %q: !llvm.ptr) {
  %0 = kernel.argument %p[0]
  %x = kernel.view %0 + 0 : memref<2x16x64xbf16>
  %table = kernel.view %0 + 4096 : memref<50257x64xbf16>
  %1 = kernel.argument %p[1]
  %y = kernel.view %1 + 0 : memref<2x16x64xbf16>
  %l = memref.alloc() : !logits
  %max = memref.alloc() : memref<2x16xf32>
  kernel.gemm %x, %table into %l {transpose_b} : (memref<2x16x64xbf16>, memref<50257x64xbf16>, !logits) -> ()
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%max : memref<2x16xf32>)
  linalg.generic {indexing_maps = [#map, #row], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%l : !logits) outs(%max : memref<2x16xf32>) {
  ^bb0(%in: bf16, %out: f32):
    %wide = arith.extf %in : bf16 to f32
    %m = arith.maximumf %wide, %out : f32
    linalg.yield %m : f32
  }
  linalg.generic {indexing_maps = [#row, #map], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%max : memref<2x16xf32>) outs(%l : !logits) {
  ^bb0(%in: f32, %out: bf16):
    %narrow = arith.truncf %in : f32 to bf16
    %s = arith.subf %out, %narrow : bf16
    linalg.yield %s : bf16
  }
  kernel.gemm %l, %table into %y : (!logits, memref<50257x64xbf16>, memref<2x16x64xbf16>) -> ()
  boa.return
}

// What is aligned stays, and what no product touches, and what somebody views otherwise.

// CHECK-LABEL: boa.kernel @stay
// CHECK-NOT:     memref.subview
// CHECK:         return
boa.kernel @stay(%p: !llvm.ptr, %w: !llvm.ptr, %q: !llvm.ptr) {
  %0 = kernel.argument %p[0]
  %x = kernel.view %0 + 0 : memref<16x8xbf16>
  %a = memref.alloc() : memref<16x24xbf16>
  %b = kernel.view %0 + 4096 : memref<8x24xbf16>
  kernel.gemm %x, %b into %a : (memref<16x8xbf16>, memref<8x24xbf16>, memref<16x24xbf16>) -> ()
  %f = memref.alloc() : memref<16x7xbf16>
  %zero = arith.constant 0.0 : bf16
  linalg.fill ins(%zero : bf16) outs(%f : memref<16x7xbf16>)
  %v = memref.alloc() : memref<16x9xbf16>
  %c = kernel.view %0 + 8192 : memref<8x9xbf16>
  kernel.gemm %x, %c into %v : (memref<16x8xbf16>, memref<8x9xbf16>, memref<16x9xbf16>) -> ()
  %e = memref.collapse_shape %v [[0, 1]] : memref<16x9xbf16> into memref<144xbf16>
  linalg.fill ins(%zero : bf16) outs(%e : memref<144xbf16>)
  boa.return
}

// A product reads what it adds and writes its sum by one stride: neither is padded, nor is a temporary between two.

// CHECK-LABEL: boa.kernel @residual
// CHECK-NOT:     memref.subview
// CHECK:         return
boa.kernel @residual(%p: !llvm.ptr, %w: !llvm.ptr, %q: !llvm.ptr) {
  %0 = kernel.argument %p[0]
  %x = kernel.view %0 + 0 : memref<16x12xbf16>
  %b = kernel.view %0 + 4096 : memref<12x12xbf16>
  %1 = kernel.argument %p[1]
  %y = kernel.view %1 + 0 : memref<16x12xbf16>
  %h = memref.alloc() : memref<16x12xbf16>
  kernel.gemm %x, %b into %h plus %x : (memref<16x12xbf16>, memref<12x12xbf16>, memref<16x12xbf16>, memref<16x12xbf16>) -> ()
  kernel.gemm %h, %b into %y plus %h : (memref<16x12xbf16>, memref<12x12xbf16>, memref<16x12xbf16>, memref<16x12xbf16>) -> ()
  boa.return
}
