// RUN: boa-opt %s --split-input-file --verify-diagnostics

// Lowerings rely on blocks, sizes and numbers of heads.

// expected-error @below {{'kernel.parallel' op expected two arguments of its block, the indices begin and end}}
"kernel.parallel"() <{count = 4 : i64, grain = 1 : i64}> ({^bb0: }) : () -> ()

// -----

// expected-error @below {{'kernel.parallel' op expected a count of at least 0, and a grain of at least 1}}
kernel.parallel 4 grain 0 {
^bb0(%begin: index, %end: index):
}

// -----

func.func @f(%a: memref<4x8xf32>, %b: memref<4x8xf32>, %c: memref<4x8xf32>) {
  // expected-error @below {{'kernel.gemm' op expected shapes that fit one another but found 'memref<4x8xf32>', 'memref<4x8xf32>', 'memref<4x8xf32>'}}
  kernel.gemm %a, %b into %c : (memref<4x8xf32>, memref<4x8xf32>, memref<4x8xf32>) -> ()
  return
}

// -----

func.func @f(%a: memref<?x8xf32>) {
  // expected-error @below {{'kernel.gemm' op expected operands of static shape, of 1 to 2^40 elements, but found 'memref<?x8xf32>'}}
  kernel.gemm %a, %a into %a : (memref<?x8xf32>, memref<?x8xf32>, memref<?x8xf32>) -> ()
  return
}

// -----

func.func @f(%q: memref<1x4x8xf32>, %lse: memref<1x2x4xf32>) {
  // expected-error @below {{'kernel.attention' op expected kv_heads to divide heads, and a window of 1 or more}}
  kernel.attention %q, %q, %q into %q, %lse {heads = 0 : i64, kv_heads = 2 : i64} : (memref<1x4x8xf32>, memref<1x4x8xf32>, memref<1x4x8xf32>, memref<1x4x8xf32>, memref<1x2x4xf32>) -> ()
  return
}
