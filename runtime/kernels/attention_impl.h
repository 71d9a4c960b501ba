//===- attention_impl.h - Blocked attention, by task --------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The body of one task, for each instruction set. Each task owns its results:
//
//   forward   For a batch, head and chunk of 256 rows. Each block of keys meets each block of
//             rows: scores, running maximum and sum, y += p v.
//   backward  For a batch and key/value head. It takes four blocks of keys at a time. Each head
//             of the group gives its blocks of rows to each of the four: p from lse, then dv, dp,
//             ds, dk and dq.
//   keys      For a batch, key/value head and block of keys: the part of backward that gives dk
//             and dv.
//   queries   For a batch, head and chunk of rows: the part that gives dq.
//
// backward does five products where keys and queries together do seven, but are
// more tasks. Each sum over blocks runs in the same order in both.
//
// Elements are E and operands of products O (block_product.h). If the two are one type, results
// are summed in place. If not, results that several blocks add to are summed in scratch and
// rounded once. These are y of a chunk, dq of a head, and dk and dv of heads that share keys.
// Where operands are pairs, p and ds are rounded when they are computed, but the sums of p are
// not.
//
// Blocks above the diagonal, before the window or of other documents are skipped; inside a
// diagonal block the products stop near the diagonal. Where a window or a document begins or ends
// inside a block, what lies beyond is masked. Scores are kept in units of log 2: the exponential is
// a power of two. `log` is passed in as a function, since this header calls no
// library code.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_KERNELS_ATTENTION_IMPL_H
#define BOA_RUNTIME_KERNELS_ATTENTION_IMPL_H

#include "runtime/kernels/attention_blocks.h"
#include "runtime/kernels/attention_range.h"
#include "runtime/kernels/block_product.h"

