//===- attention_avx512.cpp - Attention tasks for AVX-512 -----------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#define BOA_VECTOR_BYTES 64
#include "runtime/kernels/attention_impl.h"
#include "runtime/kernels/cached_attention_impl.h"

extern const boa::AttentionTable kAttentionAvx512;
const boa::AttentionTable kAttentionAvx512 = {
    kTasks<float, float>,
    kTasks<double, double>,
    kTasks<float, uint16_t>,
    {CachedTask<float>, CachedTask<double>, CachedTask<uint16_t>}};
