//===- attention_task.h - What an attention task is given ---------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_KERNELS_ATTENTION_TASK_H
#define BOA_RUNTIME_KERNELS_ATTENTION_TASK_H

#include <stdint.h>

namespace boa {

/// Rows of q in a block; keys in a block of the forward pass; rows of q that
/// share one transposed copy of a key block. Each is a multiple of the one
/// before it or equal, so that a block of keys starts at a block of rows.
constexpr int64_t kAttentionRowBlock = 64;
constexpr int64_t kAttentionKeyBlock = 128;
constexpr int64_t kAttentionChunk = 256;

/// The type of stored elements, and that of sums and statistics: f32 for bf16.
template <typename E> struct AttentionSum {
  using Type = E;
};
template <> struct AttentionSum<uint16_t> {
  using Type = float;
};

/// The operands of boa_attention_* and boa_attention_grad_* (attention.h).
template <typename E> struct AttentionArgs {
  using T = typename AttentionSum<E>::Type;
  int64_t batch, time, heads, kv_heads, d;
  bool causal;
  /// Keys that a row sees; 0: all, or all up to its own.
  int64_t window;
  /// Of each row [batch, time], where its document begins, and if not causal, one past its end.
  /// Null: a sequence is one document.
  const int32_t *begins, *ends;
  T scale;
  const E *q;
  int64_t ldq;
  const E *k;
  int64_t ldk;
  const E *v;
  int64_t ldv;
  int64_t ldy;
  E *y; // forward
  T *lse;
  const E *yIn; // backward
  const T *lseIn;
  const E *dy;
  int64_t lddy;
  E *dq;
  int64_t lddq;
  E *dk;
  int64_t lddk;
  E *dv;
  int64_t lddv;
  T (*log)(T);
};

/// Tasks of one instruction set and element type; each is given scratch, aligned to 64
/// bytes: AttentionBlocks(d) numbers, and backward AttentionSums() more.
template <typename E> struct AttentionTasks {
  using Task = void (*)(const AttentionArgs<E> &, int64_t task,
                        typename AttentionArgs<E>::T *scratch);
  Task forward, backward, keys, queries;
};

/// The operands of boa_cached_attention_* (cached_attention.h).
template <typename E> struct CachedAttentionArgs {
  int64_t rows, context, heads, kv_heads, d, window;
  typename AttentionSum<E>::Type scale;
  const int32_t *positions;
  const E *q;
  int64_t ldq;
  const E *k;
  int64_t ldk;
  const E *v;
  int64_t ldv;
  E *y;
  int64_t ldy;
  E *keys;
  int64_t ld_keys;
  E *values;
  int64_t ld_values;
};
template <typename E>
using CachedAttentionTask = void (*)(const CachedAttentionArgs<E> &, int64_t task,
                                     typename AttentionSum<E>::Type *scratch);
struct CachedAttentionTable {
  CachedAttentionTask<float> f32;
  CachedAttentionTask<double> f64;
  CachedAttentionTask<uint16_t> bf16;
};
/// Two rows of a head, and the scores of all keys; each in whole vectors.
inline int64_t CachedAttentionScratch(int64_t context, int64_t d) {
  return 2 * ((d + 15) / 16 * 16) + (context + 15) / 16 * 16;
}

struct AttentionTable {
  AttentionTasks<float> f32;
  AttentionTasks<double> f64;
  AttentionTasks<uint16_t> bf16;
  CachedAttentionTable cached;
};

/// Blocks of operands, scores, their gradients, accumulators, row statistics of a chunk.
inline int64_t AttentionBlocks(int64_t d) {
  const int64_t wide = (d + 15) / 16 * 16;
  return (6 * kAttentionChunk + 4 * kAttentionKeyBlock) * wide +
         4 * kAttentionRowBlock * kAttentionKeyBlock + 2 * kAttentionChunk + 512;
}

/// The sums of a task of backward until they can be rounded: dq of a head, and where heads share
/// keys, dk and dv.
template <typename E> int64_t AttentionSums(const AttentionArgs<E> &args) {
  if (sizeof(E) != 2)
    return 0;
  const int64_t time = (args.time + kAttentionChunk - 1) / kAttentionChunk * kAttentionChunk;
  return time * ((args.d + 15) / 16 * 16) * (args.heads == args.kv_heads ? 1 : 3);
}

} // namespace boa

#endif // BOA_RUNTIME_KERNELS_ATTENTION_TASK_H
