// RUN: boa-opt %s --kernel-assign-workspace --split-input-file --verify-diagnostics | FileCheck %s
// RUN: not boa-opt %s --kernel-assign-workspace --split-input-file --remarks-filter=boa-kernel 2>&1 \
// RUN:   | FileCheck %s --check-prefix=REMARK

// The first temporary is dead when the third is made: they share memory. 64-byte
// alignment; the total is on the kernel.

// CHECK-LABEL: boa.kernel @reuse
// CHECK-SAME:    %[[W:[a-z0-9]*]]: !llvm.ptr) workspace 512 {
// CHECK-NOT:     memref.alloc
// CHECK:         kernel.view %[[W]] + 0 : memref<8x8xf32>
// CHECK:         kernel.view %[[W]] + 256 : memref<8x7xf32>
// CHECK:         kernel.view %[[W]] + 0 : memref<8x7xf32>
// REMARK: Analysis] assign-workspace | {{.*}}Remark=reuse, {{.*}} apart=768, bytes=512, temporaries=3
boa.kernel @reuse(%p: !llvm.ptr, %w: !llvm.ptr) {
  %x = kernel.view %p + 0 : memref<8x8xf32>
  %m = kernel.view %p + 256 : memref<8x7xf32>
  %n = kernel.view %p + 512 : memref<7x7xf32>
  %a = memref.alloc() : memref<8x8xf32>
  %b = memref.alloc() : memref<8x7xf32>
  %c = memref.alloc() : memref<8x7xf32>
  kernel.gemm %x, %x into %a : (memref<8x8xf32>, memref<8x8xf32>, memref<8x8xf32>) -> ()
  kernel.gemm %a, %m into %b : (memref<8x8xf32>, memref<8x7xf32>, memref<8x7xf32>) -> ()
  kernel.gemm %b, %n into %c : (memref<8x7xf32>, memref<7x7xf32>, memref<8x7xf32>) -> ()
  kernel.gemm %x, %c into %m : (memref<8x8xf32>, memref<8x7xf32>, memref<8x7xf32>) -> ()
  boa.return
}

// -----

// A temporary may ask for more than 64 bytes, as the scratch of a library does.

// CHECK-LABEL: boa.kernel @aligned
// CHECK-SAME:    workspace 320 {
// CHECK:         kernel.view %{{.*}} + 0 : memref<8x5xf32>
// CHECK:         kernel.view %{{.*}} + 256 : memref<64xi8>
boa.kernel @aligned(%p: !llvm.ptr, %w: !llvm.ptr) {
  %x = kernel.view %p + 0 : memref<8x8xf32>
  %m = kernel.view %p + 256 : memref<8x5xf32>
  %a = memref.alloc() : memref<8x5xf32>
  %s = memref.alloc() {alignment = 256 : i64} : memref<64xi8>
  kernel.gemm %x, %m into %a scratch %s : (memref<8x8xf32>, memref<8x5xf32>, memref<8x5xf32>, memref<64xi8>) -> ()
  kernel.gemm %x, %a into %m : (memref<8x8xf32>, memref<8x5xf32>, memref<8x5xf32>) -> ()
  boa.return
}

// -----

// A use through a view keeps it alive.

// CHECK-LABEL: boa.kernel @views
// CHECK-SAME:    workspace 512 {
// CHECK:         kernel.view %{{.*}} + 0 : memref<8x8xf32>
// CHECK:         kernel.view %{{.*}} + 256 : memref<8x8xf32>
boa.kernel @views(%p: !llvm.ptr, %w: !llvm.ptr) {
  %x = kernel.view %p + 0 : memref<8x8xf32>
  %a = memref.alloc() : memref<8x8xf32>
  %b = memref.alloc() : memref<8x8xf32>
  %v = memref.subview %a[0, 0] [8, 4] [1, 1] : memref<8x8xf32> to memref<8x4xf32, strided<[8, 1]>>
  kernel.gemm %x, %x into %a : (memref<8x8xf32>, memref<8x8xf32>, memref<8x8xf32>) -> ()
  kernel.gemm %x, %x into %b : (memref<8x8xf32>, memref<8x8xf32>, memref<8x8xf32>) -> ()
  kernel.gemm %b, %v into %v {accumulate} : (memref<8x8xf32>, memref<8x4xf32, strided<[8, 1]>>, memref<8x4xf32, strided<[8, 1]>>) -> ()
  boa.return
}

// -----

boa.kernel @dynamic(%p: !llvm.ptr, %w: !llvm.ptr) {
  %n = arith.constant 8 : index
  // expected-error @below {{expected a static size at the top of a kernel}}
  %a = memref.alloc(%n) : memref<?xf32>
  boa.return
}
