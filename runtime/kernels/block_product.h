//===- block_product.h - Products of blocks that fit the cache ----*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A product multiplies operands of a type O and sums to SumOf<O>. Operands are floats, doubles,
// or pairs of bf16. The processor adds both products of a pair to one f32. E is the type of
// stored elements. Blocks of operands are made of the elements, side by side: unchanged, bf16
// widened to floats, or paired.
//
// A and B are taken along k. Operand y of a row of A is its elements [y kDeep, ...). Row y of B
// is made of rows [y kDeep, ...). Elements past the end are zero.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_KERNELS_BLOCK_PRODUCT_H
#define BOA_RUNTIME_KERNELS_BLOCK_PRODUCT_H

#include "runtime/kernels/simd.h"

namespace {

/// Two numbers of bf16, neighbours in k, the first in the lower half.
enum class Pair : uint32_t {};

template <typename O> struct Operand {
  using Sum = O;
  using Cell = O; // a row of operands is one of cells
  static constexpr int kDeep = 1;
};
template <> struct Operand<Pair> {
  using Sum = float;
  using Cell = uint16_t;
  static constexpr int kDeep = 2;
};
template <typename O> using SumOf = typename Operand<O>::Sum;
template <typename O> using CellOf = typename Operand<O>::Cell;
template <typename O> constexpr int kDeep = Operand<O>::kDeep;
template <typename O> constexpr int kLanes = Simd<SumOf<O>>::kLanes;

template <typename O> BOA_INLINE int64_t OperandsOf(int64_t elements) {
  return (elements + kDeep<O> - 1) / kDeep<O>;
}

//===----------------------------------------------------------------------===//
// Elements to operands and back
//===----------------------------------------------------------------------===//

/// A vector of operands, of elements side by side.
template <typename O, typename E> BOA_INLINE Vec<SumOf<O>> LoadAs(const E *p) {
  if constexpr (__is_same(O, E))
    return Load(p);
  else if constexpr (__is_same(O, float))
    return LoadWidened(p);
  else {
    typedef uint16_t Pairs BOA_VECTOR(aligned(2)); // at any element
    return (Vec<float>)*reinterpret_cast<const Pairs *>(p);
  }
}
/// One operand, of `left` elements at p or fewer.
template <typename O, typename E> BOA_INLINE O OperandAt(const E *p, int64_t left) {
  if constexpr (__is_same(O, E))
    return *p;
  else if constexpr (__is_same(O, float))
    return __builtin_bit_cast(float, uint32_t(*p) << 16);
  else
    return static_cast<Pair>(left > 1 ? p[0] | uint32_t(p[1]) << 16 : p[0]);
}

template <typename O> BOA_INLINE void StoreOperands(O *p, Vec<SumOf<O>> v) {
  Store(reinterpret_cast<SumOf<O> *>(p), v);
}
BOA_INLINE void StoreCells(float *p, Vec<float> v) { Store(p, v); }
BOA_INLINE void StoreCells(double *p, Vec<double> v) { Store(p, v); }
BOA_INLINE void StoreCells(uint16_t *p, Vec<float> v) { StoreRounded(p, v); }

/// Cells of kDeep rows, as operands across.
BOA_INLINE void StoreAcross(float *p, const Vec<float> (&rows)[1]) { Store(p, rows[0]); }
BOA_INLINE void StoreAcross(double *p, const Vec<double> (&rows)[1]) { Store(p, rows[0]); }
#ifdef __AVX512BF16__
BOA_INLINE void StoreAcross(Pair *p, const Vec<float> (&rows)[2]) {
  typedef uint16_t Wide BOA_VECTOR();
  Wide both = (Wide)_mm512_cvtne2ps_pbh(rows[1], rows[0]);
  StoreOperands(p, (Vec<float>)__builtin_shufflevector(both, both, 0, 16, 1, 17, 2, 18, 3, 19, 4,
                                                       20, 5, 21, 6, 22, 7, 23, 8, 24, 9, 25, 10,
                                                       26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31));
}
#endif

/// Rows of operands `stride` apart.
template <typename O> struct Rows {
  const O *p;
  int64_t stride;
};

/// Elements of a row of d in a block: whole vectors.
template <typename O> BOA_INLINE int64_t Padded(int64_t d) {
  return (d + kLanes<O> - 1) / kLanes<O> * kLanes<O>;
}

/// Has rows brought near: each is on a page of its own, where the processor does not see
/// the next one coming.
template <typename E>
BOA_INLINE void PrefetchRows(const E *from, int64_t stride, int64_t count, int64_t d) {
  constexpr int64_t kLine = 64 / sizeof(E);
  for (int64_t i = 0; i < count; ++i)
    for (int64_t x = 0; x < d; x += kLine)
      __builtin_prefetch(from + i * stride + x, 0, 2);
}

/// Rows of elements as rows of A, side by side in `room`: of padded operands, the rest zero.
template <typename O, typename E>
Rows<O> AlongRows(const E *from, int64_t stride, int64_t count, int64_t d, O *room) {
  constexpr int L = kLanes<O>;
  const int64_t width = Padded<O>(OperandsOf<O>(d));
  for (int64_t i = 0; i < count; ++i) {
    const E *row = from + i * stride;
    O *to = room + i * width;
    int64_t x = 0;
    for (; (x + L) * kDeep<O> <= d; x += L)
      StoreOperands(to + x, LoadAs<O>(row + x * kDeep<O>));
    for (; x < width; ++x)
      to[x] = x * kDeep<O> < d ? OperandAt<O>(row + x * kDeep<O>, d - x * kDeep<O>) : O(0);
  }
  return {room, width};
}

/// Rows of elements as rows of B, where k counts the rows: of padded(d) operands.
template <typename O, typename E>
Rows<O> AcrossRows(const E *from, int64_t stride, int64_t count, int64_t d, O *room) {
  if constexpr (kDeep<O> == 1) {
    return AlongRows(from, stride, count, d, room);
  } else {
    constexpr int L = kLanes<O>;
    typedef uint32_t Bits BOA_VECTOR();
    const int64_t width = Padded<O>(d);
    for (int64_t i = 0; i < count; i += 2) {
      const E *first = from + i * stride, *second = i + 1 < count ? first + stride : nullptr;
      O *to = room + i / 2 * width;
      int64_t x = 0;
      for (; x + L <= d; x += L) {
        Bits pairs = (Bits)LoadWidened(first + x) >> 16;
        if (second)
          pairs |= (Bits)LoadWidened(second + x);
        StoreOperands(to + x, (Vec<float>)pairs);
      }
      for (; x < width; ++x)
        to[x] = static_cast<O>(x >= d ? 0 : first[x] | (second ? uint32_t(second[x]) << 16 : 0));
    }
    return {room, width};
  }
}

/// The transpose of rows as rows of B: to[y][j] is operand y of row j. Columns past
/// `count` are zero; `width` is a multiple of the lanes.
template <typename O, typename E>
void Transpose(const E *from, int64_t stride, int64_t count, int64_t d, O *to, int64_t width) {
  constexpr int L = kLanes<O>;
  for (int64_t j = 0; j < width; j += L) {
    int64_t x = 0;
    if (j + L <= count)
      for (; (x + L) * kDeep<O> <= d; x += L) {
        Vec<SumOf<O>> square[L];
        for (int r = 0; r < L; ++r)
          square[r] = LoadAs<O>(from + (j + r) * stride + x * kDeep<O>);
        TransposeSquare(square);
        for (int r = 0; r < L; ++r)
          StoreOperands(to + (x + r) * width + j, square[r]);
      }
    for (; x < OperandsOf<O>(d); ++x)
      for (int r = 0; r < L; ++r)
        to[x * width + j + r] =
            j + r < count ? OperandAt<O>(from + (j + r) * stride + x * kDeep<O>, d - x * kDeep<O>)
                          : O(0);
  }
}

/// Rows of sums as elements, each number times `factor(row)`; rows of sums are padded
/// where they are not elements.
template <typename E, typename T, typename Factor>
void StoreRows(const T *from, int64_t stride, int64_t count, int64_t d, E *to, int64_t toStride,
               Factor factor) {
  constexpr int L = Simd<T>::kLanes;
  for (int64_t i = 0; i < count; ++i) {
    const T by = factor(i);
    const T *row = from + i * stride;
    E *result = to + i * toStride;
    int64_t x = 0;
    for (; x + L <= d; x += L)
      StoreCells(result + x, Load(row + x) * by);
    if constexpr (__is_same(E, T)) {
      for (; x < d; ++x)
        result[x] = row[x] * by;
    } else if (x < d) {
      E last[L];
      StoreCells(last, Load(row + x) * by);
      for (int64_t at = x; at < d; ++at)
        result[at] = last[at - x];
    }
  }
}

//===----------------------------------------------------------------------===//
// The product
//===----------------------------------------------------------------------===//

/// A strided operand: (i, y) is at p[i * row + y * column].
template <typename O> struct Strided {
  const O *p;
  int64_t row, column;
};

BOA_INLINE Vec<float> Spread(float x) { return Splat(x); }
BOA_INLINE Vec<double> Spread(double x) { return Splat(x); }
#if BOA_VECTOR_BYTES == 64
BOA_INLINE Vec<float> Spread(Pair x) { return (Vec<float>)_mm512_set1_epi32(static_cast<int>(x)); }
#endif

template <typename O>
BOA_INLINE Vec<SumOf<O>> MultiplyAdd(Vec<SumOf<O>> sum, Vec<SumOf<O>> a, Vec<SumOf<O>> b) {
  if constexpr (kDeep<O> == 1)
    return sum + a * b;
#ifdef __AVX512BF16__
  else
    return _mm512_dpbf16_ps(sum, (__m512bh)a, (__m512bh)b);
#endif
}

/// C[R, N * lanes] = (add ? C : 0) + A[R, k] B[k, N * lanes], held in registers.
template <typename O, int R, int N>
BOA_INLINE void MultiplyTile(int64_t k, Strided<O> a, const O *b, int64_t ldb, SumOf<O> *c,
                             int64_t ldc, bool add) {
  using T = SumOf<O>;
  constexpr int L = kLanes<O>;
  Vec<T> sum[R][N];
  for (int i = 0; i < R; ++i)
    for (int j = 0; j < N; ++j)
      sum[i][j] = add ? Load(c + i * ldc + j * L) : Vec<T>{};
  for (int64_t x = 0; x < k; ++x) {
    Vec<T> row[N];
    for (int j = 0; j < N; ++j)
      row[j] = Load(reinterpret_cast<const T *>(b + x * ldb + j * L));
    for (int i = 0; i < R; ++i) {
      Vec<T> scalar = Spread(a.p[i * a.row + x * a.column]);
      for (int j = 0; j < N; ++j)
        sum[i][j] = MultiplyAdd<O>(sum[i][j], scalar, row[j]);
    }
  }
  for (int i = 0; i < R; ++i)
    for (int j = 0; j < N; ++j)
      Store(c + i * ldc + j * L, sum[i][j]);
}

/// The same of fewer columns than a vector has lanes.
template <typename T, int R>
BOA_INLINE void NarrowTile(int64_t columns, int64_t k, Strided<T> a, const T *b, int64_t ldb, T *c,
                           int64_t ldc, bool add) {
#if BOA_VECTOR_BYTES == 64
  Vec<T> sum[R];
  for (int i = 0; i < R; ++i)
    sum[i] = add ? LoadFirst(c + i * ldc, columns) : Vec<T>{};
  for (int64_t x = 0; x < k; ++x) {
    Vec<T> row = LoadFirst(b + x * ldb, columns);
    for (int i = 0; i < R; ++i)
      sum[i] += Splat(a.p[i * a.row + x * a.column]) * row;
  }
  for (int i = 0; i < R; ++i)
    StoreFirst(c + i * ldc, columns, sum[i]);
#else
  for (int64_t j = 0; j < columns; ++j)
    for (int i = 0; i < R; ++i) {
      T sum = add ? c[i * ldc + j] : T(0);
      for (int64_t x = 0; x < k; ++x)
        sum += a.p[i * a.row + x * a.column] * b[x * ldb + j];
      c[i * ldc + j] = sum;
    }
#endif
}

constexpr int kTileRows = BOA_VECTOR_BYTES == 64 ? 8 : 6;

/// `count` rows of the product, R at most, over all n columns. Of pairs n is a multiple
/// of the lanes.
template <typename O, int R = kTileRows>
void MultiplyRows(int64_t count, int64_t n, int64_t k, Strided<O> a, const O *b, int64_t ldb,
                  SumOf<O> *c, int64_t ldc, bool add) {
  constexpr int L = kLanes<O>;
  if constexpr (R > 1)
    if (count < R)
      return MultiplyRows<O, R - 1>(count, n, k, a, b, ldb, c, ldc, add);
  int64_t j = 0;
  for (; j + 2 * L <= n; j += 2 * L)
    MultiplyTile<O, R, 2>(k, a, b + j, ldb, c + j, ldc, add);
  for (; j + L <= n; j += L)
    MultiplyTile<O, R, 1>(k, a, b + j, ldb, c + j, ldc, add);
  if constexpr (kDeep<O> == 1)
    if (j < n)
      NarrowTile<O, R>(n - j, k, a, b + j, ldb, c + j, ldc, add);
}

/// The shape of a triangular operand or result. The product is of square blocks on the diagonal
/// (offset 0) or left of it (offset > 0).
enum class Triangle {
  None,
  Result, // row i of C is wanted only up to column i + offset
  Lower,  // row i of A is zero past column i + offset
  Upper,  // row i of A is zero before column i - offset
};

/// C[m, n] = (add ? C : 0) + A[m, k] B[k, n], k in elements. A may be strided either way,
/// so a transposed operand needs no copy. Of a triangle, kTileRows + kDeep zeros beyond the
/// diagonal are read, not more.
template <typename O>
void Multiply(int64_t m, int64_t n, int64_t k, Strided<O> a, const O *b, int64_t ldb, SumOf<O> *c,
              int64_t ldc, bool add, Triangle triangle = Triangle::None, int64_t offset = 0) {
  constexpr int64_t kWide = 2 * kLanes<O>;
  for (int64_t i = 0; i < m; i += kTileRows) {
    int64_t r = m - i < kTileRows ? m - i : kTileRows;
    int64_t columns = n, begin = 0, end = k;
    if (triangle == Triangle::Result) {
      int64_t wanted = (i + r + offset + kWide - 1) / kWide * kWide;
      columns = wanted < n ? wanted : n;
    } else if (triangle == Triangle::Lower) {
      end = i + r + offset < k ? i + r + offset : k;
    } else if (triangle == Triangle::Upper) {
      begin = i > offset ? i - offset : 0;
      begin = (begin < k ? begin : k) / kDeep<O>;
    }
    MultiplyRows<O>(r, columns, OperandsOf<O>(end) - begin,
                    {a.p + i * a.row + begin * a.column, a.row, a.column}, b + begin * ldb, ldb,
                    c + i * ldc, ldc, add);
  }
}

} // namespace

#endif // BOA_RUNTIME_KERNELS_BLOCK_PRODUCT_H
