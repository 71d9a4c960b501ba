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
// f32 on processors with AVX2 is our own (gemm_avx2.cpp), as fast as OpenBLAS and able
// to widen bf16 and add a bias on the way; f64, and processors with wider vectors,
// which OpenBLAS knows, are OpenBLAS's. Its own threads would fight with the pool for
// the cores: they are switched off for the process.
//
//===----------------------------------------------------------------------===//

#include "runtime/kernels/gemm.h"

#include "runtime/abi.h"
#include "runtime/kernels/gemm_block.h"
#include "runtime/thread_pool.h"

#include <cblas.h>

#include <cstdlib>
#include <cstring>
#include <memory>

namespace {

/// Edges of blocks are multiples of this, a whole number of register
/// tiles.
constexpr int64_t kTile = 48;
/// Multiplications that a block should at least have: a tenth of a millisecond.
constexpr int64_t kLeast = 4 << 20;

/// How C is cut: into `rows` times `columns` blocks.
struct Grid {
  int64_t rows, columns;

  static Grid choose(int64_t m, int64_t n, int64_t k) {
    int64_t threads = boa::Threads();
    if (m * n * k / kLeast < threads)
      threads = m * n * k / kLeast;
    Grid best{1, 1};
    double least = 0;
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
      if (least == 0 || each < least) {
        least = each;
        best = grid;
      }
    }
    return best;
  }

