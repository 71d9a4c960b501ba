//===- gemm.cpp - Matrix products for compiled kernels --------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each part of the pool's loop is one single-threaded product of a block of C, one
// block for each thread. A block of m by n elements packs m rows of A and n columns of
// B, so blocks are as square as the number of threads allows.
//
// f32 and bf16 on processors with AVX2 or more are our own (gemm_loops.h), as fast as
// OpenBLAS and able to widen bf16, add a bias and round the result on the way; f64, and
// processors without, are OpenBLAS's. OpenBLAS's own threads would fight with the pool
// for the cores: none of them start.
//
//===----------------------------------------------------------------------===//

#include "runtime/kernels/gemm.h"

#include "runtime/abi/abi.h"
#include "runtime/kernels/gemm_block.h"
#include "runtime/kernels/isa.h"
#include "runtime/support/thread_pool.h"

#include <cblas.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <type_traits>
#include <vector>

namespace {

/// Edges of blocks are multiples of this, a whole number of register tiles (of AMX's, of
/// half ones).
constexpr int64_t kTile = 48;
/// Multiplications that a block should at least have: a tenth of a millisecond. One row waits for
/// memory.
constexpr int64_t kLeast = 4 << 20, kLeastOfRow = 1 << 18;

/// How C is cut: into `rows` times `columns` blocks.
struct Grid {
  int64_t rows, columns;

  static Grid Choose(int64_t m, int64_t n, int64_t k) {
    int64_t threads = boa::Threads();
    const int64_t least = m == 1 ? kLeastOfRow : kLeast;
    if (m * n * k / least < threads)
      threads = m * n * k / least;
    Grid best{1, 1};
    double fewest = 0;
    for (int64_t rows = 1; rows <= threads; ++rows) {
      Grid grid{rows, threads / rows};
      if (grid.rows > 1 && m / grid.rows < kTile)
        break;
      while (grid.columns > 1 && n / grid.columns < kTile)
        --grid.columns;
      double blocks = static_cast<double>(grid.rows * grid.columns);
      // The product of one block, and packing at the cost of some of it.
      double each = static_cast<double>(m) * static_cast<double>(n) / blocks +
                    16.0 * (static_cast<double>(m) / static_cast<double>(rows) +
                            static_cast<double>(n) / static_cast<double>(grid.columns));
      if (fewest == 0 || each < fewest) {
        fewest = each;
        best = grid;
      }
    }
    return best;
  }

  /// For OpenBLAS, the same for any number of threads: what its kernels make of a row or
  /// column depends on those beside it (Haswell's do).
  static Grid ChooseForLibrary(int64_t m, int64_t n) {
    constexpr int64_t kEdge = 5 * kTile;
    return {(m + kEdge - 1) / kEdge, (n + kEdge - 1) / kEdge};
  }

