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

/// The operands of boa_attention_* and boa_attention_grad_* (attention.h).
template <typename T> struct AttentionArgs {
  int64_t batch, time, heads, kv_heads, d;
  bool causal;
  T scale;
  const T *q;
  int64_t ldq;
  const T *k;
  int64_t ldk;
  const T *v;
  int64_t ldv;
  int64_t ldy;
  T *y, *lse;           // forward
  const T *yIn, *lseIn; // backward
  const T *dy;
  int64_t lddy;
  T *dq;
  int64_t lddq;
  T *dk;
  int64_t lddk;
  T *dv;
  int64_t lddv;
  T (*log)(T);
};

/// Tasks of one instruction set and element type; each is given scratch of
/// scratchElements(d).
template <typename T> struct AttentionTasks {
  using Task = void (*)(const AttentionArgs<T> &, int64_t task, T *scratch);
  Task forward, backward, keys, queries;
};
struct AttentionTable {
  AttentionTasks<float> f32;
  AttentionTasks<double> f64;
};

} // namespace boa

#endif // BOA_RUNTIME_KERNELS_ATTENTION_TASK_H
