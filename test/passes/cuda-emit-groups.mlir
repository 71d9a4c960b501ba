// RUN: boa-opt %s --cuda-emit-groups --canonicalize --cse --split-input-file | FileCheck %s
// RUN: boa-opt %s --cuda-emit-groups --split-input-file --remarks-filter=boa-kernel 2>&1 \
// RUN:   | FileCheck %s --check-prefix=REMARK

#row = affine_map<(b, t, c) -> (b, t)>
#all = affine_map<(b, t, c) -> (b, t, c)>
#column = affine_map<(b, t, c) -> (c)>
#part = affine_map<(b, t) -> (b, t)>

// A warp for a row, eight rows a block. A thread loads its part of the row once, four
// elements side by side, and keeps it for both ops. What there is one of for a row
// every thread has after five shuffles: nobody waits, and of the temporary there is
// nothing in memory.

// CHECK-LABEL: boa.kernel @norm
// CHECK-NOT:     memref.alloc
// CHECK:         gpu.launch blocks(%[[BLOCK:.*]], %{{.*}}, %{{.*}}) in (%{{[^ ]*}} = %c16, %{{[^ ]*}} = %c1, %{{[^ ]*}} = %c1)
// CHECK-SAME:        threads(%[[LANE:.*]], %[[WARP:.*]], %{{.*}}) in (%{{[^ ]*}} = %c32, %{{[^ ]*}} = %c8, %{{[^ ]*}} = %c1)
// CHECK:           %[[FIRST:.*]] = arith.muli %[[BLOCK]], %c8
// CHECK:           %[[ROW:.*]] = arith.addi %[[FIRST]], %[[WARP]]
// CHECK:           %[[T:.*]] = arith.remui %[[ROW]], %c64
// CHECK:           %[[B:.*]] = arith.divui %[[ROW]], %c64
// CHECK:           %[[C0:.*]] = arith.muli %[[LANE]], %c4
// CHECK:           %[[C1:.*]] = arith.addi %[[C0]], %c1
// CHECK:           %[[X0:.*]] = memref.load %[[X:.*]][%[[B]], %[[T]], %[[C0]]]
// CHECK-NEXT:      memref.load %[[X]][%[[B]], %[[T]], %[[C1]]]
// CHECK-COUNT-6:   memref.load %[[X]]
// CHECK-COUNT-5:   gpu.shuffle xor
// CHECK-NOT:       memref.load %[[X]]
// CHECK-NOT:       gpu.barrier
// CHECK:           math.rsqrt
// CHECK:           memref.load %[[WEIGHT:.*]][%[[C0]]] : memref<256xf32>
// CHECK:           memref.store %{{.*}}, %[[Y:.*]][%[[B]], %[[T]], %[[C0]]]
// CHECK-NEXT:      memref.store %{{.*}}, %[[Y]][%[[B]], %[[T]], %[[C1]]]
// CHECK-COUNT-6:   memref.store %{{.*}}, %[[Y]]
// CHECK-NEXT:      gpu.terminator
// CHECK-NOT:     kernel.group
boa.kernel @norm(%p: !llvm.ptr, %w: !llvm.ptr) {
  %x = kernel.view %p + 0 : memref<2x64x256xf32>
  %y = kernel.view %p + 131072 : memref<2x64x256xf32>
  %weight = kernel.view %w + 0 : memref<256xf32>
  %zero = arith.constant 0.0 : f32
  %width = arith.constant 256.0 : f32
  kernel.group rows [2, 64] {
    %s = memref.alloc() : memref<2x64xf32>
    linalg.fill ins(%zero : f32) outs(%s : memref<2x64xf32>)
    linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%x : memref<2x64x256xf32>) outs(%s : memref<2x64xf32>) {
    ^bb0(%a: f32, %sum: f32):
      %0 = arith.mulf %a, %a : f32
      %1 = arith.addf %sum, %0 fastmath<reassoc> : f32
      linalg.yield %1 : f32
    }
    linalg.generic {indexing_maps = [#part, #part], iterator_types = ["parallel", "parallel"]}
        ins(%s : memref<2x64xf32>) outs(%s : memref<2x64xf32>) {
    ^bb0(%a: f32, %out: f32):
      %0 = arith.divf %a, %width : f32
      %1 = math.rsqrt %0 : f32
      linalg.yield %1 : f32
    }
    linalg.generic {indexing_maps = [#row, #all, #column, #all], iterator_types = ["parallel", "parallel", "parallel"]}
        ins(%s, %x, %weight : memref<2x64xf32>, memref<2x64x256xf32>, memref<256xf32>) outs(%y : memref<2x64x256xf32>) {
    ^bb0(%r: f32, %a: f32, %b: f32, %out: f32):
      %0 = arith.mulf %r, %a : f32
      %1 = arith.mulf %0, %b : f32
      linalg.yield %1 : f32
    }
  }
  boa.return
}

// -----

#all = affine_map<(r, c) -> (r, c)>
#row = affine_map<(r, c) -> (r)>

// What others read of a row's is written once, by one thread. It is read by all of
// them before: that needs a barrier.

// CHECK-LABEL: boa.kernel @statistic
// CHECK:         gpu.launch
// CHECK-SAME:        in (%{{[^ ]*}} = %c32, %{{[^ ]*}} = %c4,
// CHECK:           memref.load %[[S:.*]][%{{.*}}] : memref<4xf32>
// CHECK:           gpu.shuffle
// CHECK-NOT:       memref.store
// CHECK:           gpu.barrier
// CHECK-NEXT:      %[[FIRST:.*]] = arith.cmpi eq, %{{.*}}, %c0
// CHECK-NEXT:      scf.if %[[FIRST]]
// CHECK-NEXT:        memref.store %{{.*}}, %[[S]]
// CHECK-NOT:       memref.store
boa.kernel @statistic(%p: !llvm.ptr, %w: !llvm.ptr) {
  %x = kernel.view %p + 0 : memref<4x128xf32>
  %s = kernel.view %p + 4096 : memref<4xf32>
  kernel.group rows [4] {
    linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]}
        ins(%x : memref<4x128xf32>) outs(%s : memref<4xf32>) {
    ^bb0(%a: f32, %m: f32):
      %0 = arith.maximumf %m, %a : f32
      linalg.yield %0 : f32
    }
  }
  boa.return
}

// -----

#all = affine_map<(r, c) -> (r, c)>
#row = affine_map<(r, c) -> (r)>
#turned = affine_map<(r, c) -> (r, 127 - c)>

// Elements that another thread computed come through memory, behind a barrier.

// CHECK-LABEL: boa.kernel @turned
// CHECK:         %[[T:.*]] = memref.alloc() : memref<4x128xf32>
// CHECK:         gpu.launch
// CHECK:           memref.store %{{.*}}, %[[T]]
// CHECK:           gpu.barrier
// CHECK-NOT:       memref.store
// CHECK:           memref.load %[[T]]
boa.kernel @turned(%p: !llvm.ptr, %w: !llvm.ptr) {
  %x = kernel.view %p + 0 : memref<4x128xf32>
  %y = kernel.view %p + 4096 : memref<4x128xf32>
  kernel.group rows [4] {
    %t = memref.alloc() : memref<4x128xf32>
    linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel"]}
        ins(%x : memref<4x128xf32>) outs(%t : memref<4x128xf32>) {
    ^bb0(%a: f32, %out: f32):
      %0 = arith.mulf %a, %a : f32
      linalg.yield %0 : f32
    }
    linalg.generic {indexing_maps = [#turned, #all], iterator_types = ["parallel", "parallel"]}
        ins(%t : memref<4x128xf32>) outs(%y : memref<4x128xf32>) {
    ^bb0(%a: f32, %out: f32):
      linalg.yield %a : f32
    }
  }
  boa.return
}

// -----

#all = affine_map<(r, c) -> (r, c)>
#row = affine_map<(r, c) -> (r)>

// A wide row takes several warps, whose sums meet in workgroup memory. Its own
// temporary stays in registers.

// CHECK-LABEL: boa.kernel @wide
// CHECK-NOT:     memref.alloc
// CHECK:         gpu.launch
// CHECK-SAME:        in (%{{[^ ]*}} = %c6, %{{[^ ]*}} = %c1, %{{[^ ]*}} = %c1)
// CHECK-SAME:        in (%{{[^ ]*}} = %c256, %{{[^ ]*}} = %c1, %{{[^ ]*}} = %c1)
// CHECK-SAME:        workgroup(%[[M:.*]] : memref<8xf32, #gpu.address_space<workgroup>>
// CHECK-COUNT-5:   gpu.shuffle xor
// CHECK:           scf.if
// CHECK-NEXT:        memref.store %{{.*}}, %[[M]]
// CHECK:           gpu.barrier
// CHECK:           memref.load %[[M]]
// CHECK-COUNT-3:   gpu.shuffle xor
// CHECK-NOT:       gpu.barrier
// CHECK:           memref.store
boa.kernel @wide(%p: !llvm.ptr, %w: !llvm.ptr) {
  %x = kernel.view %p + 0 : memref<6x4096xbf16>
  %y = kernel.view %p + 65536 : memref<6x4096xf32>
  %zero = arith.constant 0.0 : f32
  kernel.group rows [6] {
    %s = memref.alloc() : memref<6xf32>
    %t = memref.alloc() : memref<6x4096xf32>
    linalg.fill ins(%zero : f32) outs(%s : memref<6xf32>)
    linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel"]}
        ins(%x : memref<6x4096xbf16>) outs(%t : memref<6x4096xf32>) {
    ^bb0(%a: bf16, %out: f32):
      %0 = arith.extf %a : bf16 to f32
      linalg.yield %0 : f32
    }
    linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]}
        ins(%t : memref<6x4096xf32>) outs(%s : memref<6xf32>) {
    ^bb0(%a: f32, %sum: f32):
      %0 = arith.addf %sum, %a : f32
      linalg.yield %0 : f32
    }
    linalg.generic {indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel"]}
        ins(%t, %s : memref<6x4096xf32>, memref<6xf32>) outs(%y : memref<6x4096xf32>) {
    ^bb0(%a: f32, %b: f32, %out: f32):
      %0 = arith.divf %a, %b : f32
      linalg.yield %0 : f32
    }
  }
  boa.return
}

// -----

#all = affine_map<(r, c) -> (r, c)>
#row = affine_map<(r, c) -> (r)>

// Rows too long for registers are gone through in a loop, the rest of them behind it.
// The last elements of an odd number are only some threads'.

// CHECK-LABEL: boa.kernel @long
// CHECK:         gpu.launch
// CHECK-SAME:        in (%{{[^ ]*}} = %c1024,
// CHECK:           scf.for %{{.*}} = %c0 to %c12 step %c1 iter_args
// CHECK-COUNT-4:     memref.load %[[X:.*]][%{{.*}}, %{{.*}}] : memref<3x50257xf32>
// CHECK:             scf.yield
// CHECK:           %[[IS:.*]] = arith.cmpi ult, %[[C:.*]], %c50257
// CHECK:           %[[AT:.*]] = arith.select %[[IS]], %[[C]]
// CHECK:           %[[LAST:.*]] = memref.load %[[X]][%{{.*}}, %[[AT]]]
// CHECK:           arith.select %[[IS]]
// CHECK:           gpu.barrier
// CHECK:           scf.for %{{.*}} = %c0 to %c12 step %c1 {
// CHECK:             memref.store %{{.*}}, %[[X]]
// CHECK:           scf.if %[[IS]]
// CHECK-NEXT:        memref.store %{{.*}}, %[[X]]
boa.kernel @long(%p: !llvm.ptr, %w: !llvm.ptr) {
  %x = kernel.view %p + 0 : memref<3x50257xf32>
  %zero = arith.constant 0.0 : f32
  kernel.group rows [3] {
    %s = memref.alloc() : memref<3xf32>
    linalg.fill ins(%zero : f32) outs(%s : memref<3xf32>)
    linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]}
        ins(%x : memref<3x50257xf32>) outs(%s : memref<3xf32>) {
    ^bb0(%a: f32, %sum: f32):
      %0 = math.exp %a : f32
      %1 = arith.addf %sum, %0 : f32
      linalg.yield %1 : f32
    }
    linalg.generic {indexing_maps = [#row, #all], iterator_types = ["parallel", "parallel"]}
        ins(%s : memref<3xf32>) outs(%x : memref<3x50257xf32>) {
    ^bb0(%sum: f32, %a: f32):
      %0 = math.exp %a : f32
      %1 = arith.divf %0, %sum : f32
      linalg.yield %1 : f32
    }
  }
  boa.return
}

// -----

#all = affine_map<(r, i, j) -> (r, i, j)>
#turned = affine_map<(r, i, j) -> (r, j, i)>

// Rows too long for registers are read when an op goes through them: behind the barriers
// that its other operands ask for, which is what the next one to write them waits for.

// CHECK-LABEL: boa.kernel @read_late
// CHECK:         memref.store %{{.*}}, %[[B:.*]][%{{.*}} : memref<2x128x160xf32>
// CHECK:         gpu.barrier
// CHECK:         memref.load %[[A:.*]][%{{.*}} : memref<2x160x128xf32>
// CHECK:         memref.load %[[B]][
// CHECK:         gpu.barrier
// CHECK:         memref.store %{{.*}}, %[[A]][
boa.kernel @read_late(%p: !llvm.ptr, %w: !llvm.ptr) {
  %x = kernel.view %p + 0 : memref<2x128x160xf32>
  %a = kernel.view %p + 262144 : memref<2x160x128xf32>
  %b = kernel.view %p + 524288 : memref<2x128x160xf32>
  %c = kernel.view %p + 786432 : memref<2x160x128xf32>
  kernel.group rows [2] {
    linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel", "parallel"]}
        ins(%x : memref<2x128x160xf32>) outs(%b : memref<2x128x160xf32>) {
    ^bb0(%0: f32, %out: f32):
      linalg.yield %0 : f32
    }
    linalg.generic {indexing_maps = [#all, #turned, #all], iterator_types = ["parallel", "parallel", "parallel"]}
        ins(%a, %b : memref<2x160x128xf32>, memref<2x128x160xf32>) outs(%c : memref<2x160x128xf32>) {
    ^bb0(%0: f32, %1: f32, %out: f32):
      %2 = arith.addf %0, %1 : f32
      linalg.yield %2 : f32
    }
    linalg.generic {indexing_maps = [#all, #turned], iterator_types = ["parallel", "parallel", "parallel"]}
        ins(%x : memref<2x128x160xf32>) outs(%a : memref<2x160x128xf32>) {
    ^bb0(%0: f32, %out: f32):
      linalg.yield %0 : f32
    }
  }
  boa.return
}

// And so are they written: the first of two results does not go before the barrier that
// the second one needs.

// CHECK-LABEL: boa.kernel @write_late
// CHECK:         memref.load %[[B:.*]][%{{.*}} : memref<2x128x160xf32>
// CHECK:         gpu.barrier
// CHECK-DAG:     memref.store %{{.*}}, %[[A:.*]][%{{.*}} : memref<2x160x128xf32>
// CHECK-DAG:     memref.store %{{.*}}, %[[B]][
// CHECK:         gpu.barrier
// CHECK:         memref.load %[[A]][
boa.kernel @write_late(%p: !llvm.ptr, %w: !llvm.ptr) {
  %x = kernel.view %p + 0 : memref<2x160x128xf32>
  %a = kernel.view %p + 262144 : memref<2x160x128xf32>
  %b = kernel.view %p + 524288 : memref<2x128x160xf32>
  %c = kernel.view %p + 786432 : memref<2x128x160xf32>
  kernel.group rows [2] {
    linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel", "parallel"]}
        ins(%b : memref<2x128x160xf32>) outs(%c : memref<2x128x160xf32>) {
    ^bb0(%0: f32, %out: f32):
      linalg.yield %0 : f32
    }
    linalg.generic {indexing_maps = [#all, #all, #turned], iterator_types = ["parallel", "parallel", "parallel"]}
        ins(%x : memref<2x160x128xf32>) outs(%a, %b : memref<2x160x128xf32>, memref<2x128x160xf32>) {
    ^bb0(%0: f32, %out: f32, %turned: f32):
      linalg.yield %0, %0 : f32, f32
    }
    linalg.generic {indexing_maps = [#turned, #all], iterator_types = ["parallel", "parallel", "parallel"]}
        ins(%a : memref<2x160x128xf32>) outs(%c : memref<2x128x160xf32>) {
    ^bb0(%0: f32, %out: f32):
      linalg.yield %0 : f32
    }
  }
  boa.return
}

// -----

#all = affine_map<(b, t, c) -> (b, t, c)>

// Elementwise ops alike: a thread for each 16 bytes, here of the wider type; blocks
// that fit the rows, so that no thread has nothing to do.

// CHECK-LABEL: boa.kernel @flat
// CHECK:         gpu.launch
// CHECK-SAME:        in (%{{[^ ]*}} = %c256, %{{[^ ]*}} = %c1, %{{[^ ]*}} = %c1)
// CHECK-SAME:        threads(%[[X:.*]], %[[Y:.*]], %{{.*}}) in (%{{[^ ]*}} = %c48, %{{[^ ]*}} = %c4, %{{[^ ]*}} = %c1)
// CHECK:           arith.muli %[[X]], %c4
// CHECK-COUNT-4:   memref.load %[[A:.*]][%{{.*}}] : memref<16x64x192xbf16>
// CHECK-COUNT-4:   math.exp
// CHECK-NOT:       memref.load
// CHECK-NOT:       scf.if
// CHECK-COUNT-4:   memref.store %{{.*}}, %[[A]]
// CHECK-COUNT-4:   memref.store %{{.*}}, %{{.*}} : memref<16x64x192xf32>
// CHECK-NEXT:      gpu.terminator
boa.kernel @flat(%p: !llvm.ptr, %w: !llvm.ptr) {
  %x = kernel.view %p + 0 : memref<16x64x192xbf16>
  %y = kernel.view %w + 0 : memref<16x64x192xf32>
  kernel.group rows [16, 64] {
    linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel", "parallel"]}
        ins(%x : memref<16x64x192xbf16>) outs(%y : memref<16x64x192xf32>) {
    ^bb0(%a: bf16, %out: f32):
      %0 = arith.extf %a : bf16 to f32
      %1 = math.exp %0 : f32
      linalg.yield %1 : f32
    }
    linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel", "parallel"]}
        ins(%y : memref<16x64x192xf32>) outs(%x : memref<16x64x192xbf16>) {
    ^bb0(%a: f32, %out: bf16):
      %0 = arith.truncf %a : f32 to bf16
      linalg.yield %0 : bf16
    }
  }
  boa.return
}

// -----

#all = affine_map<(r) -> (r)>

// Any number of elements; eight of bf16 are 16 bytes, but 12 are no multiple of it.

// CHECK-LABEL: boa.kernel @sizes
// CHECK:         gpu.launch
// CHECK-SAME:        in (%{{[^ ]*}} = %c1, {{.*}} in (%{{[^ ]*}} = %c3,
// CHECK-COUNT-4:   memref.store
// CHECK-NOT:       memref.store
// CHECK:           gpu.terminator
// CHECK:         gpu.launch
// CHECK-SAME:        in (%{{[^ ]*}} = %c2, {{.*}} in (%{{[^ ]*}} = %c256,
// CHECK:           %[[IS:.*]] = arith.cmpi ult, %{{.*}}, %c257
// CHECK:           scf.if %[[IS]]
// CHECK-NEXT:        memref.store
boa.kernel @sizes(%p: !llvm.ptr, %w: !llvm.ptr) {
  %x = kernel.view %p + 0 : memref<12xbf16>
  %y = kernel.view %w + 0 : memref<257xf32>
  %half = arith.constant 0.5 : bf16
  %zero = arith.constant 0.0 : f32
  kernel.group rows [12] {
    linalg.fill ins(%half : bf16) outs(%x : memref<12xbf16>)
  }
  kernel.group rows [257] {
    linalg.fill ins(%zero : f32) outs(%y : memref<257xf32>)
  }
  boa.return
}

// A condition takes a byte: sixteen of them side by side.

// CHECK-LABEL: boa.kernel @conditions
// CHECK:         gpu.launch
// CHECK-SAME:        threads({{.*}}) in (%{{[^ ]*}} = %c8, %{{[^ ]*}} = %c1, %{{[^ ]*}} = %c1)
// CHECK-COUNT-16:  memref.load
// CHECK-COUNT-16:  memref.store
// CHECK-NEXT:      gpu.terminator
boa.kernel @conditions(%p: !llvm.ptr, %w: !llvm.ptr) {
  %x = kernel.view %p + 0 : memref<2x64xi1>
  %y = kernel.view %w + 0 : memref<2x64xi1>
  kernel.group rows [2] {
    linalg.copy ins(%x : memref<2x64xi1>) outs(%y : memref<2x64xi1>)
  }
  boa.return
}

// -----

#all = affine_map<(b, t, c) -> (b, t, c)>
#column = affine_map<(b, t, c) -> (c)>

// Sums over rows: a block takes eight columns, which are read in one piece, and cuts
// the rows into slices; two sums are one pass over them. The eight rows
// of a thread are under way at once. Within a warp slices are
// added up by shuffles, those of all warps by the first slice's threads, which add
// what was there before.

// CHECK-LABEL: boa.kernel @columns
// CHECK:         gpu.launch
// CHECK-SAME:        in (%{{[^ ]*}} = %c96, %{{[^ ]*}} = %c1, %{{[^ ]*}} = %c1)
// CHECK-SAME:        threads(%[[X:.*]], %[[Y:.*]], %{{.*}}) in (%{{[^ ]*}} = %c2, %{{[^ ]*}} = %c128, %{{[^ ]*}} = %c1)
// CHECK-SAME:        workgroup(%[[M:.*]] : memref<8x4x2xf32, #gpu.address_space<workgroup>>, %[[N:.*]] : memref<8x4x2xf32, #gpu.address_space<workgroup>>)
// CHECK-COUNT-32:  memref.load %{{.*}}[%{{.*}}] : memref<8x128x768xf32>
// CHECK-NOT:       memref.load
// CHECK-COUNT-32:  gpu.shuffle xor
// CHECK-NOT:       gpu.shuffle
// CHECK:           %[[IS:.*]] = arith.cmpi eq, %[[Y]], %c0
// CHECK:           scf.if
// CHECK-COUNT-4:     memref.store %{{.*}}, %[[M]]
// CHECK-COUNT-4:     memref.store %{{.*}}, %[[N]]
// CHECK:           gpu.barrier
// CHECK-NEXT:      scf.if %[[IS]]
// CHECK:             memref.load %[[M]]
// CHECK:             %[[OLD:.*]] = memref.load %[[S:.*]][%{{.*}}] : memref<768xf32>
// CHECK:             arith.addf %[[OLD]]
// CHECK:             memref.store %{{.*}}, %[[S]]
boa.kernel @columns(%p: !llvm.ptr, %w: !llvm.ptr) {
  %x = kernel.view %p + 0 : memref<8x128x768xf32>
  %s = kernel.view %w + 0 : memref<768xf32>
  %t = kernel.view %w + 4096 : memref<768xf32>
  kernel.group columns [768] {
    linalg.generic {indexing_maps = [#all, #column], iterator_types = ["reduction", "reduction", "parallel"]}
        ins(%x : memref<8x128x768xf32>) outs(%s : memref<768xf32>) {
    ^bb0(%a: f32, %sum: f32):
      %0 = arith.addf %sum, %a : f32
      linalg.yield %0 : f32
    }
    linalg.generic {indexing_maps = [#all, #column], iterator_types = ["reduction", "reduction", "parallel"]}
        ins(%x : memref<8x128x768xf32>) outs(%t : memref<768xf32>) {
    ^bb0(%a: f32, %sum: f32):
      %0 = arith.mulf %a, %a : f32
      %1 = arith.addf %sum, %0 : f32
      linalg.yield %1 : f32
    }
  }
  boa.return
}

// -----

#all = affine_map<(b, t, c) -> (b, t, c)>
#table = affine_map<(b, t, c) -> (t, c)>

// Few rows for many results: a thread adds up its own. The columns beside them, of
// other loops, are a launch of their own.

// CHECK-LABEL: boa.kernel @short_columns
// CHECK:         gpu.launch
// CHECK:           gpu.barrier
// CHECK:         gpu.launch
// CHECK-SAME:        in (%{{[^ ]*}} = %c97, {{.*}} in (%{{[^ ]*}} = %c128,
// CHECK-NOT:       gpu.shuffle
// CHECK-NOT:       gpu.barrier
// CHECK:           scf.if
// CHECK-NEXT:        memref.load
// CHECK:           memref.store %{{.*}} : memref<64x193xf32>
boa.kernel @short_columns(%p: !llvm.ptr, %w: !llvm.ptr) {
  %x = kernel.view %p + 0 : memref<4x64x193xf32>
  %y = kernel.view %p + 1048576 : memref<999x193xf32>
  %s = kernel.view %w + 0 : memref<64x193xf32>
  %t = kernel.view %w + 1048576 : memref<193xf32>
  kernel.group columns [193] {
    linalg.generic {indexing_maps = [affine_map<(r, c) -> (r, c)>, affine_map<(r, c) -> (c)>], iterator_types = ["reduction", "parallel"]}
        ins(%y : memref<999x193xf32>) outs(%t : memref<193xf32>) {
    ^bb0(%a: f32, %sum: f32):
      %0 = arith.addf %sum, %a : f32
      linalg.yield %0 : f32
    }
    linalg.generic {indexing_maps = [#all, #table], iterator_types = ["reduction", "parallel", "parallel"]}
        ins(%x : memref<4x64x193xf32>) outs(%s : memref<64x193xf32>) {
    ^bb0(%a: f32, %sum: f32):
      %0 = arith.addf %sum, %a : f32
      linalg.yield %0 : f32
    }
  }
  boa.return
}

// -----

#all = affine_map<(b, t) -> (b, t)>
#none = affine_map<(b, t) -> ()>

// Everything is one block, of as many threads as there are four elements for; an
// op's own indices are what they were. Groups behind one another are one launch, in
// which the sum is where it was: its first value is not read, its last written.

// CHECK-LABEL: boa.kernel @everything
// CHECK:         gpu.launch
// CHECK-SAME:        in (%{{[^ ]*}} = %c1, {{.*}} threads(%[[THREAD:.*]], %{{.*}}, %{{.*}}) in (%{{[^ ]*}} = %c256,
// CHECK-SAME:        workgroup
// CHECK:           %[[CHUNK:.*]] = arith.remui %[[THREAD]], %c32
// CHECK:           %[[B:.*]] = arith.divui %[[THREAD]], %c32
// CHECK:           %[[T:.*]] = arith.muli %[[CHUNK]], %c4
// CHECK:           memref.load %{{.*}}[%[[B]], %[[T]], %{{.*}}] : memref<8x128x257xf32>
// CHECK-COUNT-8:   gpu.shuffle
// CHECK:           scf.if
// CHECK-NEXT:        memref.store %{{.*}}, %{{.*}}[] : memref<f32>
// CHECK-NOT:     gpu.launch
// CHECK:         return
// REMARK: [Passed] emit-groups | {{.*}}joined with the group before it
// REMARK-NOT: remark:
boa.kernel @everything(%p: !llvm.ptr, %w: !llvm.ptr) {
  %x = kernel.view %p + 0 : memref<8x128xi32>
  %s = kernel.view %w + 0 : memref<f32>
  %zero = arith.constant 0.0 : f32
  kernel.group rows [] {
    linalg.fill ins(%zero : f32) outs(%s : memref<f32>)
  }
  %y = kernel.view %p + 4096 : memref<8x128x257xf32>
  kernel.group rows [] {
    linalg.generic {indexing_maps = [#all, #none], iterator_types = ["reduction", "reduction"]}
        ins(%x : memref<8x128xi32>) outs(%s : memref<f32>) {
    ^bb0(%a: i32, %sum: f32):
      %b = linalg.index 0 : index
      %t = linalg.index 1 : index
      %c = arith.index_cast %a : i32 to index
      %0 = memref.load %y[%b, %t, %c] : memref<8x128x257xf32>
      %1 = arith.addf %sum, %0 : f32
      linalg.yield %1 : f32
    }
  }
  boa.return
}

// -----

// Scattered rows: a warp for each index, which goes on if no index before is the same.
// It lists the indices that are, and adds their rows to the table's in this order,
// reading four at once.

// CHECK-LABEL: boa.kernel @scatter
// CHECK:         gpu.launch
// CHECK-SAME:        in (%{{[^ ]*}} = %c32, {{.*}} threads(%[[LANE:.*]], %{{.*}}, %{{.*}}) in (%{{[^ ]*}} = %c32,
// CHECK-SAME:        workgroup(%[[LIST:.*]] : memref<128xi32, #gpu.address_space<workgroup>>)
// CHECK:           scf.for %{{.*}} = %[[LANE]] to %{{.*}} step %c32
// CHECK-COUNT-5:   gpu.shuffle xor
// CHECK:           %[[FIRST:.*]] = arith.cmpi eq
// CHECK-NEXT:      scf.if %[[FIRST]]
// CHECK:             memref.load %[[TABLE:.*]][%{{.*}}] : memref<77x256xf32>
// CHECK:             scf.for
// CHECK-COUNT-5:       gpu.shuffle up
// CHECK:               memref.store %{{.*}}, %[[LIST]]
// CHECK:               gpu.shuffle idx
// CHECK:             gpu.barrier
// CHECK:             scf.for %{{.*}} step %c4
// CHECK:               memref.load %[[LIST]]
// CHECK-COUNT-32:      memref.load %{{.*}} : memref<8x4x256xf32>
// CHECK-COUNT-32:      arith.select
// CHECK:             gpu.barrier
// CHECK-COUNT-8:     memref.store %{{.*}}, %[[TABLE]]
boa.kernel @scatter(%p: !llvm.ptr, %w: !llvm.ptr) {
  %i = kernel.view %p + 0 : memref<8x4xi32>
  %x = kernel.view %p + 4096 : memref<8x4x256xf32>
  %t = kernel.view %w + 0 : memref<77x256xf32>
  kernel.group columns [256] {
    kernel.scatter_rows %i, %x into %t : (memref<8x4xi32>, memref<8x4x256xf32>, memref<77x256xf32>) -> ()
  }
  boa.return
}
