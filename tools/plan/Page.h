//===- Page.h - A plan, its bound and its reasons, as text ------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_TOOLS_PLAN_PAGE_H
#define BOA_TOOLS_PLAN_PAGE_H

#include "runtime/view/wear.h"
#include "tools/plan/Search.h"

namespace boa {

struct PageOptions {
  double tokens = 0; // a budget; 0: none
};

/// What the step takes and what bounds it, the time and energy of the run and of a budget of
/// tokens, the plan block, the place of each role with its reason, what more of each resource would
/// gain, and how it wears the SSDs.
std::string formatPage(Trials &trials, const Found &found, const PageOptions &options);

/// The time of a budget of tokens, and the energy of the run, as sentences without a full stop.
std::vector<std::string> costsOf(const Found &found, const PageOptions &options);

/// The bytes that a step of the plan writes to each SSD.
Writes writesOf(const Trial &trial);

} // namespace boa

#endif // BOA_TOOLS_PLAN_PAGE_H
