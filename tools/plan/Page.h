//===- Page.h - A plan, its bound and its reasons, as text ------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_TOOLS_PLAN_PAGE_H
#define BOA_TOOLS_PLAN_PAGE_H

#include "tools/plan/Search.h"

namespace boa {

/// What the step takes and what bounds it, the plan block, the place of each role with its reason,
/// what more of each resource would gain, and the bytes that wear the SSD.
std::string formatPage(Trials &trials, const Found &found);

} // namespace boa

#endif // BOA_TOOLS_PLAN_PAGE_H
