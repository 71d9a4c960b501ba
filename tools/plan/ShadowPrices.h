//===- ShadowPrices.h - What more of each resource would gain ---*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_TOOLS_PLAN_SHADOWPRICES_H
#define BOA_TOOLS_PLAN_SHADOWPRICES_H

#include "tools/plan/Search.h"

namespace boa {

/// The shadow price of a resource: the gain from a tenth more of it. For a rate, the plan stays the
/// same. More memory is filled anew, also with larger micro-batches or more kept layers.
struct ShadowPrice {
  std::string resource;
  double seconds = 0; // of a step then
};

/// The shadow prices of all resources that gain at least 0.05%.
std::vector<ShadowPrice> shadowPricesOf(Trials &trials, const FoundPlan &found);

} // namespace boa

#endif // BOA_TOOLS_PLAN_SHADOWPRICES_H
