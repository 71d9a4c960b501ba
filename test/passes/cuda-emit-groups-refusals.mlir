// RUN: boa-opt %s --cuda-emit-groups --split-input-file --verify-diagnostics

#all = affine_map<(r, c) -> (r, c)>
#row = affine_map<(r, c) -> (r)>

// Parts of a difference are not put together by differences.

boa.kernel @difference(%p: !llvm.ptr, %w: !llvm.ptr) {
  %x = kernel.view %p + 0 : memref<4x128xf32>
  %s = kernel.view %p + 4096 : memref<4xf32>
  kernel.group rows [4] {
    // expected-error @+1 {{'linalg.generic' op expected a sum, or another reduction that can combine partial results}}
    linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]}
        ins(%x : memref<4x128xf32>) outs(%s : memref<4xf32>) {
    ^bb0(%a: f32, %m: f32):
      %0 = arith.subf %m, %a : f32
      linalg.yield %0 : f32
    }
  }
  boa.return
}

// -----

#all = affine_map<(r, c) -> (r, c)>
#column = affine_map<(r, c) -> (c)>

boa.kernel @double(%p: !llvm.ptr, %w: !llvm.ptr) {
  %x = kernel.view %p + 0 : memref<4x128xf64>
  %s = kernel.view %p + 4096 : memref<128xf64>
  kernel.group columns [128] {
    // expected-error @+1 {{'linalg.generic' op expected a sum of 32 bits but found 'f64'}}
    linalg.generic {indexing_maps = [#all, #column], iterator_types = ["reduction", "parallel"]}
        ins(%x : memref<4x128xf64>) outs(%s : memref<128xf64>) {
    ^bb0(%a: f64, %m: f64):
      %0 = arith.addf %m, %a : f64
      linalg.yield %0 : f64
    }
  }
  boa.return
}

// -----

#all = affine_map<(r, h, c) -> (r, h, c)>
#some = affine_map<(r, h, c) -> (r, c)>

boa.kernel @partly(%p: !llvm.ptr, %w: !llvm.ptr) {
  %x = kernel.view %p + 0 : memref<4x8x128xf32>
  %s = kernel.view %p + 65536 : memref<4x128xf32>
  kernel.group rows [4] {
    // expected-error @+1 {{'linalg.generic' op expected one sum for each row}}
    linalg.generic {indexing_maps = [#all, #some], iterator_types = ["parallel", "reduction", "parallel"]}
        ins(%x : memref<4x8x128xf32>) outs(%s : memref<4x128xf32>) {
    ^bb0(%a: f32, %m: f32):
      %0 = arith.addf %m, %a : f32
      linalg.yield %0 : f32
    }
  }
  boa.return
}

// -----

#all = affine_map<(r, c) -> (r, c)>
#turned = affine_map<(r, c) -> (r, 127 - c)>

// One after the other a thread would read what was written; all at once nobody knows.

boa.kernel @itself(%p: !llvm.ptr, %w: !llvm.ptr) {
  %x = kernel.view %p + 0 : memref<4x128xf32>
  kernel.group rows [4] {
    // expected-error @+1 {{'linalg.generic' op expected not to read results of other iterations}}
    linalg.generic {indexing_maps = [#turned, #all], iterator_types = ["parallel", "parallel"]}
        ins(%x : memref<4x128xf32>) outs(%x : memref<4x128xf32>) {
    ^bb0(%a: f32, %out: f32):
      linalg.yield %a : f32
    }
  }
  boa.return
}

// -----

#all = affine_map<(r, c) -> (r, c)>
#row = affine_map<(r, c) -> (r)>

boa.kernel @one_for_all(%p: !llvm.ptr, %w: !llvm.ptr) {
  %x = kernel.view %p + 0 : memref<4x128xf32>
  %s = kernel.view %p + 4096 : memref<4xf32>
  kernel.group rows [4] {
    // expected-error @+1 {{'linalg.generic' op expected a result of its own for each iteration}}
    linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "parallel"]}
        ins(%x : memref<4x128xf32>) outs(%s : memref<4xf32>) {
    ^bb0(%a: f32, %out: f32):
      linalg.yield %a : f32
    }
  }
  boa.return
}