namespace {

/// The rounding of p to bf16 averages out over more keys than these. For rows that see no more,
/// the remainder of p after rounding is multiplied, too.
constexpr int64_t kFewKeys = kRowBlock;

constexpr double kLog2E = 1.44269504088896340736, kLn2 = 0.69314718055994530942;

/// Columns of a block of results: the real ones, or whole vectors.
template <typename O, typename E> BOA_INLINE int64_t ColumnsOf(int64_t d) {
  return __is_same(O, E) ? d : Padded<O>(d);
}

template <typename O, typename E>
void ForwardTask(const boa::AttentionArgs<E> &s, int64_t task, SumOf<O> *scratch) {
  using T = SumOf<O>;
  constexpr bool kInPlace = __is_same(O, E);
  constexpr int L = kLanes<O>;
  const int64_t d = s.d, chunks = (s.time + kChunk - 1) / kChunk;
  const int64_t chunk = task % chunks, h = task / chunks % s.heads;
  const int64_t b = task / chunks / s.heads;
  const int64_t kvh = h / (s.heads / s.kv_heads);
  const int64_t first = chunk * kChunk, count = Lesser(kChunk, s.time - first);
  const E *k = s.k + b * s.time * s.ldk + kvh * d;
  const E *v = s.v + b * s.time * s.ldv + kvh * d;
  E *y = s.y + (b * s.time + first) * s.ldy + h * d;
  T *lse = s.lse + (b * s.heads + h) * s.time + first;
  const T scale = s.scale * T(kLog2E);
  const int64_t columns = ColumnsOf<O, E>(d);

  O *kt = Take<O>(scratch, d * kKeyBlock);             // [d, keys]
  T *scores = Take<T>(scratch, kRowBlock * kKeyBlock); // [rows, keys]
  CellOf<O> *p;                                        // the same; of pairs what rounding left, too
  constexpr int64_t toRest = kRowBlock * kKeyBlock;
  if constexpr (kDeep<O> == 1)
    p = scores;
  else
    p = Take<CellOf<O>>(scratch, 2 * toRest);
  T *sum = Take<T>(scratch, kChunk), *max = Take<T>(scratch, kChunk);
  O *vRoom = Take<O>(scratch, kKeyBlock * Padded<O>(d));
  const E *qs = s.q + (b * s.time + first) * s.ldq + h * d;
  auto prefetchKeys = [&](int64_t k0) {
    PrefetchRows(k + k0 * s.ldk, s.ldk, Lesser(kKeyBlock, s.time - k0), d);
    PrefetchRows(v + k0 * s.ldv, s.ldv, Lesser(kKeyBlock, s.time - k0), d);
  };
  PrefetchRows(qs, s.ldq, count, d);
  const int64_t begin = FirstKey(s, b, first) / kKeyBlock * kKeyBlock;
  prefetchKeys(begin);
  const Rows<O> q = AlongRows(qs, s.ldq, count, d, Take<O>(scratch, kChunk * Padded<O>(d)));
  T *ySum;
  int64_t ldy = columns;
  if constexpr (kInPlace)
    ySum = y, ldy = s.ldy;
  else
    ySum = Take<T>(scratch, kChunk * columns);

  for (int64_t i = 0; i < kChunk; ++i)
    sum[i] = 0, max[i] = -__builtin_inf();
  const int64_t end = s.causal ? first + count : EndOfKeys(s, b, first + count - 1);
  for (int64_t k0 = begin; k0 < end; k0 += kKeyBlock) {
    const int64_t keys = Lesser(kKeyBlock, s.time - k0);
    const int64_t width = (keys + 2 * L - 1) / (2 * L) * (2 * L);
    Transpose(k + k0 * s.ldk, s.ldk, keys, d, kt, kKeyBlock);
    const Rows<O> vs = AcrossRows(v + k0 * s.ldv, s.ldv, keys, d, vRoom);
    prefetchKeys(Lesser(k0 + kKeyBlock, s.time));
    for (int64_t i0 = 0; i0 < count; i0 += kRowBlock) {
      const int64_t rows = Lesser(kRowBlock, count - i0);
      const int64_t off = first + i0 - k0; // may be negative: nothing is seen
      const int64_t from = FirstKey(s, b, first + i0);
      const int64_t to = s.causal ? first + i0 + rows : EndOfKeys(s, b, first + i0 + rows - 1);
      if (k0 >= to || k0 + keys <= from)
        continue;
      const bool add = k0 > from; // to what earlier keys gave
      const bool diagonal = s.causal && off < keys - 1;
      const int64_t seen = Seen(s.causal, rows - 1, first + i0, s.time);
      const bool few = SeesFew(s, b, first + i0, first + i0 + rows, seen, kFewKeys);
      Multiply<O>(rows, width, d, {q.p + i0 * q.stride, q.stride, 1}, kt, kKeyBlock, scores,
                  kKeyBlock, false, diagonal ? Triangle::Result : Triangle::None, off);
      for (int64_t i1 = 0; i1 < rows; i1 += L) {
        // A vector of rows: their maxima, and the factor that shrinks earlier sums.
        T now[L], shrink[L];
        bool hidden[L] = {}; // none of these keys is seen
        for (int64_t i = i1; i < i1 + L; ++i) {
          now[i - i1] = max[i0 + i];
          if (i >= rows)
            continue;
          T *row = scores + i * kKeyBlock;
          const int64_t n = Seen(diagonal, i, off, keys);
          const int64_t vectors = (n + L - 1) / L;
          const int64_t before0 = Lesser(FirstKey(s, b, first + i0 + i) - k0, n);
          for (int64_t j = 0; j < before0; ++j)
            row[j] = -__builtin_inf();
          hidden[i - i1] = before0 == n;
          if (s.ends) {
            const int64_t behind = EndOfKeys(s, b, first + i0 + i) - k0;
            for (int64_t j = behind > 0 ? behind : 0; j < n; ++j)
              row[j] = -__builtin_inf();
            hidden[i - i1] |= behind <= 0;
          }
          T *last = row + (vectors - 1) * L;
          Vec<T> m = FirstOf<T>(Load(last), n - (vectors - 1) * L, -__builtin_inf());
          Store(last, m);
          for (int64_t j = 0; j < vectors - 1; ++j)
            m = Maximum<T>(m, Load(row + j * L));
          const T before = max[i0 + i], here = MaxLanes<T>(m) * scale;
          now[i - i1] = before > here ? before : here;
        }
        Store(shrink, Exp2(Load(max + i0 + i1) - Load(now)));
        Store(max + i0 + i1, Load(now));
        // Of a row that has seen no key yet there is no maximum to be subtracted. One that has seen
        // all of its keys is not changed.
        for (int64_t i = 0; i < L; ++i)
          if (hidden[i])
            now[i] = 0, shrink[i] = 1;
        for (int64_t i = i1; i < Lesser(i1 + L, rows); ++i) {
          const T *row = scores + i * kKeyBlock;
          CellOf<O> *to = p + i * kKeyBlock;
          const int64_t n = Seen(diagonal, i, off, keys);
          const int64_t vectors = (n + L - 1) / L;
          Vec<T> total{};
          for (int64_t j = 0; j < vectors; ++j) {
            Vec<T> e = Exp2(Load(row + j * L) * scale - now[i - i1]);
            StoreCells(to + j * L, e);
            if constexpr (kDeep<O> != 1)
              if (few)
                StoreCells(to + j * L + toRest, e - LoadAs<T>(to + j * L));
            total += e;
          }
          // Zeros, since the last tile of this row reads past the diagonal.
          for (int64_t j = vectors * L; j < vectors * L + kTileRows + kDeep<O>; j += L)
            if (j < kKeyBlock) {
              StoreCells(to + j, Vec<T>{});
              if constexpr (kDeep<O> != 1)
                StoreCells(to + j + toRest, Vec<T>{});
            }
          const T by = shrink[i - i1];
          sum[i0 + i] = sum[i0 + i] * by + SumLanes<T>(total);
          if (by != T(1) && add)
            for (int64_t x = 0; x < columns; ++x)
              ySum[(i0 + i) * ldy + x] *= by;
        }
      }
      const Triangle lower = diagonal ? Triangle::Lower : Triangle::None;
      auto addWeighted = [&](const CellOf<O> *weights, bool toSum) {
        Multiply<O>(rows, columns, keys,
                    {reinterpret_cast<const O *>(weights), kKeyBlock / kDeep<O>, 1}, vs.p,
                    vs.stride, ySum + i0 * ldy, ldy, toSum, lower, off);
      };
      addWeighted(p, add);
      if constexpr (kDeep<O> != 1)
        if (few)
          addWeighted(p + toRest, true);
    }
  }
  StoreRows(ySum, ldy, count, d, y, s.ldy, [&](int64_t i) { return T(1) / sum[i]; });
  for (int64_t i = 0; i < count; ++i)
    lse[i] = max[i] * T(kLn2) + s.log(sum[i]);
}

/// p = exp(q k^T scale - lse) and ds = p (dy v^T - delta) scale of a block of rows and one of
/// keys. Rows have kRowBlock elements, and zeros past the diagonal.
template <typename O> struct ScoreGradients {
  using T = SumOf<O>;
  bool diagonal;
  T *scores, *dp;
  O *p, *ds;  // as operands across
  O *dsAlong; // as operands along

  explicit ScoreGradients(T *&scratch) {
    constexpr int64_t kSquare = kRowBlock * kRowBlock;
    scores = Take<T>(scratch, kSquare), dp = Take<T>(scratch, kSquare);
    if constexpr (kDeep<O> == 1) {
      p = scores, ds = dsAlong = dp;
    } else {
      p = Take<O>(scratch, kSquare / kDeep<O>), ds = Take<O>(scratch, kSquare / kDeep<O>);
      dsAlong = Take<O>(scratch, kSquare / kDeep<O>);
    }
  }

  template <typename E>
  void Set(const boa::AttentionArgs<E> &s, int64_t b, const RowBlock<O, E> &rows,
           const KeyBlock<O, E> &keys) {
    constexpr int L = kLanes<O>;
    const T scale = s.scale, scale2 = s.scale * T(kLog2E);
    const int64_t width = (keys.count + 2 * L - 1) / (2 * L) * (2 * L);
    diagonal = s.causal && rows.first == keys.first;
    const Triangle triangle = diagonal ? Triangle::Result : Triangle::None;
    Multiply<O>(rows.count, width, s.d, {rows.q.p, rows.q.stride, 1}, keys.kt, kRowBlock, scores,
                kRowBlock, false, triangle);
    Multiply<O>(rows.count, width, s.d, {rows.dy.p, rows.dy.stride, 1}, keys.vt, kRowBlock, dp,
                kRowBlock, false, triangle);
    const auto hide = [&](int64_t i, int64_t from, int64_t to) {
      for (int64_t j = from > 0 ? from : 0; j < Lesser(to, keys.count); ++j)
        scores[i * kRowBlock + j] = -__builtin_inf(), dp[i * kRowBlock + j] = 0;
    };
    for (int64_t i = 0; (s.window != 0 || s.begins) && i < rows.count; ++i) {
      hide(i, 0, FirstKey(s, b, rows.first + i) - keys.first);
      if (s.ends)
        hide(i, EndOfKeys(s, b, rows.first + i) - keys.first, keys.count);
    }
    for (int64_t i0 = 0; i0 < rows.count; i0 += kDeep<O>) {
      // Rows that are an operand together; a last one alone has zeros beside it.
      const int64_t count = Lesser(kDeep<O>, rows.count - i0);
      const int64_t vectors = (Seen(diagonal, i0 + count - 1, 0, keys.count) + L - 1) / L;
      for (int64_t j = 0; j < width; j += L) {
        Vec<T> ps[kDeep<O>] = {}, dss[kDeep<O>] = {};
        for (int64_t r = 0; r < kDeep<O>; ++r) {
          const int64_t i = i0 + r, at = i * kRowBlock + j;
          if (r >= count || j >= vectors * L)
            continue;
          Vec<T> score = Load(scores + at), gradient = Load(dp + at);
          if (j + L >= vectors * L) {
            const int64_t n = Seen(diagonal, i, 0, keys.count) - j;
            score = FirstOf<T>(score, n, -__builtin_inf());
            gradient = FirstOf<T>(gradient, n, 0);
          }
          ps[r] = Exp2(score * scale2 - rows.lse[i] * T(kLog2E));
          dss[r] = ps[r] * scale * (gradient - rows.delta[i]);
        }
        StoreAcross(p + i0 / kDeep<O> * kRowBlock + j, ps);
        StoreAcross(ds + i0 / kDeep<O> * kRowBlock + j, dss);
        if constexpr (kDeep<O> != 1)
          for (int64_t r = 0; r < kDeep<O>; ++r)
            StoreCells(reinterpret_cast<CellOf<O> *>(dsAlong) + (i0 + r) * kRowBlock + j, dss[r]);
      }
    }
  }

  /// Adds to the gradients of the keys, [keys, d]; without `add` sets them.
  template <typename E>
  void AddToKeys(const boa::AttentionArgs<E> &s, const RowBlock<O, E> &rows,
                 const KeyBlock<O, E> &keys, T *dk, T *dv, bool add) const {
    const Triangle upper = diagonal ? Triangle::Upper : Triangle::None;
    Multiply<O>(keys.count, ColumnsOf<O, E>(s.d), rows.count, {p, 1, kRowBlock}, rows.dyAcross.p,
                rows.dyAcross.stride, dv, Padded<O>(s.d), add, upper);
    Multiply<O>(keys.count, ColumnsOf<O, E>(s.d), rows.count, {ds, 1, kRowBlock}, rows.qAcross.p,
                rows.qAcross.stride, dk, Padded<O>(s.d), add, upper);
  }

  /// Adds to the gradients of the rows, [rows, d]; those of the first keys set them.
  template <typename E>
  void AddToRows(const boa::AttentionArgs<E> &s, int64_t b, const RowBlock<O, E> &rows,
                 const KeyBlock<O, E> &keys, T *dq, int64_t stride) const {
    Multiply<O>(rows.count, ColumnsOf<O, E>(s.d), keys.count, {dsAlong, kRowBlock / kDeep<O>, 1},
                keys.k.p, keys.k.stride, dq, stride, keys.first > FirstKey(s, b, rows.first),
                diagonal ? Triangle::Lower : Triangle::None);
  }
};

template <typename O, typename E>
void StoreKeyGradients(const boa::AttentionArgs<E> &s, int64_t b, int64_t kvh, int64_t k0,
                       const SumOf<O> *dk, const SumOf<O> *dv) {
  const int64_t at = b * s.time + k0, keys = Lesser(kRowBlock, s.time - k0);
  auto one = [](int64_t) { return SumOf<O>(1); };
  StoreRows(dk, Padded<O>(s.d), keys, s.d, s.dk + at * s.lddk + kvh * s.d, s.lddk, one);
  StoreRows(dv, Padded<O>(s.d), keys, s.d, s.dv + at * s.lddv + kvh * s.d, s.lddv, one);
}

/// The sums of dq of rows of one head: in place, or in scratch until they are complete.
template <typename O, typename E> struct QueryGradients {
  SumOf<O> *dq;
  int64_t stride;

  QueryGradients(const boa::AttentionArgs<E> &s, int64_t b, int64_t h, int64_t first,
                 SumOf<O> *room) {
    if constexpr (__is_same(O, E))
      dq = s.dq + (b * s.time + first) * s.lddq + h * s.d, stride = s.lddq;
    else
      dq = room, stride = Padded<O>(s.d);
  }

  void Store(const boa::AttentionArgs<E> &s, int64_t b, int64_t h, int64_t first, int64_t count) {
    if constexpr (!__is_same(O, E))
      StoreRows(dq, stride, count, s.d, s.dq + (b * s.time + first) * s.lddq + h * s.d, s.lddq,
                [](int64_t) { return SumOf<O>(1); });
  }
};

/// A block of rows is made for this many blocks of keys at once.
constexpr int64_t kKeysTogether = boa::kAttentionChunk / kRowBlock;

template <typename O, typename E>
void BackwardTask(const boa::AttentionArgs<E> &s, int64_t task, SumOf<O> *scratch) {
  using T = SumOf<O>;
  constexpr bool kInPlace = __is_same(O, E);
  const int64_t kvh = task % s.kv_heads, b = task / s.kv_heads;
  const int64_t group = s.heads / s.kv_heads, wide = Padded<O>(s.d);
  RowBlock<O, E> rows(s.d, scratch);
  KeyBlock<O, E> keys[kKeysTogether];
  for (KeyBlock<O, E> &block : keys)
    block.Take(s.d, scratch);
  ScoreGradients<O> gradients(scratch);
  // Where dq is in scratch, head by head: dk and dv wait there for the other heads.
  const int64_t together = kInPlace ? group : 1;
  const bool whole = together == group;
  const int64_t kept = whole ? kChunk : (s.time + kChunk - 1) / kChunk * kChunk;
  T *dks = Take<T>(scratch, kept * wide), *dvs = Take<T>(scratch, kept * wide);
  for (int64_t h0 = kvh * group; h0 < (kvh + 1) * group; h0 += together) {
    for (int64_t k0 = 0; k0 < s.time; k0 += kChunk) {
      const int64_t blocks = (Lesser(kChunk, s.time - k0) + kRowBlock - 1) / kRowBlock;
      T *dk = dks + (whole ? 0 : k0 * wide), *dv = dvs + (whole ? 0 : k0 * wide);
      for (int64_t j = 0; j < blocks; ++j)
        keys[j].Set(s, b, kvh, k0 + j * kRowBlock);
      for (int64_t h = h0; h < h0 + together; ++h) {
        const QueryGradients<O, E> queries(s, b, h, 0, scratch);
        const int64_t end = EndOfRows(s, b, Lesser(k0 + kChunk, s.time));
        for (int64_t i0 = FirstBlock(s, b, k0); i0 < end; i0 += kRowBlock) {
          rows.Set(s, b, h, i0);
          const int64_t to = s.causal ? i0 + 1 : EndOfKeys(s, b, i0 + rows.count - 1);
          for (int64_t j = 0; j < blocks && keys[j].first < to; ++j) {
            if (keys[j].first + keys[j].count <= FirstKey(s, b, i0))
              continue;
            const int64_t at = j * kRowBlock * wide;
            const bool first = h == kvh * group && i0 == FirstBlock(s, b, keys[j].first);
            gradients.Set(s, b, rows, keys[j]);
            gradients.AddToKeys(s, rows, keys[j], dk + at, dv + at, !first);
            gradients.AddToRows(s, b, rows, keys[j], queries.dq + i0 * queries.stride,
                                queries.stride);
          }
        }
      }
      if (h0 + together == (kvh + 1) * group)
        for (int64_t j = 0; j < blocks; ++j)
          StoreKeyGradients<O>(s, b, kvh, keys[j].first, dk + j * kRowBlock * wide,
                               dv + j * kRowBlock * wide);
    }
    QueryGradients<O, E>(s, b, h0, 0, scratch).Store(s, b, h0, 0, s.time);
  }
}

template <typename O, typename E>
void KeysTask(const boa::AttentionArgs<E> &s, int64_t task, SumOf<O> *scratch) {
  using T = SumOf<O>;
  const int64_t blocks = (s.time + kRowBlock - 1) / kRowBlock;
  const int64_t kvh = task / blocks % s.kv_heads, b = task / blocks / s.kv_heads;
  const int64_t group = s.heads / s.kv_heads, k0 = task % blocks * kRowBlock;
  RowBlock<O, E> rows(s.d, scratch);
  KeyBlock<O, E> keys;
  keys.Take(s.d, scratch);
  keys.Set(s, b, kvh, k0);
  ScoreGradients<O> gradients(scratch);
  T *dk = Take<T>(scratch, kRowBlock * Padded<O>(s.d));
  T *dv = Take<T>(scratch, kRowBlock * Padded<O>(s.d));
  bool first = true;
  for (int64_t h = kvh * group; h < (kvh + 1) * group; ++h)
    for (int64_t i0 = FirstBlock(s, b, k0); i0 < EndOfRows(s, b, k0 + keys.count);
         i0 += kRowBlock) {
      rows.Set(s, b, h, i0);
      gradients.Set(s, b, rows, keys);
      gradients.AddToKeys(s, rows, keys, dk, dv, !first);
      first = false;
    }
  StoreKeyGradients<O>(s, b, kvh, k0, dk, dv);
}

template <typename O, typename E>
void QueriesTask(const boa::AttentionArgs<E> &s, int64_t task, SumOf<O> *scratch) {
  const int64_t chunks = (s.time + kChunk - 1) / kChunk;
  const int64_t h = task / chunks % s.heads, b = task / chunks / s.heads;
  const int64_t kvh = h / (s.heads / s.kv_heads);
  const int64_t first = task % chunks * kChunk, last = Lesser(first + kChunk, s.time);
  RowBlock<O, E> rows(s.d, scratch);
  KeyBlock<O, E> keys;
  keys.Take(s.d, scratch);
  ScoreGradients<O> gradients(scratch);
  QueryGradients<O, E> queries(s, b, h, first, scratch);
  for (int64_t i0 = first; i0 < last; i0 += kRowBlock) {
    rows.Set(s, b, h, i0);
    const int64_t end = s.causal ? i0 + 1 : EndOfKeys(s, b, i0 + rows.count - 1);
    for (int64_t k0 = FirstKey(s, b, i0) / kRowBlock * kRowBlock; k0 < end; k0 += kRowBlock) {
      keys.Set(s, b, kvh, k0);
      gradients.Set(s, b, rows, keys);
      gradients.AddToRows(s, b, rows, keys, queries.dq + (i0 - first) * queries.stride,
                          queries.stride);
    }
  }
  queries.Store(s, b, h, first, last - first);
}

template <typename O, typename E>
constexpr boa::AttentionTasks<E> kTasks = {ForwardTask<O, E>, BackwardTask<O, E>, KeysTask<O, E>,
                                           QueriesTask<O, E>};

} // namespace

#endif // BOA_RUNTIME_KERNELS_ATTENTION_IMPL_H
