//===- attention_range.h - What a row of attention sees -----------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Keys of rows, and rows of keys, for attention_impl.h. A row sees all keys, or those up to the
// diagonal, or of these the last `window`; and only those of its document. Each bound of a row is
// at most that of the next row.
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

/// The first key that a row of sequence b sees.
template <typename E>
BOA_INLINE int64_t FirstKey(const boa::AttentionArgs<E> &s, int64_t b, int64_t row) {
  const int64_t begin = s.begins ? s.begins[b * s.time + row] : 0;
  const int64_t from = s.window != 0 ? row - s.window + 1 : 0;
  return begin > from ? begin : from;
}

/// One past the last key that a row sees, if it may see later ones.
template <typename E>
BOA_INLINE int64_t EndOfKeys(const boa::AttentionArgs<E> &s, int64_t b, int64_t row) {
  return s.ends ? s.ends[b * s.time + row] : s.time;
}

/// The first row that sees a key.
template <typename E>
BOA_INLINE int64_t FirstRow(const boa::AttentionArgs<E> &s, int64_t b, int64_t key) {
  return s.causal ? key : s.begins ? s.begins[b * s.time + key] : 0;
}

/// The first row of the first block of rows that sees a key of the block at `key`.
template <typename E>
BOA_INLINE int64_t FirstBlock(const boa::AttentionArgs<E> &s, int64_t b, int64_t key) {
  return FirstRow(s, b, key) / kRowBlock * kRowBlock;
}

/// One past the last row that sees a key of those before `end`.
template <typename E>
BOA_INLINE int64_t EndOfRows(const boa::AttentionArgs<E> &s, int64_t b, int64_t end) {
  int64_t rows = s.window != 0 ? Lesser(s.time, end - 1 + s.window) : s.time;
  if (!s.begins)
    return rows;
  // The first row from `end` on whose document begins there or later.
  int64_t low = Lesser(end, rows);
  while (low < rows) {
    const int64_t middle = low + (rows - low) / 2;
    if (s.begins[b * s.time + middle] >= end)
      rows = middle;
    else
      low = middle + 1;
  }
  return rows;
}

/// Whether one of the rows [first, end) sees at most `keys` keys. `seen`: what the last of them
/// sees where only the diagonal bounds it.
template <typename E>
BOA_INLINE bool SeesFew(const boa::AttentionArgs<E> &s, int64_t b, int64_t first, int64_t end,
                        int64_t seen, int64_t keys) {
  if (seen <= keys || (s.window != 0 && s.window <= keys))
    return true;
  if (s.begins)
    for (int64_t row = first; row < end; ++row)
      if ((s.causal ? row + 1 : EndOfKeys(s, b, row)) - FirstKey(s, b, row) <= keys)
        return true;
  return false;
}

} // namespace

#endif // BOA_RUNTIME_KERNELS_ATTENTION_RANGE_H
