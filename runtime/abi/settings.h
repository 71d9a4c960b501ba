//===- settings.h - Settings as structs -------------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The structs and enums of the table (settings.def): ModelSettings, TrainSettings,
// PlanSettings, MachineSettings, and those inside them. The frontend fills them, boa.config
// holds them as attributes, the descriptor as JSON, and the runtime reads them.
//
// Each struct has `Visit`, which calls `visit(row, member)` for each member. The code for
// attributes, JSON and specs is written once, over it.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_ABI_SETTINGS_H
#define BOA_RUNTIME_ABI_SETTINGS_H

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace boa {

enum class SettingKind {
  Text,
  Object, // of JSON, on one line
  Path,
  Data, // a path, or a call that names files of tokens
  Count,
  Real,
  Bytes,
  Speed,
  Operations,
  Time,
  Power,
  Flag,
  Word,
  Rate,     // a word with arguments, or a number
  Pair,     // two numbers
  Interval, // steps, or a time
  Duration, // steps, or epochs
  Patterns, // of names: one, or several in parentheses
  Place,
  Section,
  List,
};

/// How users write a setting. Built by a row of the table.
struct SettingRow {
  /// Key in attributes and JSON; "" of a form without a member.
  const char *key = "";
  SettingKind kind = SettingKind::Text;
  /// `train.optimizer.lr`; "" if users do not write it.
  const char *path = "";
  /// The calls whose argument it is: "adamw, sgd"; "" of a setting of a block.
  const char *calls = "";
  /// "a, b" of words.
  const char *list = "";
  /// The units that may follow a count; null: none.
  const char *units = nullptr;
  double least = -std::numeric_limits<double>::infinity();
  double most = std::numeric_limits<double>::infinity();
  bool excludesLeast = false, excludesMost = false;
  bool isRequired = false;
  bool isLabel = false;    // behind the name of its block, ssd "path", instead of in it
  bool isOfFormat = false; // in its block as compute { f32 = ... }
  const char *fallback = "", *none = "";
  /// The default of its member: then `fallback` may be empty.
  std::string value;
  const char *help = "";
  /// Of a section or a list: the rows of its struct.
  const std::vector<SettingRow> &(*rows)() = nullptr;

  SettingRow in(const char *names) const { return with(&SettingRow::calls, names); }
  SettingRow or_(const char *text) const { return with(&SettingRow::fallback, text); }
  SettingRow absent(const char *text) const { return with(&SettingRow::none, text); }
  SettingRow words(const char *text) const { return with(&SettingRow::list, text); }
  SettingRow unit(const char *text) const { return with(&SettingRow::units, text); }
  SettingRow required() const { return with(&SettingRow::isRequired, true); }
  SettingRow label() const { return with(&SettingRow::isLabel, true); }
  SettingRow ofFormat() const { return with(&SettingRow::isOfFormat, true); }
  SettingRow from(double number) const { return with(&SettingRow::least, number); }
  SettingRow to(double number) const { return with(&SettingRow::most, number); }
  SettingRow above(double number) const {
    return with(&SettingRow::excludesLeast, true).from(number);
  }
  SettingRow below(double number) const { return with(&SettingRow::excludesMost, true).to(number); }
  SettingRow file() const { return with(&SettingRow::kind, SettingKind::Path); }
  SettingRow data() const { return with(&SettingRow::kind, SettingKind::Data); }
  SettingRow bytes() const { return with(&SettingRow::kind, SettingKind::Bytes).from(1); }
  SettingRow speed() const { return with(&SettingRow::kind, SettingKind::Speed).from(1); }
  SettingRow operations() const { return with(&SettingRow::kind, SettingKind::Operations).from(1); }
  SettingRow time() const { return with(&SettingRow::kind, SettingKind::Time).from(1); }
  SettingRow power() const { return with(&SettingRow::kind, SettingKind::Power).from(1); }
  SettingRow numberOr() const { return with(&SettingRow::kind, SettingKind::Rate); }

  /// `train.optimizer` and `lr` of `train.optimizer.lr`; `machine.device` and `compute.f32`.
  std::string_view of() const { return std::string_view(path).substr(0, Dot()); }
  std::string_view name() const { return std::string_view(path).substr(Dot() + 1); }

  bool Contains(double number) const {
    return (excludesLeast ? number > least : number >= least) &&
           (excludesMost ? number < most : number <= most);
  }

private:
  size_t Dot() const {
    const size_t dot = std::string_view(path).rfind('.');
    return isOfFormat ? std::string_view(path).rfind('.', dot - 1) : dot;
  }
  template <typename T> SettingRow with(T SettingRow::*member, T to) const {
    SettingRow row = *this;
    row.*member = to;
    return row;
  }
};

/// What `auto` is, where a size may be that. A driver replaces it before it generates IR.
inline constexpr int64_t kAuto = -1;
inline constexpr double kMostBatch = 1 << 20;
inline constexpr double kMostRank = 1 << 16;
inline constexpr double kMostSteps = double(int64_t(1) << 40);
inline constexpr double kMostEpochs = 1e6;

//===----------------------------------------------------------------------===//
// Words
//===----------------------------------------------------------------------===//

/// The parts of "a, b", or of "a, b, ".
std::vector<std::string> SplitWords(std::string_view list);
bool ListHasWord(std::string_view list, std::string_view word);

#define BOA_WORDS(NAME, ...)                                                                       \
  enum class NAME : int32_t { __VA_ARGS__ };                                                       \
  inline const char *WordList(NAME) { return #__VA_ARGS__; }
#include "runtime/abi/settings.def"

#define BOA_FORMAT(FORMAT, ABSENT) FORMAT,
enum class NumberFormat : int32_t { BOA_FORMATS(BOA_FORMAT) };
#undef BOA_FORMAT
#define BOA_FORMAT(FORMAT, ABSENT) #FORMAT ", "
inline const char *WordList(NumberFormat) { return BOA_FORMATS(BOA_FORMAT); }
#undef BOA_FORMAT

template <typename Enum> std::string WordOf(Enum value) {
  return SplitWords(WordList(value))[size_t(value)];
}
/// The value of a word; nothing if the enum has no such word.
template <typename Enum> std::optional<Enum> ParseWord(std::string_view word) {
  const std::vector<std::string> words = SplitWords(WordList(Enum()));
  for (size_t i = 0; i < words.size(); ++i)
    if (words[i] == word)
      return Enum(i);
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Structs
//===----------------------------------------------------------------------===//

/// Where the chunks of a role live: tiers in order, each but the last with a number of layers or
/// with a share. The layers come first. The shares are of each layer behind them, and the last
/// tier has the rest. Without tiers there is none.
struct Placement {
  struct Part {
    HomeTier tier = HomeTier::device;
    double share = 1;
    int64_t layers = 0; // 0: a share
  };
  std::vector<Part> parts = {Part()};
};

// The members.
#define BOA_STRUCT(NAME)                                                                           \
  struct NAME##Settings {                                                                          \
    template <typename Visitor> void Visit(Visitor &&visitor);                                     \
    template <typename Visitor> void Visit(Visitor &&visitor) const {                              \
      const_cast<NAME##Settings *>(this)->Visit(                                                   \
          [&](const SettingRow &row, const auto &member) { visitor(row, member); });               \
    }
#define BOA_TEXT(FIELD, DEFAULT, WRITTEN, HELP) std::string FIELD = DEFAULT;
#define BOA_WORD(FIELD, ENUM, DEFAULT, WRITTEN, HELP) ENUM FIELD = ENUM::DEFAULT;
#define BOA_FLAG(FIELD, DEFAULT, WRITTEN, HELP) bool FIELD = DEFAULT;
#define BOA_INTEGER(FIELD, DEFAULT, WRITTEN, HELP) int64_t FIELD = DEFAULT;
#define BOA_REAL(FIELD, DEFAULT, WRITTEN, HELP) double FIELD = DEFAULT;
#define BOA_PLACE(FIELD, WRITTEN, HELP) Placement FIELD;
#define BOA_OWN_PLACE(FIELD, WRITTEN, HELP) Placement FIELD = {{}};
#define BOA_SECTION(FIELD, NAME) NAME##Settings FIELD;
#define BOA_LIST(FIELD, NAME) std::vector<NAME##Settings> FIELD;
#define BOA_END(NAME)                                                                              \
  }                                                                                                \
  ;
#include "runtime/abi/settings.def"

/// The rows of a struct, in the order of the table: of members and of forms.
#define BOA_STRUCT(NAME) const std::vector<SettingRow> &RowsOf(const NAME##Settings *);
#include "runtime/abi/settings.def"

#define BOA_STRUCT(NAME)                                                                           \
  template <typename Visitor> void NAME##Settings::Visit(Visitor &&visitor) {                      \
    auto row = RowsOf(this).begin();
#define BOA_TEXT(FIELD, ...) visitor(*row++, FIELD);
#define BOA_WORD(FIELD, ...) visitor(*row++, FIELD);
#define BOA_FLAG(FIELD, ...) visitor(*row++, FIELD);
#define BOA_INTEGER(FIELD, ...) visitor(*row++, FIELD);
#define BOA_REAL(FIELD, ...) visitor(*row++, FIELD);
#define BOA_PLACE(FIELD, ...) visitor(*row++, FIELD);
#define BOA_OWN_PLACE(FIELD, ...) visitor(*row++, FIELD);
#define BOA_SECTION(FIELD, NAME) visitor(*row++, FIELD);
#define BOA_LIST(FIELD, NAME) visitor(*row++, FIELD);
#define BOA_FORM(...) ++row;
#define BOA_END(NAME)                                                                              \
  (void)row;                                                                                       \
  }
