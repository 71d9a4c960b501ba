//===- cached_attention.h - Attention to keys of a cache ----------*- C -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Some rows of a text, after the keys and values of earlier rows. First the rows' own keys and
// values go into the caches, each to its position. Then row i attends as row positions[i] of
// causal attention (attention.h).
//
//   q, y          [rows, heads * d]           row strides ldq, ldy (elements)
//   k, v          [rows, kv_heads * d]        ldk, ldv
//   keys, values  [context, kv_heads * d]     ld_keys, ld_values
//   positions     [rows]                      all different, each below `context`
//
// A row's scores take memory, as many numbers as the context for each thread. Work is divided
// over the shared pool by row and head. Each result has one owner and one order of summation. In
// the _bf16 form all sums are f32, and y is rounded once.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_KERNELS_CACHED_ATTENTION_H
#define BOA_RUNTIME_KERNELS_CACHED_ATTENTION_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

void boa_cached_attention_f32(int64_t rows, int64_t context, int64_t heads, int64_t kv_heads,
                              int64_t d, int64_t window, const int32_t *positions, const float *q,
                              int64_t ldq, const float *k, int64_t ldk, const float *v, int64_t ldv,
                              float *y, int64_t ldy, float *keys, int64_t ld_keys, float *values,
                              int64_t ld_values);
void boa_cached_attention_f64(int64_t rows, int64_t context, int64_t heads, int64_t kv_heads,
                              int64_t d, int64_t window, const int32_t *positions, const double *q,
                              int64_t ldq, const double *k, int64_t ldk, const double *v,
                              int64_t ldv, double *y, int64_t ldy, double *keys, int64_t ld_keys,
                              double *values, int64_t ld_values);
void boa_cached_attention_bf16(int64_t rows, int64_t context, int64_t heads, int64_t kv_heads,
                               int64_t d, int64_t window, const int32_t *positions,
                               const uint16_t *q, int64_t ldq, const uint16_t *k, int64_t ldk,
                               const uint16_t *v, int64_t ldv, uint16_t *y, int64_t ldy,
                               uint16_t *keys, int64_t ld_keys, uint16_t *values,
                               int64_t ld_values);

#ifdef __cplusplus
}
#endif

#endif // BOA_RUNTIME_KERNELS_CACHED_ATTENTION_H
