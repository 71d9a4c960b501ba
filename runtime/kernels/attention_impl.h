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
//             dk and dq
//   keys      (batch, key/value head, block of keys): the part of backward that
//             gives dk and dv
//   queries   (batch, head, chunk of rows): the part that gives dq
//
// backward does five products where keys and queries together do seven, but are
// more tasks. Each sum over blocks runs in the same order in both.
//
// Blocks above the diagonal are skipped; inside a diagonal block the products
// stop near the diagonal. Scores are kept in units of log 2: the exponential is
// a power of two. `log` is passed in as a function, since this header calls no
// library code.
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

constexpr double kLog2E = 1.44269504088896340736, kLn2 = 0.69314718055994530942;

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

template <typename T> void forwardTask(const boa::AttentionArgs<T> &s, int64_t task, T *scratch) {
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
  const T scale = s.scale * T(kLog2E);

  T *kt = take(scratch, d * kKeyBlock);        // [d, keys]
  T *p = take(scratch, kRowBlock * kKeyBlock); // [rows, keys]
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
      multiply<T>(rows, width, d, {q + i0 * s.ldq, s.ldq, 1}, kt, kKeyBlock, p, kKeyBlock, false,
                  diagonal ? Triangle::Result : Triangle::None, off);
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
          Vec<T> e = exp2(load(row + j * L) * scale - now);
          store(row + j * L, e);
          total += e;
        }
        // What the last tile of this row reads past the diagonal.
        for (int64_t j = vectors * L; j < lesser(keys, n + kTileRows); ++j)
          row[j] = 0;
        if (k0 == 0) {
          sum[i0 + i] = sumLanes<T>(total);
        } else {
          const T shrink = exp2(splat<T>(before - now))[0];
          sum[i0 + i] = sum[i0 + i] * shrink + sumLanes<T>(total);
          if (shrink != T(1))
            for (int64_t x = 0; x < d; ++x)
              yb[i * s.ldy + x] *= shrink;
        }
        max[i0 + i] = now;
      }
      multiply<T>(rows, d, keys, {p, kKeyBlock, 1}, v + k0 * s.ldv, s.ldv, yb, s.ldy, k0 != 0,
                  diagonal ? Triangle::Lower : Triangle::None, off);
    }
  }
  for (int64_t i = 0; i < count; ++i) {
    const T inverse = T(1) / sum[i];
    for (int64_t x = 0; x < d; ++x)
      y[i * s.ldy + x] *= inverse;
    lse[i] = max[i] * T(kLn2) + s.log(sum[i]);
  }
}

/// One square block of the backward pass: rows [i0, ...) of one head against keys
/// [k0, ...). Pointers are to the first row of the block.
template <typename T> struct GradBlock {
  int64_t rows, keys;
  bool diagonal;
  const T *q, *y, *dy, *lse;

  GradBlock(const boa::AttentionArgs<T> &s, int64_t b, int64_t h, int64_t i0, int64_t k0)
      : rows(lesser(kRowBlock, s.time - i0)), keys(lesser(kRowBlock, s.time - k0)),
        diagonal(s.causal && i0 == k0) {
    const int64_t at = b * s.time + i0;
    q = s.q + at * s.ldq + h * s.d;
    y = s.yIn + at * s.ldy + h * s.d;
    dy = s.dy + at * s.lddy + h * s.d;
    lse = s.lseIn + (b * s.heads + h) * s.time + i0;
  }
};

