//===- settings.cpp - Settings as structs ---------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/abi/settings.h"

#include <algorithm>
#include <charconv>

namespace boa {

std::vector<std::string> SplitWords(std::string_view list) {
  std::vector<std::string> words;
  while (!list.empty()) {
    const size_t comma = std::min(list.find(", "), list.size());
    words.emplace_back(list.substr(0, comma));
    list.remove_prefix(std::min(comma + 2, list.size()));
  }
  return words;
}

bool ListHasWord(std::string_view list, std::string_view word) {
  const std::vector<std::string> words = SplitWords(list);
  return std::find(words.begin(), words.end(), word) != words.end();
}

namespace {

SettingRow at(const char *path) {
  SettingRow row;
  row.path = path;
  return row;
}
SettingRow unwritten() { return {}; }

std::string Print(const std::string &text) { return text; }
std::string Print(bool flag) { return flag ? "true" : "false"; }
std::string Print(int64_t number) { return std::to_string(number); }
/// The fewest digits that read back the same.
std::string Print(double number) {
  char buffer[64];
  auto end = std::to_chars(buffer, buffer + sizeof buffer, number);
  std::string text(buffer, end.ptr);
  const size_t zero = text.find("e-0"); // 1e-8, not 1e-08
  return zero == std::string::npos ? text : text.erase(zero + 2, 1);
}

SettingRow Finish(SettingRow row, const char *key, SettingKind kind, std::string value,
                  const char *help, const char *words = "") {
  row.key = key;
  // A row may have said more exactly what its text, number or word is.
  if (row.kind == SettingKind::Text)
    row.kind = kind;
  if (*words)
    row.list = words;
  row.value = std::move(value);
  row.help = help;
  return row;
}

template <typename Settings> SettingRow Section(const char *key, SettingKind kind) {
  SettingRow row;
  row.key = key;
  row.kind = kind;
  row.rows = []() -> const std::vector<SettingRow> & {
    return RowsOf(static_cast<Settings *>(nullptr));
  };
  return row;
}

} // namespace

#define BOA_STRUCT(NAME)                                                                           \
  const std::vector<SettingRow> &RowsOf(const NAME##Settings *) {                                  \
    static const std::vector<SettingRow> rows = {
#define BOA_TEXT(FIELD, DEFAULT, WRITTEN, HELP)                                                    \
  Finish(WRITTEN, #FIELD, SettingKind::Text, Print(std::string(DEFAULT)), HELP),
#define BOA_WORD(FIELD, ENUM, DEFAULT, WRITTEN, HELP)                                              \
  Finish(WRITTEN, #FIELD, SettingKind::Word, #DEFAULT, HELP, WordList(ENUM())),
#define BOA_FLAG(FIELD, DEFAULT, WRITTEN, HELP)                                                    \
  Finish(WRITTEN, #FIELD, SettingKind::Flag, Print(bool(DEFAULT)), HELP, "true, false"),
#define BOA_INTEGER(FIELD, DEFAULT, WRITTEN, HELP)                                                 \
  Finish(WRITTEN, #FIELD, SettingKind::Count, Print(int64_t(DEFAULT)), HELP),
#define BOA_REAL(FIELD, DEFAULT, WRITTEN, HELP)                                                    \
  Finish(WRITTEN, #FIELD, SettingKind::Real, Print(double(DEFAULT)), HELP),
#define BOA_PLACE(FIELD, WRITTEN, HELP)                                                            \
  Finish(WRITTEN, #FIELD, SettingKind::Place, "device", HELP, WordList(HomeTier())),
#define BOA_OWN_PLACE(FIELD, WRITTEN, HELP)                                                        \
  Finish(WRITTEN, #FIELD, SettingKind::Place, "", HELP, WordList(HomeTier())),
#define BOA_SECTION(FIELD, NAME) Section<NAME##Settings>(#FIELD, SettingKind::Section),
#define BOA_LIST(FIELD, NAME) Section<NAME##Settings>(#FIELD, SettingKind::List),
#define BOA_FORM(KIND, WRITTEN, HELP) Finish(WRITTEN, "", SettingKind::KIND, "", HELP),
#define BOA_END(NAME)                                                                              \
  }                                                                                                \
  ;                                                                                                \
  return rows;                                                                                     \
  }
#include "runtime/abi/settings.def"

namespace {

void CollectWritten(const std::vector<SettingRow> &rows, std::vector<SettingRow> &written) {
  for (const SettingRow &row : rows)
    if (row.rows)
      CollectWritten(row.rows(), written);
    else if (*row.path)
      written.push_back(row);
}

/// Those directly inside `path`, each followed by those inside it.
void Order(const std::vector<SettingRow> &rows, std::string_view path,
           std::vector<SettingRow> &ordered) {
  for (const SettingRow &row : rows)
    if (row.of() == path) {
      ordered.push_back(row);
      Order(rows, row.path, ordered);
    }
}

} // namespace

const std::vector<SettingRow> &WrittenSettings() {
  static const std::vector<SettingRow> written = [] {
    std::vector<SettingRow> rows, ordered;
    CollectWritten(RowsOf(static_cast<TrainSettings *>(nullptr)), rows);
    CollectWritten(RowsOf(static_cast<PlanSettings *>(nullptr)), rows);
    CollectWritten(RowsOf(static_cast<ActivationSettings *>(nullptr)), rows);
    CollectWritten(RowsOf(static_cast<MachineSettings *>(nullptr)), rows);
    for (const char *block : {"train", "train.parameters", "plan", "plan.activations",
                              "machine.device", "machine.host", "machine.ssd"})
      Order(rows, block, ordered);
    return ordered;
  }();
  return written;
}

Rates RatesOf(const MachineSettings &machine, NumberFormat format) {
  // That of the format, or else of the nearest wider one if `widens`.
  auto find = [&](const auto &rates, bool widens) {
    double found = 0;
    int32_t at = 0;
    rates.Visit([&](const SettingRow &, int64_t rate) {
      const NumberFormat of = NumberFormat(at++);
      if (rate > 0 && (of == format || (widens && of < format)))
        found = double(rate);
    });
    return found;
  };
  const double products = find(machine.compute, true);
  const double attention = find(machine.compute_attention, false);
  return {products, attention > 0 ? attention : products, find(machine.device_bandwidth, true)};
}

std::string DescribeSteps(const TrainSettings &train) {
  const std::string steps = Print(train.steps) + (train.steps == 1 ? " step" : " steps");
  if (train.epochs == 0)
    return steps;
  const std::string epochs = Print(train.epochs) + (train.epochs == 1 ? " epoch" : " epochs");
  return train.steps == 0 ? epochs : steps + " (" + epochs + ")";
}

std::string FindConflict(const ModelSettings &model, const TrainSettings &train,
                         const PlanSettings &plan) {
  const int64_t microBatch = SequencesOfMicroBatch(train, plan);
  if (train.batch % microBatch != 0)
    return "batch to be a multiple of micro_batch but found " + Print(train.batch) + " and " +
           Print(microBatch);
  if (train.optimizer.rate != RateKind::constant && train.optimizer.floor > train.optimizer.peak)
    return "optimizer.floor to be at most optimizer.peak but found " +
           Print(train.optimizer.floor) + " and " + Print(train.optimizer.peak);
  if (train.objective == Objective::masked && model.vocab != 0 && train.mask_token >= model.vocab)
    return "mask_token to be below vocab but found " + Print(train.mask_token) + " and " +
           Print(model.vocab);
  if (plan.keep > 0 && !plan.recompute)
    return "keep to be 0 without recompute but found " + Print(plan.keep);
  return "";
}

} // namespace boa
