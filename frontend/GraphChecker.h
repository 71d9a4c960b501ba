//===- GraphChecker.h - How the stages of a model are connected -*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_FRONTEND_GRAPHCHECKER_H
#define BOA_FRONTEND_GRAPHCHECKER_H

#include "frontend/BodyChecker.h"

namespace boa::frontend {

/// Finds what the arguments of all stages take, and notes it in `spec`: the first stage takes the
/// tokens, each other what the one before returns, the last also the targets. Further arguments
/// name the earlier stage whose result they take. Layers return what they take. Every stage is
/// taken by a later one. Corrects a signature where that avoids a second error.
void checkGraph(const ModelSyntax &model, const Constants &constants, ModelSpec &spec,
                std::vector<Signature> &signatures, CheckContext context);

} // namespace boa::frontend

#endif // BOA_FRONTEND_GRAPHCHECKER_H
