//===- generation.h - How a text is continued -------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_ABI_GENERATION_H
#define BOA_RUNTIME_ABI_GENERATION_H

#include <algorithm>
#include <cstdint>

namespace boa {

/// Positions of a text that one call of @prefill takes. More of them would save reads of the
/// weights, but take more memory for activations.
inline int64_t PrefillRows(int64_t context) { return std::min<int64_t>(context, 256); }

} // namespace boa

#endif // BOA_RUNTIME_ABI_GENERATION_H
