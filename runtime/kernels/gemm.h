//===- gemm.h - Matrix products for compiled kernels --------------*- C -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// C[m, n] = (accumulate ? C : 0) + bias[n] + op(A)[m, k] op(B)[k, n], row-major. Row strides lda,
// ldb, ldc are in elements. `op(X)` is X, or its transpose where the flag is set (then A is
// stored [k, m], B [n, k]). `bias` may be null. The suffix _bf16 says that B is bf16, _bf16_bf16
// that A is bf16, too, and _bf16_bf16_bf16 that all three are. No widened copy is made. Products
// are exact or nearly so, and sums are f32, rounded once.
//
// boa_gemm_prepare_* packs all of a B in the form that products on this processor take. The form
// has at most 4 * k bytes for each column. It may need bytes for up to 15 more columns, since their
// number is rounded up to a multiple of 16. A product takes the form at `offset` bytes behind
// `prepared`. If `prepared` is null, the product packs B itself. The result is the same to the bit.
//
// The work is divided over the shared pool (boa_rt_parallel_for); each element is
// summed in one order, so the result does not depend on the number of threads.
// Scratch is allocated once for each thread of the pool.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_KERNELS_GEMM_H
#define BOA_RUNTIME_KERNELS_GEMM_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

void boa_gemm_f32(int32_t transpose_a, int32_t transpose_b, int64_t m, int64_t n, int64_t k,
                  const float *a, int64_t lda, const float *b, int64_t ldb, const float *bias,
                  int32_t accumulate, float *c, int64_t ldc, void *prepared, int64_t offset);
void boa_gemm_bf16(int32_t transpose_a, int32_t transpose_b, int64_t m, int64_t n, int64_t k,
                   const float *a, int64_t lda, const uint16_t *b, int64_t ldb, const float *bias,
                   int32_t accumulate, float *c, int64_t ldc, void *prepared, int64_t offset);
void boa_gemm_bf16_bf16(int32_t transpose_a, int32_t transpose_b, int64_t m, int64_t n, int64_t k,
                        const uint16_t *a, int64_t lda, const uint16_t *b, int64_t ldb,
                        const float *bias, int32_t accumulate, float *c, int64_t ldc,
                        void *prepared, int64_t offset);
void boa_gemm_bf16_bf16_bf16(int32_t transpose_a, int32_t transpose_b, int64_t m, int64_t n,
                             int64_t k, const uint16_t *a, int64_t lda, const uint16_t *b,
                             int64_t ldb, const float *bias, int32_t accumulate, uint16_t *c,
                             int64_t ldc, void *prepared, int64_t offset);

void boa_gemm_prepare_f32(int32_t transpose_b, int64_t n, int64_t k, const float *b, int64_t ldb,
                          void *form);
void boa_gemm_prepare_bf16(int32_t transpose_b, int64_t n, int64_t k, const uint16_t *b,
                           int64_t ldb, void *form);
void boa_gemm_prepare_bf16_bf16(int32_t transpose_b, int64_t n, int64_t k, const uint16_t *b,
                                int64_t ldb, void *form);

void boa_gemm_f64(int32_t transpose_a, int32_t transpose_b, int64_t m, int64_t n, int64_t k,
                  const double *a, int64_t lda, const double *b, int64_t ldb, const double *bias,
                  int32_t accumulate, double *c, int64_t ldc);

#ifdef __cplusplus
}
#endif

#endif // BOA_RUNTIME_KERNELS_GEMM_H