  /// Where part `i` of `parts` of an edge begins.
  static int64_t Cut(int64_t extent, int64_t parts, int64_t i) {
    if (i == parts)
      return extent;
    int64_t tiles = (extent + kTile - 1) / kTile;
    return tiles * i / parts * kTile;
  }
};

//===----------------------------------------------------------------------===//
// One block
//===----------------------------------------------------------------------===//

using boa::GemmBlock;
using boa::Isa;

/// This thread's scratch: packed or widened operands.
float *Scratch() {
  struct Free {
    void operator()(void *p) const { std::free(p); }
  };
  static thread_local std::unique_ptr<void, Free> memory;
  if (!memory) {
    constexpr size_t kBytes = boa::kGemmScratch * sizeof(float), kHugePage = 2 << 20;
    static_assert(kBytes % kHugePage == 0);
    // Packed blocks are read faster from huge pages, and are as right without them.
    memory.reset(std::aligned_alloc(kHugePage, kBytes));
    if (memory)
      madvise(memory.get(), kBytes, MADV_HUGEPAGE);
    else
      memory.reset(std::aligned_alloc(4096, kBytes)); // which takes less address space
    if (!memory)
      std::abort(); // a few MiB: nothing else would work either
  }
  return static_cast<float *>(memory.get());
}

void CallBlas(CBLAS_TRANSPOSE ta, CBLAS_TRANSPOSE tb, int m, int n, int k, const float *a, int lda,
              const float *b, int ldb, float beta, float *c, int ldc) {
  cblas_sgemm(CblasRowMajor, ta, tb, m, n, k, 1, a, lda, b, ldb, beta, c, ldc);
}
void CallBlas(CBLAS_TRANSPOSE ta, CBLAS_TRANSPOSE tb, int m, int n, int k, const double *a, int lda,
              const double *b, int ldb, double beta, double *c, int ldc) {
  cblas_dgemm(CblasRowMajor, ta, tb, m, n, k, 1, a, lda, b, ldb, beta, c, ldc);
}

/// The block by OpenBLAS; a bias is what the product is added to.
template <typename T> void BlasBlock(GemmBlock<T, T, T, T> g) {
  if (g.bias) {
    for (int64_t i = 0; i < g.m; ++i)
      for (int64_t j = 0; j < g.n; ++j)
        g.c[i * g.ldc + j] = (g.accumulate ? g.c[i * g.ldc + j] : T(0)) + g.bias[j];
    g.accumulate = true;
  }
  CallBlas(g.transpose_a ? CblasTrans : CblasNoTrans, g.transpose_b ? CblasTrans : CblasNoTrans,
           static_cast<int>(g.m), static_cast<int>(g.n), static_cast<int>(g.k), g.a,
           static_cast<int>(g.lda), g.b, static_cast<int>(g.ldb), g.accumulate ? T(1) : T(0), g.c,
           static_cast<int>(g.ldc));
}

/// Half of the scratch is for A, half for B: this many floats each.
constexpr int64_t kWidened = boa::kGemmScratch / 2;

float Widen(uint16_t x) {
  const uint32_t bits = static_cast<uint32_t>(x) << 16;
  float wide;
  std::memcpy(&wide, &bits, sizeof wide);
  return wide;
}
/// To the nearest, ties to even; a NaN stays one.
uint16_t Round(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  return static_cast<uint16_t>((x == x ? bits + 0x7fff + (bits >> 16 & 1) : bits | 0x400000) >> 16);
}

/// A piece of an operand in f32: widened into `wide`, or as it is. `ld` becomes the
/// stride of its rows.
const float *WidenPiece(const uint16_t *from, int64_t rows, int64_t columns, float *wide,
                        int64_t &ld) {
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j)
      wide[i * columns + j] = Widen(from[i * ld + j]);
  ld = columns;
  return wide;
}
const float *WidenPiece(const float *from, int64_t, int64_t, float *, int64_t &) { return from; }

/// With bf16: pieces of what is bf16 are widened and multiplied in turn.
template <typename A> void BlasBlock(const GemmBlock<A, uint16_t> &g) {
  constexpr int64_t kDeep = 1024;
  float *wideA = Scratch(), *wideB = wideA + kWidened;
  int64_t x0 = 0;
  do {
    const int64_t k = std::min(kDeep, g.k - x0), step = kWidened / std::max<int64_t>(k, 1);
    const int64_t stepA = std::is_same_v<A, float> ? g.m : step;
    for (int64_t j0 = 0; j0 < g.n; j0 += step) {
      const int64_t n = std::min(step, g.n - j0);
      int64_t ldb = g.ldb;
      const float *b = WidenPiece(g.b + (g.transpose_b ? j0 * g.ldb + x0 : x0 * g.ldb + j0),
                                  g.transpose_b ? n : k, g.transpose_b ? k : n, wideB, ldb);
      for (int64_t i0 = 0; i0 < g.m; i0 += stepA) {
        const int64_t m = std::min(stepA, g.m - i0);
        int64_t lda = g.lda;
        const float *a = WidenPiece(g.a + (g.transpose_a ? x0 * g.lda + i0 : i0 * g.lda + x0),
                                    g.transpose_a ? k : m, g.transpose_a ? m : k, wideA, lda);
        BlasBlock<float>({g.transpose_a, g.transpose_b, m, n, k, a, lda, b, ldb,
                          g.bias && x0 == 0 ? g.bias + j0 : nullptr, g.accumulate || x0 != 0,
                          g.c + i0 * g.ldc + j0, g.ldc});
      }
    }
    x0 += kDeep;
  } while (x0 < g.k);
}

/// With C in bf16: sums of some rows at a time, then rounded.
void BlasBlock(const boa::GemmAllBf16 &g) {
  constexpr int64_t kAtOnce = 64;
  std::vector<float> sums(static_cast<size_t>(std::min(kAtOnce, g.m) * g.n));
  for (int64_t i0 = 0; i0 < g.m; i0 += kAtOnce) {
    const int64_t m = std::min(kAtOnce, g.m - i0);
    uint16_t *c = g.c + i0 * g.ldc;
    for (int64_t i = 0; g.accumulate && i < m; ++i)
      for (int64_t j = 0; j < g.n; ++j)
        sums[static_cast<size_t>(i * g.n + j)] = Widen(c[i * g.ldc + j]);
    BlasBlock(boa::GemmBf16Bf16{g.transpose_a, g.transpose_b, m, g.n, g.k,
                                g.a + i0 * (g.transpose_a ? 1 : g.lda), g.lda, g.b, g.ldb, g.bias,
                                g.accumulate, sums.data(), g.n});
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < g.n; ++j)
        c[i * g.ldc + j] = Round(sums[static_cast<size_t>(i * g.n + j)]);
  }
}

