//===- nearest.h - The word that was meant ----------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Suggestions for misspelt words, for the language and for the command line. A
// library of its own, without dependences: both the frontend, which needs no
// runtime, and trainers, which have no frontend, link it.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_SUPPORT_NEAREST_H
#define BOA_RUNTIME_SUPPORT_NEAREST_H

#include <string>
#include <string_view>
#include <vector>

namespace boa {

/// The one of `words` that `word` is probably meant to be, or "". One edit is a
/// letter more, less or other, or a swap of neighbours.
std::string NearestWord(std::string_view word, const std::vector<std::string> &words);

} // namespace boa

#endif // BOA_RUNTIME_SUPPORT_NEAREST_H
