//===- attention_avx512bf16.cpp - Attention tasks for pairs of bf16 -------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#define BOA_VECTOR_BYTES 64
#include "runtime/kernels/attention_impl.h"

extern const boa::AttentionTasks<uint16_t> kAttentionAvx512Bf16;
const boa::AttentionTasks<uint16_t> kAttentionAvx512Bf16 = kTasks<Pair, uint16_t>;
