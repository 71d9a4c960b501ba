//===- Generator.h - Programs of the step phase, from a seed ----*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A random chain of stages, of which --boa-build-step makes the plain program
// (Generator.cpp). To that statements, storages and nests are added that no model has,
// but that could be (Additions.cpp); and it is edited without regard to what it then
// computes (Edits.cpp). Beside them there are programs that begin in the storage phase
// (Buffers.cpp).
//
//===----------------------------------------------------------------------===//
#ifndef BOA_TEST_PASSES_RANDOM_GENERATOR_H
#define BOA_TEST_PASSES_RANDOM_GENERATOR_H

#include "dialect/Boa.h"
#include "test/passes/random/Random.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"

#include <string>
#include <vector>

namespace boa::random {

enum class Kind {
  plain,  // what --boa-build-step makes
  richer, // with additions: it means something, but not every pass may allow it
  edited, // who knows
  buffers // of the storage phase from the beginning
};
const char *name(Kind kind);

struct Program {
  Kind kind = Kind::plain;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  bool clipped = false; // an update waits for all gradients
  bool limited = false; // memory is
  std::vector<std::string> changes;
};

Program generate(mlir::MLIRContext &context, uint64_t seed);

/// A program of the storage phase.
mlir::OwningOpRef<mlir::ModuleOp> generateBuffers(mlir::MLIRContext &context, Random &random);

/// Each makes one change; false: there was no place for it. The module verifies after it.
bool addSomething(mlir::ModuleOp module, Random &random, std::string &what);
bool editSomething(mlir::ModuleOp module, Random &random, std::string &what);

/// The ops of some kinds in all entry points, in their order.
template <typename... Ops> std::vector<mlir::Operation *> opsOf(mlir::ModuleOp module) {
  std::vector<mlir::Operation *> ops;
  for (StepOp step : module.getOps<StepOp>())
    step.walk([&](mlir::Operation *op) {
      if (mlir::isa<Ops...>(op))
        ops.push_back(op);
    });
  return ops;
}

/// Whether the verifiers of its ops accept it, without a word.
bool verifies(mlir::ModuleOp module);

} // namespace boa::random

#endif // BOA_TEST_PASSES_RANDOM_GENERATOR_H