/// Whether blocks of this type go to OpenBLAS.
template <typename Block> bool IsForLibrary() {
#ifdef __x86_64__
  return std::is_same_v<Block, boa::GemmF64> || boa::UsedIsa() < Isa::kAvx2;
#else
  return true;
#endif
}

template <typename A, typename B, typename C>
void RunBlock([[maybe_unused]] Isa isa, const GemmBlock<A, B, C> &g) {
#ifdef __x86_64__
  if constexpr (std::is_same_v<A, uint16_t>) {
    // One row reads B as it lies, and leaves tiles empty.
    if (g.m == 1 && isa >= Isa::kAvx512)
      return boa::ComputeGemmBlockAvx512(g, Scratch());
    if (isa >= Isa::kAmx)
      return boa::ComputeGemmBlockAmx(g, Scratch());
    if (isa >= Isa::kAvx512Bf16)
      return boa::ComputeGemmBlockAvx512Bf16(g, Scratch());
  }
  if (isa >= Isa::kAvx512)
    return boa::ComputeGemmBlockAvx512(g, Scratch());
  if (isa >= Isa::kAvx2)
    return boa::ComputeGemmBlockAvx2(g, Scratch());
#endif
  BlasBlock(g);
}
void RunBlock(Isa, const boa::GemmF64 &g) { BlasBlock(g); }

//===----------------------------------------------------------------------===//
// All of them
//===----------------------------------------------------------------------===//

template <typename Block> struct Work {
  const Block &all;
  Grid grid;

  /// Blocks [begin, end) of the grid.
  static void Run(void *data, int64_t begin, int64_t end) {
    const Work &work = *static_cast<const Work *>(data);
    for (int64_t i = begin; i < end; ++i)
      RunBlock(boa::UsedIsa(), work.BlockAt(i / work.grid.columns, i % work.grid.columns));
  }

  Block BlockAt(int64_t row, int64_t column) const {
    int64_t m0 = Grid::Cut(all.m, grid.rows, row);
    int64_t n0 = Grid::Cut(all.n, grid.columns, column);
    Block g = all;
    g.m = Grid::Cut(all.m, grid.rows, row + 1) - m0;
    g.n = Grid::Cut(all.n, grid.columns, column + 1) - n0;
    g.a += g.transpose_a ? m0 : m0 * g.lda;
    g.b += g.transpose_b ? n0 * g.ldb : n0;
    if (g.bias)
      g.bias += n0;
    if (!g.packs)
      g.c += m0 * g.ldc + n0;
    g.first_column = n0;
    return g;
  }
};

/// Whether blocks of this type take B in panels (gemm_loops.h). Tiles have loops of their own.
template <typename A, typename B, typename C, typename Bias>
bool TakesPanels(const GemmBlock<A, B, C, Bias> &) {
  return !IsForLibrary<GemmBlock<A, B, C, Bias>>() &&
         (std::is_same_v<A, float> || boa::UsedIsa() < Isa::kAmx);
}

/// OpenBLAS starts its threads before main(), and raises SIGINT where one cannot start. It reads
/// this first, since constructors with a priority run before those without.
__attribute__((constructor(101))) void KeepOpenBlasToOneThread() {
  setenv("OPENBLAS_NUM_THREADS", "1", /*overwrite=*/1);
}

template <typename Block> void RunAll(Block g, void *prepared = nullptr, int64_t offset = 0) {
  if (g.m == 0 || g.n == 0)
    return;
  if (prepared && TakesPanels(g)) {
    g.panels = static_cast<char *>(prepared) + offset;
    g.all_columns = g.n;
  }
  Work<Block> work{g, IsForLibrary<Block>() ? Grid::ChooseForLibrary(g.m, g.n)
                                            : Grid::Choose(g.m, g.n, g.k)};
  boa_rt_parallel_for(work.grid.rows * work.grid.columns, 1, &Work<Block>::Run, &work);
}

