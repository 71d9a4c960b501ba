//===- PlanReport.h - The reports of plans and simulations ------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_TOOLS_PLAN_PLANREPORT_H
#define BOA_TOOLS_PLAN_PLANREPORT_H

#include "tools/plan/PlanSummary.h"
#include "tools/plan/Search.h"

#include <string>

namespace boa {

/// The page of a plan that was chosen, with the reason of each setting.
absl::Status writePlanReport(const std::string &path, Trials &trials, const FoundPlan &found,
                             const PlanSummaryOptions &options);

/// The page of a simulated spec, under its own plan. `request`: the one that was compiled.
/// `withCurve`: with other batches, too.
absl::Status writeSimulationReport(const std::string &path, const CompileRequest &request,
                                   const Program &program, SimulatedRun run, bool withCurve);

} // namespace boa

#endif // BOA_TOOLS_PLAN_PLANREPORT_H
