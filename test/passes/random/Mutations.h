//===- Mutations.h - Faults put into a compiled program ---------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_TEST_PASSES_RANDOM_MUTATIONS_H
#define BOA_TEST_PASSES_RANDOM_MUTATIONS_H

#include "test/passes/random/Interpreter.h"
#include "test/passes/random/Random.h"

namespace boa::random {

/// The kinds of mutations, in words.
std::vector<std::string> mutationKinds();

/// One mutation of a kind in a module of the storage phase, which showed `seen`; false: there
/// is no place for it. The verifiers of ops may refuse what comes of it.
bool mutate(mlir::ModuleOp module, llvm::StringRef kind, const Observations &seen, Random &random);

} // namespace boa::random

#endif // BOA_TEST_PASSES_RANDOM_MUTATIONS_H
