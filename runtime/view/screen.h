//===- screen.h - What a run says before its first step ---------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One screen: a row for each fact, then the notes. Behind it, for those who ask (--verbose,
// simulations, plans), the table of storages.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_VIEW_SCREEN_H
#define BOA_RUNTIME_VIEW_SCREEN_H

#include "runtime/abi/program.h"

#include <string>

namespace boa {

/// What the program alone does not say. Empty texts have no row.
struct RunFacts {
  std::string data;  // the lines of Data::Describe, with its notes
  std::string state; // its directories and size
  std::string speed; // what a step should take
};

/// The rows, and the notes on the data below them.
std::string FormatScreen(const Program &, const RunFacts & = {});
/// The table of storages by role and home, and the memory beside it.
std::string FormatPlaces(const Program &);
/// All of it without a run, and the traffic of each step.
std::string FormatPlan(const Program &);

} // namespace boa

#endif // BOA_RUNTIME_VIEW_SCREEN_H
