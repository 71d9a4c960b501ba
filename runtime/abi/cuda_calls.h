//===- cuda_calls.h - What kernels for CUDA call ------------------*- C -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A kernel (runtime/abi/abi.h) of a program for CUDA computes addresses in the device's memory
// and calls these functions. They enqueue work on the kernel's queue, in order, and return. The
// queue keeps the first error, which makes all calls after it do nothing. The device asks for it
// when the kernel returns.
//
// Before the first step each kernel is called once with a queue that enqueues nothing. This call
// finds out the needs of its products and attention. There is no memory yet: all buffers have the
// same address, aligned to 256 bytes, and nothing is there.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_ABI_CUDA_CALLS_H
#define BOA_RUNTIME_ABI_CUDA_CALLS_H

#include "runtime/abi/abi.h"

#ifdef __cplusplus
extern "C" {
#endif

/// The part of a multiplying kernel's workspace that cuBLASLt uses while the product runs.
#define BOA_CUDA_LIBRARY_WORKSPACE INT64_C(33554432)

/// The alignment of a library's part of the workspace. cuBLASLt's documentation asks for it, and
/// its algorithms count on it.
#define BOA_CUDA_LIBRARY_ALIGNMENT INT64_C(256)

/// The part of a kernel's workspace that cuDNN uses while it computes attention.
#define BOA_CUDA_ATTENTION_SCRATCH INT64_C(262144)

/// The same for gradients: room for the gradients of scores. It is for as many heads as fit into
/// the first number of bytes. If one head of keys does not fit, it may take up to the second.
#define BOA_CUDA_ATTENTION_GRAD_SCORES INT64_C(536870912)
#define BOA_CUDA_ATTENTION_GRAD_MOST INT64_C(2147483648)

/// Whether parts of so many statistics (f32) begin at 16 bytes each, as cuDNN wants them to.
static inline int boa_cuda_attention_parts_align(int64_t statistics) {
  return statistics * 4 % 16 == 0;
}

/// The bytes for a gradient. If not all of it fits, they are for as many sequences as fit, or
/// heads of one sequence. 0: not even one head of keys fits with its heads, or parts would not be
/// aligned.
static inline int64_t boa_cuda_attention_grad_scratch(int64_t batch, int64_t time, int64_t heads,
                                                      int64_t kv_heads, int64_t columns) {
  // cuDNN keeps gradients of scores, in bf16 and in whole tiles. If several heads share a head of
  // keys, it also keeps gradients of its keys and values for each.
  const int64_t tile = 128, aside = 4096;
  const int64_t tiles = (time + tile - 1) / tile * tile;
  const int64_t scores = tiles * tiles * 2, group = heads / kv_heads;
  const int64_t head = scores + (group > 1 ? 2 * time * columns * 2 : 0);
  int64_t most = BOA_CUDA_ATTENTION_GRAD_SCORES / scores, part;
  if (most < group && group * scores <= BOA_CUDA_ATTENTION_GRAD_MOST)
    most = group;
  for (part = batch; part >= 1; --part)
    if (batch % part == 0 && part * heads <= most &&
        (part == batch || boa_cuda_attention_parts_align(part * heads * time)))
      return part * heads * head + aside;
  for (part = kv_heads; part >= 1; --part)
    if (kv_heads % part == 0 && part * group <= most &&
        boa_cuda_attention_parts_align(part * group * time))
      return part * group * head + aside;
  return 0;
}

/// Enqueues a function of the image. args[i] is its i-th argument, an address in device memory.
/// `shared_bytes` is shared memory beside the function's own.
void boa_cuda_launch(boa_queue *, int64_t function, int64_t grid_x, int64_t grid_y, int64_t grid_z,
                     int64_t block_x, int64_t block_y, int64_t block_z, int64_t shared_bytes,
                     int64_t count, void *const *args);

#define BOA_CUDA_F32 0
#define BOA_CUDA_BF16 1
#define BOA_CUDA_TF32 2

/// c = op(a) op(b) + bias + addend: row-major, m x k by k x n, strides of rows in elements.
/// `a` and `b` have the same type, and c is f32 or bf16; sums are computed in f32. BOA_CUDA_TF32 is
/// f32 whose values are rounded to 10 bits of mantissa before they are multiplied.
/// `bias` holds one value of c's type for each column, or is null. `addend` has c's type and
/// stride. It is c itself, memory apart from c, or null. `scratch` has BOA_CUDA_LIBRARY_WORKSPACE
/// bytes of device memory, or is null.
void boa_cuda_gemm(boa_queue *, int32_t transpose_a, int32_t transpose_b, int64_t m, int64_t n,
                   int64_t k, int32_t type_ab, const void *a, int64_t lda, const void *b,
                   int64_t ldb, const void *bias, const void *addend, int32_t type_c, void *c,
                   int64_t ldc, void *scratch);

/// Attention in bf16. Returns 1 if a library computes it. That is found out before the first step
/// and stays so. Returns 0 if the program must launch its own functions. There are batch x time
/// rows, each with all heads side by side, and strides are in elements. `lse` and `delta` are
/// f32, by sequence, by head, by time. `scratch` has `scratch_bytes` of device memory. The call
/// writes y and lse.
int32_t boa_cuda_attention(boa_queue *, int32_t causal, int64_t batch, int64_t time, int64_t heads,
                           int64_t kv_heads, int64_t columns, const void *q, int64_t ldq,
                           const void *k, int64_t ldk, const void *v, int64_t ldv, void *y,
                           int64_t ldy, float *lse, void *scratch, int64_t scratch_bytes);

/// The same for its gradients. The call writes dq, dk and dv, and delta on the way.
int32_t boa_cuda_attention_grad(boa_queue *, int32_t causal, int64_t batch, int64_t time,
                                int64_t heads, int64_t kv_heads, int64_t columns, const void *q,
                                int64_t ldq, const void *k, int64_t ldk, const void *v, int64_t ldv,
                                const void *y, int64_t ldy, const float *lse, const void *dy,
                                int64_t lddy, void *dq, int64_t lddq, void *dk, int64_t lddk,
                                void *dv, int64_t lddv, float *delta, void *scratch,
                                int64_t scratch_bytes);

#ifdef __cplusplus
}
#endif

#endif // BOA_RUNTIME_ABI_CUDA_CALLS_H
