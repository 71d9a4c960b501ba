//===- attention_avx512.cpp - Attention tasks for AVX-512 -----------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#define BOA_VECTOR_BYTES 64
#include "runtime/kernels/attention_impl.h"

BOA_ATTENTION_TABLE(kAttentionAvx512);
