//===- Passes.h - Programs through the passes -------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_TEST_PASSES_RANDOM_PASSES_H
#define BOA_TEST_PASSES_RANDOM_PASSES_H

#include "test/passes/random/Generator.h"

#include "mlir/Pass/Pass.h"

#include <functional>
#include <map>

namespace boa::random {

/// A pass with its options.
struct Step {
  std::string name;
  std::function<std::unique_ptr<mlir::Pass>()> make;
};

/// Those that a program is sent through: in the pipeline's order, some left out.
std::vector<Step> choosePasses(Random &random);

/// Runs one pass, and the verifiers of ops after it. `said`: its errors.
bool runPass(mlir::ModuleOp module, const Step &step, std::string &said);

std::string print(mlir::ModuleOp module);

/// What became of programs.
struct Tally {
  std::map<Kind, int64_t> programs, whole, meaningless;
  std::map<std::string, int64_t> refused;  // by pass
  std::map<std::string, int64_t> messages; // by their first words
  int64_t plainRefused = 0, takenUp = 0, mended = 0;
};

/// Generates and compiles the program of a seed, and runs it after each pass. Returns what
/// went wrong, in full; empty: nothing. `left` is what it became, null if it was refused.
std::string checkProgram(mlir::MLIRContext &context, uint64_t seed, Tally &tally,
                         mlir::OwningOpRef<mlir::ModuleOp> *left = nullptr);

/// What became of mutants, by kind.
struct Fates {
  int64_t byOps = 0, byPass = 0, equivalent = 0, bad = 0;
};
using FatesByKind = std::map<std::string, Fates>;

/// Makes `count` mutants of a program that verifies. Returns what was accepted though it
/// computes something else, or breaks a rule; empty: nothing.
std::string checkMutants(mlir::ModuleOp module, int64_t count, Random &random, FatesByKind &fates);

} // namespace boa::random

#endif // BOA_TEST_PASSES_RANDOM_PASSES_H
