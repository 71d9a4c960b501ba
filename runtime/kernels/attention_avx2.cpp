//===- attention_avx2.cpp - Attention tasks for AVX2 and FMA -----------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/kernels/attention_impl.h"
#include "runtime/kernels/cached_attention_impl.h"

extern const boa::AttentionTable kAttentionAvx2;
const boa::AttentionTable kAttentionAvx2 = {
    kTasks<float, float>,
    kTasks<double, double>,
    kTasks<float, uint16_t>,
    {CachedTask<float>, CachedTask<double>, CachedTask<uint16_t>}};