/// p = exp(q k^T scale - lse) and ds = p (dy v^T - rowsum(dy y)) scale, [rows,
/// keys] with row stride kRowBlock; zero past the diagonal. kt and vt are the
/// block's keys and values, transposed.
template <typename T>
void scoreGradients(const boa::AttentionArgs<T> &s, const GradBlock<T> &g, const T *kt, const T *vt,
                    T *p, T *ds) {
  constexpr int L = Simd<T>::kLanes;
  const int64_t d = s.d;
  const T scale = s.scale, scale2 = s.scale * T(kLog2E);
  const int64_t width = (g.keys + 2 * L - 1) / (2 * L) * (2 * L);
  const Triangle triangle = g.diagonal ? Triangle::Result : Triangle::None;
  multiply<T>(g.rows, width, d, {g.q, s.ldq, 1}, kt, kRowBlock, p, kRowBlock, false, triangle);
  multiply<T>(g.rows, width, d, {g.dy, s.lddy, 1}, vt, kRowBlock, ds, kRowBlock, false, triangle);
  for (int64_t i = 0; i < g.rows; ++i) {
    const T *dy = g.dy + i * s.lddy, *y = g.y + i * s.ldy;
    Vec<T> dot{};
    int64_t x = 0;
    for (; x + L <= d; x += L)
      dot += load(dy + x) * load(y + x);
    T delta = sumLanes<T>(dot);
    for (; x < d; ++x)
      delta += dy[x] * y[x];
    T *pr = p + i * kRowBlock, *dsr = ds + i * kRowBlock;
    const T lse2 = g.lse[i] * T(kLog2E);
    const int64_t n = seen(g.diagonal, i, 0, g.keys);
    const int64_t vectors = (n + L - 1) / L;
    for (int64_t j = n; j < vectors * L; ++j) {
      pr[j] = -__builtin_inf();
      dsr[j] = 0;
    }
    for (int64_t j = 0; j < vectors; ++j) {
      Vec<T> e = exp2(load(pr + j * L) * scale2 - lse2);
      store(pr + j * L, e);
      store(dsr + j * L, e * scale * (load(dsr + j * L) - delta));
    }
    for (int64_t j = vectors * L; j < g.keys; ++j)
      pr[j] = dsr[j] = 0;
  }
}

/// dk and dv of one block of keys, in dkb and dvb; `each` is called after each
/// block of rows, in order.
template <typename T, typename Each>
void keyBlockGradients(const boa::AttentionArgs<T> &s, int64_t b, int64_t kvh, int64_t k0,
                       T *scratch, Each each) {
  const int64_t d = s.d, group = s.heads / s.kv_heads;
  const int64_t keys = lesser(kRowBlock, s.time - k0);
  const T *k = s.k + (b * s.time + k0) * s.ldk + kvh * d;
  const T *v = s.v + (b * s.time + k0) * s.ldv + kvh * d;
  T *kt = take(scratch, d * kRowBlock), *vt = take(scratch, d * kRowBlock);
  T *p = take(scratch, kRowBlock * kRowBlock);
  T *ds = take(scratch, kRowBlock * kRowBlock);
  T *dkb = take(scratch, kRowBlock * d), *dvb = take(scratch, kRowBlock * d);
  transpose(k, s.ldk, keys, d, kt, kRowBlock);
  transpose(v, s.ldv, keys, d, vt, kRowBlock);
  bool first = true;
  for (int64_t h = kvh * group; h < (kvh + 1) * group; ++h)
    for (int64_t i0 = s.causal ? k0 : 0; i0 < s.time; i0 += kRowBlock) {
      GradBlock<T> g(s, b, h, i0, k0);
      scoreGradients(s, g, kt, vt, p, ds);
      const Triangle upper = g.diagonal ? Triangle::Upper : Triangle::None;
      multiply<T>(keys, d, g.rows, {p, 1, kRowBlock}, g.dy, s.lddy, dvb, d, !first, upper);
      multiply<T>(keys, d, g.rows, {ds, 1, kRowBlock}, g.q, s.ldq, dkb, d, !first, upper);
      first = false;
      each(g, h, i0, k, ds);
    }
  T *dk = s.dk + (b * s.time + k0) * s.lddk + kvh * d;
  T *dv = s.dv + (b * s.time + k0) * s.lddv + kvh * d;
  for (int64_t j = 0; j < keys; ++j)
    for (int64_t x = 0; x < d; ++x) {
      dk[j * s.lddk + x] = dkb[j * d + x];
      dv[j * s.lddv + x] = dvb[j * d + x];
    }
}

