//===- gemm_loops.h - The loops around a register tile ------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The classic scheme (Goto; BLIS). B is packed by kDeep rows into panels kTileN wide, which stay
// in L3. A is packed by blocks of kRows by kDeep into panels kTileM high, which stay in L2. A
// kernel keeps a tile of C in registers while a panel of each streams past. Packing takes either
// operand in either orientation, so a kernel knows one layout only.
//
// Each element of C is summed over k in order, by blocks of kDeep; edges are padded
// with zeros. So where C is cut makes no difference to its bits. A C in bf16 is rounded
// once, from sums in f32.
//
// B may come packed: its panels, all columns of one block of kDeep rows behind those of the block
// before. Cuts of C are at whole panels. So any block of C finds its own.
//
// A kernel is a type with
//   kTileM, kTileN, kLanes    its tile; columns come in whole vectors of kLanes
//   kDeep, kRows, kColumns    its blocks, as above
//   Packed, Depth(k)          what operands are packed to, and how many for k elements
//   PackA, PackB              panels of the first or second operand
//   multiply                  the tile of a panel of each
// Included by files that are compiled for different processors: in an unnamed namespace.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_KERNELS_GEMM_LOOPS_H
#define BOA_RUNTIME_KERNELS_GEMM_LOOPS_H

#include "runtime/kernels/gemm_block.h"
#include "runtime/kernels/simd.h"

