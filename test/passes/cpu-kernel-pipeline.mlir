// RUN: boa-opt %s --cpu-kernel-pipeline | FileCheck %s

// From compute ops to calls of the runtime, in one function of the runtime's
// signature; nothing is allocated.

// CHECK-LABEL: boa.kernel @block
// CHECK-SAME:    (%{{.*}}: !llvm.ptr, %{{.*}}: !llvm.ptr, %{{.*}}: !llvm.ptr) reads {{.*}} writes {{.*}} workspace {{[1-9][0-9]*}} {
// CHECK-NOT:     malloc
// CHECK:         llvm.call @boa_rt_parallel_for
// CHECK:         llvm.call @boa_gemm_bf16
// CHECK:         llvm.call @boa_rt_parallel_for
// CHECK:         llvm.call @boa_gemm_bf16
// CHECK-NOT:     malloc
// CHECK:         boa.return
boa.kernel @block(%x: tensor<2x8x16xf32> {boa.buffer = 0 : i32, boa.offset = 0 : i64},
                 %n: tensor<16xbf16> {boa.buffer = 1 : i32, boa.offset = 0 : i64},
                 %w: tensor<16x64xbf16> {boa.buffer = 1 : i32, boa.offset = 64 : i64},
                 %v: tensor<64x16xbf16> {boa.buffer = 1 : i32, boa.offset = 2112 : i64})
    -> (tensor<2x8x16xf32> {boa.buffer = 2 : i32, boa.offset = 0 : i64}) reads [tensor<2x8x16xf32>, tensor<2080xbf16>] writes [tensor<2x8x16xf32>] {
  %n32 = boa.cast %n : tensor<16xbf16> to tensor<16xf32>
  %w32 = boa.cast %w : tensor<16x64xbf16> to tensor<16x64xf32>
  %v32 = boa.cast %v : tensor<64x16xbf16> to tensor<64x16xf32>
  %0 = boa.rms_norm %x, %n32 : (tensor<2x8x16xf32>, tensor<16xf32>) -> tensor<2x8x16xf32>
  %1 = boa.linear %0, %w32 : (tensor<2x8x16xf32>, tensor<16x64xf32>) -> tensor<2x8x64xf32>
  %2 = boa.gelu %1 : tensor<2x8x64xf32>
  %3 = boa.linear %2, %v32 : (tensor<2x8x64xf32>, tensor<64x16xf32>) -> tensor<2x8x16xf32>
  %4 = boa.add %x, %3 : tensor<2x8x16xf32>, tensor<2x8x16xf32>
  boa.return %4 : tensor<2x8x16xf32>
}

// Attention of bf16 reads q, k and v where they lie, side by side, and writes its gradients
// so: nothing else is computed, and y and a row's statistics are all of the workspace.

// CHECK-LABEL: boa.kernel @attention
// CHECK-SAME:    workspace 768 {
// CHECK-NOT:     boa_rt_parallel_for
// CHECK:         llvm.call @boa_attention_bf16(
// CHECK:         llvm.call @boa_attention_grad_bf16(
// CHECK-NOT:     boa_rt_parallel_for
// CHECK:         boa.return
boa.kernel @attention(%qkv: tensor<2x8x48xbf16> {boa.buffer = 0 : i32, boa.offset = 0 : i64},
                     %dy: tensor<2x8x16xbf16> {boa.buffer = 1 : i32, boa.offset = 0 : i64})
    -> (tensor<2x8x48xbf16> {boa.buffer = 2 : i32, boa.offset = 0 : i64}) reads [tensor<2x8x48xbf16>, tensor<2x8x16xbf16>] writes [tensor<2x8x48xbf16>] {
  %q, %k, %v = boa.split %qkv : (tensor<2x8x48xbf16>) -> (tensor<2x8x16xbf16>, tensor<2x8x16xbf16>, tensor<2x8x16xbf16>)
  %y, %lse = boa.attention %q, %k, %v heads 4, 4 causal : (tensor<2x8x16xbf16>, tensor<2x8x16xbf16>, tensor<2x8x16xbf16>) -> (tensor<2x8x16xbf16>, tensor<2x4x8xf32>)
  %dq, %dk, %dv = boa.attention_grad %q, %k, %v, %y, %lse, %dy heads 4, 4 causal : (tensor<2x8x16xbf16>, tensor<2x8x16xbf16>, tensor<2x8x16xbf16>, tensor<2x8x16xbf16>, tensor<2x4x8xf32>, tensor<2x8x16xbf16>) -> (tensor<2x8x16xbf16>, tensor<2x8x16xbf16>, tensor<2x8x16xbf16>)
  %dqkv = boa.concat %dq, %dk, %dv : (tensor<2x8x16xbf16>, tensor<2x8x16xbf16>, tensor<2x8x16xbf16>) -> tensor<2x8x48xbf16>
  boa.return %dqkv : tensor<2x8x48xbf16>
}
