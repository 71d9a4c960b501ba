//===- attention_impl.h - Blocked attention, by task --------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The body of one task, for each instruction set. A task owns what it writes:
//
//   forward   (batch, head, chunk of 256 rows): for each block of keys, for each
//             block of rows: scores, running maximum and sum, y += p v
//   backward  (batch, key/value head): for each block of keys, for each head of
//             the group, for each block of rows: p from lse, then dv, dp, ds,
//             dk and dq, whose sums over blocks run in this fixed order
//
// Blocks above the diagonal are skipped; inside a diagonal block the products
// stop near the diagonal. `log` is passed in as a function, since this header
// calls no library code.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_KERNELS_ATTENTION_IMPL_H
#define BOA_RUNTIME_KERNELS_ATTENTION_IMPL_H

#include "runtime/kernels/attention_task.h"
#include "runtime/kernels/simd.h"

namespace {

constexpr int64_t kRowBlock = boa::kAttentionRowBlock;
constexpr int64_t kKeyBlock = boa::kAttentionKeyBlock;
constexpr int64_t kChunk = boa::kAttentionChunk;

BOA_INLINE int64_t lesser(int64_t a, int64_t b) { return a < b ? a : b; }

template <typename T> BOA_INLINE T *take(T *&scratch, int64_t count) {
  T *p = scratch;
  scratch += (count + 15) / 16 * 16;
  return p;
}

/// Columns of row i (of the block) that it sees: all `keys`, or up to the
/// diagonal, which passes `off` columns right of the block's.
BOA_INLINE int64_t seen(bool causal, int64_t i, int64_t off, int64_t keys) {
  return causal ? lesser(keys, i + off + 1) : keys;
}

template <typename T>
void forwardTask(const boa::AttentionArgs<T> &s, int64_t task, T *scratch) {
  constexpr int L = Simd<T>::kLanes;
  const int64_t d = s.d, chunks = (s.time + kChunk - 1) / kChunk;
  const int64_t chunk = task % chunks, h = task / chunks % s.heads;
  const int64_t b = task / chunks / s.heads;
  const int64_t kvh = h / (s.heads / s.kv_heads);
  const int64_t first = chunk * kChunk, count = lesser(kChunk, s.time - first);
  const T *q = s.q + (b * s.time + first) * s.ldq + h * d;
  const T *k = s.k + b * s.time * s.ldk + kvh * d;
  const T *v = s.v + b * s.time * s.ldv + kvh * d;
  T *y = s.y + (b * s.time + first) * s.ldy + h * d;
  T *lse = s.lse + (b * s.heads + h) * s.time + first;
  const T scale = s.scale;

  T *kt = take(scratch, d * kKeyBlock);              // [d, keys]
  T *p = take(scratch, kRowBlock * kKeyBlock);       // [rows, keys]
  T *sum = take(scratch, kChunk), *max = take(scratch, kChunk);

  const int64_t end = s.causal ? first + count : s.time;
  for (int64_t k0 = 0; k0 < end; k0 += kKeyBlock) {
    const int64_t keys = lesser(kKeyBlock, s.time - k0);
    const int64_t width = (keys + 2 * L - 1) / (2 * L) * (2 * L);
    transpose(k + k0 * s.ldk, s.ldk, keys, d, kt, kKeyBlock);
    for (int64_t i0 = 0; i0 < count; i0 += kRowBlock) {
      const int64_t rows = lesser(kRowBlock, count - i0);
      const int64_t off = first + i0 - k0; // may be negative: nothing is seen
      if (s.causal && off + rows <= 0)
        continue;
      const bool diagonal = s.causal && off < keys - 1;
      T *yb = y + i0 * s.ldy;
      multiply<T>(rows, width, d, {q + i0 * s.ldq, s.ldq, 1}, kt, kKeyBlock, p,
                  kKeyBlock, false, diagonal ? off : -1);
      for (int64_t i = 0; i < rows; ++i) {
        T *row = p + i * kKeyBlock;
        const int64_t n = seen(diagonal, i, off, keys);
        const int64_t vectors = (n + L - 1) / L;
        for (int64_t j = n; j < vectors * L; ++j)
          row[j] = -__builtin_inf();
        Vec<T> m = load(row);
        for (int64_t j = 1; j < vectors; ++j)
          m = maximum<T>(m, load(row + j * L));
        const T before = k0 == 0 ? T(-__builtin_inf()) : max[i0 + i];
        T now = maxLanes<T>(m) * scale;
        now = before > now ? before : now;
        Vec<T> total{};
        for (int64_t j = 0; j < vectors; ++j) {
          Vec<T> e = expNegative(load(row + j * L) * scale - now);
          store(row + j * L, e);
          total += e;
        }
        // What the last tile of this row reads past the diagonal.
        for (int64_t j = vectors * L; j < lesser(keys, n + kTileRows); ++j)
          row[j] = 0;
        if (k0 == 0) {
          sum[i0 + i] = sumLanes<T>(total);
        } else {
          const T shrink = expNegative(splat<T>(before - now))[0];
          sum[i0 + i] = sum[i0 + i] * shrink + sumLanes<T>(total);
          if (shrink != T(1))
            for (int64_t x = 0; x < d; ++x)
              yb[i * s.ldy + x] *= shrink;
        }
        max[i0 + i] = now;
      }
      multiply<T>(rows, d, keys, {p, kKeyBlock, 1}, v + k0 * s.ldv, s.ldv, yb,
                  s.ldy, k0 != 0, -1, diagonal ? off : -1);
    }
  }
  for (int64_t i = 0; i < count; ++i) {
    const T inverse = T(1) / sum[i];
    for (int64_t x = 0; x < d; ++x)
      y[i * s.ldy + x] *= inverse;
    lse[i] = max[i] + s.log(sum[i]);
  }
}

template <typename T>
void backwardTask(const boa::AttentionArgs<T> &s, int64_t task, T *scratch) {
  constexpr int L = Simd<T>::kLanes;
  const int64_t d = s.d, group = s.heads / s.kv_heads;
  const int64_t kvh = task % s.kv_heads, b = task / s.kv_heads;
  const T scale = s.scale;
  constexpr int64_t kBlock = kRowBlock; // square blocks: the diagonal is exact

  T *kt = take(scratch, d * kBlock), *vt = take(scratch, d * kBlock);
  T *p = take(scratch, kBlock * kBlock);  // [rows, keys]
  T *ds = take(scratch, kBlock * kBlock); // [rows, keys]
  T *dkb = take(scratch, kBlock * d), *dvb = take(scratch, kBlock * d);

  for (int64_t k0 = 0; k0 < s.time; k0 += kBlock) {
    const int64_t keys = lesser(kBlock, s.time - k0);
    const int64_t width = (keys + 2 * L - 1) / (2 * L) * (2 * L);
    const T *kb = s.k + (b * s.time + k0) * s.ldk + kvh * d;
    const T *vb = s.v + (b * s.time + k0) * s.ldv + kvh * d;
    transpose(kb, s.ldk, keys, d, kt, kBlock);
    transpose(vb, s.ldv, keys, d, vt, kBlock);
    bool firstOfKeys = true;
    for (int64_t h = kvh * group; h < (kvh + 1) * group; ++h) {
      for (int64_t i0 = s.causal ? k0 : 0; i0 < s.time; i0 += kBlock) {
        const int64_t rows = lesser(kBlock, s.time - i0);
        const bool diagonal = s.causal && i0 == k0;
        const int64_t at = b * s.time + i0;
        const T *q = s.q + at * s.ldq + h * d;
        const T *y = s.yIn + at * s.ldy + h * d;
        const T *dy = s.dy + at * s.lddy + h * d;
        const T *lse = s.lseIn + (b * s.heads + h) * s.time + i0;
        T *dq = s.dq + at * s.lddq + h * d;

        multiply<T>(rows, width, d, {q, s.ldq, 1}, kt, kBlock, p, kBlock, false,
                    diagonal ? 0 : -1);
        multiply<T>(rows, width, d, {dy, s.lddy, 1}, vt, kBlock, ds, kBlock,
                    false, diagonal ? 0 : -1);
        for (int64_t i = 0; i < rows; ++i) {
          // delta = sum(dy * y) of the row; ds = p (dp - delta) scale.
          Vec<T> dot{};
          int64_t x = 0;
          for (; x + L <= d; x += L)
            dot += load(dy + i * s.lddy + x) * load(y + i * s.ldy + x);
          T delta = sumLanes<T>(dot);
          for (; x < d; ++x)
            delta += dy[i * s.lddy + x] * y[i * s.ldy + x];
          T *pr = p + i * kBlock, *dsr = ds + i * kBlock;
          const int64_t n = seen(diagonal, i, 0, keys);
          const int64_t vectors = (n + L - 1) / L;
          for (int64_t j = n; j < vectors * L; ++j) {
            pr[j] = -__builtin_inf();
            dsr[j] = 0;
          }
          for (int64_t j = 0; j < vectors; ++j) {
            Vec<T> e = expNegative(load(pr + j * L) * scale - lse[i]);
            store(pr + j * L, e);
            store(dsr + j * L, e * (load(dsr + j * L) - delta) * scale);
          }
          for (int64_t j = vectors * L; j < keys; ++j)
            pr[j] = dsr[j] = 0;
        }
        multiply<T>(keys, d, rows, {p, 1, kBlock}, dy, s.lddy, dvb, d,
                    !firstOfKeys);
        multiply<T>(keys, d, rows, {ds, 1, kBlock}, q, s.ldq, dkb, d,
                    !firstOfKeys);
        multiply<T>(rows, d, keys, {ds, kBlock, 1}, kb, s.ldk, dq, s.lddq,
                    k0 != 0, -1, diagonal ? 0 : -1);
        firstOfKeys = false;
      }
    }
    T *dk = s.dk + (b * s.time + k0) * s.lddk + kvh * d;
    T *dv = s.dv + (b * s.time + k0) * s.lddv + kvh * d;
    for (int64_t j = 0; j < keys; ++j)
      for (int64_t x = 0; x < d; ++x) {
        dk[j * s.lddk + x] = dkb[j * d + x];
        dv[j * s.lddv + x] = dvb[j * d + x];
      }
  }
}

} // namespace

/// The entry points of this unit's instruction set.
#define BOA_ATTENTION_TABLE(name)                                              \
  extern const boa::AttentionTable name;                                       \
  const boa::AttentionTable name = {forwardTask<float>, forwardTask<double>,   \
                                    backwardTask<float>, backwardTask<double>}

#endif // BOA_RUNTIME_KERNELS_ATTENTION_IMPL_H
