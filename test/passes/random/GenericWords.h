//===- GenericWords.h - What changes of generic text put there --*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_TEST_PASSES_RANDOM_GENERICWORDS_H
#define BOA_TEST_PASSES_RANDOM_GENERICWORDS_H

#include <string>
#include <vector>

namespace boa::random {

/// At the edges of 32 and 64 bits, and of what is small.
const std::vector<std::string> &edgeNumbers();
/// Of tensors, and others.
const std::vector<std::string> &elementTypes();
/// Of the dialect's discardable attributes.
const std::vector<std::string> &attributeNames();
/// Attributes of many kinds.
const std::vector<std::string> &oddValues();
/// Whole ops, some of which nothing but the generic form can write.
const std::vector<std::string> &oddOps();

} // namespace boa::random

#endif // BOA_TEST_PASSES_RANDOM_GENERICWORDS_H
