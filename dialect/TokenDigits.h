//===- TokenDigits.h - A token beside its row -------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_DIALECT_TOKENDIGITS_H
#define BOA_DIALECT_TOKENDIGITS_H

#include <cstdint>

namespace boa {

/// The number of digits of a token behind each row that goes from block to block of a table
/// (boa.embedding_block).
inline constexpr int64_t kTokenDigits = 3;

} // namespace boa

#endif // BOA_DIALECT_TOKENDIGITS_H
