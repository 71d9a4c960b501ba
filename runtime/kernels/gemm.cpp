//===- gemm.cpp - Matrix products for compiled kernels --------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each part of the pool's loop is one single-threaded BLAS call on a slab of C.
// The larger dimension of C is cut, since a cut along m makes every part pack
// all of B again, and one along n all of A. BLAS threads would fight with the
// pool for the cores, so they are switched off for the process.
//
//===----------------------------------------------------------------------===//

#include "runtime/kernels/gemm.h"

#include "runtime/abi.h"

#include <cblas.h>

namespace {

/// Slabs are multiples of this, the widest register tile of common BLAS
/// kernels, and not smaller than it.
constexpr int64_t kSlab = 48;

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

  /// Slabs [begin, end) of the dimension that is cut.
  static void run(void *data, int64_t begin, int64_t end) {
    const Gemm &g = *static_cast<const Gemm *>(data);
    bool cutRows = g.m >= g.n;
    int64_t extent = cutRows ? g.m : g.n;
    int64_t first = begin * kSlab;
    int64_t last = end * kSlab < extent ? end * kSlab : extent;
    const T *a = g.a, *b = g.b;
    T *c = g.c;
    if (cutRows) {
      a += g.ta ? first : first * g.lda;
      c += first * g.ldc;
    } else {
      b += g.tb ? first * g.ldb : first;
      c += first;
    }
    gemmPart(g.ta ? CblasTrans : CblasNoTrans,
             g.tb ? CblasTrans : CblasNoTrans,
             static_cast<int>(cutRows ? last - first : g.m),
             static_cast<int>(cutRows ? g.n : last - first),
             static_cast<int>(g.k), g.alpha, a, static_cast<int>(g.lda), b,
             static_cast<int>(g.ldb), g.beta, c, static_cast<int>(g.ldc));
  }

  void runAll() {
    static const bool once = (openblas_set_num_threads(1), true);
    (void)once;
    if (m == 0 || n == 0)
      return;
    int64_t extent = m >= n ? m : n;
    boa_rt_parallel_for((extent + kSlab - 1) / kSlab, 1, &Gemm::run, this);
  }
};

} // namespace

extern "C" void boa_gemm_f32(int32_t ta, int32_t tb, int64_t m, int64_t n,
                             int64_t k, float alpha, const float *a,
                             int64_t lda, const float *b, int64_t ldb,
                             float beta, float *c, int64_t ldc) {
  Gemm<float>{ta != 0, tb != 0, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc}
      .runAll();
}

extern "C" void boa_gemm_f64(int32_t ta, int32_t tb, int64_t m, int64_t n,
                             int64_t k, double alpha, const double *a,
                             int64_t lda, const double *b, int64_t ldb,
                             double beta, double *c, int64_t ldc) {
  Gemm<double>{ta != 0, tb != 0, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc}
      .runAll();
}
