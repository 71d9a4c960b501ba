//===- expected_step.cpp - What a step should take ------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/trainer/expected_step.h"

#include "runtime/device/simulated.h"
#include "runtime/support/units.h"
#include "runtime/trainer/simulate.h"
#include "runtime/view/report.h"
#include "runtime/view/svg.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace boa {

ExpectedStep ExpectStep(const Program &program, const EntryPoints &entries, int64_t steps) {
  if (!CheckSimulatedRates(program).ok())
    return {"unknown: the machine does not state its rates, boa probe measures them", ""};
  SimulateOptions options;
  options.out = nullptr;
  options.leave_last = true;
  const absl::StatusOr<SimulatedRun> run = Simulate(program, entries, options);
  if (!run.ok())
    return {absl::StrCat("unknown: ", run.status().message()), ""};
  // The first step fills memory.
  const double seconds = run->seconds.back();
  ExpectedStep expected;
  expected.speed = absl::StrCat("about ", FormatTime(seconds), " a step");
  StepRun step;
  step.uses = run->uses;
  if (const auto links = AloneSeconds(program, step); !links.empty())
    absl::StrAppendFormat(&expected.speed, ", %.2f times the bound by %s",
                          seconds / links[0].second, links[0].first);
  absl::StrAppend(&expected.speed, "; ", steps, steps == 1 ? " step in " : " steps in ",
                  FormatSeconds(seconds * double(steps)));
  if (const std::string worn =
          FindWornOut(WearOf(program, run->writes), seconds * double(program.train.steps));
      !worn.empty())
    expected.warning = absl::StrCat("warning: ", worn);
  return expected;
}

} // namespace boa
