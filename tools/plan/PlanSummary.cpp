//===- PlanSummary.cpp ----------------------------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "tools/plan/PlanSummary.h"

#include "runtime/support/units.h"
#include "tools/plan/RoleTraffic.h"
#include "tools/plan/ShadowPrices.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "llvm/ADT/StringRef.h"

#include <algorithm>
#include <cmath>

namespace boa {
namespace {

class PlanSummary {
public:
  PlanSummary(Trials &trials, const FoundPlan &found, const PlanSummaryOptions &options)
      : trials(trials), found(found), options(options), program(found.trial.program),
        tokens(program.train.batch * program.model.context) {}

  std::string run() {
    addHead();
    for (const std::string &line : costsOf(found, options))
      absl::StrAppend(&text, "  ", line, "\n");
    absl::StrAppend(&text, "\n", trials.block(found.choice), "\n");
    addRoles();
    addPrices();
    addWear();
    return text;
  }

private:
  double seconds() const { return found.trial.seconds; }
  double runSeconds() const { return seconds() * double(program.train.steps); }
  double budgetSeconds() const { return seconds() * options.tokens / double(tokens); }

  void addHead() {
    absl::StrAppendFormat(
        &text, "%s on %s: it fits\n  a step of %d tokens takes %s, %s tokens/s; %s\n",
        program.model.name, program.machine.name, tokens, FormatSeconds(seconds()),
        FormatCount(double(tokens) / seconds()),
        program.train.steps == 0
            ? "a training counts the steps of " + DescribeSteps(program.train)
            : absl::StrCat(DescribeSteps(program.train), " take ", FormatSeconds(runSeconds())));
    absl::StrAppendFormat(&text,
                          "  no plan is faster than %s, bound by %s; this one takes %.2f times "
                          "that\n",
                          FormatSeconds(found.bound.seconds), found.bound.link,
                          seconds() / found.bound.seconds);
    if (found.horizontal > 0 && found.choice.order == Schedule::vertical)
      absl::StrAppendFormat(&text, "  %s %s, %.2f times as long\n",
                            found.isHorizontalPlan ? "the best one tried in horizontal order takes"
                                                   : "no plan in horizontal order is faster than",
                            FormatSeconds(found.horizontal), found.horizontal / seconds());
    if (std::optional<double> hiding = tokensThatHideSsd(found.trial);
        hiding && found.choice.order == Schedule::vertical)
      absl::StrAppend(&text, std::isinf(*hiding)
                                 ? "  no number of tokens a step hides the SSD with these places\n"
                                 : absl::StrCat("  from ", FormatCount(std::ceil(*hiding)),
                                                " tokens a step on, compute hides the SSD\n"));
    absl::StrAppendFormat(&text, "  %d plans compiled, %d of them simulated\n", found.compiled,
                          found.simulated);
  }

  void addRoles() {
    absl::StrAppendFormat(&text, "  %-20s %11s %11s %11s %11s %11s\n", "each step moves", "size",
                          "from SSD", "to SSD", "to device", "to host");
    auto bytes = [](double count) { return count > 0 ? FormatBytes(count) : std::string("-"); };
    for (const RoleTraffic &use : trafficByRole(program)) {
      std::string role = use.role;
      std::replace(role.begin(), role.end(), '_', ' ');
      absl::StrAppendFormat(&text, "  %-20s %11s %11s %11s %11s %11s\n", role, bytes(use.bytes),
                            bytes(use.read), bytes(use.written), bytes(use.toDevice),
                            bytes(use.toHost));
    }
    const Room all = roomOf(program.machine);
    auto of = [](double used, double room) {
      return std::isinf(room) ? FormatBytes(used)
                              : absl::StrCat(FormatBytes(used), " of ", FormatBytes(room));
    };
    if (IsSeparate(program.machine))
      absl::StrAppendFormat(&text, "  memory: device %s, host %s\n",
                            of(double(program.arena_device), all.device),
                            of(double(program.arena_host), all.host));
    else
      absl::StrAppendFormat(&text, "  memory: %s\n",
                            of(double(program.arena_device + program.arena_host), all.host));
  }

  void addPrices() {
    absl::StrAppendFormat(&text, "\n  %-36s %11s %8s\n", "with a tenth more of", "a step takes",
                          "gain");
    for (const ShadowPrice &price : shadowPricesOf(trials, found))
      absl::StrAppendFormat(&text, "  %-36s %12s %7.1f%%\n", price.resource,
                            FormatSeconds(price.seconds), 100 * (1 - price.seconds / seconds()));
  }

  void addWear() {
    const Writes writes = writesOf(found.trial);
    text += FormatWear(program, writes);
    const double longest = std::max(runSeconds(), options.tokens > 0 ? budgetSeconds() : 0);
    if (std::string worn = FindWornOut(WearOf(program, writes), longest); !worn.empty())
      absl::StrAppend(&text, "  warning: ", worn, "\n");
  }

  Trials &trials;
  const FoundPlan &found;
  const PlanSummaryOptions &options;
  const Program &program;
  const int64_t tokens;
  std::string text;
};

} // namespace

std::string formatPlanSummary(Trials &trials, const FoundPlan &found,
                              const PlanSummaryOptions &options) {
  return PlanSummary(trials, found, options).run();
}

std::vector<std::string> costsOf(const FoundPlan &found, const PlanSummaryOptions &options) {
  const Program &program = found.trial.program;
  const double ofToken =
      found.trial.seconds / (double(program.train.batch) * double(program.model.context));
  std::vector<std::string> lines;
  if (options.tokens > 0)
    lines.push_back(absl::StrCat(FormatCount(options.tokens), " tokens take ",
                                 FormatSeconds(ofToken * options.tokens)));
  const double device = double(program.machine.device_power);
  const double host = double(program.machine.host_power);
  const double watts = device + host;
  if (watts == 0)
    return lines;
  const char *drawer = host == 0     ? "the device alone"
                       : device == 0 ? "the host alone"
                                     : "the machine";
  std::string line = absl::StrCat(drawer, " draws ", FormatWatts(watts), ": ",
                                  FormatEnergy(watts * ofToken * 1e6), " a million tokens");
  if (program.train.steps > 0)
    absl::StrAppend(&line, ", ",
                    FormatEnergy(watts * found.trial.seconds * double(program.train.steps)),
                    " all steps");
  if (options.tokens > 0)
    absl::StrAppend(&line, ", ", FormatEnergy(watts * ofToken * options.tokens), " the ",
                    FormatCount(options.tokens), " tokens");
  lines.push_back(line);
  return lines;
}

Writes writesOf(const Trial &trial) {
  Writes writes;
  writes.steps = 1;
  writes.seconds = trial.seconds;
  writes.by_role = trial.program.TrafficOfStep(/*earlier=*/2).written;
  double all = 0, dealt = 0;
  for (const auto &[role, bytes] : writes.by_role)
    all += double(bytes);
  // The last step has also what drains behind it. Its paths share the bytes as all steps do.
  std::vector<double> shares;
  for (const LinkUse &use : trial.uses)
    if (llvm::StringRef(use.name).starts_with("ssd ") &&
        llvm::StringRef(use.name).ends_with(" write")) {
      shares.push_back(double(use.bytes));
      dealt += double(use.bytes);
    }
  for (size_t path = 0; path < shares.size() && dealt > 0; ++path)
    writes.by_path[int32_t(path)] = int64_t(std::llround(all * shares[path] / dealt));
  return writes;
}

} // namespace boa
