//===- mask.h - Sequences with masked tokens --------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Devlin et al. 2018: of the positions to predict, 80% show the mask token, 10% a random one and
// 10% the original. Of n positions that may be predicted, round(probability * n) are, and at least
// one, if there is one. So sequences have the same weight in the mean.
//
// Special tokens, such as [CLS] and padding, say nothing that could be learnt: their positions are
// not among them.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_DATA_MASK_H
#define BOA_RUNTIME_DATA_MASK_H

#include <cstdint>
#include <vector>

namespace boa {

struct MaskOptions {
  double probability = 0.15;
  int64_t token = 0;
  int64_t tokens = 256; // that a random one is of
};

/// Masks a sequence in place, at some of `positions`. Its targets are the tokens that were there,
/// and -1 elsewhere. The result is a function of the key.
void MaskTokens(const MaskOptions &, uint64_t key, std::vector<int64_t> positions, int64_t context,
                int32_t *tokens, int32_t *targets);

} // namespace boa

#endif // BOA_RUNTIME_DATA_MASK_H
