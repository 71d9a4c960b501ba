//===- report.h - What the page of a plan or run shows ----------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The numbers of a page, before anything is drawn. `boa plan`, `boa simulate` and a training fill
// it; parts that nobody fills are left out of the page.
//
// Ownership: names of trace events belong to the program, which must outlive the report.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_VIEW_REPORT_H
#define BOA_RUNTIME_VIEW_REPORT_H

#include "runtime/abi/program.h"
#include "runtime/device/simulated.h"
#include "runtime/engine/engine.h"
#include "runtime/view/loss_curve.h"
#include "runtime/view/wear.h"

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

namespace boa {

/// A step as it was simulated, or as it ran: one of the last.
struct StepRun {
  std::string name; // "simulated", "predicted", "measured"
  double seconds = 0;
  int64_t begin_ns = 0, end_ns = 0;
  std::vector<TraceEvent> events;       // some may lie outside
  std::deque<MemoryEvent> memory;       // from before it on
  Traffic moved;                        // of a step, on average
  std::vector<LinkUse> uses;            // of a simulation
  std::map<std::string, double> waited; // seconds of a step that compute waited, by link
};

/// The reason of a setting of the plan.
struct SettingReason {
  std::string setting, value, why;
};

/// A plan with another batch.
struct BatchPoint {
  std::string order; // "vertical"
  int64_t batch = 0;
  double tokens_per_second = 0;
  /// Tokens a second if only compute, or only the busiest other link, took time.
  double compute_roof = 0, traffic_roof = 0;
};

struct Report {
  const Program *program = nullptr;
  std::string what;  // "Plan", "Simulation", "Training"
  std::string block; // the plan in the language; may be empty
  std::vector<SettingReason> reasons;
  std::vector<StepRun> runs; // the first is the one that the page is about
  double bound_seconds = 0;  // 0: not known
  std::string bound_link;
  bool bound_of_machine = false; // of all plans, not only of this one
  std::vector<BatchPoint> curve;
  Losses losses;
  Writes writes;
  std::string figures;            // the tables of --verbose
  std::vector<std::string> notes; // sentences: energy, a budget of tokens, warnings
};

/// The seconds that each link works in the simulated step if it never waits and shares nothing.
/// Kernels and updates that share processors are one link. The longest first.
std::vector<std::pair<std::string, double>> AloneSeconds(const Program &, const StepRun &);

/// A page that needs no other file and no network. All text is escaped, and it is well-formed XML.
std::string FormatReport(const Report &);

} // namespace boa

#endif // BOA_RUNTIME_VIEW_REPORT_H
