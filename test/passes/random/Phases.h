//===- Phases.h - The passes of a program, one by one -----------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The pipeline as a list. A test can begin at any pass, and leave out the verifiers that close
// phases.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_TEST_PASSES_RANDOM_PHASES_H
#define BOA_TEST_PASSES_RANDOM_PHASES_H

#include "passes/Pipeline.h"

#include <string>
#include <vector>

namespace boa::random {

struct PhasePass {
  std::string text; // as boa-opt takes it in a pipeline for a module
  bool beginsPhase = false, closesPhase = false;
};

/// The passes of buildPipeline, in its order. On CUDA, the program has its own products, and its
/// code is not translated to PTX.
const std::vector<PhasePass> &passesOf(Purpose purpose, DeviceKind device);

/// Parts of texts of passes. A mutant begins before a pass that has one of them.
llvm::ArrayRef<llvm::StringRef> beginnings();

/// Passes of passesOf as one pipeline for a module.
std::string pipelineOf(const std::vector<PhasePass> &passes);

} // namespace boa::random

#endif // BOA_TEST_PASSES_RANDOM_PHASES_H
