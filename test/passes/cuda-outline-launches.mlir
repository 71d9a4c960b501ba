// RUN: boa-opt %s --cuda-outline-launches --split-input-file --verify-diagnostics | FileCheck %s
// RUN: not boa-opt %s --cuda-outline-launches --split-input-file --remarks-filter=boa-kernel 2>&1 \
// RUN:   | FileCheck %s --check-prefix=REMARK

// Views become arguments, aligned as their offsets are; what describes parts of them and
// constants are repeated inside. Shared memory stays the function's, and the grid is known.
// What is written where there is a barrier is not
// `noalias`: LLVM would take what was read before the barrier for what is there behind it.

// CHECK-LABEL: boa.kernel @k
// CHECK:         %[[X:.*]] = kernel.view %{{.*}} + 64 : memref<8x64xf32>
// CHECK:         %[[Y:.*]] = kernel.view %{{.*}} + 4096 : memref<8xf32>
// CHECK:         kernel.launch_func @cuda::@k_launch0 grid [8, 1, 1] block [32, 2, 1] shared 0(%[[X]], %[[Y]]) : memref<8x64xf32>, memref<8xf32>
// CHECK-NOT:     gpu.launch
// CHECK:         kernel.launch_func @cuda::@k_launch1 grid [1, 1, 1] block [1, 1, 1] shared 1024(%[[Y]])
// CHECK:       gpu.module @cuda {
// CHECK-NEXT:    gpu.func @k_launch0
// CHECK-SAME:      (%[[P:.*]]: memref<8x64xf32> {llvm.align = 64 : i64, llvm.noalias}, %[[Q:.*]]: memref<8xf32> {llvm.align = 256 : i64})
// CHECK-SAME:      workgroup(%[[S:.*]] : memref<32xf32, #gpu.address_space<workgroup>> {llvm.align = 16 : i64})
// CHECK-SAME:      kernel attributes {boa.memory = 2080 : i64, known_block_size = array<i32: 32, 2, 1>, known_grid_size = array<i32: 8, 1, 1>}
// CHECK:           %[[BLOCK:.*]] = gpu.block_id{{ +}}x
// CHECK:           %[[THREAD:.*]] = gpu.thread_id{{ +}}x
// CHECK:           %[[PART:.*]] = memref.subview %[[P]][0, 4]
// CHECK:           memref.load %[[PART]][%[[BLOCK]], %[[THREAD]]]
// CHECK:           memref.store %{{.*}}, %[[S]]
// CHECK:           gpu.return
// CHECK:         gpu.func @k_launch1({{.*}}: memref<8xf32> {llvm.align = 256 : i64, llvm.noalias})
// REMARK: Passed] outline-launches | {{.*}} functions=2, launches=2
boa.kernel @k(%p: !llvm.ptr, %w: !llvm.ptr, %q: !llvm.ptr) {
  %x = kernel.view %p + 64 : memref<8x64xf32>
  %part = memref.subview %x[0, 4] [8, 32] [1, 1] : memref<8x64xf32> to memref<8x32xf32, strided<[64, 1], offset: 4>>
  %y = kernel.view %w + 4096 : memref<8xf32>
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c8 = arith.constant 8 : index
  %c32 = arith.constant 32 : index
  %bytes = arith.constant 1024 : i32
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c8, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c32, %sy = %c2, %sz = %c1)
             workgroup(%s : memref<32xf32, #gpu.address_space<workgroup>>) {
    %0 = memref.load %part[%bx, %tx] : memref<8x32xf32, strided<[64, 1], offset: 4>>
    memref.store %0, %s[%tx] : memref<32xf32, #gpu.address_space<workgroup>>
    gpu.barrier
    memref.store %0, %y[%bx] : memref<8xf32>
    gpu.terminator
  }
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1)
             dynamic_shared_memory_size %bytes {
    memref.store %zero, %y[%c0] : memref<8xf32>
    gpu.terminator
  }
  boa.return
}

// -----

// Launches that do the same with other rows are of one function.

// CHECK-LABEL: boa.kernel @same
// CHECK:         kernel.launch_func @cuda::@same_launch0 grid [1, 1, 1] block [32, 1, 1] shared 0(%[[X0:.*]], %{{.*}}) : memref<1x64xf32, strided<[64, 1]>>, memref<64xf32>
// CHECK:         kernel.launch_func @cuda::@same_launch0 grid [1, 1, 1] block [32, 1, 1] shared 0(%[[X1:.*]], %{{.*}}) : memref<1x64xf32, strided<[64, 1], offset: 64>>, memref<64xf32>
// CHECK:         gpu.func @same_launch0(%{{.*}}: memref<1x64xf32> {llvm.align = 16 : i64, llvm.noalias}, %{{.*}}: memref<64xf32> {llvm.align = 256 : i64, llvm.noalias})
// CHECK-NOT:     gpu.func
// REMARK: Passed] outline-launches | {{.*}} functions=1, launches=2
boa.kernel @same(%p: !llvm.ptr, %w: !llvm.ptr, %q: !llvm.ptr) {
  %x = kernel.view %p + 0 : memref<2x64xf32>
  %x0 = memref.subview %x[0, 0] [1, 64] [1, 1] : memref<2x64xf32> to memref<1x64xf32, strided<[64, 1]>>
  %x1 = memref.subview %x[1, 0] [1, 64] [1, 1] : memref<2x64xf32> to memref<1x64xf32, strided<[64, 1], offset: 64>>
  %y0 = kernel.view %w + 0 : memref<64xf32>
  %y1 = kernel.view %w + 256 : memref<64xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c32, %sy = %c1, %sz = %c1) {
    %0 = memref.load %x0[%c0, %tx] : memref<1x64xf32, strided<[64, 1]>>
    memref.store %0, %y0[%tx] : memref<64xf32>
    gpu.terminator
  }
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c32, %sy = %c1, %sz = %c1) {
    %0 = memref.load %x1[%c0, %tx] : memref<1x64xf32, strided<[64, 1], offset: 64>>
    memref.store %0, %y1[%tx] : memref<64xf32>
    gpu.terminator
  }
  boa.return
}

