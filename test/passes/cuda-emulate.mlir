// RUN: boa-opt %s --cuda-emulate --split-input-file --verify-diagnostics | FileCheck %s

// Arguments are what the array points at; shared memory is one region, each array on a place of
// its own. A thread's place, barriers and shuffles are asked of what runs it, and no index leaves
// its memref.

// CHECK:       llvm.mlir.global internal constant @k_fault0("k: an index is outside memref<8x32xf32>\00")
// CHECK-LABEL: func.func @k
// CHECK-SAME:    (%[[THREAD:.*]]: !llvm.ptr, %[[ARGS:.*]]: !llvm.ptr) attributes {boa.arguments = 1 : i64, boa.shared_bytes = 192 : i64}
// CHECK:         %[[SHARED:.*]] = llvm.getelementptr %[[THREAD]][96]
// CHECK:         %[[BASE:.*]] = llvm.load %[[SHARED]]
// CHECK:         %[[SLOT:.*]] = llvm.getelementptr %[[ARGS]][0]
// CHECK:         %[[ADDRESS:.*]] = llvm.load %[[SLOT]]
// CHECK:         %[[HOME:.*]] = llvm.load %[[ADDRESS]]
// CHECK:         %[[X:.*]] = kernel.view %[[HOME]] + 0 : memref<8x32xf32>
// CHECK:         %[[S:.*]] = kernel.view %[[BASE]] + 0 : memref<32xf32>
// CHECK:         %[[T:.*]] = kernel.view %[[BASE]] + 128 : memref<4xf32>
// CHECK:         llvm.getelementptr %[[THREAD]][24]
// CHECK:         %[[BLOCK:.*]] = arith.index_cast
// CHECK:         llvm.getelementptr %[[THREAD]][0]
// CHECK:         %[[LANE:.*]] = arith.index_cast
// CHECK:         %[[C8:.*]] = arith.constant 8 : index
// CHECK:         %[[ROW:.*]] = arith.cmpi uge, %[[BLOCK]], %[[C8]]
// CHECK:         %[[C32:.*]] = arith.constant 32 : index
// CHECK:         %[[COLUMN:.*]] = arith.cmpi uge, %[[LANE]], %[[C32]]
// CHECK:         %[[OUTSIDE:.*]] = arith.ori %[[ROW]], %[[COLUMN]]
// CHECK:         scf.if %[[OUTSIDE]] {
// CHECK:           %[[WORDS:.*]] = llvm.mlir.addressof @k_fault0
// CHECK:           llvm.getelementptr %[[THREAD]][120]
// CHECK:           llvm.call %{{.*}}(%[[THREAD]], %[[WORDS]]) : !llvm.ptr, (!llvm.ptr, !llvm.ptr) -> ()
// CHECK:         %[[VALUE:.*]] = memref.load %[[X]][%[[BLOCK]], %[[LANE]]]
// CHECK:         memref.store %[[VALUE]], %[[S]]
// CHECK:         llvm.getelementptr %[[THREAD]][104]
// CHECK:         llvm.call %{{.*}}(%[[THREAD]]) : !llvm.ptr, (!llvm.ptr) -> ()
// CHECK:         %[[BITS:.*]] = arith.bitcast %[[VALUE]] : f32 to i32
// CHECK:         %[[DOWN:.*]] = arith.constant 2 : i32
// CHECK:         llvm.getelementptr %[[THREAD]][112]
// CHECK:         llvm.call %{{.*}}(%[[THREAD]], %[[BITS]], %{{.*}}, %{{.*}}, %[[DOWN]])
// CHECK:         memref.store %{{.*}}, %[[T]]
// CHECK:         return
gpu.module @cuda {
  gpu.func @k(%x: memref<8x32xf32>)
      workgroup(%s: memref<32xf32, #gpu.address_space<workgroup>>, %t: memref<4xf32, #gpu.address_space<workgroup>>) kernel {
    %b = gpu.block_id x
    %l = gpu.thread_id x
    %0 = memref.load %x[%b, %l] : memref<8x32xf32>
    memref.store %0, %s[%l] : memref<32xf32, #gpu.address_space<workgroup>>
    gpu.barrier
    %four = arith.constant 4 : i32
    %warp = arith.constant 32 : i32
    %1, %valid = gpu.shuffle down %0, %four, %warp : f32
    memref.store %1, %t[%l] : memref<4xf32, #gpu.address_space<workgroup>>
    gpu.return
  }
}

