//===- StepSize.h - What bounds the time to compile -------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Passes behind the model phase enumerate the program (Enumeration.h): their time is proportional
// to layers x micro-batches.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_PASSES_SCHEDULE_STEPSIZE_H
#define BOA_PASSES_SCHEDULE_STEPSIZE_H

#include "dialect/Boa.h"

namespace boa {

/// The time that passes take for each layer of each micro-batch.
inline constexpr double kSecondsOfLayerRun = 0.2e-3;

/// Layers and stages of a module x micro-batches of a step.
int64_t countLayerRuns(mlir::ModuleOp module);

/// Refuses a module whose steps are too long, in front of the first pass that enumerates them:
/// all stages have been added by then.
mlir::LogicalResult checkLayerRuns(mlir::ModuleOp module);

} // namespace boa

#endif // BOA_PASSES_SCHEDULE_STEPSIZE_H
