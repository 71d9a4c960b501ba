//===- outcome.cpp - What a run says behind its last step -----------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/view/outcome.h"

#include "runtime/support/units.h"
#include "runtime/view/tables.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include <cmath>

namespace boa {
namespace {

int64_t Sum(const std::map<std::string, int64_t> &roles) {
  int64_t sum = 0;
  for (const auto &[role, bytes] : roles)
    sum += bytes;
  return sum;
}

/// "step 20: loss 1.5000, validation loss 1.7500, at best 1.5000 after step 10".
std::string FormatLosses(const Outcome &outcome) {
  std::string text = absl::StrFormat("step %d: loss %.4f", outcome.last_step, outcome.loss);
  if (!outcome.validated)
    return text;
  const auto &[step, loss] = *outcome.validated;
  absl::StrAppendFormat(&text, ", validation loss %.4f", loss);
  if (step != outcome.last_step)
    absl::StrAppend(&text, " after step ", step);
  if (outcome.best && outcome.best->first != step)
    absl::StrAppendFormat(&text, ", at best %.4f after step %d", outcome.best->second,
                          outcome.best->first);
  return text;
}

std::string FormatMoved(const Outcome &outcome) {
  const Traffic &moved = outcome.moved, &planned = outcome.predicted;
  std::string text = FormatTraffic("SSD traffic", {{"read", moved.read},
                                                   {"planned", planned.read},
                                                   {"written", moved.written},
                                                   {"planned", planned.written}});
  if (!text.empty() && outcome.measured)
    absl::StrAppendFormat(&text, "  %-22s %11s %11s %11s\n", "as the system counts",
                          FormatBytes(outcome.disk_read), "", FormatBytes(outcome.disk_written));
  return text + FormatTraffic("copies", {{"to device", moved.to_device},
                                         {"planned", planned.to_device},
                                         {"to host", moved.to_host},
                                         {"planned", planned.to_host}});
}

} // namespace

void Outcome::Validated(int64_t step, double loss) {
  validated = {step, loss};
  if (!best || loss <= best->second)
    best = validated;
}

void Outcome::TakeMemory(const Program &program, const Engine &engine) {
  run_ahead_bytes = engine.PeakRunAheadBytes();
  if (!IsSeparate(program.machine)) {
    memories = {{"", engine.PeakBytes(), engine.ArenaBytes()}};
    return;
  }
  memories = {{"device ", engine.PeakBytes(BOA_DEVICE), engine.ArenaBytes(BOA_DEVICE)},
              {"host ", engine.PeakBytes(BOA_HOST), engine.ArenaBytes(BOA_HOST)}};
}

std::string FormatSummary(const Outcome &outcome) {
  std::string text =
      absl::StrFormat("%d step%s in %s, %s tokens/s", outcome.steps, outcome.steps == 1 ? "" : "s",
                      FormatSeconds(outcome.seconds),
                      FormatCount(outcome.seconds > 0 ? outcome.tokens / outcome.seconds : 0));
  const int64_t read = Sum(outcome.moved.read), written = Sum(outcome.moved.written);
  if (read > 0 || written > 0)
    absl::StrAppend(&text, "; ", FormatBytes(read), " read from SSD, ", FormatBytes(written),
                    " written");
  if (outcome.measured)
    absl::StrAppend(&text, "; resident at most ", FormatBytes(outcome.resident_bytes));
  text += '\n';
  if (!std::isnan(outcome.loss))
    absl::StrAppend(&text, FormatLosses(outcome), "\n");
  if (!outcome.state.empty())
    absl::StrAppend(&text, "step ", outcome.last_step, " is committed in ", outcome.state, "\n");
  if (!outcome.saved.empty())
    absl::StrAppend(&text, "weights saved to ", outcome.saved, "\n");
  return text;
}

std::string FormatMeasures(const Program &program, const Outcome &outcome) {
  std::string text =
      absl::StrCat(FormatMoved(outcome), FormatWear(program, outcome.writes()), "\n");
  for (const Outcome::Memory &memory : outcome.memories)
    absl::StrAppendFormat(&text, "  %smemory in use at most %s of %s allocated\n", memory.name,
                          FormatBytes(memory.peak_bytes), FormatBytes(memory.allocated_bytes));
  absl::StrAppendFormat(&text, "  commands that waited took at most %s of %s\n",
                        FormatBytes(outcome.run_ahead_bytes), FormatBytes(RunAheadBytes(program)));
  return text;
}

} // namespace boa