namespace {

BOA_INLINE constexpr int64_t Lesser(int64_t a, int64_t b) { return a < b ? a : b; }

/// Sixteen values at a time, whatever vectors the processor has.
typedef float Wide __attribute__((vector_size(64)));
typedef uint32_t WideBits __attribute__((vector_size(64)));
typedef uint16_t WideHalf __attribute__((vector_size(32)));
constexpr int64_t kWide = 16;

/// bf16 is the upper half of an f32.
BOA_INLINE Wide LoadWide(const float *p) {
  typedef float Loose __attribute__((vector_size(64), aligned(4)));
  return *reinterpret_cast<const Loose *>(p);
}
BOA_INLINE Wide LoadWide(const uint16_t *p) {
  typedef uint16_t Loose __attribute__((vector_size(32), aligned(2)));
  return (Wide)(__builtin_convertvector(*reinterpret_cast<const Loose *>(p), WideBits) << 16);
}

/// To the nearest, ties to even; a NaN stays one.
BOA_INLINE void StoreWide(float *p, Wide v) {
  typedef float Loose __attribute__((vector_size(64), aligned(4)));
  *reinterpret_cast<Loose *>(p) = v;
}
BOA_INLINE void StoreWide(uint16_t *p, Wide v) {
  typedef uint16_t Loose __attribute__((vector_size(32), aligned(2)));
  const WideBits bits = (WideBits)v, notNan = (WideBits)(v == v);
  const WideBits nearest = bits + 0x7fff + (bits >> 16 & 1), quiet = bits | 0x400000;
  *reinterpret_cast<Loose *>(p) =
      __builtin_convertvector(((nearest & notNan) | (quiet & ~notNan)) >> 16, WideHalf);
}

/// to = sums + bias + addend, for a tile whose rows of sums are kWidth apart. A null bias or
/// addend adds nothing. The addend may be `to` itself.
template <int64_t kWidth, typename From, typename To>
BOA_INLINE void FinishTile(int64_t rows, int64_t columns, const float *sums, const float *bias,
                           const From *addend, int64_t addendStride, To *to, int64_t stride) {
  for (int64_t i = 0; i < rows; ++i, sums += kWidth, to += stride) {
    int64_t j = 0;
    for (; j + kWide <= columns; j += kWide) {
      Wide sum = LoadWide(sums + j);
      if (bias)
        sum += LoadWide(bias + j);
      if (addend)
        sum += LoadWide(addend + j);
      StoreWide(to + j, sum);
    }
    if (j < columns) {
      // The rest as it would be in a whole vector.
      From last[kWide] = {};
      To result[kWide];
      Wide sum = LoadWide(sums + j);
      for (int64_t rest = j; rest < columns; ++rest) {
        sum[rest - j] += bias ? bias[rest] : 0;
        last[rest - j] = addend ? addend[rest] : From{};
      }
      if (addend)
        sum += LoadWide(last);
      StoreWide(result, sum);
      for (int64_t rest = j; rest < columns; ++rest)
        to[rest] = result[rest - j];
    }
    if (addend)
      addend += addendStride;
  }
}

/// Prefetches a tile of the result into the cache, while its product is computed.
template <typename T>
BOA_INLINE void PrefetchTile(int64_t rows, int64_t columns, const T *tile, int64_t stride) {
  constexpr int64_t kLine = 64 / sizeof(T);
  for (int64_t i = 0; i < rows; ++i, tile += stride) {
    for (int64_t j = 0; j < columns; j += kLine)
      __builtin_prefetch(tile + j);
    __builtin_prefetch(tile + columns - 1);
  }
}

/// A packed block of A times a packed block of B, to C and its like.
template <typename Kernel, typename From, typename To>
void MacroKernel(int64_t m, int64_t n, int64_t k, const typename Kernel::Packed *a,
                 const typename Kernel::Packed *b, const float *bias, const From *addend,
                 int64_t addendStride, To *to, int64_t stride) {
  constexpr int64_t kM = Kernel::kTileM, kN = Kernel::kTileN;
  alignas(64) float sums[kM * kN];
  const int64_t depth = Kernel::Depth(k);
  for (int64_t j = 0; j < n; j += kN)
    for (int64_t i = 0; i < m; i += kM) {
      const int64_t rows = Lesser(kM, m - i), columns = Lesser(kN, n - j);
      PrefetchTile(rows, columns, to + i * stride + j, stride);
      Kernel::Multiply(depth, rows, columns, a + i * depth, b + j * depth, sums);
      FinishTile<kN>(rows, columns, sums, bias ? bias + j : nullptr,
                     addend ? addend + i * addendStride + j : nullptr, addendStride,
                     to + i * stride + j, stride);
    }
}

/// The block: in f32 C itself holds the sums of the blocks of k so far, in bf16 the
/// scratch does, for as many rows and columns as fit.
template <typename Kernel, typename A, typename B, typename C>
void MultiplyBlock(const boa::GemmBlock<A, B, C> &g, float *scratch) {
  using Packed = typename Kernel::Packed;
  constexpr bool kNarrow = sizeof(C) < sizeof(float);
  constexpr int64_t kRows = Kernel::kRows, kColumns = Kernel::kColumns, kDeep = Kernel::kDeep;
  // Kernels store whole vectors: a panel may end this much past its block.
  constexpr int64_t kSlack = 64;
  constexpr int64_t kPackedA = kRows * Kernel::Depth(kDeep) + kSlack;
  constexpr int64_t kPackedB = kColumns * Kernel::Depth(kDeep) + kSlack;
  constexpr int64_t kRest = boa::kGemmScratch - kPackedA - kPackedB;
  constexpr int64_t kSumColumns = Lesser(kColumns, kRest / kRows) / Kernel::kTileN * Kernel::kTileN;
  static_assert(sizeof(Packed) == sizeof(float) && kDeep % 2 == 0);
  static_assert(kRows % Kernel::kTileM == 0 && kColumns % Kernel::kTileN == 0);
  static_assert(kSumColumns > 0);
  auto *packedA = reinterpret_cast<Packed *>(scratch), *packedB = packedA + kPackedA;
  float *sums = scratch + kPackedA + kPackedB;

  auto PackA = [&](int64_t i0, int64_t m, int64_t x0, int64_t k) {
    Kernel::PackA(g.a + (g.transpose_a ? x0 * g.lda + i0 : i0 * g.lda + x0), g.lda, g.transpose_a,
                  m, k, packedA);
  };
  const int64_t width = (g.all_columns + Kernel::kLanes - 1) / Kernel::kLanes * Kernel::kLanes;
  auto PanelsAt = [&](int64_t j0, int64_t x0, int64_t k) {
    return static_cast<Packed *>(g.panels) + width * Kernel::Depth(x0) +
           (g.first_column + j0) * Kernel::Depth(k);
  };
  auto Pack = [&](int64_t j0, int64_t n, int64_t x0, int64_t k, Packed *to) {
    Kernel::PackB(g.b + (g.transpose_b ? j0 * g.ldb + x0 : x0 * g.ldb + j0), g.ldb, g.transpose_b,
                  n, k, to);
  };
  if (g.packs) {
    for (int64_t x0 = 0; x0 < g.k; x0 += kDeep) {
      const int64_t k = Lesser(kDeep, g.k - x0);
      Pack(0, g.n, x0, k, PanelsAt(0, x0, k));
    }
    return;
  }
  /// Packs a block of B, if it is not packed. Returns where its panels are.
  auto PackB = [&](int64_t j0, int64_t n, int64_t x0, int64_t k) -> const Packed * {
    if (g.panels)
      return PanelsAt(j0, x0, k);
    Pack(j0, n, x0, k, packedB);
    return packedB;
  };
  auto product = [&](int64_t m, int64_t n, int64_t k, const Packed *b, bool first, int64_t j0,
                     auto *addend, int64_t addendStride, auto *to, int64_t stride) {
    MacroKernel<Kernel>(m, n, k, packedA, b, g.bias && first ? g.bias + j0 : nullptr, addend,
                        addendStride, to, stride);
  };

  if (!kNarrow || g.k <= kDeep) {
    for (int64_t j0 = 0; j0 < g.n; j0 += kColumns) {
      const int64_t n = Lesser(kColumns, g.n - j0);
      int64_t x0 = 0;
      do {
        const int64_t k = Lesser(kDeep, g.k - x0);
        const Packed *b = PackB(j0, n, x0, k);
        for (int64_t i0 = 0; i0 < g.m; i0 += kRows) {
          const int64_t m = Lesser(kRows, g.m - i0);
          PackA(i0, m, x0, k);
          C *c = g.c + i0 * g.ldc + j0;
          product(m, n, k, b, x0 == 0, j0, g.accumulate || x0 != 0 ? c : nullptr, g.ldc, c, g.ldc);
        }
        x0 += kDeep;
      } while (x0 < g.k);
    }
    return;
  }
  for (int64_t j0 = 0; j0 < g.n; j0 += kSumColumns)
    for (int64_t i0 = 0; i0 < g.m; i0 += kRows) {
      const int64_t n = Lesser(kSumColumns, g.n - j0), m = Lesser(kRows, g.m - i0);
      C *c = g.c + i0 * g.ldc + j0;
      for (int64_t x0 = 0; x0 < g.k; x0 += kDeep) {
        const int64_t k = Lesser(kDeep, g.k - x0);
        const Packed *b = PackB(j0, n, x0, k);
        PackA(i0, m, x0, k);
        if (x0 == 0)
          product(m, n, k, b, true, j0, g.accumulate ? c : nullptr, g.ldc, sums, kSumColumns);
        else if (x0 + kDeep < g.k)
          product(m, n, k, b, false, j0, sums, kSumColumns, sums, kSumColumns);
        else
          product(m, n, k, b, false, j0, sums, kSumColumns, c, g.ldc);
      }
    }
}

} // namespace

#endif // BOA_RUNTIME_KERNELS_GEMM_LOOPS_H
