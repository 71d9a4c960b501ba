//===- gemm_tiles.h - Matrix products by tile registers -----------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Matrix products on a unit like AMX. Its registers hold tiles: 16 rows of 64 bytes. Its
// instruction multiplies a tile of A, 16 by 32 of bf16, by one of B, 16 pairs by 16 columns. It
// adds the product to a tile of C, 16 by 16 of f32 (Intel's Software Developer's Manual,
// TDPBF16PS). Four tiles of C take two of each operand.
//
// The loops are not those of gemm_loops.h, which add to C in memory for each block of k. A
// store of the registers takes up to 300 cycles here, enough to multiply ten tiles. And the
// second cache feeds the unit nearly as well as the first. So sums stay in the registers for
// up to kDeep elements of k, and the second cache holds a block of A. Measured on Granite
// Rapids, one thread: up to 1.5 times the rate of the shared loops, at least the same.
//
// Which registers do it is the parameter's business: the processor's (gemm_amx.cpp) or
// arrays, with which tests run all the rest on any machine. The processor's instruction
// adds the products of even and of odd k apart before it adds them to C, and takes
// numbers below f32's least normal one for zero.
//
// Each element of C is summed over k in order, by slices whose depth depends on k alone. So
// where C is cut makes no difference to its bits.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_KERNELS_GEMM_TILES_H
#define BOA_RUNTIME_KERNELS_GEMM_TILES_H

#include "runtime/kernels/gemm_loops.h"
#include "runtime/kernels/gemm_pairs.h"

