// RUN: boa-opt %s --split-input-file --cuda-outline-launches --cuda-emit-checksums | FileCheck %s
// RUN: boa-opt %s --split-input-file --cuda-code-pipeline | FileCheck %s --check-prefix=PTX

// Where SSDs reach the device's memory each size of chunk that lives on one has a function for its
// checksums: of a chunk of 8 KiB 64 threads, a lane of each of its 8 blocks. A thread reads all that it
// needs, then adds up; eight threads carry the lanes on.

// CHECK-LABEL: gpu.module @cuda
// CHECK:       gpu.func @sums_8192(
// CHECK-SAME:    %[[DATA:[^:]*]]: memref<32768xi64> {llvm.align = 64 : i64},
// CHECK-SAME:    %[[KEYS:[^:]*]]: memref<40xi64> {llvm.align = 64 : i64},
// CHECK-SAME:    %[[LANES:[^:]*]]: memref<256xi64> {llvm.align = 64 : i64})
// CHECK-SAME:    workgroup(%[[PARTS:[^ ]*]] : memref<128xi64, #gpu.address_space<workgroup>>
// CHECK-SAME:    %[[SUMS:[^ ]*]] : memref<8xi64, #gpu.address_space<workgroup>>
// CHECK-SAME:    kernel
// CHECK-SAME:    known_block_size = array<i32: 64, 1, 1>
// CHECK:         scf.if
// CHECK:           memref.store %{{.*}}, %[[SUMS]]
// CHECK:         scf.for
// CHECK-COUNT-32:  memref.load %[[DATA]]
// CHECK-NOT:       memref.load %[[DATA]]
// CHECK:           memref.store %{{.*}}, %[[PARTS]]
// CHECK:           gpu.barrier
// CHECK:           scf.if
// CHECK:             scf.for
// CHECK:               arith.muli
// CHECK:             memref.store %{{.*}}, %[[SUMS]]
// CHECK:         scf.if
// CHECK:           memref.store %{{.*}}, %[[LANES]]

// Of a large one 512 threads, 64 blocks at a time; what lives in memory has none.

// CHECK:       gpu.func @sums_1048576(
// CHECK-SAME:    known_block_size = array<i32: 512, 1, 1>
// CHECK-NOT:   gpu.func

// PTX: .visible .entry sums_8192(
// PTX-SAME: bar.sync
// PTX-SAME: .visible .entry sums_1048576(

module {
  boa.config @machine {device = "cuda", memory = "separate", direct = true}
  boa.storage @weights[2] : tensor<4096xf32> on host 1, ssd role weights chunks 2 persistent
  boa.storage @momentum[2] : tensor<4096xf32> on ssd role state chunks 2 persistent
  boa.storage @large[1] : tensor<262144xf32> on ssd role checkpoints
  boa.storage @here[2] : tensor<65536xf32> on device role gradients chunks 2
}

// -----

// Otherwise there are none.

// CHECK-NOT: gpu.func

module {
  boa.config @machine {device = "cuda", memory = "separate"}
  boa.storage @weights[2] : tensor<4096xf32> on ssd role weights chunks 2 persistent
}
