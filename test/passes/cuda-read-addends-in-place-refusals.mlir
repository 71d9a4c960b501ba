// RUN: boa-opt %s --split-input-file --verify-diagnostics --cuda-convert-kernel-to-llvm

// A product adds what lies elsewhere or what was there, of the shape and elements of its result, and with
// the same stride where cuBLASLt computes it.

func.func @both(%a: memref<8x4xf32>, %b: memref<4x4xf32>) {
  // expected-error @below {{expected an addend or accumulate, not both}}
  kernel.gemm %a, %b into %a plus %a {accumulate} : (memref<8x4xf32>, memref<4x4xf32>, memref<8x4xf32>, memref<8x4xf32>) -> ()
  return
}

// -----

func.func @shape(%a: memref<8x4xf32>, %b: memref<4x4xf32>) {
  // expected-error @below {{expected an addend of the shape and elements of c}}
  kernel.gemm %a, %b into %a plus %b : (memref<8x4xf32>, memref<4x4xf32>, memref<8x4xf32>, memref<4x4xf32>) -> ()
  return
}

// -----

func.func @elements(%a: memref<8x4xf32>, %b: memref<4x4xf32>, %c: memref<8x4xbf16>) {
  // expected-error @below {{expected an addend of the shape and elements of c}}
  kernel.gemm %a, %b into %a plus %c : (memref<8x4xf32>, memref<4x4xf32>, memref<8x4xf32>, memref<8x4xbf16>) -> ()
  return
}

// -----

boa.kernel @stride(%p: !llvm.ptr, %w: !llvm.ptr, %q: !llvm.ptr) {
  %a = kernel.view %p + 0 : memref<8x4xf32>
  %b = kernel.view %p + 256 : memref<4x4xf32>
  %wide = kernel.view %p + 512 : memref<8x8xf32>
  %c = memref.reinterpret_cast %wide to offset: [0], sizes: [8, 4], strides: [8, 1] : memref<8x8xf32> to memref<8x4xf32, strided<[8, 1]>>
  %y = kernel.view %p + 1024 : memref<8x4xf32>
  // expected-error @below {{'kernel.gemm' op expected the addend and c to have one stride of rows}}
  // expected-error @below {{failed to legalize operation 'kernel.gemm'}}
  kernel.gemm %a, %b into %y plus %c : (memref<8x4xf32>, memref<4x4xf32>, memref<8x4xf32>, memref<8x4xf32, strided<[8, 1]>>) -> ()
  boa.return
}
