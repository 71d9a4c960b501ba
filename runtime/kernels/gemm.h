//===- gemm.h - Matrix products for compiled kernels --------------*- C -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// C[m, n] = (accumulate ? C : 0) + bias[n] + op(A)[m, k] op(B)[k, n], row-major. Row strides lda,
// ldb, ldc are in elements. `op(X)` is X, or its transpose where the flag is set (then A is
// stored [k, m], B [n, k]). `bias` may be null. In the _bf16 form B is bf16. In the _bf16_bf16
// form A is too, and in the _bf16_bf16_bf16 form all three are. No widened copy is made. Products
// are exact or nearly so, and sums are f32, rounded once.
//
// boa_gemm_prepare_* packs all of a B as products on this processor take it, into at most
// 4 * k bytes for each column, whose number is rounded up to a multiple of 16. boa_gemm_prepared_*
// is the product with such a form, `offset` bytes behind `prepared`; if that is null, there is
// none. The result is the same to the bit. In the _bf16_bf16 form of both A is bf16, too.
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
                  int32_t accumulate, float *c, int64_t ldc);
void boa_gemm_bf16(int32_t transpose_a, int32_t transpose_b, int64_t m, int64_t n, int64_t k,
                   const float *a, int64_t lda, const uint16_t *b, int64_t ldb, const float *bias,
                   int32_t accumulate, float *c, int64_t ldc);
void boa_gemm_bf16_bf16(int32_t transpose_a, int32_t transpose_b, int64_t m, int64_t n, int64_t k,
                        const uint16_t *a, int64_t lda, const uint16_t *b, int64_t ldb,
                        const float *bias, int32_t accumulate, float *c, int64_t ldc);
void boa_gemm_bf16_bf16_bf16(int32_t transpose_a, int32_t transpose_b, int64_t m, int64_t n,
                             int64_t k, const uint16_t *a, int64_t lda, const uint16_t *b,
                             int64_t ldb, const float *bias, int32_t accumulate, uint16_t *c,
                             int64_t ldc);

void boa_gemm_prepare_f32(int32_t transpose_b, int64_t n, int64_t k, const float *b, int64_t ldb,
                          void *form);
void boa_gemm_prepare_bf16(int32_t transpose_b, int64_t n, int64_t k, const uint16_t *b,
                           int64_t ldb, void *form);
void boa_gemm_prepare_bf16_bf16(int32_t transpose_b, int64_t n, int64_t k, const uint16_t *b,
                                int64_t ldb, void *form);
void boa_gemm_prepared_f32(int32_t transpose_a, int32_t transpose_b, int64_t m, int64_t n,
                           int64_t k, const float *a, int64_t lda, const float *b, int64_t ldb,
                           const float *bias, int32_t accumulate, float *c, int64_t ldc,
                           void *prepared, int64_t offset);
void boa_gemm_prepared_bf16(int32_t transpose_a, int32_t transpose_b, int64_t m, int64_t n,
                            int64_t k, const float *a, int64_t lda, const uint16_t *b, int64_t ldb,
                            const float *bias, int32_t accumulate, float *c, int64_t ldc,
                            void *prepared, int64_t offset);
void boa_gemm_prepared_bf16_bf16(int32_t transpose_a, int32_t transpose_b, int64_t m, int64_t n,
                                 int64_t k, const uint16_t *a, int64_t lda, const uint16_t *b,
                                 int64_t ldb, const float *bias, int32_t accumulate, float *c,
                                 int64_t ldc, void *prepared, int64_t offset);
void boa_gemm_prepared_bf16_bf16_bf16(int32_t transpose_a, int32_t transpose_b, int64_t m,
                                      int64_t n, int64_t k, const uint16_t *a, int64_t lda,
                                      const uint16_t *b, int64_t ldb, const float *bias,
                                      int32_t accumulate, uint16_t *c, int64_t ldc, void *prepared,
                                      int64_t offset);

void boa_gemm_f64(int32_t transpose_a, int32_t transpose_b, int64_t m, int64_t n, int64_t k,
                  const double *a, int64_t lda, const double *b, int64_t ldb, const double *bias,
                  int32_t accumulate, double *c, int64_t ldc);

#ifdef __cplusplus
}
#endif

#endif // BOA_RUNTIME_KERNELS_GEMM_H
