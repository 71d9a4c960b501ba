//===- loss_settings.cpp - What the losses of a run depend on -------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/trainer/loss_settings.h"

#include "runtime/abi/sizes.h"
#include "runtime/data/data.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <utility>

namespace boa {
namespace {

/// As short as it can be: other bits, other words.
std::string Exact(double value) {
  char digits[32];
  return std::string(digits, std::to_chars(digits, digits + sizeof(digits), value).ptr);
}

std::string ValueOr(const Settings &settings, const std::string &key, const char *otherwise) {
  auto it = settings.find(key);
  return it == settings.end() ? otherwise : it->second;
}

using Values = std::pair<std::string, std::string>; // before and after

std::map<std::string, Values> Differences(const Settings &committed, const Settings &now) {
  Settings all = committed;
  all.insert(now.begin(), now.end());
  std::map<std::string, Values> differences;
  for (const auto &[key, unused] : all) {
    // It is recorded only where there is some.
    const char *absent = key == kAdapterDropout ? "0" : "not set";
    Values values(ValueOr(committed, key, absent), ValueOr(now, key, absent));
    if (values.first != values.second)
      differences[key] = std::move(values);
  }
  return differences;
}

std::string FormatDifference(const std::string &key, const Values &values) {
  return absl::StrCat("\n  `", key, "` was ", values.first, " and is ", values.second, " now");
}

/// A name for the settings that parameters have of their own; "" if none has any.
std::string OwnSettings(const Program &program) {
  // In the order of the model, whatever groups they are in.
  std::map<std::pair<int64_t, int64_t>, std::string> ordered;
  for (const Group &group : program.groups)
    for (const Parameter &p : group.parameters)
      if (const double usual = p.shape.size() >= 2 ? program.train.optimizer.weight_decay : 0;
          group.gradient >= 0 && (p.lr_scale != 1 || p.decay != usual))
        ordered[{group.number, p.number}] = absl::StrCat(
            group.name, ".", p.name, " ", Exact(p.lr_scale), " ", Exact(p.decay), "; ");
  std::string all;
  for (const auto &[place, text] : ordered)
    all += text;
  if (all.empty())
    return "";
  uint64_t hash = 0xcbf29ce484222325; // FNV-1a
  for (unsigned char c : all)
    hash = (hash ^ c) * 0x100000001b3;
  return absl::StrFormat("settings with fingerprint %016x", hash);
}

} // namespace

Settings CollectSettings(const Program &program, const Settings &data) {
  const TrainSettings &t = program.train;
  const OptimizerSettings &o = program.train.optimizer;
  Settings settings = {{"seed", absl::StrCat(t.seed)},
                       {"objective", WordOf(t.objective)},
                       {"vocab", absl::StrCat(program.model.vocab)},
                       {"context", absl::StrCat(program.model.context)},
                       // The loss is a mean of means, so its rounding depends on both.
                       {"micro_batch", absl::StrCat(program.MicroBatch())},
                       {"micro_batches", absl::StrCat(program.MicroBatches())},
                       {"steps", absl::StrCat(t.steps)},
                       {"weights", program.groups.empty() ? "" : program.groups[0].weight_type},
                       {"nonfinite", WordOf(t.nonfinite)},
                       {"optimizer", WordOf(o.kind)},
                       {"weight_decay", Exact(o.weight_decay)},
                       {"clip", Exact(t.clip)},
                       {"rate", WordOf(o.rate)},
                       {"peak", Exact(o.peak)},
                       {"floor", Exact(o.floor)},
                       {"warmup", absl::StrCat(o.warmup)}};
  settings.insert(data.begin(), data.end());
  if (t.compute != ComputeType::f32) // which was not said when there was nothing else
    settings["compute"] = WordOf(t.compute);
  if (!t.adapters.empty())
    settings[kAdapters] = t.adapters;
  if (t.adapter_dropout > 0)
    settings[kAdapterDropout] = Exact(t.adapter_dropout);
  if (program.TakesDocuments()) // which was not said when there was none
    settings["document_mask"] = "true";
  if (t.objective == Objective::masked) {
    settings["mask_probability"] = Exact(t.mask_probability);
    settings["mask_token"] = absl::StrCat(t.mask_token);
  }
  if (o.kind == OptimizerKind::sgd) {
    settings["momentum"] = Exact(o.momentum);
  } else {
    settings["beta1"] = Exact(o.beta1);
    settings["beta2"] = Exact(o.beta2);
  }
  if (o.kind == OptimizerKind::adamw)
    settings["eps"] = Exact(o.eps);
  if (!program.optimizer.body.empty())
    settings["optimizer_code"] = program.optimizer.body;
  if (o.state != StateType::f32)
    settings["state"] = WordOf(o.state);
  if (std::string own = OwnSettings(program); !own.empty())
    settings["parameters"] = own;
  return settings;
}

Settings WithPlan(Settings settings, const ChosenPlan &chosen, const CommitRecord *committed) {
  std::optional<ChosenPlan> plan;
  if (!chosen.block.empty())
    plan = chosen;
  else if (committed)
    plan = PlanOf(*committed);
  if (plan) {
    settings[kPlanBlock] = plan->block;
    settings[kPlanGiven] = plan->given;
  }
  return settings;
}

std::string DescribeChanges(const Settings &committed, const Settings &now) {
  std::string changes;
  // No step was trained yet, nor a text chosen.
  if (committed.size() == committed.count(kAdapters) + committed.count(kAdapterDropout))
    return changes;
  for (const auto &[key, values] : Differences(committed, now)) {
    // A longer run at a constant rate is the same run.
    if (key == "steps" && ValueOr(now, "rate", "") == "constant")
      continue;
    // The command that chose the plan has printed it. The driver compares adapters, which former
    // trainers did not name.
    if (key == kPlanBlock || key == kPlanGiven || key == kAdapters)
      continue;
    // `data` tells it.
    if (absl::StartsWith(key, kFilesOf) || absl::StartsWith(key, kFileOf) ||
        absl::StartsWith(key, kCallOf) || absl::StartsWith(key, kTokenizerOf) ||
        absl::StartsWith(key, kPaddingOf))
      continue;
    // Earlier trainers did not say it.
    if ((key == "optimizer_code" || key == kSpecialTokens) && committed.count(key) == 0)
      continue;
    absl::StrAppend(&changes, FormatDifference(key, values),
                    key == "steps" ? "; the learning rate depends on it" : "");
  }
  if (changes.empty())
    return "";
  return absl::StrCat(
      "note: from here on this is another training than the one that was committed:", changes);
}

absl::Status CheckFilesOfData(const Settings &committed, const Settings &now) {
  for (const auto &[key, files] : now) {
    auto was = committed.find(key);
    if (!absl::StartsWith(key, kFilesOf) || was == committed.end() || was->second == files)
      continue;
    const std::string each = absl::StrCat(kFileOf, key.substr(sizeof kFilesOf - 1), ": ");
    std::string first; // of those that a commit names
    for (const auto &[file, values] : Differences(committed, now))
      if (absl::StartsWith(file, each) && first.empty())
        first = absl::StrCat(". `", file.substr(each.size()), "` ",
                             committed.count(file) == 0 ? "is new"
                             : now.count(file) == 0     ? "is gone"
                                                        : "has other contents");
    const std::string pattern = key.substr(sizeof kFilesOf - 1);
    const std::string call = ValueOr(now, kCallOf + pattern, "");
    if (const std::string before = ValueOr(committed, kCallOf + pattern, call.c_str());
        before != call)
      first = absl::StrCat(". They were read by ", before, ", and are by ", call);
    for (auto [of, change] : {std::pair(kPaddingOf, ". Their documents are padded in another way"),
                              std::pair(kTokenizerOf, ". Their tokenizer is another")})
      if (ValueOr(committed, of + pattern, "") != ValueOr(now, of + pattern, ""))
        first = change;
    return absl::FailedPreconditionError(
        absl::StrCat("the ", key, " have changed since the commit: they were ", was->second,
                     ", and are ", files, first,
                     ". Bring the former ones back; or put new ones where another pattern matches "
                     "them and name both in a mix; or give --changed-data, which begins with them "
                     "as with a source that was never read"));
  }
  return absl::OkStatus();
}

std::string DescribeNewEnvironment(const Settings &committed, const Settings &now) {
  std::string changes;
  if (!committed.empty())
    for (const auto &[key, values] : Differences(committed, now))
      absl::StrAppend(&changes, FormatDifference(key, values));
  if (changes.empty())
    return "";
  return absl::StrCat("note: the last bits of losses may differ from those of the run that was "
                      "committed:",
                      changes);
}

std::map<std::string, int64_t> CountSamples(const CommitRecord &committed,
                                            const std::map<std::string, int64_t> &consumed) {
  std::map<std::string, int64_t> samples = committed.samples;
  for (const auto &[source, count] : consumed)
    samples[source] = std::min(samples[source] + count, kMostSamples);
  return samples;
}

std::string DescribeWarmup(const TrainSettings &train) {
  const int64_t warmup = train.optimizer.warmup;
  if (warmup <= train.steps || train.steps == 0) // of epochs, they are not counted yet
    return "";
  return absl::StrCat("note: the learning rate rises for ", warmup,
                      " steps (warmup), but the run "
                      "ends after ",
                      train.steps, ": it does not reach its peak of ", train.optimizer.peak);
}

} // namespace boa
