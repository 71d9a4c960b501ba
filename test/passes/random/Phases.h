//===- Phases.h - The passes of a program, one by one -----------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What buildPipeline puts together as a list: so that a program may begin anywhere in it, and the
// verifiers that close phases may be left out.
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

/// A device of CUDA gets all optional passes of products and attention. Its code is not translated
/// to PTX.
const std::vector<PhasePass> &passesOf(Purpose purpose, DeviceKind device);

} // namespace boa::random

#endif // BOA_TEST_PASSES_RANDOM_PHASES_H
