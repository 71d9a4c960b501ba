//===- charts.h - The pictures of a page ------------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_VIEW_CHARTS_H
#define BOA_RUNTIME_VIEW_CHARTS_H

#include "runtime/view/report.h"

namespace boa {

/// Each resource over one step: how much of each moment it was busy, and for what.
std::string DrawTimeline(const Program &, const StepRun &);
/// Each memory over one step by role, under the allocated bytes and the limit.
std::string DrawMemory(const Program &, const StepRun &);
/// The seconds that each link must work, beside the step and the bound.
std::string DrawBound(const Report &);
/// The bytes of a step by link and role.
std::string DrawTraffic(const Program &, const StepRun &);
/// Tokens a second over the batch, under their roofs.
std::string DrawCurve(const std::vector<BatchPoint> &, int64_t batch);

/// The loss of training and validation over the steps.
std::string DrawLosses(const Losses &);

} // namespace boa

#endif // BOA_RUNTIME_VIEW_CHARTS_H
