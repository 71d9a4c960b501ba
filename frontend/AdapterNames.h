//===- AdapterNames.h - Parameters by the names of PEFT ---------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The settings of adapters name parameters in three ways. The first that matches holds.
//
//   - "all-linear", of targets: the weights of all `linear`, but not that which makes the logits.
//   - "block.*_w": a pattern of STAGE.PARAM, as everywhere in a spec.
//   - "q_proj": a module of the published weights, by its whole name or the end of it. The name of
//     a parameter's tensor, which stands behind `as`, begins with its module. As in PEFT, the end
//     is in whole words for targets, and may begin within a word for modules_to_save.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_FRONTEND_ADAPTERNAMES_H
#define BOA_FRONTEND_ADAPTERNAMES_H

#include "frontend/PatternChecker.h"

namespace boa::frontend {

/// The weights that `targets` names. Reports a name that means none of them, and lists those that
/// there are.
NamedParams readTargets(const Expr &targets, CheckContext context, const ModelSpec &model);

/// The parameters that `modules_to_save` names: all of a module. Errors as of targets.
NamedParams readModulesToSave(const Expr &modules, CheckContext context, const ModelSpec &model);

} // namespace boa::frontend

#endif // BOA_FRONTEND_ADAPTERNAMES_H