template <typename A, typename B>
void Prepare(bool transpose_b, int64_t n, int64_t k, const B *b, int64_t ldb, void *form) {
  GemmBlock<A, B> g{false, transpose_b, /*m=*/0, n,     k,       /*a=*/nullptr, 0,
                    b,     ldb,         nullptr, false, nullptr, /*ldc=*/0};
  if (!TakesPanels(g))
    return;
  g.panels = form;
  g.all_columns = n;
  g.packs = true;
  const int64_t parts = std::min<int64_t>(boa::Threads(), (n + kTile - 1) / kTile);
  Work<GemmBlock<A, B>> work{g, {1, parts}};
  boa_rt_parallel_for(work.grid.columns, 1, &Work<GemmBlock<A, B>>::Run, &work);
}

} // namespace

void boa::ComputeGemmBlock(Isa isa, const GemmF32 &g) { RunBlock(isa, g); }
void boa::ComputeGemmBlock(Isa isa, const GemmBf16 &g) { RunBlock(isa, g); }
void boa::ComputeGemmBlock(Isa isa, const GemmBf16Bf16 &g) { RunBlock(isa, g); }
void boa::ComputeGemmBlock(Isa isa, const GemmAllBf16 &g) { RunBlock(isa, g); }

extern "C" void boa_gemm_f32(int32_t ta, int32_t tb, int64_t m, int64_t n, int64_t k,
                             const float *a, int64_t lda, const float *b, int64_t ldb,
                             const float *bias, int32_t accumulate, float *c, int64_t ldc,
                             void *prepared, int64_t offset) {
  RunAll(boa::GemmF32{ta != 0, tb != 0, m, n, k, a, lda, b, ldb, bias, accumulate != 0, c, ldc},
         prepared, offset);
}

extern "C" void boa_gemm_bf16(int32_t ta, int32_t tb, int64_t m, int64_t n, int64_t k,
                              const float *a, int64_t lda, const uint16_t *b, int64_t ldb,
                              const float *bias, int32_t accumulate, float *c, int64_t ldc,
                              void *prepared, int64_t offset) {
  RunAll(boa::GemmBf16{ta != 0, tb != 0, m, n, k, a, lda, b, ldb, bias, accumulate != 0, c, ldc},
         prepared, offset);
}

extern "C" void boa_gemm_bf16_bf16(int32_t ta, int32_t tb, int64_t m, int64_t n, int64_t k,
                                   const uint16_t *a, int64_t lda, const uint16_t *b, int64_t ldb,
                                   const float *bias, int32_t accumulate, float *c, int64_t ldc,
                                   void *prepared, int64_t offset) {
  RunAll(
      boa::GemmBf16Bf16{ta != 0, tb != 0, m, n, k, a, lda, b, ldb, bias, accumulate != 0, c, ldc},
      prepared, offset);
}

extern "C" void boa_gemm_bf16_bf16_bf16(int32_t ta, int32_t tb, int64_t m, int64_t n, int64_t k,
                                        const uint16_t *a, int64_t lda, const uint16_t *b,
                                        int64_t ldb, const float *bias, int32_t accumulate,
                                        uint16_t *c, int64_t ldc, void *prepared, int64_t offset) {
  RunAll(boa::GemmAllBf16{ta != 0, tb != 0, m, n, k, a, lda, b, ldb, bias, accumulate != 0, c, ldc},
         prepared, offset);
}

extern "C" void boa_gemm_prepare_f32(int32_t tb, int64_t n, int64_t k, const float *b, int64_t ldb,
                                     void *form) {
  Prepare<float>(tb != 0, n, k, b, ldb, form);
}

extern "C" void boa_gemm_prepare_bf16(int32_t tb, int64_t n, int64_t k, const uint16_t *b,
                                      int64_t ldb, void *form) {
  Prepare<float>(tb != 0, n, k, b, ldb, form);
}

extern "C" void boa_gemm_prepare_bf16_bf16(int32_t tb, int64_t n, int64_t k, const uint16_t *b,
                                           int64_t ldb, void *form) {
  Prepare<uint16_t>(tb != 0, n, k, b, ldb, form);
}

extern "C" void boa_gemm_f64(int32_t ta, int32_t tb, int64_t m, int64_t n, int64_t k,
                             const double *a, int64_t lda, const double *b, int64_t ldb,
                             const double *bias, int32_t accumulate, double *c, int64_t ldc) {
  RunAll(boa::GemmF64{ta != 0, tb != 0, m, n, k, a, lda, b, ldb, bias, accumulate != 0, c, ldc});
}