// -----

// The first thread of the first block looks whether arguments are where the device's code takes
// them to be: aligned, and apart, of two of which one is written and one is noalias.

// What is only read may be read as two arguments, and of %y and %w nothing is said.

// CHECK:       "places: argument 0 is not at a multiple of 64\00"
// CHECK-NEXT:  "places: arguments 0 and 1 have memory in common\00"
// CHECK-NEXT:  "places: argument 2 is not at a multiple of 256\00"
// CHECK-NEXT:  "places: arguments 1 and 2 have memory in common\00"
// CHECK-NEXT:  "places: an index is outside
// CHECK-LABEL: func.func @places
// CHECK-COUNT-5: arith.ori
// CHECK:         %[[FIRST:.*]] = arith.cmpi eq
// CHECK:         scf.if %[[FIRST]] {
// CHECK:           %[[P:.*]] = llvm.ptrtoint
// CHECK:           %[[C63:.*]] = arith.constant 63 : i64
// CHECK:           %[[PAST:.*]] = arith.andi %[[P]], %[[C63]]
// CHECK:           %[[OFF:.*]] = arith.cmpi ne, %[[PAST]]
// CHECK:           scf.if %[[OFF]]
gpu.module @cuda {
  gpu.func @places(%x: memref<32xf32> {llvm.align = 64 : i64, llvm.noalias}, %y: memref<32xf32>,
                   %z: memref<32xf32> {llvm.align = 256 : i64, llvm.noalias}, %w: memref<32xf32>) kernel {
    %l = gpu.thread_id x
    %0 = memref.load %x[%l] : memref<32xf32>
    %1 = memref.load %z[%l] : memref<32xf32>
    %2 = memref.load %w[%l] : memref<32xf32>
    %3 = arith.addf %0, %1 : f32
    %4 = arith.addf %3, %2 : f32
    memref.store %4, %y[%l] : memref<32xf32>
    gpu.return
  }
}

// -----

gpu.module @cuda {
  gpu.func @reduce(%x: memref<8xf32>) kernel {
    %l = gpu.thread_id x
    %0 = memref.load %x[%l] : memref<8xf32>
    // expected-error @below {{'gpu.subgroup_reduce' op is not emulated}}
    %1 = gpu.subgroup_reduce add %0 : (f32) -> f32
    memref.store %1, %x[%l] : memref<8xf32>
    gpu.return
  }
}

// -----

gpu.module @cuda {
  gpu.func @narrow(%x: memref<8xbf16>) kernel {
    %l = gpu.thread_id x
    %0 = memref.load %x[%l] : memref<8xbf16>
    %four = arith.constant 4 : i32
    // expected-error @below {{'gpu.shuffle' op is emulated for 32 bits only, and without its result `valid`}}
    %1, %valid = gpu.shuffle xor %0, %four, %four : bf16
    memref.store %1, %x[%l] : memref<8xbf16>
    gpu.return
  }
}

// -----

gpu.module @cuda {
  gpu.func @vectors(%x: memref<8xf32>) kernel {
    %l = gpu.thread_id x
    // expected-error @below {{'vector.load' op is not emulated}}
    %0 = vector.load %x[%l] : memref<8xf32>, vector<4xf32>
    gpu.return
  }
}

// -----

gpu.module @cuda {
  // expected-error @below {{'gpu.func' op is not emulated with memory of each thread's own}}
  gpu.func @own(%x: memref<8xf32>) private(%y: memref<4xf32, #gpu.address_space<private>>) kernel {
    gpu.return
  }
}
