//===- Config.h - The configuration on the module ---------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Typed reading of boa.config @train and @machine: a function for each key of
// Settings.def, which gives the fallback of the table where the setting is absent.
// Relies on the verifier of boa.config.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_DIALECT_CONFIG_H
#define BOA_DIALECT_CONFIG_H

#include "dialect/Boa.h"
#include "runtime/abi/abi.h"

namespace boa {

/// A tier and the share of the chunks that lives there; the last one of a place has
/// what is left.
struct TierShare {
  Tier tier;
  double share = 1;
};

/// One dictionary of settings; null: all are absent.
class SettingsBase {
public:
  explicit SettingsBase(mlir::DictionaryAttr dictionary) : dictionary(dictionary) {}

protected:
  template <typename T> T get(llvm::StringRef key) const {
    return dictionary ? dictionary.getAs<T>(key) : T();
  }
  double real(llvm::StringRef key, double fallback) const {
    if (auto whole = get<mlir::IntegerAttr>(key))
      return double(whole.getInt());
    auto attr = get<mlir::FloatAttr>(key);
    return attr ? attr.getValueAsDouble() : fallback;
  }
  llvm::SmallVector<TierShare> place(llvm::StringRef key) const {
    llvm::SmallVector<TierShare> place;
    if (auto tier = get<mlir::StringAttr>(key))
      place.push_back({*symbolizeTier(tier)});
    if (auto parts = get<mlir::ArrayAttr>(key))
      for (mlir::Attribute part : parts) {
        if (auto share = mlir::dyn_cast<mlir::FloatAttr>(part))
          place.back().share = share.getValueAsDouble();
        else
          place.push_back({*symbolizeTier(mlir::cast<mlir::StringAttr>(part))});
      }
    return place;
  }

private:
  mlir::DictionaryAttr dictionary;
};

#define BOA_SETTINGS(NAME)                                                                         \
  class NAME##Settings : public SettingsBase {                                                     \
  public:                                                                                          \
    using SettingsBase::SettingsBase;
#define BOA_TEXT(KEY, FALLBACK, HELP)                                                              \
  llvm::StringRef KEY() const {                                                                    \
    auto attr = get<mlir::StringAttr>(#KEY);                                                       \
    return attr ? attr.getValue() : llvm::StringRef(FALLBACK);                                     \
  }
#define BOA_WORD(KEY, ENUM, FALLBACK, HELP)                                                        \
  ENUM KEY() const {                                                                               \
    auto attr = get<mlir::StringAttr>(#KEY);                                                       \
    return attr ? *symbolize##ENUM(attr) : ENUM::FALLBACK;                                         \
  }
#define BOA_INTEGER(KEY, RANGE, FALLBACK, HELP)                                                    \
  int64_t KEY() const {                                                                            \
    auto attr = get<mlir::IntegerAttr>(#KEY);                                                      \
    return attr ? attr.getInt() : FALLBACK;                                                        \
  }
#define BOA_REAL(KEY, RANGE, FALLBACK, HELP)                                                       \
  double KEY() const { return real(#KEY, FALLBACK); }
#define BOA_FLAG(KEY, FALLBACK, HELP)                                                              \
  bool KEY() const {                                                                               \
    auto attr = get<mlir::BoolAttr>(#KEY);                                                         \
    return attr ? attr.getValue() : FALLBACK;                                                      \
  }
#define BOA_PLACE(KEY, HELP)                                                                       \
  llvm::SmallVector<TierShare> KEY() const { return place(#KEY); }
#define BOA_SECTION(KEY, NAME, HELP)                                                               \
  NAME##Settings KEY() const { return NAME##Settings(get<mlir::DictionaryAttr>(#KEY)); }
#define BOA_LIST(KEY, NAME, HELP)                                                                  \
  llvm::SmallVector<NAME##Settings> KEY() const {                                                  \
    llvm::SmallVector<NAME##Settings> list;                                                        \
    if (auto attr = get<mlir::ArrayAttr>(#KEY))                                                    \
      for (auto element : attr.getAsRange<mlir::DictionaryAttr>())                                 \
        list.emplace_back(element);                                                                \
    return list;                                                                                   \
  }
#define BOA_END                                                                                    \
  }                                                                                                \
  ;
#include "dialect/Settings.def"

struct TrainConfig : TrainSettings {
  using TrainSettings::TrainSettings;
  explicit TrainConfig(mlir::ModuleOp module) : TrainSettings(getConfig(module, kTrainConfig)) {}

  bool skipsNonfinite() const { return nonfinite() == Nonfinite::skip; }
  /// Whether the first update of a step must know its global gradient norm: to
  /// clip by it, or to leave the step out.
  bool needsNorm() const { return boa_needs_norm(clip(), skipsNonfinite()); }

  /// Micro-batches of one step.
  int64_t microBatches() const { return batch() / micro_batch(); }
};

struct MachineConfig : MachineSettings {
  explicit MachineConfig(mlir::ModuleOp module)
      : MachineSettings(getConfig(module, kMachineConfig)) {}

  bool isSeparate() const { return memory() == MemoryKind::separate; }
};

} // namespace boa

#endif // BOA_DIALECT_CONFIG_H
