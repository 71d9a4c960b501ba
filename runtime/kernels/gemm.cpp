//===- gemm.cpp - Matrix products for compiled kernels --------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each part of the pool's loop is one single-threaded BLAS call on a block of C,
// one block for each thread. A block of m by n elements packs m rows of A and n
// columns of B, so blocks are as square as the number of threads allows. BLAS
// threads would fight with the pool for the cores: they are switched off for the
// process.
//
//===----------------------------------------------------------------------===//

#include "runtime/kernels/gemm.h"

#include "runtime/abi.h"
#include "runtime/thread_pool.h"

#include <cblas.h>

namespace {

/// Edges of blocks are multiples of this, the widest register tile of common
/// BLAS kernels.
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
                            static_cast<double>(n) /
                                static_cast<double>(grid.columns));
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

void gemmPart(CBLAS_TRANSPOSE ta, CBLAS_TRANSPOSE tb, int m, int n, int k,
              float alpha, const float *a, int lda, const float *b, int ldb,
              float beta, float *c, int ldc) {
  cblas_sgemm(CblasRowMajor, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c,
              ldc);
}
void gemmPart(CBLAS_TRANSPOSE ta, CBLAS_TRANSPOSE tb, int m, int n, int k,
              double alpha, const double *a, int lda, const double *b, int ldb,
              double beta, double *c, int ldc) {
  cblas_dgemm(CblasRowMajor, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c,
              ldc);
}

template <typename T> struct Gemm {
  bool ta, tb;
  int64_t m, n, k;
  T alpha;
  const T *a;
  int64_t lda;
  const T *b;
  int64_t ldb;
  T beta;
  T *c;
  int64_t ldc;

  Grid grid;

  /// Blocks [begin, end) of the grid.
  static void run(void *data, int64_t begin, int64_t end) {
    const Gemm &g = *static_cast<const Gemm *>(data);
    for (int64_t block = begin; block < end; ++block)
      g.runBlock(block / g.grid.columns, block % g.grid.columns);
  }

  void runBlock(int64_t row, int64_t column) const {
    int64_t m0 = Grid::cut(m, grid.rows, row);
    int64_t m1 = Grid::cut(m, grid.rows, row + 1);
    int64_t n0 = Grid::cut(n, grid.columns, column);
    int64_t n1 = Grid::cut(n, grid.columns, column + 1);
    gemmPart(ta ? CblasTrans : CblasNoTrans, tb ? CblasTrans : CblasNoTrans,
             static_cast<int>(m1 - m0), static_cast<int>(n1 - n0),
             static_cast<int>(k), alpha, a + (ta ? m0 : m0 * lda),
             static_cast<int>(lda), b + (tb ? n0 * ldb : n0),
             static_cast<int>(ldb), beta, c + m0 * ldc + n0,
             static_cast<int>(ldc));
  }

  void runAll() {
    static const bool once = (openblas_set_num_threads(1), true);
    (void)once;
    if (m == 0 || n == 0)
      return;
    grid = Grid::choose(m, n, k);
    boa_rt_parallel_for(grid.rows * grid.columns, 1, &Gemm::run, this);
  }
};

} // namespace

extern "C" void boa_gemm_f32(int32_t ta, int32_t tb, int64_t m, int64_t n,
                             int64_t k, float alpha, const float *a,
                             int64_t lda, const float *b, int64_t ldb,
                             float beta, float *c, int64_t ldc) {
  Gemm<float>{ta != 0, tb != 0, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc, {}}
      .runAll();
}

extern "C" void boa_gemm_f64(int32_t ta, int32_t tb, int64_t m, int64_t n,
                             int64_t k, double alpha, const double *a,
                             int64_t lda, const double *b, int64_t ldb,
                             double beta, double *c, int64_t ldc) {
  Gemm<double>{ta != 0, tb != 0, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc, {}}
      .runAll();
}