  /// Where part `i` of `parts` of an edge begins.
  static int64_t cut(int64_t extent, int64_t parts, int64_t i) {
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

bool hasOwnKernel() {
#ifdef __x86_64__
  static const bool own = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                          !__builtin_cpu_supports("avx512f");
  return own;
#else
  return false;
#endif
}

/// Floats of scratch for widening where OpenBLAS does the product.
constexpr int64_t kWidened = 512 * 1024;

/// This thread's scratch: packed or widened operands.
float *scratch() {
  struct Free {
    void operator()(void *p) const { std::free(p); }
  };
  static thread_local std::unique_ptr<void, Free> memory;
  if (!memory) {
    int64_t count = kWidened;
#ifdef __x86_64__
    if (hasOwnKernel())
      count = boa::gemmScratchAvx2();
#endif
    size_t bytes = (static_cast<size_t>(count) * sizeof(float) + 4095) / 4096 * 4096;
    memory.reset(std::aligned_alloc(4096, bytes));
    if (!memory)
      std::abort(); // a few MiB: nothing else would work either
  }
  return static_cast<float *>(memory.get());
}

void blas(CBLAS_TRANSPOSE ta, CBLAS_TRANSPOSE tb, int m, int n, int k, const float *a, int lda,
          const float *b, int ldb, float beta, float *c, int ldc) {
  cblas_sgemm(CblasRowMajor, ta, tb, m, n, k, 1, a, lda, b, ldb, beta, c, ldc);
}
void blas(CBLAS_TRANSPOSE ta, CBLAS_TRANSPOSE tb, int m, int n, int k, const double *a, int lda,
          const double *b, int ldb, double beta, double *c, int ldc) {
  cblas_dgemm(CblasRowMajor, ta, tb, m, n, k, 1, a, lda, b, ldb, beta, c, ldc);
}

/// The block by OpenBLAS; a bias is what the product is added to.
template <typename T> void blasBlock(GemmBlock<T, T> g) {
  if (g.bias) {
    for (int64_t i = 0; i < g.m; ++i)
      for (int64_t j = 0; j < g.n; ++j)
        g.c[i * g.ldc + j] = (g.accumulate ? g.c[i * g.ldc + j] : T(0)) + g.bias[j];
    g.accumulate = true;
  }
  blas(g.transpose_a ? CblasTrans : CblasNoTrans, g.transpose_b ? CblasTrans : CblasNoTrans,
       static_cast<int>(g.m), static_cast<int>(g.n), static_cast<int>(g.k), g.a,
       static_cast<int>(g.lda), g.b, static_cast<int>(g.ldb), g.accumulate ? T(1) : T(0), g.c,
       static_cast<int>(g.ldc));
}

/// With bf16: pieces of B are widened and multiplied in turn.
void blasBlock(const GemmBlock<float, uint16_t> &g) {
  constexpr int64_t kDeep = 1024;
  float *wide = scratch();
  for (int64_t x0 = 0; x0 < g.k; x0 += kDeep) {
    int64_t k = g.k - x0 < kDeep ? g.k - x0 : kDeep, step = kWidened / k;
    for (int64_t j0 = 0; j0 < g.n; j0 += step) {
      int64_t n = g.n - j0 < step ? g.n - j0 : step;
      int64_t rows = g.transpose_b ? n : k, columns = g.transpose_b ? k : n;
      const uint16_t *b = g.b + (g.transpose_b ? j0 * g.ldb + x0 : x0 * g.ldb + j0);
      for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 0; j < columns; ++j) {
          uint32_t bits = static_cast<uint32_t>(b[i * g.ldb + j]) << 16;
          std::memcpy(&wide[i * columns + j], &bits, sizeof bits);
        }
      blasBlock<float>({g.transpose_a, g.transpose_b, g.m, n, k,
                        g.a + (g.transpose_a ? x0 * g.lda : x0), g.lda, wide, columns,
                        g.bias && x0 == 0 ? g.bias + j0 : nullptr, g.accumulate || x0 != 0,
                        g.c + j0, g.ldc});
    }
  }
}

template <typename B> void runBlock(const GemmBlock<float, B> &g) {
#ifdef __x86_64__
  if (hasOwnKernel())
    return boa::gemmBlockAvx2(g, scratch());
#endif
  blasBlock(g);
}
void runBlock(const GemmBlock<double, double> &g) { blasBlock(g); }

//===----------------------------------------------------------------------===//
// All of them
//===----------------------------------------------------------------------===//

template <typename T, typename B> struct Work {
  const GemmBlock<T, B> &all;
  Grid grid;

  /// Blocks [begin, end) of the grid.
  static void run(void *data, int64_t begin, int64_t end) {
    const Work &work = *static_cast<const Work *>(data);
    for (int64_t i = begin; i < end; ++i)
      runBlock(work.block(i / work.grid.columns, i % work.grid.columns));
  }

  GemmBlock<T, B> block(int64_t row, int64_t column) const {
    int64_t m0 = Grid::cut(all.m, grid.rows, row);
    int64_t n0 = Grid::cut(all.n, grid.columns, column);
    GemmBlock<T, B> g = all;
    g.m = Grid::cut(all.m, grid.rows, row + 1) - m0;
    g.n = Grid::cut(all.n, grid.columns, column + 1) - n0;
    g.a += g.transpose_a ? m0 : m0 * g.lda;
    g.b += g.transpose_b ? n0 * g.ldb : n0;
    if (g.bias)
      g.bias += n0;
    g.c += m0 * g.ldc + n0;
    return g;
  }
};

template <typename T, typename B> void runAll(const GemmBlock<T, B> &g) {
  static const bool once = (openblas_set_num_threads(1), true);
  (void)once;
  if (g.m == 0 || g.n == 0)
    return;
  Work<T, B> work{g, Grid::choose(g.m, g.n, g.k)};
  boa_rt_parallel_for(work.grid.rows * work.grid.columns, 1, &Work<T, B>::run, &work);
}

} // namespace

extern "C" void boa_gemm_f32(int32_t ta, int32_t tb, int64_t m, int64_t n, int64_t k,
                             const float *a, int64_t lda, const float *b, int64_t ldb,
                             const float *bias, int32_t accumulate, float *c, int64_t ldc) {
  runAll<float, float>({ta != 0, tb != 0, m, n, k, a, lda, b, ldb, bias, accumulate != 0, c, ldc});
}

extern "C" void boa_gemm_bf16(int32_t ta, int32_t tb, int64_t m, int64_t n, int64_t k,
                              const float *a, int64_t lda, const uint16_t *b, int64_t ldb,
                              const float *bias, int32_t accumulate, float *c, int64_t ldc) {
  runAll<float, uint16_t>(
      {ta != 0, tb != 0, m, n, k, a, lda, b, ldb, bias, accumulate != 0, c, ldc});
}

extern "C" void boa_gemm_f64(int32_t ta, int32_t tb, int64_t m, int64_t n, int64_t k,
                             const double *a, int64_t lda, const double *b, int64_t ldb,
                             const double *bias, int32_t accumulate, double *c, int64_t ldc) {
  runAll<double, double>(
      {ta != 0, tb != 0, m, n, k, a, lda, b, ldb, bias, accumulate != 0, c, ldc});
}