#include "runtime/abi/settings.def"

/// All rows that users write: a setting, then those inside it.
const std::vector<SettingRow> &WrittenSettings();

/// A setting that moved, or a short form, which new formats lack. The old path means the same.
struct SettingAlias {
  const char *from, *to;
};
inline constexpr SettingAlias kSettingAliases[] = {
    {"train.micro_batch", "plan.micro_batch"},
    {"train.schedule", "plan.schedule"},
    {"train.place", "plan.place"},
    {"train.update", "plan.update"},
    {"machine.device.compute", "machine.device.compute.f32"},
    {"machine.device.compute_bf16", "machine.device.compute.bf16"},
    {"machine.device.compute_attention", "machine.device.compute_attention.f32"},
    {"machine.device.compute_attention_bf16", "machine.device.compute_attention.bf16"},
    {"machine.device.bandwidth", "machine.device.bandwidth.f32"},
    {"machine.device.bandwidth_bf16", "machine.device.bandwidth.bf16"},
};

//===----------------------------------------------------------------------===//
// Values that follow from several settings
//===----------------------------------------------------------------------===//

/// The traits of a kind of device that programs depend on. By `has_image`, the kind also chooses a
/// Target of the compiler and an engine of the runtime.
struct DeviceTraits {
  MemoryKind memory;
  bool on_host;         // the processors and the memory of the host are the device's
  bool has_image;       // CUDA: the program carries code that the device loads
  bool has_libraries;   // for products and attention, found when the program runs
  bool continues_texts; // attention to a cache has a kernel
};
inline const DeviceTraits &TraitsOf(DeviceKind device) {
  static constexpr DeviceTraits kTraits[] = {
      /*cpu=*/{MemoryKind::unified, true, false, false, true},
      /*split=*/{MemoryKind::separate, true, false, false, true},
      /*cuda=*/{MemoryKind::separate, false, true, true, false},
  };
  return kTraits[size_t(device)];
}
inline bool IsSeparate(const MachineSettings &machine) {
  return machine.memory == MemoryKind::separate;
}
/// Whether SSDs reach the memory of a device that has its own.
inline bool IsDirect(const MachineSettings &machine) {
  return IsSeparate(machine) && machine.direct;
}
/// Whether the first update of a step must know its global gradient norm: to clip by it, or to
/// skip the step.
inline bool NeedsNorm(const TrainSettings &train) {
  return train.clip > 0 || train.nonfinite == Nonfinite::skip;
}
/// Sequences of a micro-batch, and micro-batches of a step.
inline int64_t SequencesOfMicroBatch(const TrainSettings &train, const PlanSettings &plan) {
  return plan.micro_batch ? plan.micro_batch : train.batch;
}
inline int64_t CountMicroBatches(const TrainSettings &train, const PlanSettings &plan) {
  return train.batch / SequencesOfMicroBatch(train, plan);
}

/// The rates of a device in one format, each second: operations of matrix products, operations of
/// attention, and bytes that all other ops read and write.
struct Rates {
  double products = 0, attention = 0, bandwidth = 0;
};
Rates RatesOf(const MachineSettings &, NumberFormat);

/// Where the state lives if the user does not say: on the first SSD.
inline std::string FolderOfState(const MachineSettings &machine) {
  return machine.ssd.empty() ? SsdSettings().path : machine.ssd[0].path;
}

/// "90 steps"; of epochs "90 steps (3 epochs)", or "3 epochs" before their steps are counted.
std::string DescribeSteps(const TrainSettings &);

/// Why members that are each in range do not fit together, naming them by key; "" if they do.
std::string FindConflict(const ModelSettings &, const TrainSettings &, const PlanSettings &);

} // namespace boa

#endif // BOA_RUNTIME_ABI_SETTINGS_H
