//===- Checker.h - From what was written to what is meant -------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_FRONTEND_CHECKER_H
#define BOA_FRONTEND_CHECKER_H

#include "frontend/AST.h"
#include "frontend/ExprEvaluator.h"
#include "frontend/Spec.h"

#include <optional>

namespace boa::frontend {

/// The texts and the diagnostics, which all parts of the checker share.
struct CheckContext {
  const Sources &sources;
  Diagnostics &diagnostics;
};

/// Checks a program that parsed without an error: one model, one train block
/// that names it, at most one machine. None where an error was reported.
std::optional<Spec> check(const Program &program, const Sources &sources, Diagnostics &diagnostics);

/// A file of a machine alone was given for its sake: its machine replaces those of other files.
void chooseMachine(Program &program);
/// The same of a plan. Settings of the plan in a train block count as a plan of another file.
void choosePlan(Program &program);

/// Values of a model's constants, in order: each may use those before it.
Constants checkConstants(const ModelSyntax &model, CheckContext context);

/// Constants that nothing uses in a program without options: an option may replace the only
/// use. The data uses `vocab` and `context`.
std::vector<Name> findUnusedConstants(const Program &program);

/// Names, shapes and order of a model's stages (ModelChecker.cpp).
ModelSpec checkModel(const ModelSyntax &model, const Constants &constants, CheckContext context);

/// Reads the train block and the plan into `spec`, whose `shape` is known (TrainChecker.cpp).
void checkTrain(const Program &program, const Constants &constants, CheckContext context,
                Spec &spec);

/// Reads a machine (TrainChecker.cpp).
void checkMachine(const MachineSyntax &syntax, CheckContext context, MachineSettings &machine);

} // namespace boa::frontend

#endif // BOA_FRONTEND_CHECKER_H