namespace {

constexpr int64_t kTileRows = 16;             // of A and C; columns of B and C
constexpr int64_t kTilePairs = 16;            // in a row of a tile of A; rows of a tile of B
constexpr int64_t kTileDeep = 2 * kTilePairs; // elements of k
constexpr int64_t kTileSize = kTileRows * kTilePairs;
constexpr int64_t kTileBytes = 4 * kTilePairs; // of a row

BOA_INLINE constexpr int64_t RoundedUp(int64_t a, int64_t b) { return (a + b - 1) / b * b; }

BOA_INLINE void ClearPairs(Pair *to, int64_t count) {
  for (int64_t i = 0; i < count; ++i)
    to[i] = 0;
}

/// A tile of A from `deep` rows of k whose elements stand side by side in m.
BOA_INLINE void PackTurned(const uint16_t *from, int64_t ld, int64_t rows, int64_t deep,
                           Pair *tile) {
  Pair columns[kTileSize];
  const int64_t given = (deep + 1) / 2 * kTileRows;
  PackPanel(from, ld, /*along=*/false, rows, kTileRows, deep, columns);
  ClearPairs(columns + given, kTileSize - given);
  for (int64_t i = 0; i < kTileRows; i += kEight)
    for (int64_t y = 0; y < kTilePairs; y += kEight) {
      Simd<float>::Vec square[kEight];
      for (int64_t r = 0; r < kEight; ++r)
        square[r] = Load(reinterpret_cast<const float *>(columns + (y + r) * kTileRows + i));
      TransposeSquare(square);
      for (int64_t r = 0; r < kEight; ++r)
        Store(reinterpret_cast<float *>(tile + (i + r) * kTilePairs + y), square[r]);
    }
}

/// Panels of 16 rows of A, each its tiles in the order of k. Zeros past m and k.
void PackTilesOfA(const uint16_t *a, int64_t lda, bool transpose, int64_t m, int64_t k, Pair *to) {
  const int64_t size = RoundedUp(k, kTileDeep) / kTileDeep * kTileSize;
  if (transpose) {
    for (int64_t x = 0; x < k; x += kTileDeep)
      for (int64_t i = 0; i < m; i += kTileRows)
        PackTurned(a + x * lda + i, lda, Lesser(kTileRows, m - i), Lesser(kTileDeep, k - x),
                   to + i / kTileRows * size + x / kTileDeep * kTileSize);
    return;
  }
  for (int64_t i = 0; i < RoundedUp(m, kTileRows); ++i) {
    Pair *row = to + i / kTileRows * size + i % kTileRows * kTilePairs;
    for (int64_t x = 0; x < k; x += kTileDeep, row += kTileSize) {
      const bool whole = i < m && x + kTileDeep <= k;
      if (whole) {
        __builtin_memcpy(row, a + i * lda + x, kTileBytes);
        continue;
      }
      ClearPairs(row, kTilePairs);
      if (i < m)
        __builtin_memcpy(row, a + i * lda + x, static_cast<unsigned long>(2 * (k - x)));
    }
  }
}

/// Pairs of two rows of 32 columns: of the first 16 to `left`, of the others to `right`.
BOA_INLINE void PairColumns(const uint16_t *first, const uint16_t *second, Pair *left,
                            Pair *right) {
  typedef uint16_t Row __attribute__((vector_size(64)));
  typedef uint16_t Loose __attribute__((vector_size(64), aligned(2)));
  typedef uint16_t Pairs __attribute__((vector_size(64), aligned(4)));
  const Row a = *reinterpret_cast<const Loose *>(first);
  const Row b = second ? *reinterpret_cast<const Loose *>(second) : Row{};
  *reinterpret_cast<Pairs *>(left) =
      __builtin_shufflevector(a, b, 0, 32, 1, 33, 2, 34, 3, 35, 4, 36, 5, 37, 6, 38, 7, 39, 8, 40,
                              9, 41, 10, 42, 11, 43, 12, 44, 13, 45, 14, 46, 15, 47);
  *reinterpret_cast<Pairs *>(right) =
      __builtin_shufflevector(a, b, 16, 48, 17, 49, 18, 50, 19, 51, 20, 52, 21, 53, 22, 54, 23, 55,
                              24, 56, 25, 57, 26, 58, 27, 59, 28, 60, 29, 61, 30, 62, 31, 63);
}

/// Panels of 16 columns of B, each its pairs in the order of k. Zeros past n and k.
void PackTilesOfB(const uint16_t *b, int64_t ldb, bool transpose, int64_t n, int64_t k, Pair *to) {
  const int64_t size = RoundedUp(k, kTileDeep) / 2 * kTileRows;
  const int64_t given = (k + 1) / 2 * kTileRows;
  int64_t j = 0;
  for (; !transpose && j + 2 * kTileRows <= n; j += 2 * kTileRows) {
    Pair *left = to + j / kTileRows * size, *right = left + size;
    for (int64_t x = 0; x < k; x += 2)
      PairColumns(b + x * ldb + j, x + 1 < k ? b + (x + 1) * ldb + j : nullptr,
                  left + x / 2 * kTileRows, right + x / 2 * kTileRows);
    ClearPairs(left + given, size - given);
    ClearPairs(right + given, size - given);
  }
  for (; j < n; j += kTileRows) {
    Pair *panel = to + j / kTileRows * size;
    PackPanel(b + j * (transpose ? ldb : 1), ldb, transpose, Lesser(kTileRows, n - j), kTileRows, k,
              panel);
    ClearPairs(panel + given, size - given);
  }
}

/// Tiles has, for registers 0 to 7 and strides in bytes: Zero<R>(), Load<R>(from, stride),
/// Store<R>(to, stride), Multiply<C, A, B>().
template <typename Tiles> struct TileProduct {
  static constexpr int64_t kEdge = 2 * kTileRows; // of the square of C in registers
  // Elements. A block of A is 1 MiB, half of the second cache; a block of B and the sums of
  // more than one slice fill the rest of the scratch.
  static constexpr int64_t kDeep = 3072, kAtOnceA = 512 << 10, kAtOnceB = 1152 << 10;
  static constexpr int64_t kSumRows = 512, kSumColumns = 384;
  static_assert(kAtOnceA / 2 + kAtOnceB / 2 + kSumRows * kSumColumns <= boa::kGemmScratch);
  static_assert(kSumColumns * kDeep <= kAtOnceB);

  /// A square of C into registers 0 to 3, of panels whose size is `size`. Registers 4 and 5
  /// are A, 6 and 7 B.
  template <bool kBelow, bool kRight>
  static BOA_INLINE void SumTiles(int64_t size, const Pair *a, const Pair *b) {
    Tiles::template Zero<0>(), Tiles::template Zero<1>();
    Tiles::template Zero<2>(), Tiles::template Zero<3>();
    for (const Pair *end = a + size; a != end; a += kTileSize, b += kTileSize) {
      Tiles::template Load<4>(a, kTileBytes);
      Tiles::template Load<6>(b, kTileBytes);
      Tiles::template Multiply<0, 4, 6>();
      if (kRight) {
        Tiles::template Load<7>(b + size, kTileBytes);
        Tiles::template Multiply<1, 4, 7>();
      }
      if (kBelow) {
        Tiles::template Load<5>(a + size, kTileBytes);
        Tiles::template Multiply<2, 5, 6>();
        if (kRight)
          Tiles::template Multiply<3, 5, 7>();
      }
    }
  }

  /// C = A B + bias + addend, of packed blocks; null is no bias, no addend.
  template <typename From, typename To>
  static void MultiplyPart(int64_t m, int64_t n, int64_t k, const Pair *a, const Pair *b,
                           const float *bias, const From *addend, int64_t addendStride, To *to,
                           int64_t stride) {
    // A load waits for an earlier store whose address differs in the page alone. Panels begin
    // at a page, so sums go to the end of theirs, half a square at a time.
    alignas(4096) float page[1024];
    float *sums = page + 512;
    const int64_t size = RoundedUp(k, kTileDeep) / 2 * kTileRows;
    for (int64_t j = 0; j < n; j += kEdge)
      for (int64_t i = 0; i < m; i += kEdge) {
        const int64_t rows = Lesser(kEdge, m - i), columns = Lesser(kEdge, n - j);
        const bool below = rows > kTileRows, right = columns > kTileRows;
        const Pair *panelsA = a + i / kTileRows * size, *panelsB = b + j / kTileRows * size;
        PrefetchTile(rows, columns, to + i * stride + j, stride);
        if (below)
          right ? SumTiles<true, true>(size, panelsA, panelsB)
                : SumTiles<true, false>(size, panelsA, panelsB);
        else
          right ? SumTiles<false, true>(size, panelsA, panelsB)
                : SumTiles<false, false>(size, panelsA, panelsB);

        auto finish = [&](int64_t first) {
          FinishTile<kEdge>(Lesser(kTileRows, rows - first), columns, sums,
                            bias ? bias + j : nullptr,
                            addend ? addend + (i + first) * addendStride + j : nullptr,
                            addendStride, to + (i + first) * stride + j, stride);
        };
        Tiles::template Store<0>(sums, 4 * kEdge);
        if (right)
          Tiles::template Store<1>(sums + kTileRows, 4 * kEdge);
        finish(0);
        if (!below)
          continue;
        Tiles::template Store<2>(sums, 4 * kEdge);
        if (right)
          Tiles::template Store<3>(sums + kTileRows, 4 * kEdge);
        finish(kTileRows);
      }
  }

  /// All of one thread's product. Sums of several slices of k are in C, or for a C in bf16 in
  /// the scratch.
  template <typename C>
  static void Run(const boa::GemmBlock<uint16_t, uint16_t, C> &g, float *scratch) {
    const int64_t slices = g.k > kDeep ? (g.k + kDeep - 1) / kDeep : 1;
    const int64_t deep = g.k > 0 ? RoundedUp((g.k + slices - 1) / slices, kTileDeep) : kTileDeep;
    const bool apart = sizeof(C) < sizeof(float) && slices > 1;
    const int64_t atOnce = apart ? kSumColumns : kAtOnceB / deep / kEdge * kEdge;
    const int64_t height = apart ? kSumRows : g.m;
    const int64_t step = Lesser(kSumRows, kAtOnceA / deep / kEdge * kEdge);
    auto *packedA = reinterpret_cast<Pair *>(scratch), *packedB = packedA + kAtOnceA / 2;
    float *sums = scratch + kAtOnceA / 2 + kAtOnceB / 2;

    for (int64_t j0 = 0; j0 < g.n; j0 += atOnce)
      for (int64_t i0 = 0; i0 < g.m; i0 += height) {
        const int64_t n = Lesser(atOnce, g.n - j0), end = Lesser(i0 + height, g.m);
        int64_t x0 = 0;
        do {
          const int64_t k = Lesser(deep, g.k - x0);
          const bool first = x0 == 0, last = x0 + k == g.k;
          const float *bias = g.bias && first ? g.bias + j0 : nullptr;
          PackTilesOfB(g.b + (g.transpose_b ? j0 * g.ldb + x0 : x0 * g.ldb + j0), g.ldb,
                       g.transpose_b, n, k, packedB);
          for (int64_t i = i0; i < end; i += step) {
            const int64_t m = Lesser(step, end - i);
            PackTilesOfA(g.a + (g.transpose_a ? x0 * g.lda + i : i * g.lda + x0), g.lda,
                         g.transpose_a, m, k, packedA);
            C *c = g.c + i * g.ldc + j0;
            float *rows = sums + (i - i0) * kSumColumns;
            auto product = [&](auto *addend, int64_t addendStride, auto *to, int64_t stride) {
              MultiplyPart(m, n, k, packedA, packedB, bias, addend, addendStride, to, stride);
            };
            if (!apart)
              product(g.accumulate || !first ? c : nullptr, g.ldc, c, g.ldc);
            else if (first)
              product(g.accumulate ? c : nullptr, g.ldc, rows, kSumColumns);
            else if (!last)
              product(rows, kSumColumns, rows, kSumColumns);
            else
              product(rows, kSumColumns, c, g.ldc);
          }
          x0 += k;
        } while (x0 < g.k);
      }
  }
};

} // namespace

#endif // BOA_RUNTIME_KERNELS_GEMM_TILES_H
