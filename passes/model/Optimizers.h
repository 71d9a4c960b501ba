//===- Optimizers.h - The optimizers of the language ------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_PASSES_MODEL_OPTIMIZERS_H
#define BOA_PASSES_MODEL_OPTIMIZERS_H

#include "dialect/Config.h"

namespace boa {

/// Puts the boa.optimizer of these settings at the end of the module. Its context has the dialects
/// arith and math.
OptimizerOp createOptimizer(mlir::ModuleOp module, const OptimizerSettings &settings);

} // namespace boa

#endif // BOA_PASSES_MODEL_OPTIMIZERS_H
