//===- attention_range.h - What a row of attention sees -----------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Keys of rows, and rows of keys, for attention_impl.h. A row sees all keys, or those up to the
// diagonal, or of these the last `window`.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_KERNELS_ATTENTION_RANGE_H
#define BOA_RUNTIME_KERNELS_ATTENTION_RANGE_H

#include "runtime/kernels/attention_task.h"
#include "runtime/kernels/block_product.h"

namespace {

constexpr int64_t kRowBlock = boa::kAttentionRowBlock;
constexpr int64_t kKeyBlock = boa::kAttentionKeyBlock;
constexpr int64_t kChunk = boa::kAttentionChunk;

BOA_INLINE int64_t Lesser(int64_t a, int64_t b) { return a < b ? a : b; }

/// Columns of row i (of the block) that it sees: all `keys`, or up to the
/// diagonal, which passes `off` columns right of the block's.
BOA_INLINE int64_t Seen(bool causal, int64_t i, int64_t off, int64_t keys) {
  return causal ? Lesser(keys, i + off + 1) : keys;
}

/// The first key that a row sees.
template <typename E> BOA_INLINE int64_t FirstKey(const boa::AttentionArgs<E> &s, int64_t row) {
  return s.window != 0 && row >= s.window ? row - s.window + 1 : 0;
}

/// One past the last row that sees a key of those before `end`.
template <typename E> BOA_INLINE int64_t EndOfRows(const boa::AttentionArgs<E> &s, int64_t end) {
  return s.window != 0 ? Lesser(s.time, end - 1 + s.window) : s.time;
}

} // namespace

#endif // BOA_RUNTIME_KERNELS_ATTENTION_RANGE_H