// -----

// A constant is the device's, where a launch reads it.

// CHECK-LABEL: boa.kernel @table
// CHECK-NOT:     memref.get_global
// CHECK-NOT:   memref.global
// CHECK:       gpu.module @cuda {
// CHECK-NEXT:    memref.global "private" constant @cosines
// CHECK:         gpu.func @table_launch0
// CHECK:           memref.get_global @cosines
memref.global "private" constant @cosines : memref<4xf32> = dense<[1.0, 0.5, 0.25, 0.0]>
boa.kernel @table(%p: !llvm.ptr, %w: !llvm.ptr, %q: !llvm.ptr) {
  %table = memref.get_global @cosines : memref<4xf32>
  %y = kernel.view %p + 0 : memref<4xf32>
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c4, %sy = %c1, %sz = %c1) {
    %0 = memref.load %table[%tx] : memref<4xf32>
    memref.store %0, %y[%tx] : memref<4xf32>
    gpu.terminator
  }
  boa.return
}

// -----

memref.global "private" constant @weights : memref<4x4xf32> = dense<1.0>
boa.kernel @host(%p: !llvm.ptr, %w: !llvm.ptr, %q: !llvm.ptr) {
  // expected-error @below {{'memref.get_global' op expected constants to be read by launches alone}}
  %table = memref.get_global @weights : memref<4x4xf32>
  %y = kernel.view %p + 0 : memref<4x4xf32>
  kernel.gemm %table, %table into %y : (memref<4x4xf32>, memref<4x4xf32>, memref<4x4xf32>) -> ()
  boa.return
}

// -----

// Under a condition, too.

memref.global "private" constant @table : memref<4x4xf32> = dense<1.0>
boa.kernel @inside(%p: !llvm.ptr, %w: !llvm.ptr, %q: !llvm.ptr, %is: i1) {
  %y = kernel.view %p + 0 : memref<4x4xf32>
  scf.if %is {
    // expected-error @below {{'memref.get_global' op expected constants to be read by launches alone}}
    %table = memref.get_global @table : memref<4x4xf32>
    kernel.gemm %table, %table into %y : (memref<4x4xf32>, memref<4x4xf32>, memref<4x4xf32>) -> ()
  }
  boa.return
}

// -----

// Memory that has no place yet.

boa.kernel @nowhere(%p: !llvm.ptr, %w: !llvm.ptr, %q: !llvm.ptr) {
  %x = memref.alloc() : memref<8xf32>
  %zero = arith.constant 0.0 : f32
  %c1 = arith.constant 1 : index
  // expected-error @below {{'gpu.launch' op expected captured values to be views with static offsets}}
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    memref.store %zero, %x[%c1] : memref<8xf32>
    gpu.terminator
  }
  boa.return
}

// -----

boa.kernel @dynamic(%p: !llvm.ptr, %w: !llvm.ptr, %q: !llvm.ptr) {
  %c1 = arith.constant 1 : index
  %x = kernel.view %p + 0 : memref<8xindex>
  %n = memref.load %x[%c1] : memref<8xindex>
  // expected-error @below {{'gpu.launch' op expected a static grid, block and size of shared memory}}
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %n, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    gpu.terminator
  }
  boa.return
}

// -----

boa.kernel @blocks(%p: !llvm.ptr, %w: !llvm.ptr, %q: !llvm.ptr) {
  %c1 = arith.constant 1 : index
  // expected-error @below {{'gpu.launch' op expected one block, without clusters, tokens and private memory}}
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    cf.br ^end
  ^end:
    gpu.terminator
  }
  boa.return
}

// -----

boa.kernel @many(%p: !llvm.ptr, %w: !llvm.ptr, %q: !llvm.ptr) {
  %c1 = arith.constant 1 : index
  %many = arith.constant 70000 : index
  // expected-error @+1 {{expected at most 65535 blocks along z: make micro_batch smaller}}
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %many)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    gpu.terminator
  }
  boa.return
}

// -----

// Heads are along y: a smaller micro_batch has as many.

boa.kernel @heads(%p: !llvm.ptr, %w: !llvm.ptr, %q: !llvm.ptr) {
  %c1 = arith.constant 1 : index
  %many = arith.constant 70000 : index
  // expected-error @+1 {{expected at most 65535 blocks along y: give attention fewer heads}}
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %many, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    gpu.terminator
  }
  boa.return
}

// -----

boa.kernel @threads(%p: !llvm.ptr, %w: !llvm.ptr, %q: !llvm.ptr) {
  %c1 = arith.constant 1 : index
  %many = arith.constant 70000 : index
  // expected-error-re @+1 {{expected at most 1024 threads along x{{$}}}}
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %many, %sy = %c1, %sz = %c1) {
    gpu.terminator
  }
  boa.return
}

// -----

boa.kernel @own(%p: !llvm.ptr, %w: !llvm.ptr, %q: !llvm.ptr) {
  %c1 = arith.constant 1 : index
  // expected-error @below {{'gpu.launch' op expected one block, without clusters, tokens and private memory}}
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1)
             private(%m : memref<4xf32, #gpu.address_space<private>>) {
    gpu.terminator
  }
  boa.return
}
