// RUN: boa-opt %s --split-input-file --verify-diagnostics

#all = affine_map<(r, c) -> (r, c)>
#turned = affine_map<(r, c) -> (c, r)>
#column = affine_map<(r, c) -> (c)>

// Each op goes over the rows of its group, in parallel.

func.func @other_rows(%x: memref<8x8xf32>, %zero: f32) {
  kernel.group rows [4] {
    // expected-error @below {{'linalg.fill' op does not fit its group: expected parallel rows [4] but found loops [8, 8]}}
    linalg.fill ins(%zero : f32) outs(%x : memref<8x8xf32>)
  }
  return
}

// -----

#all = affine_map<(r, c) -> (r, c)>
#column = affine_map<(r, c) -> (c)>

func.func @sums_by_rows(%x: memref<8x8xf32>, %s: memref<8xf32>) {
  kernel.group rows [8] {
    // expected-error @below {{'linalg.generic' op does not fit its group: expected parallel rows [8] but found loops [8, 8]}}
    linalg.generic {indexing_maps = [#all, #column], iterator_types = ["reduction", "parallel"]}
        ins(%x : memref<8x8xf32>) outs(%s : memref<8xf32>) {
    ^bb0(%a: f32, %sum: f32):
      %0 = arith.addf %sum, %a : f32
      linalg.yield %0 : f32
    }
  }
  return
}

// -----

func.func @rows_by_columns(%x: memref<8x8xf32>, %zero: f32) {
  kernel.group columns [8] {
    // expected-error @below {{'linalg.fill' op does not fit its group: expected sums over rows, parallel in columns [8] but found loops [8, 8]}}
    linalg.fill ins(%zero : f32) outs(%x : memref<8x8xf32>)
  }
  return
}

// -----

#all = affine_map<(r, c) -> (r, c)>
#turned = affine_map<(r, c) -> (c, r)>

// Rows are independent: no op reads a row that another one writes elsewhere.

func.func @other_row(%x: memref<8x8xf32>, %y: memref<8x8xf32>, %zero: f32) {
  kernel.group rows [8] {
    linalg.fill ins(%zero : f32) outs(%x : memref<8x8xf32>)
    // expected-error @below {{'linalg.generic' op does not fit its group: shares memory with another op, and one of them writes it, not row by row of [8]}}
    linalg.generic {indexing_maps = [#turned, #all], iterator_types = ["parallel", "parallel"]}
        ins(%x : memref<8x8xf32>) outs(%y : memref<8x8xf32>) {
    ^bb0(%a: f32, %b: f32):
      linalg.yield %a : f32
    }
  }
  return
}

// -----

#all = affine_map<(r, c) -> (r, c)>
#turned = affine_map<(r, c) -> (c, r)>

// Nor does an op by itself: rows that are done at once would see one another.

func.func @turned_in_place(%x: memref<8x8xf32>) {
  kernel.group rows [8] {
    // expected-error @below {{'linalg.generic' op does not fit its group: reads its own results, not row by row of [8]}}
    linalg.generic {indexing_maps = [#turned, #all], iterator_types = ["parallel", "parallel"]}
        ins(%x : memref<8x8xf32>) outs(%x : memref<8x8xf32>) {
    ^bb0(%a: f32, %b: f32):
      linalg.yield %a : f32
    }
  }
  return
}

// -----

#all = affine_map<(r, c) -> (r, c)>
#column = affine_map<(r, c) -> (c)>

func.func @shared_columns(%x: memref<8x8xf32>, %s: memref<8xf32>) {
  kernel.group columns [8] {
    linalg.generic {indexing_maps = [#all, #column], iterator_types = ["reduction", "parallel"]}
        ins(%x : memref<8x8xf32>) outs(%s : memref<8xf32>) {
    ^bb0(%a: f32, %sum: f32):
      %0 = arith.addf %sum, %a : f32
      linalg.yield %0 : f32
    }
    // expected-error @below {{'linalg.generic' op does not fit its group: shares memory with another op, and one of them writes it}}
    linalg.generic {indexing_maps = [#all, #column], iterator_types = ["reduction", "parallel"]}
        ins(%x : memref<8x8xf32>) outs(%s : memref<8xf32>) {
    ^bb0(%a: f32, %sum: f32):
      %0 = arith.mulf %sum, %a : f32
      linalg.yield %0 : f32
    }
  }
  return
}

// -----

// Only what has loops over known extents is in a group: a product is a library's.

func.func @product(%x: memref<8x8xf32>) {
  kernel.group rows [8] {
    // expected-error @below {{'kernel.gemm' op is not expected in a group: it has no loops over static memrefs}}
    kernel.gemm %x, %x into %x : (memref<8x8xf32>, memref<8x8xf32>, memref<8x8xf32>) -> ()
  }
  return
}

// -----

func.func @dynamic(%x: memref<?x8xf32>, %zero: f32) {
  kernel.group rows [8] {
    // expected-error @below {{'linalg.fill' op is not expected in a group: it has no loops over static memrefs}}
    linalg.fill ins(%zero : f32) outs(%x : memref<?x8xf32>)
  }
  return
}

// -----

func.func @nothing() {
  // expected-error @below {{'kernel.group' op expected an op to compute}}
  kernel.group rows [8] {
    %t = memref.alloc() : memref<8xf32>
  }
  return
}
