//===- SettingTable.cpp - The settings that there are ---------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "frontend/SettingTable.h"

#include "frontend/Frontend.h"
#include "frontend/Printer.h"
#include "frontend/Settings.h"

#include <algorithm>

namespace boa::frontend {

namespace {

constexpr int64_t kMaxBatch = 1 << 20;
constexpr int64_t kMaxSteps = int64_t(1) << 40;
constexpr double kMaxRate = 1e6;

Setting row(SettingKind kind, const char *of, const char *name, const char *help) {
  Setting setting;
  setting.of = of;
  setting.name = name;
  setting.kind = kind;
  setting.help = help;
  return setting;
}
Setting count(const char *of, const char *name, const char *unit, int64_t least, int64_t most,
              const char *help) {
  Setting setting = row(SettingKind::Count, of, name, help);
  setting.unit = unit;
  setting.least = least;
  setting.most = most;
  return setting;
}
Setting real(const char *of, const char *name, double least, double most, const char *help) {
  Setting setting = row(SettingKind::Real, of, name, help);
  setting.realLeast = least;
  setting.realMost = most;
  return setting;
}
Setting word(const char *of, const char *name, std::vector<std::string> words, const char *help) {
  Setting setting = row(SettingKind::Word, of, name, help);
  setting.words = std::move(words);
  return setting;
}

// What can be said of any row, around it.
Setting in(std::vector<std::string> calls, Setting setting) {
  setting.calls = std::move(calls);
  return setting;
}
Setting above(Setting setting) {
  setting.above = true;
  return setting;
}
Setting or_(const char *fallback, Setting setting) {
  setting.fallback = fallback;
  return setting;
}
/// Without it, `absent` holds.
Setting without(const char *absent, Setting setting) {
  setting.absent = absent;
  return setting;
}
Setting label(Setting setting) {
  setting.isLabel = true;
  return setting;
}

Setting place(const char *of, const char *name, const char *help) {
  Setting setting = row(SettingKind::Tiers, of, name, help);
  setting.words.assign(kTierNames.begin(), kTierNames.end());
  return setting;
}

Setting rate() {
  Setting setting =
      above(real("train.optimizer", "lr", 0, kMaxRate, "learning rate, or its course"));
  setting.kind = SettingKind::Rate;
  setting.words = {"constant", "linear", "cosine"};
  return in({"adamw", "sgd"}, setting);
}

std::vector<Setting> makeTable() {
  using Kind = SettingKind;
  const std::vector<std::string> orders = {"vertical", "horizontal"};
  const std::vector<std::string> rates = {"constant", "linear", "cosine"};
  const char *optimizer = "train.optimizer", *lr = "train.optimizer.lr";
  std::vector<Setting> table = {
      row(Kind::Path, "train", "data",
          "the text; relative to the spec, in --set to the working directory"),
      count("train", "batch", "sequences", 1, kMaxBatch, "sequences of one step"),
      or_("batch", count("train", "micro_batch", "sequences", 1, kMaxBatch,
                         "sequences computed at once; divides batch")),
      count("train", "steps", "steps", 1, kMaxSteps, "steps of the whole run"),
      or_("1",
          count("train", "seed", nullptr, 0, INT64_MAX, "of initial values, batches and masks")),
      or_("adamw(lr = 1e-3)",
          word("train", "optimizer", {"adamw", "sgd"}, "how weights are updated")),
      rate(),
      in({"adamw"}, or_("(0.9, 0.999)", row(Kind::Pair, optimizer, "betas",
                                            "decay of the moments; at least 0, below 1"))),
      in({"adamw"}, or_("1e-8", real(optimizer, "eps", 1e-30, 1, "added to the denominator"))),
      in({"adamw"}, or_("0", real(optimizer, "weight_decay", 0, 1, "of matrices, decoupled"))),
      in({"sgd"}, or_("0", real(optimizer, "momentum", 0, 1, "share of the last update"))),
      or_("host", word("train", "update", {"host", "device"},
                       "where the optimizer runs: on a cpu no difference")),
      in(rates, above(real(lr, "peak", 0, kMaxRate, "the greatest rate"))),
      in(rates,
         or_("0", count(lr, "warmup", "steps", 0, kMaxSteps, "steps of rising to the peak"))),
      in({"linear", "cosine"},
         or_("0", real(lr, "floor", 0, kMaxRate, "the rate at the last step"))),
      without("no clipping",
              above(real("train", "clip", 0, 1e12, "greatest global gradient norm"))),
      or_("stop",
          word("train", "nonfinite", {"stop", "skip"},
               "a step whose gradient is not finite: stop before it is committed, or skip it")),
      or_("f32",
          word("train", "weights", {"f32", "bf16"}, "type of the weights; updates are in f32")),
      or_("f32", word("train", "compute", {"f32", "bf16"},
                      "type of activations and their gradients; sums are in f32")),
      or_("next_token", word("train", "objective", {"next_token", "masked"}, "what is predicted")),
      in({"masked"}, or_("0.15", real("train.objective", "probability", 1e-6, 1,
                                      "share of tokens that are masked"))),
      in({"masked"}, count("train.objective", "token", nullptr, 0, INT64_MAX,
                           "the token that masks; below vocab")),
      without("never", word("train", "evaluate", {"every"}, "when to compute the validation loss")),
      in({"every"},
         count("train.evaluate", "steps", "steps", 1, kMaxSteps, "steps from one to the next")),
      in({"every"}, or_("1", count("train.evaluate", "batches", nullptr, 1, kMaxBatch,
                                   "micro-batches of each"))),
      or_("every(5 min)", word("train", "commit", {"every", "end"},
                               "when the state is made safe; always at the end")),
      in({"every"},
         row(Kind::Interval, "train.commit", "interval", "steps, or a time in s, min or h")),
      in({"every"}, or_("1", count("train.commit", "keep", nullptr, 1, 1000,
                                   "commits that can be resumed from, the last among them"))),
      or_("vertical", word("train", "schedule", orders, "the order of layers and micro-batches")),
      in(orders,
         or_("0",
             real("train.schedule", "delay", 0, 1,
                  "share of the optimizer in the next step; 1 with clip or nonfinite = skip"))),
      in(orders, or_("1", count("train.schedule", "prefetch", nullptr, 0, 1024,
                                "layers that are read ahead"))),
      in(orders, or_("true", word("train.schedule", "recompute", {"true", "false"},
                                  "compute activations again in the backward pass"))),
      or_("device", place("train", "place", "where everything lives")),
  };
  for (const char *role : kRoleNames)
    table.push_back(or_("device", place("train.place", role, "where these live")));
  const std::vector<Setting> machine = {
      row(Kind::Block, "machine", "device", ""),
      row(Kind::Block, "machine", "host", ""),
      row(Kind::Block, "machine", "ssd", ""),
      without("no limit", row(Kind::Bytes, "machine.device", "memory", "memory of the device")),
      or_("false", word("machine.device", "direct", {"true", "false"},
                        "SSDs reach its memory past the host's; on a cpu no difference")),
      without("all", count("machine.device", "threads", nullptr, 1, 4096, "threads that compute")),
      or_("cudnn", word("machine.device", "attention", {"cudnn", "own"},
                        "of a GPU in bf16: cuDNN's if it is there, or the program's own")),
      or_("fastest", word("machine.device", "kernels", {kKernelNames.begin(), kKernelNames.end()},
                          "instruction set of a cpu's kernels; BOA_CPU wins over it")),
      without("not said", row(Kind::Compute, "machine.device", "compute",
                              "what kernels compute each second; for boa simulate")),
      without("compute", row(Kind::Compute, "machine.device", "compute_bf16",
                             "the same of products of bf16; for boa simulate")),
      without("not said", row(Kind::Speed, "machine.device", "bandwidth",
                              "what kernels read and write each second; for boa simulate")),
      without("not said", row(Kind::Speed, "machine.device", "to_device",
                              "copied to its memory each second; for boa simulate")),
      without("not said", row(Kind::Speed, "machine.device", "to_host",
                              "copied from its memory each second; for boa simulate")),
      without("no limit", row(Kind::Bytes, "machine.host", "memory", "memory of the host")),
      without("not said", row(Kind::Speed, "machine.host", "optimizer",
                              "what updates read and write each second; for boa simulate")),
      without("no limit", row(Kind::Speed, "machine.host", "bandwidth",
                              "of its memory, for all that use it; for boa simulate")),
      label(or_("state",
                row(Kind::Path, "machine.ssd", "path", "a folder on it; in a spec, ssd \"PATH\""))),
      without("no limit", row(Kind::Speed, "machine.ssd", "read", "bytes read each second")),
      without("no limit", row(Kind::Speed, "machine.ssd", "write", "bytes written each second")),
      without("no limit", row(Kind::Speed, "machine.ssd", "both",
                              "read and written together each second; for boa simulate")),
      without("0",
              row(Kind::Latency, "machine.ssd", "latency", "of one transfer; for boa simulate")),
  };
  table.insert(table.end(), machine.begin(), machine.end());
  return table;
}

std::string describeValues(const Setting &setting) {
  std::vector<std::string> words;
  for (const std::string &word : setting.words)
    words.push_back(describeWord(setting, word));
  std::string range = (setting.above ? "above " : "") + printNumber(setting.realLeast) + " to " +
                      printNumber(setting.realMost);
  switch (setting.kind) {
  case SettingKind::Path:
    return "a path";
  case SettingKind::Count:
    return setting.most > kMaxSteps
               ? "from " + std::to_string(setting.least)
               : std::to_string(setting.least) + " to " + std::to_string(setting.most);
  case SettingKind::Real:
    return range;
  case SettingKind::Rate:
    return range + ", " + listWords(words);
  case SettingKind::Bytes:
    return "a size: 256 MiB";
  case SettingKind::Speed:
    return "a speed: 200 MB/s";
  case SettingKind::Compute:
    return "a speed: 300 TFLOP/s";
  case SettingKind::Latency:
    return "a time: 80 us";
  case SettingKind::Word:
    return listWords(words);
  case SettingKind::Pair:
    return "two numbers: (a, b)";
  case SettingKind::Tiers:
    return listWords(words) + ", or shares: host 40%, ssd";
  case SettingKind::Interval:
    return "200 steps, or a time: 5 min";
  case SettingKind::Block:
    break;
  }
  return "";
}

} // namespace

bool Setting::isArgumentOf(std::string_view call) const {
  return isLabel         ? false
         : calls.empty() ? call.empty()
                         : std::find(calls.begin(), calls.end(), call) != calls.end();
}

const std::vector<Setting> &settingTable() {
  static const std::vector<Setting> table = makeTable();
  return table;
}

std::vector<const Setting *> settingsOf(std::string_view of, std::string_view call) {
  std::vector<const Setting *> rows;
  for (const Setting &setting : settingTable())
    if (setting.of == of && setting.isArgumentOf(call))
      rows.push_back(&setting);
  return rows;
}

std::string describeWord(const Setting &setting, const std::string &word) {
  for (const Setting *argument : settingsOf(setting.path(), word))
    if (argument->isRequired())
      return word + "(...)";
  return word;
}

std::vector<SettingInfo> listSettings() {
  std::vector<SettingInfo> list;
  for (const Setting &setting : settingTable()) {
    if (setting.kind == SettingKind::Block)
      continue;
    std::string calls;
    for (const std::string &call : setting.calls)
      calls += (calls.empty() ? "" : ", ") + call;
    list.push_back({setting.path(), calls, describeValues(setting), setting.words,
                    setting.absent.empty() ? setting.fallback : "none", setting.absent,
                    setting.isRequired(), setting.help});
  }
  return list;
}

std::vector<std::string> settingsNamed(std::string_view name) {
  std::vector<std::string> paths;
  ptrdiff_t least = 4;
  for (const Setting &setting : settingTable()) {
    ptrdiff_t dots = std::count(setting.of.begin(), setting.of.end(), '.');
    if (setting.kind == SettingKind::Block || setting.name != name || dots > least)
      continue;
    if (dots < least)
      paths.clear();
    least = dots;
    if (std::find(paths.begin(), paths.end(), setting.path()) == paths.end())
      paths.push_back(setting.path());
  }
  return paths;
}

std::string didYouMeanSetting(std::string_view path) {
  std::string same;
  for (const std::string &found : settingsNamed(path.substr(path.rfind('.') + 1)))
    if (found != path)
      same += (same.empty() ? "'" : " or '") + found + "'";
  if (!same.empty())
    return ", did you mean " + same + "?";
  std::vector<std::string> paths;
  for (const Setting &setting : settingTable())
    if (setting.kind != SettingKind::Block)
      paths.push_back(setting.path());
  return didYouMean(path, paths);
}

} // namespace boa::frontend
