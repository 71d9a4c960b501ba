//===- attention.h - Blocked attention for compiled kernels -------*- C -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// y = softmax(q k^T / sqrt(d)) v by head, with online softmax. Memory beside the operands is a
// few blocks for each thread, whatever the context. Gradients in bf16 also take sums for the keys
// or queries of a head, up to 16 MiB.
//
//   q, y    [batch * time, heads * d]       row strides ldq, ldy (elements)
//   k, v    [batch * time, kv_heads * d]    row strides ldk, ldv
//   lse     [batch, heads, time]            logarithm of each row's sum of exps
//
// Head h reads key/value head h / (heads / kv_heads). Rows may be slices of a
// wider buffer. causal != 0: row t sees keys 0..t. window != 0: it sees only the last
// `window` of them. document_starts [batch, time], if not null: a row sees only keys of its
// document, those of the same start. Starts do not decrease; the first row of a document is its own
// start. Blocks of keys that no row sees cost nothing. Work is divided over the shared pool; each
// result has one owner and one order of summation.
//
// In the _bf16 form lse is f32, and so are all sums. Each result is rounded once, when it is
// complete. Where the processor multiplies bf16 (isa.h), all products are of bf16. Probabilities
// are rounded to it once, before they are divided by their sum. The sum is of unrounded
// probabilities. Gradients of scores are rounded once, too. Numbers below f32's least normal one
// are taken for zero. Roundings do not average out in rows that see 64 keys or fewer. There y
// uses probabilities of twice as many digits. On other processors, blocks of the operands are
// widened to f32, and nothing else is rounded.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_KERNELS_ATTENTION_H
#define BOA_RUNTIME_KERNELS_ATTENTION_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

void boa_attention_f32(int64_t batch, int64_t time, int64_t heads, int64_t kv_heads, int64_t d,
                       int32_t causal, int64_t window, const int32_t *document_starts,
                       const float *q, int64_t ldq, const float *k, int64_t ldk, const float *v,
                       int64_t ldv, float *y, int64_t ldy, float *lse);
void boa_attention_f64(int64_t batch, int64_t time, int64_t heads, int64_t kv_heads, int64_t d,
                       int32_t causal, int64_t window, const int32_t *document_starts,
                       const double *q, int64_t ldq, const double *k, int64_t ldk, const double *v,
                       int64_t ldv, double *y, int64_t ldy, double *lse);
void boa_attention_bf16(int64_t batch, int64_t time, int64_t heads, int64_t kv_heads, int64_t d,
                        int32_t causal, int64_t window, const int32_t *document_starts,
                        const uint16_t *q, int64_t ldq, const uint16_t *k, int64_t ldk,
                        const uint16_t *v, int64_t ldv, uint16_t *y, int64_t ldy, float *lse);

/// Gradients of q, k, v from those of y; probabilities are computed again from
/// lse. dq, dk, dv are overwritten.
void boa_attention_grad_f32(int64_t batch, int64_t time, int64_t heads, int64_t kv_heads, int64_t d,
                            int32_t causal, int64_t window, const int32_t *document_starts,
                            const float *q, int64_t ldq, const float *k, int64_t ldk,
                            const float *v, int64_t ldv, const float *y, int64_t ldy,
                            const float *lse, const float *dy, int64_t lddy, float *dq,
                            int64_t lddq, float *dk, int64_t lddk, float *dv, int64_t lddv);
void boa_attention_grad_f64(int64_t batch, int64_t time, int64_t heads, int64_t kv_heads, int64_t d,
                            int32_t causal, int64_t window, const int32_t *document_starts,
                            const double *q, int64_t ldq, const double *k, int64_t ldk,
                            const double *v, int64_t ldv, const double *y, int64_t ldy,
                            const double *lse, const double *dy, int64_t lddy, double *dq,
                            int64_t lddq, double *dk, int64_t lddk, double *dv, int64_t lddv);
void boa_attention_grad_bf16(int64_t batch, int64_t time, int64_t heads, int64_t kv_heads,
                             int64_t d, int32_t causal, int64_t window,
                             const int32_t *document_starts, const uint16_t *q, int64_t ldq,
                             const uint16_t *k, int64_t ldk, const uint16_t *v, int64_t ldv,
                             const uint16_t *y, int64_t ldy, const float *lse, const uint16_t *dy,
                             int64_t lddy, uint16_t *dq, int64_t lddq, uint16_t *dk, int64_t lddk,
                             uint16_t *dv, int64_t lddv);

#ifdef __cplusplus
}
#endif

#endif // BOA_RUNTIME_KERNELS_ATTENTION_H
