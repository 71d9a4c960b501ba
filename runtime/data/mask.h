//===- mask.h - Sequences with masked tokens --------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Devlin et al. 2018: of the positions to predict, 80% show the mask token, 10% a random one and
// 10% the original. Every sequence predicts round(probability * context) positions, and at least
// one. So every sequence has a loss, and the same weight in the mean.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_DATA_MASK_H
#define BOA_RUNTIME_DATA_MASK_H

#include <cstdint>

namespace boa {

struct MaskOptions {
  double probability = 0.15;
  int64_t token = 0;
  int64_t tokens = 256; // that a random one is of
};

/// Masks a sequence in place. Its targets are the tokens that were there, and -1 elsewhere. The
/// result is a function of the key.
void MaskTokens(const MaskOptions &, uint64_t key, int64_t context, int32_t *tokens,
                int32_t *targets);

} // namespace boa

#endif // BOA_RUNTIME_DATA_MASK_H