/// dq of a block of rows, from one block of keys: the first sets, the others add.
template <typename T>
void addQueryGradients(const boa::AttentionArgs<T> &s, const GradBlock<T> &g, int64_t b, int64_t h,
                       int64_t i0, int64_t k0, const T *k, const T *ds) {
  T *dq = s.dq + (b * s.time + i0) * s.lddq + h * s.d;
  multiply<T>(g.rows, s.d, g.keys, {ds, kRowBlock, 1}, k, s.ldk, dq, s.lddq, k0 != 0,
              g.diagonal ? Triangle::Lower : Triangle::None);
}

template <typename T> void backwardTask(const boa::AttentionArgs<T> &s, int64_t task, T *scratch) {
  const int64_t kvh = task % s.kv_heads, b = task / s.kv_heads;
  for (int64_t k0 = 0; k0 < s.time; k0 += kRowBlock)
    keyBlockGradients(s, b, kvh, k0, scratch,
                      [&](const GradBlock<T> &g, int64_t h, int64_t i0, const T *k, const T *ds) {
                        addQueryGradients(s, g, b, h, i0, k0, k, ds);
                      });
}

template <typename T> void keysTask(const boa::AttentionArgs<T> &s, int64_t task, T *scratch) {
  const int64_t blocks = (s.time + kRowBlock - 1) / kRowBlock;
  const int64_t kvh = task / blocks % s.kv_heads, b = task / blocks / s.kv_heads;
  keyBlockGradients(s, b, kvh, task % blocks * kRowBlock, scratch,
                    [](const GradBlock<T> &, int64_t, int64_t, const T *, const T *) {});
}

template <typename T> void queriesTask(const boa::AttentionArgs<T> &s, int64_t task, T *scratch) {
  const int64_t d = s.d, chunks = (s.time + kChunk - 1) / kChunk;
  const int64_t h = task / chunks % s.heads, b = task / chunks / s.heads;
  const int64_t kvh = h / (s.heads / s.kv_heads);
  const int64_t first = task % chunks * kChunk;
  const int64_t last = lesser(first + kChunk, s.time);
  T *kt = take(scratch, d * kRowBlock), *vt = take(scratch, d * kRowBlock);
  T *p = take(scratch, kRowBlock * kRowBlock);
  T *ds = take(scratch, kRowBlock * kRowBlock);
  for (int64_t k0 = 0; k0 < (s.causal ? last : s.time); k0 += kRowBlock) {
    const int64_t keys = lesser(kRowBlock, s.time - k0);
    const T *k = s.k + (b * s.time + k0) * s.ldk + kvh * d;
    const T *v = s.v + (b * s.time + k0) * s.ldv + kvh * d;
    transpose(k, s.ldk, keys, d, kt, kRowBlock);
    transpose(v, s.ldv, keys, d, vt, kRowBlock);
    for (int64_t i0 = first; i0 < last; i0 += kRowBlock) {
      if (s.causal && i0 < k0)
        continue;
      GradBlock<T> g(s, b, h, i0, k0);
      scoreGradients(s, g, kt, vt, p, ds);
      addQueryGradients(s, g, b, h, i0, k0, k, ds);
    }
  }
}

} // namespace

/// The entry points of this unit's instruction set.
#define BOA_ATTENTION_TABLE(name)                                                                  \
  extern const boa::AttentionTable name;                                                           \
  const boa::AttentionTable name = {                                                               \
      {forwardTask<float>, backwardTask<float>, keysTask<float>, queriesTask<float>},              \
      {forwardTask<double>, backwardTask<double>, keysTask<double>, queriesTask<double>}}

#endif // BOA_RUNTIME_KERNELS_ATTENTION_IMPL_H
