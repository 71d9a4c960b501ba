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
// Elements are E and operands of products O (block_product.h). Where the two are one,
// operands are read where they lie and results are summed there; elsewhere blocks are
// made of the elements, and what several blocks add to is summed in scratch and rounded
// once: y of a chunk; dq of a head, and where heads share keys, their dk and dv. Where
// operands are pairs p and ds are rounded when they are computed, but not the sums of p.
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
#include "runtime/kernels/block_product.h"

namespace {

constexpr int64_t kRowBlock = boa::kAttentionRowBlock;
constexpr int64_t kKeyBlock = boa::kAttentionKeyBlock;
constexpr int64_t kChunk = boa::kAttentionChunk;

/// The rounding of p to bf16 averages out over more keys than these. For rows that see no
/// more, what it leaves of p is multiplied, too.
constexpr int64_t kFewKeys = kRowBlock;

constexpr double kLog2E = 1.44269504088896340736, kLn2 = 0.69314718055994530942;

BOA_INLINE int64_t lesser(int64_t a, int64_t b) { return a < b ? a : b; }

/// `count` numbers of U, of scratch in T.
template <typename U, typename T> BOA_INLINE U *take(T *&scratch, int64_t count) {
  static_assert(sizeof(U) <= sizeof(T));
  T *p = scratch;
  scratch += (count + 15) / 16 * 16;
  return reinterpret_cast<U *>(p);
}

/// Columns of a block of results: those that there are, or whole vectors.
template <typename O, typename E> BOA_INLINE int64_t columnsOf(int64_t d) {
  return __is_same(O, E) ? d : padded<O>(d);
}

/// Columns of row i (of the block) that it sees: all `keys`, or up to the
/// diagonal, which passes `off` columns right of the block's.
BOA_INLINE int64_t seen(bool causal, int64_t i, int64_t off, int64_t keys) {
  return causal ? lesser(keys, i + off + 1) : keys;
}

template <typename O, typename E>
void forwardTask(const boa::AttentionArgs<E> &s, int64_t task, SumOf<O> *scratch) {
  using T = SumOf<O>;
  constexpr bool kInPlace = __is_same(O, E);
  constexpr int L = kLanes<O>;
  const int64_t d = s.d, chunks = (s.time + kChunk - 1) / kChunk;
  const int64_t chunk = task % chunks, h = task / chunks % s.heads;
  const int64_t b = task / chunks / s.heads;
  const int64_t kvh = h / (s.heads / s.kv_heads);
  const int64_t first = chunk * kChunk, count = lesser(kChunk, s.time - first);
  const E *k = s.k + b * s.time * s.ldk + kvh * d;
  const E *v = s.v + b * s.time * s.ldv + kvh * d;
  E *y = s.y + (b * s.time + first) * s.ldy + h * d;
  T *lse = s.lse + (b * s.heads + h) * s.time + first;
  const T scale = s.scale * T(kLog2E);
  const int64_t columns = columnsOf<O, E>(d);

  O *kt = take<O>(scratch, d * kKeyBlock);             // [d, keys]
  T *scores = take<T>(scratch, kRowBlock * kKeyBlock); // [rows, keys]
  CellOf<O> *p;                                        // the same; of pairs what rounding left, too
  constexpr int64_t toRest = kRowBlock * kKeyBlock;
  if constexpr (kDeep<O> == 1)
    p = scores;
  else
    p = take<CellOf<O>>(scratch, 2 * toRest);
  T *sum = take<T>(scratch, kChunk), *max = take<T>(scratch, kChunk);
  O *vRoom = take<O>(scratch, kKeyBlock * padded<O>(d));
  const Rows<O> q = alongRows(s.q + (b * s.time + first) * s.ldq + h * d, s.ldq, count, d,
                              take<O>(scratch, kChunk * padded<O>(d)));
  T *ySum;
  int64_t ldy = columns;
  if constexpr (kInPlace)
    ySum = y, ldy = s.ldy;
  else
    ySum = take<T>(scratch, kChunk * columns);

  for (int64_t i = 0; i < kChunk; ++i)
    sum[i] = 0, max[i] = -__builtin_inf();
  const int64_t end = s.causal ? first + count : s.time;
  for (int64_t k0 = 0; k0 < end; k0 += kKeyBlock) {
    const int64_t keys = lesser(kKeyBlock, s.time - k0);
    const int64_t width = (keys + 2 * L - 1) / (2 * L) * (2 * L);
    transpose(k + k0 * s.ldk, s.ldk, keys, d, kt, kKeyBlock);
    const Rows<O> vs = acrossRows(v + k0 * s.ldv, s.ldv, keys, d, vRoom);
    for (int64_t i0 = 0; i0 < count; i0 += kRowBlock) {
      const int64_t rows = lesser(kRowBlock, count - i0);
      const int64_t off = first + i0 - k0; // may be negative: nothing is seen
      if (s.causal && off + rows <= 0)
        continue;
      const bool diagonal = s.causal && off < keys - 1;
      const bool few = seen(s.causal, rows - 1, first + i0, s.time) <= kFewKeys;
      multiply<O>(rows, width, d, {q.p + i0 * q.stride, q.stride, 1}, kt, kKeyBlock, scores,
                  kKeyBlock, false, diagonal ? Triangle::Result : Triangle::None, off);
      for (int64_t i1 = 0; i1 < rows; i1 += L) {
        // A vector of rows: their maxima, and how what was summed so far shrinks.
        T now[L], shrink[L];
        for (int64_t i = i1; i < i1 + L; ++i) {
          now[i - i1] = max[i0 + i];
          if (i >= rows)
            continue;
          T *row = scores + i * kKeyBlock;
          const int64_t n = seen(diagonal, i, off, keys);
          const int64_t vectors = (n + L - 1) / L;
          for (int64_t j = n; j < vectors * L; ++j)
            row[j] = -__builtin_inf();
          Vec<T> m = load(row);
          for (int64_t j = 1; j < vectors; ++j)
            m = maximum<T>(m, load(row + j * L));
          const T before = max[i0 + i], here = maxLanes<T>(m) * scale;
          now[i - i1] = before > here ? before : here;
        }
        store(shrink, exp2(load(max + i0 + i1) - load(now)));
        store(max + i0 + i1, load(now));
        for (int64_t i = i1; i < lesser(i1 + L, rows); ++i) {
          const T *row = scores + i * kKeyBlock;
          CellOf<O> *to = p + i * kKeyBlock;
          const int64_t n = seen(diagonal, i, off, keys);
          const int64_t vectors = (n + L - 1) / L;
          Vec<T> total{};
          for (int64_t j = 0; j < vectors; ++j) {
            Vec<T> e = exp2(load(row + j * L) * scale - now[i - i1]);
            storeCells(to + j * L, e);
            if constexpr (kDeep<O> != 1)
              if (few)
                storeCells(to + j * L + toRest, e - loadAs<T>(to + j * L));
            total += e;
          }
          // What the last tile of this row reads past the diagonal.
          for (int64_t j = vectors * L; j < lesser(kKeyBlock, n + kTileRows + kDeep<O>); ++j) {
            to[j] = 0;
            if constexpr (kDeep<O> != 1)
              to[j + toRest] = 0;
          }
          const T by = shrink[i - i1];
          sum[i0 + i] = sum[i0 + i] * by + sumLanes<T>(total);
          if (by != T(1) && k0 != 0)
            for (int64_t x = 0; x < columns; ++x)
              ySum[(i0 + i) * ldy + x] *= by;
        }
      }
      const Triangle lower = diagonal ? Triangle::Lower : Triangle::None;
      auto addWeighted = [&](const CellOf<O> *weights, bool add) {
        multiply<O>(rows, columns, keys,
                    {reinterpret_cast<const O *>(weights), kKeyBlock / kDeep<O>, 1}, vs.p,
                    vs.stride, ySum + i0 * ldy, ldy, add, lower, off);
      };
      addWeighted(p, k0 != 0);
      if constexpr (kDeep<O> != 1)
        if (few)
          addWeighted(p + toRest, true);
    }
  }
  storeRows(ySum, ldy, count, d, y, s.ldy, [&](int64_t i) { return T(1) / sum[i]; });
  for (int64_t i = 0; i < count; ++i)
    lse[i] = max[i] * T(kLn2) + s.log(sum[i]);
}

/// Blocks of the backward pass; those of one block of keys are kept over blocks of rows.
template <typename O> struct GradRoom {
  using T = SumOf<O>;
  O *kt, *vt, *k;                           // [d, keys], [d, keys], [keys, d]
  O *qAlong, *qAcross, *dyAlong, *dyAcross; // [rows, d]
  T *scores, *dp;                           // [rows, keys]
  O *p, *ds;                                // the same, as operands across
  O *dsAlong;                               // the same, as operands along

  GradRoom(int64_t d, T *&scratch) {
    const int64_t side = kRowBlock * padded<O>(d), square = kRowBlock * kRowBlock;
    O **sides[] = {&kt, &vt, &k, &qAlong, &qAcross, &dyAlong, &dyAcross};
    for (O **room : sides)
      *room = take<O>(scratch, side);
    scores = take<T>(scratch, square), dp = take<T>(scratch, square);
    if constexpr (kDeep<O> == 1) {
      p = scores, ds = dsAlong = dp;
    } else {
      O **squares[] = {&p, &ds, &dsAlong};
      for (O **room : squares)
        *room = take<O>(scratch, square);
    }
  }
};

/// One square block of the backward pass: rows [i0, ...) of one head against keys
/// [k0, ...). Pointers are to the first row of the block.
template <typename O, typename E> struct GradBlock {
  int64_t rows, keys;
  bool diagonal;
  Rows<E> y, dy;
  Rows<O> qAlong, qAcross, dyAlong, dyAcross;
  const SumOf<O> *lse;

  GradBlock(const boa::AttentionArgs<E> &s, int64_t b, int64_t h, int64_t i0, int64_t k0,
            const GradRoom<O> &room)
      : rows(lesser(kRowBlock, s.time - i0)), keys(lesser(kRowBlock, s.time - k0)),
        diagonal(s.causal && i0 == k0) {
    const int64_t at = b * s.time + i0;
    const E *q = s.q + at * s.ldq + h * s.d;
    y = {s.yIn + at * s.ldy + h * s.d, s.ldy};
    dy = {s.dy + at * s.lddy + h * s.d, s.lddy};
    qAlong = alongRows(q, s.ldq, rows, s.d, room.qAlong);
    qAcross = acrossRows(q, s.ldq, rows, s.d, room.qAcross);
    dyAlong = alongRows(dy.p, s.lddy, rows, s.d, room.dyAlong);
    dyAcross = acrossRows(dy.p, s.lddy, rows, s.d, room.dyAcross);
    lse = s.lseIn + (b * s.heads + h) * s.time + i0;
  }
};

/// The dot product of two rows.
template <typename T, typename E> BOA_INLINE T dot(const E *a, const E *b, int64_t d) {
  constexpr int L = Simd<T>::kLanes;
  Vec<T> dots{};
  int64_t x = 0;
  for (; x + L <= d; x += L)
    dots += loadAs<T>(a + x) * loadAs<T>(b + x);
  T sum = sumLanes<T>(dots);
  for (; x < d; ++x)
    sum += operandAt<T>(a + x, 1) * operandAt<T>(b + x, 1);
  return sum;
}

/// p = exp(q k^T scale - lse) and ds = p (dy v^T - rowsum(dy y)) scale, [rows,
/// keys] with kRowBlock elements in a row; zero past the diagonal.
template <typename O, typename E>
void scoreGradients(const boa::AttentionArgs<E> &s, const GradBlock<O, E> &g,
                    const GradRoom<O> &room) {
  using T = SumOf<O>;
  constexpr int L = kLanes<O>;
  const int64_t d = s.d;
  const T scale = s.scale, scale2 = s.scale * T(kLog2E);
  const int64_t width = (g.keys + 2 * L - 1) / (2 * L) * (2 * L);
  const Triangle triangle = g.diagonal ? Triangle::Result : Triangle::None;
  multiply<O>(g.rows, width, d, {g.qAlong.p, g.qAlong.stride, 1}, room.kt, kRowBlock, room.scores,
              kRowBlock, false, triangle);
  multiply<O>(g.rows, width, d, {g.dyAlong.p, g.dyAlong.stride, 1}, room.vt, kRowBlock, room.dp,
              kRowBlock, false, triangle);
  for (int64_t i0 = 0; i0 < g.rows; i0 += kDeep<O>) {
    // Rows that are an operand together; a last one alone has zeros beside it.
    T delta[kDeep<O>], lse2[kDeep<O>];
    const int64_t count = lesser(kDeep<O>, g.rows - i0);
    const int64_t vectors = (seen(g.diagonal, i0 + count - 1, 0, g.keys) + L - 1) / L;
    for (int64_t r = 0; r < count; ++r) {
      const int64_t i = i0 + r;
      delta[r] = dot<T>(g.dy.p + i * g.dy.stride, g.y.p + i * g.y.stride, d);
      lse2[r] = g.lse[i] * T(kLog2E);
      for (int64_t j = seen(g.diagonal, i, 0, g.keys); j < vectors * L; ++j) {
        room.scores[i * kRowBlock + j] = -__builtin_inf();
        room.dp[i * kRowBlock + j] = 0;
      }
    }
    for (int64_t j = 0; j < width; j += L) {
      Vec<T> p[kDeep<O>] = {}, ds[kDeep<O>] = {};
      if (j < vectors * L)
        for (int64_t r = 0; r < count; ++r) {
          const int64_t at = (i0 + r) * kRowBlock + j;
          p[r] = exp2(load(room.scores + at) * scale2 - lse2[r]);
          ds[r] = p[r] * scale * (load(room.dp + at) - delta[r]);
        }
      storeAcross(room.p + i0 / kDeep<O> * kRowBlock + j, p);
      storeAcross(room.ds + i0 / kDeep<O> * kRowBlock + j, ds);
      if constexpr (kDeep<O> != 1)
        for (int64_t r = 0; r < kDeep<O>; ++r)
          storeCells(reinterpret_cast<CellOf<O> *>(room.dsAlong) + (i0 + r) * kRowBlock + j, ds[r]);
    }
  }
}

/// Adds the gradients of one block of keys, as far as the queries of heads [h0, h1) go,
/// to dk and dv (stride padded(d)); without `add` the first sets. `each` is called after
/// each block of rows, in order.
template <typename O, typename E, typename Each>
void keyBlockGradients(const boa::AttentionArgs<E> &s, int64_t b, int64_t k0, int64_t h0,
                       int64_t h1, bool add, SumOf<O> *dk, SumOf<O> *dv, const GradRoom<O> &room,
                       Each each) {
  const int64_t d = s.d, kvh = h0 / (s.heads / s.kv_heads);
  const int64_t keys = lesser(kRowBlock, s.time - k0), width = padded<O>(d);
  const E *k = s.k + (b * s.time + k0) * s.ldk + kvh * d;
  const E *v = s.v + (b * s.time + k0) * s.ldv + kvh * d;
  const Rows<O> ks = acrossRows(k, s.ldk, keys, d, room.k);
  transpose(k, s.ldk, keys, d, room.kt, kRowBlock);
  transpose(v, s.ldv, keys, d, room.vt, kRowBlock);
  for (int64_t h = h0; h < h1; ++h)
    for (int64_t i0 = s.causal ? k0 : 0; i0 < s.time; i0 += kRowBlock) {
      const GradBlock<O, E> g(s, b, h, i0, k0, room);
      scoreGradients(s, g, room);
      const Triangle upper = g.diagonal ? Triangle::Upper : Triangle::None;
      multiply<O>(keys, columnsOf<O, E>(d), g.rows, {room.p, 1, kRowBlock}, g.dyAcross.p,
                  g.dyAcross.stride, dv, width, add, upper);
      multiply<O>(keys, columnsOf<O, E>(d), g.rows, {room.ds, 1, kRowBlock}, g.qAcross.p,
                  g.qAcross.stride, dk, width, add, upper);
      add = true;
      each(g, h, i0, ks);
    }
}

template <typename O, typename E>
void storeKeyGradients(const boa::AttentionArgs<E> &s, int64_t b, int64_t kvh, int64_t k0,
                       const SumOf<O> *dk, const SumOf<O> *dv) {
  const int64_t at = b * s.time + k0, keys = lesser(kRowBlock, s.time - k0);
  auto one = [](int64_t) { return SumOf<O>(1); };
  storeRows(dk, padded<O>(s.d), keys, s.d, s.dk + at * s.lddk + kvh * s.d, s.lddk, one);
  storeRows(dv, padded<O>(s.d), keys, s.d, s.dv + at * s.lddv + kvh * s.d, s.lddv, one);
}

/// dq of rows of one head, where it is summed: where it belongs, or in scratch until it is
/// complete.
template <typename O, typename E> struct QueryGradients {
  using T = SumOf<O>;
  T *dq;
  int64_t stride;

  QueryGradients(const boa::AttentionArgs<E> &s, int64_t b, int64_t h, int64_t first, T *room) {
    if constexpr (__is_same(O, E))
      dq = s.dq + (b * s.time + first) * s.lddq + h * s.d, stride = s.lddq;
    else
      dq = room, stride = padded<O>(s.d);
  }

  /// Adds what one block of keys gives to a block of rows, the i0th on: the first sets.
  void add(const boa::AttentionArgs<E> &s, const GradBlock<O, E> &g, int64_t i0, int64_t k0,
           Rows<O> ks, const GradRoom<O> &room) {
    multiply<O>(g.rows, columnsOf<O, E>(s.d), g.keys, {room.dsAlong, kRowBlock / kDeep<O>, 1}, ks.p,
                ks.stride, dq + i0 * stride, stride, k0 != 0,
                g.diagonal ? Triangle::Lower : Triangle::None);
  }

  void store(const boa::AttentionArgs<E> &s, int64_t b, int64_t h, int64_t first, int64_t count) {
    if constexpr (!__is_same(O, E))
      storeRows(dq, stride, count, s.d, s.dq + (b * s.time + first) * s.lddq + h * s.d, s.lddq,
                [](int64_t) { return T(1); });
  }
};

template <typename O, typename E>
void backwardTask(const boa::AttentionArgs<E> &s, int64_t task, SumOf<O> *scratch) {
  using T = SumOf<O>;
  constexpr bool kInPlace = __is_same(O, E);
  const int64_t kvh = task % s.kv_heads, b = task / s.kv_heads;
  const int64_t group = s.heads / s.kv_heads, width = padded<O>(s.d);
  const GradRoom<O> room(s.d, scratch);
  // Where dq is in scratch, head by head: dk and dv wait there for the other heads.
  const int64_t together = kInPlace ? group : 1, kept = together == group ? kRowBlock : s.time;
  T *dk = take<T>(scratch, kept * width), *dv = take<T>(scratch, kept * width);
  for (int64_t h0 = kvh * group; h0 < (kvh + 1) * group; h0 += together) {
    for (int64_t k0 = 0; k0 < s.time; k0 += kRowBlock) {
      const int64_t at = together == group ? 0 : k0 * width;
      keyBlockGradients<O>(s, b, k0, h0, h0 + together, h0 != kvh * group, dk + at, dv + at, room,
                           [&](const GradBlock<O, E> &g, int64_t h, int64_t i0, Rows<O> ks) {
                             QueryGradients<O, E>(s, b, h, 0, scratch).add(s, g, i0, k0, ks, room);
                           });
      if (h0 + together == (kvh + 1) * group)
        storeKeyGradients<O>(s, b, kvh, k0, dk + at, dv + at);
    }
    QueryGradients<O, E>(s, b, h0, 0, scratch).store(s, b, h0, 0, s.time);
  }
}

template <typename O, typename E>
void keysTask(const boa::AttentionArgs<E> &s, int64_t task, SumOf<O> *scratch) {
  using T = SumOf<O>;
  const int64_t blocks = (s.time + kRowBlock - 1) / kRowBlock;
  const int64_t kvh = task / blocks % s.kv_heads, b = task / blocks / s.kv_heads;
  const int64_t group = s.heads / s.kv_heads, k0 = task % blocks * kRowBlock;
  const GradRoom<O> room(s.d, scratch);
  T *dk = take<T>(scratch, kRowBlock * padded<O>(s.d));
  T *dv = take<T>(scratch, kRowBlock * padded<O>(s.d));
  keyBlockGradients<O>(s, b, k0, kvh * group, (kvh + 1) * group, false, dk, dv, room,
                       [](const GradBlock<O, E> &, int64_t, int64_t, Rows<O>) {});
  storeKeyGradients<O>(s, b, kvh, k0, dk, dv);
}

template <typename O, typename E>
void queriesTask(const boa::AttentionArgs<E> &s, int64_t task, SumOf<O> *scratch) {
  const int64_t d = s.d, chunks = (s.time + kChunk - 1) / kChunk;
  const int64_t h = task / chunks % s.heads, b = task / chunks / s.heads;
  const int64_t kvh = h / (s.heads / s.kv_heads);
  const int64_t first = task % chunks * kChunk;
  const int64_t last = lesser(first + kChunk, s.time);
  const GradRoom<O> room(d, scratch);
  QueryGradients<O, E> gradients(s, b, h, first, scratch);
  for (int64_t k0 = 0; k0 < (s.causal ? last : s.time); k0 += kRowBlock) {
    const int64_t keys = lesser(kRowBlock, s.time - k0);
    const E *k = s.k + (b * s.time + k0) * s.ldk + kvh * d;
    const E *v = s.v + (b * s.time + k0) * s.ldv + kvh * d;
    const Rows<O> ks = acrossRows(k, s.ldk, keys, d, room.k);
    transpose(k, s.ldk, keys, d, room.kt, kRowBlock);
    transpose(v, s.ldv, keys, d, room.vt, kRowBlock);
    for (int64_t i0 = first; i0 < last; i0 += kRowBlock) {
      if (s.causal && i0 < k0)
        continue;
      const GradBlock<O, E> g(s, b, h, i0, k0, room);
      scoreGradients(s, g, room);
      gradients.add(s, g, i0 - first, k0, ks, room);
    }
  }
  gradients.store(s, b, h, first, last - first);
}

template <typename O, typename E>
constexpr boa::AttentionTasks<E> kTasks = {forwardTask<O, E>, backwardTask<O, E>, keysTask<O, E>,
                                           queriesTask<O, E>};

} // namespace

#endif // BOA_RUNTIME_KERNELS_ATTENTION_IMPL_H
