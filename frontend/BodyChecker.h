//===- BodyChecker.h - The body of one stage --------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_FRONTEND_BODYCHECKER_H
#define BOA_FRONTEND_BODYCHECKER_H

#include "frontend/Checker.h"

namespace boa::frontend {

/// The shapes of a stage's arguments and of its results.
struct Signature {
  std::vector<Shape> arguments;
  std::vector<Shape> results;
};

/// For each stage, which of its parameters some body uses.
using ParamUsage = std::vector<std::vector<bool>>;

/// Checks the body of stage `index` and fills its values and operations in
/// `spec`, whose stages already have their parameters; notes in `usage` which
/// parameters the body takes.
void checkBody(const ModelSyntax &model, size_t index, const Signature &signature,
               const Constants &constants, ModelSpec &spec, ParamUsage &usage,
               CheckContext context);

} // namespace boa::frontend

#endif // BOA_FRONTEND_BODYCHECKER_H
