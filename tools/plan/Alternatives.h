//===- Alternatives.h - What other plans would take -------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_TOOLS_PLAN_ALTERNATIVES_H
#define BOA_TOOLS_PLAN_ALTERNATIVES_H

#include "runtime/view/report.h"
#include "tools/plan/Search.h"

namespace boa {

/// One for each setting of the plan block. The spec gives it, or a step takes longer with other
/// values. Each other value is a trial.
std::vector<SettingReason> compareAlternatives(Trials &trials, const FoundPlan &found);

/// The plan with other batches, in both orders. Batches that do not fit are left out. `choice`:
/// without places the roles stay where the spec has them.
std::vector<BatchPoint> throughputByBatch(Trials &trials, const Choice &choice);

} // namespace boa

#endif // BOA_TOOLS_PLAN_ALTERNATIVES_H
