//===- Phases.h - The passes of a program, one by one -----------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What buildPipeline puts together, for a CPU, as a list: so that a program may begin anywhere in
// it, and the verifiers that close phases may be left out.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_TEST_PASSES_RANDOM_PHASES_H
#define BOA_TEST_PASSES_RANDOM_PHASES_H

#include "passes/Pipeline.h"

#include <functional>
#include <vector>

namespace boa::random {

struct PhasePass {
  const char *name;
  std::function<void(mlir::OpPassManager &)> add;
  bool beginsPhase = false, closesPhase = false;
};

const std::vector<PhasePass> &passesOf(Purpose purpose);

} // namespace boa::random

#endif // BOA_TEST_PASSES_RANDOM_PHASES_H
