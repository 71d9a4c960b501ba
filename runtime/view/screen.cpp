//===- screen.cpp - What a run says before its first step -----------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/view/screen.h"

#include "runtime/data/data.h"
#include "runtime/engine/engine.h"
#include "runtime/support/units.h"
#include "runtime/view/tables.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"

namespace boa {
namespace {

/// "86 M parameters, 12 M of them frozen".
std::string CountParameters(const Program &program) {
  int64_t all = 0, frozen = 0;
  for (const Group &group : program.groups)
    for (const Parameter &parameter : group.parameters) {
      const int64_t elements = group.count * parameter.elements();
      all += elements;
      frozen += IsFrozen(program.storages[size_t(group.weights)]) ? elements : 0;
    }
  return absl::StrCat(FormatCount(all), " parameters",
                      frozen ? absl::StrCat(", ", FormatCount(frozen), " of them frozen") : "");
}

std::string Limit(int64_t limit) {
  return limit > 0 ? absl::StrCat(" of ", FormatBytes(limit)) : " (no limit)";
}

/// Further lines of a fact stand below its first one. An empty fact has no row.
std::string Row(const char *name, absl::string_view lines) {
  std::string text;
  for (absl::string_view line : absl::StrSplit(lines, '\n', absl::SkipEmpty()))
    absl::StrAppendFormat(&text, "%-7s %s\n", text.empty() ? name : "", line);
  return text;
}

/// Steps of epochs may not be counted yet.
std::string CountSteps(const TrainSettings &train) {
  return train.epochs == 0 ? absl::StrCat(train.steps)
         : train.steps == 0
             ? absl::StrCat(DescribeSteps(train), ", in steps")
             : absl::StrReplaceAll(DescribeSteps(train), {{" steps", ""}, {" step", ""}});
}

} // namespace

std::string FormatScreen(const Program &p, const RunFacts &facts) {
  std::string data, notes;
  for (absl::string_view line : absl::StrSplit(facts.data, '\n', absl::SkipEmpty()))
    absl::StrAppend(absl::StartsWith(line, "note: ") ? &notes : &data, line, "\n");
  if (const std::string note = DescribeUnusedTokens(DataOptions(p)); !note.empty() && !data.empty())
    absl::StrAppend(&notes, note, "\n");
  const int64_t sequences = p.MicroBatch() * p.MicroBatches();
  return absl::StrCat(
      Row("model", absl::StrCat(p.model.name, ": ", CountParameters(p))), Row("data", data),
      Row("steps", absl::StrFormat("%s of %d sequence%s (%d x %d) of %d tokens",
                                   CountSteps(p.train), sequences, sequences == 1 ? "" : "s",
                                   p.MicroBatches(), p.MicroBatch(), p.model.context)),
      Row("plan", p.ScheduleInWords()),
      Row("memory",
          absl::StrCat("device ", FormatBytes(p.arena_device), Limit(p.machine.device_memory),
                       ", host ", FormatBytes(p.arena_host), Limit(p.machine.host_memory))),
      Row("state", facts.state), Row("speed", facts.speed), notes);
}

std::string FormatPlaces(const Program &program) {
  return absl::StrCat(FormatStorages(program), "\n  beside the memory at most ",
                      FormatBytes(RunAheadBytes(program)), " of commands that wait\n");
}

std::string FormatPlan(const Program &program) {
  const Traffic step = program.TrafficOfStep(/*earlier=*/2);
  return absl::StrCat(FormatScreen(program), FormatPlaces(program),
                      FormatTraffic("each step moves", {{"from SSD", step.read},
                                                        {"to SSD", step.written},
                                                        {"to device", step.to_device},
                                                        {"to host", step.to_host}}));
}

} // namespace boa
