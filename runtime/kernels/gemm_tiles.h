//===- gemm_tiles.h - Matrix products by tile registers -----------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A kernel for gemm_loops.h on a unit like AMX: registers that hold 16 rows of 64 bytes,
// and an instruction that adds the product of a tile of A, 16 by 32 of bf16, and one of
// B, 16 pairs by 16 columns, to one of C, 16 by 16 of f32 (Intel's Software Developer's
// Manual, TDPBF16PS). Four tiles of C take two of each operand.
//
// Which registers do it is the parameter's business: the processor's (gemm_amx.cpp) or
// arrays, with which tests run all the rest on any machine. The processor's instruction
// adds the products of even and of odd k apart before it adds them to C, and takes
// numbers below f32's least normal one for zero.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_KERNELS_GEMM_TILES_H
#define BOA_RUNTIME_KERNELS_GEMM_TILES_H

#include "runtime/kernels/gemm_loops.h"
#include "runtime/kernels/gemm_pairs.h"

namespace {

/// Tiles has, for registers 0 to 7 and strides in bytes: zero<R>(), load<R>(from, stride),
/// store<R>(to, stride), multiply<C, A, B>().
template <typename Tiles> struct TileKernel {
  static constexpr int64_t kLanes = 16, kTileM = 32, kTileN = 32;
  static constexpr int64_t kHigh = 16;      // rows of a tile
  static constexpr int64_t kPairs = 16;     // pairs in a row of a tile of A
  static constexpr int64_t kDeep = 512;     // a panel of B: 32 KiB, in L1
  static constexpr int64_t kRows = 384;     // a block of A: 384 KiB
  static constexpr int64_t kColumns = 1536; // a block of B: 1.5 MiB
  using Packed = Pair;

  /// Whole tiles: past k all is zero.
  static constexpr int64_t depth(int64_t k) { return (k + 2 * kPairs - 1) / (2 * kPairs) * kPairs; }

  static void clear(Pair *to, int64_t count) {
    for (int64_t i = 0; i < count; ++i)
      to[i] = 0;
  }

  /// Tiles of A one after another, of each panel those of the same k together: 16 rows of
  /// 16 pairs. Pairs come as columns of k (gemm_pairs.h), and are turned.
  static void packA(const uint16_t *a, int64_t lda, bool transpose, int64_t m, int64_t k,
                    Pair *to) {
    const int64_t pairs = depth(k);
    for (int64_t i0 = 0; i0 < m; i0 += kTileM) {
      const int64_t rows = lesser(kTileM, m - i0), high = (rows + kHigh - 1) / kHigh * kHigh;
      for (int64_t x0 = 0; x0 < k; x0 += 2 * kPairs) {
        const int64_t deep = lesser(2 * kPairs, k - x0);
        Pair *tiles = to + i0 * pairs + x0 / 2 * high;
        if (transpose) {
          packTurned(a + x0 * lda + i0, lda, rows, high, deep, tiles);
          continue;
        }
        const uint16_t *from = a + i0 * lda + x0;
        for (int64_t i = 0; i < rows; ++i) {
          auto *row = reinterpret_cast<char *>(tiles + i * kPairs);
          if (deep < 2 * kPairs)
            clear(tiles + i * kPairs, kPairs);
          __builtin_memcpy(row, from + i * lda, static_cast<unsigned long>(2 * deep));
        }
        clear(tiles + rows * kPairs, (high - rows) * kPairs);
      }
    }
  }

  /// Two tiles at most, from `deep` rows of k elements side by side in m.
  static void packTurned(const uint16_t *from, int64_t ld, int64_t rows, int64_t high, int64_t deep,
                         Pair *tiles) {
    Pair columns[kPairs * kTileM];
    packPanel(from, ld, /*along=*/false, rows, high, deep, columns);
    clear(columns + (deep + 1) / 2 * high, (kPairs - (deep + 1) / 2) * high);
    for (int64_t i = 0; i < high; i += kEight)
      for (int64_t y = 0; y < kPairs; y += kEight) {
        Simd<float>::Vec square[kEight];
        for (int64_t r = 0; r < kEight; ++r)
          square[r] = load(reinterpret_cast<const float *>(columns + (y + r) * high + i));
        transposeSquare(square);
        for (int64_t r = 0; r < kEight; ++r)
          store(reinterpret_cast<float *>(tiles + (i + r) * kPairs + y), square[r]);
      }
  }

  static void packB(const uint16_t *b, int64_t ldb, bool transpose, int64_t n, int64_t k,
                    Pair *to) {
    const int64_t pairs = depth(k), given = (k + 1) / 2;
    for (int64_t j = 0; j < n; j += kTileN) {
      const int64_t columns = lesser(kTileN, n - j);
      const int64_t width = (columns + kLanes - 1) / kLanes * kLanes;
      Pair *panel = to + j * pairs;
      packPanel(b + j * (transpose ? ldb : 1), ldb, transpose, columns, width, k, panel);
      clear(panel + given * width, (pairs - given) * width);
    }
  }

  /// Registers 0 to 3 are C, 4 and 5 A, 6 and 7 B.
  template <bool kBothRows, bool kBothColumns>
  static BOA_INLINE void panels(int64_t pairs, const Pair *a, const Pair *b, float *sums) {
    constexpr int64_t kStrideB = (kBothColumns ? 2 : 1) * kLanes * 4, kStrideC = kTileN * 4;
    Tiles::template zero<0>(), Tiles::template zero<1>();
    Tiles::template zero<2>(), Tiles::template zero<3>();
    for (int64_t y = 0; y < pairs; y += kPairs) {
      Tiles::template load<4>(a, kPairs * 4);
      Tiles::template load<6>(b, kStrideB);
      Tiles::template multiply<0, 4, 6>();
      if (kBothColumns) {
        Tiles::template load<7>(b + kLanes, kStrideB);
        Tiles::template multiply<1, 4, 7>();
      }
      if (kBothRows) {
        Tiles::template load<5>(a + kHigh * kPairs, kPairs * 4);
        Tiles::template multiply<2, 5, 6>();
        if (kBothColumns)
          Tiles::template multiply<3, 5, 7>();
      }
      a += (kBothRows ? 2 : 1) * kHigh * kPairs;
      b += kPairs * kStrideB / 4;
    }
    Tiles::template store<0>(sums, kStrideC);
    if (kBothColumns)
      Tiles::template store<1>(sums + kLanes, kStrideC);
    if (kBothRows)
      Tiles::template store<2>(sums + kHigh * kTileN, kStrideC);
    if (kBothRows && kBothColumns)
      Tiles::template store<3>(sums + kHigh * kTileN + kLanes, kStrideC);
  }

  static BOA_INLINE void multiply(int64_t pairs, int64_t rows, int64_t columns, const Pair *a,
                                  const Pair *b, float *sums) {
    if (rows > kHigh)
      columns > kLanes ? panels<true, true>(pairs, a, b, sums)
                       : panels<true, false>(pairs, a, b, sums);
    else
      columns > kLanes ? panels<false, true>(pairs, a, b, sums)
                       : panels<false, false>(pairs, a, b, sums);
  }
};

} // namespace

#endif // BOA_RUNTIME_KERNELS_GEMM_TILES_H
