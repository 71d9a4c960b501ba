//===- GenericText.h - Mutations of IR in generic form ----------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The generic form says all that a module is, in one syntax: operands, attributes, regions and
// types of any op. So a change of its text is any change that a person or a tool may make. The
// custom forms could not even write most of these.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_TEST_PASSES_RANDOM_GENERICTEXT_H
#define BOA_TEST_PASSES_RANDOM_GENERICTEXT_H

#include "test/passes/random/Random.h"

#include <string>

namespace boa::random {

/// `text` after one to three changes; `changes` says which. Most still parse.
std::string mutateText(const std::string &text, Random &random, std::string &changes);

} // namespace boa::random

#endif // BOA_TEST_PASSES_RANDOM_GENERICTEXT_H
