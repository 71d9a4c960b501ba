//===- Config.cpp - Settings as structs -----------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "dialect/Config.h"

#include "mlir/IR/Builders.h"

using namespace mlir;

namespace boa {

std::optional<double> numberOf(Attribute value, bool allowReal) {
  if (auto real = dyn_cast<FloatAttr>(value); real && allowReal)
    return real.getValueAsDouble();
  auto integer = dyn_cast<IntegerAttr>(value); // delay = 1, say
  if (integer && integer.getType().isSignlessInteger(64))
    return double(integer.getInt());
  return std::nullopt;
}

namespace {

/// Sets a member from its attribute.
struct AttributeReader {
  DictionaryAttr dictionary;

  template <typename Member> void operator()(const SettingRow &row, Member &member) const {
    if (Attribute value = dictionary.get(row.key))
      read(value, member);
  }

  static void read(Attribute value, std::string &member) {
    member = cast<StringAttr>(value).getValue().str();
  }
  static void read(Attribute value, bool &member) { member = cast<BoolAttr>(value).getValue(); }
  static void read(Attribute value, int64_t &member) { member = cast<IntegerAttr>(value).getInt(); }
  static void read(Attribute value, double &member) { member = *numberOf(value, true); }
  static void read(Attribute value, Placement &member) {
    member.parts.clear();
    auto parts = dyn_cast<ArrayAttr>(value);
    for (Attribute part : parts ? parts.getValue() : ArrayRef<Attribute>(value)) {
      if (auto share = dyn_cast<FloatAttr>(part))
        member.parts.back().share = share.getValueAsDouble();
      else if (auto layers = dyn_cast<IntegerAttr>(part))
        member.parts.back().layers = layers.getInt();
      else
        member.parts.push_back({*ParseWord<HomeTier>(cast<StringAttr>(part).getValue())});
    }
  }
  template <typename Enum>
  static std::enable_if_t<std::is_enum_v<Enum>> read(Attribute value, Enum &member) {
    member = *ParseWord<Enum>(cast<StringAttr>(value).getValue());
  }
  template <typename Settings>
  static std::enable_if_t<std::is_class_v<Settings>> read(Attribute value, Settings &member) {
    if (value)
      member.Visit(AttributeReader{cast<DictionaryAttr>(value)});
  }
  template <typename Settings> static void read(Attribute value, std::vector<Settings> &member) {
    for (Attribute section : cast<ArrayAttr>(value))
      read(section, member.emplace_back());
  }
};

/// Makes attributes of members.
struct Writer {
  Builder builder;

  Attribute write(const std::string &member) { return builder.getStringAttr(member); }
  Attribute write(bool member) { return builder.getBoolAttr(member); }
  Attribute write(int64_t member) { return builder.getI64IntegerAttr(member); }
  Attribute write(double member) { return builder.getF64FloatAttr(member); }
  Attribute write(const Placement &member) {
    SmallVector<Attribute> parts;
    for (const Placement::Part &part : member.parts) {
      parts.push_back(write(WordOf(part.tier)));
      if (&part != &member.parts.back())
        parts.push_back(part.layers ? write(part.layers) : write(part.share));
    }
    return parts.size() == 1 ? parts[0] : builder.getArrayAttr(parts);
  }
  template <typename Enum> std::enable_if_t<std::is_enum_v<Enum>, Attribute> write(Enum member) {
    return write(WordOf(member));
  }
  template <typename Settings> Attribute write(const std::vector<Settings> &member) {
    SmallVector<Attribute> list;
    for (const Settings &section : member)
      list.push_back(write(section));
    return builder.getArrayAttr(list);
  }
  /// Leaves out the members that are as by default.
  template <typename Settings>
  std::enable_if_t<std::is_class_v<Settings>, DictionaryAttr> write(const Settings &settings) {
    const DictionaryAttr all = writeAll(settings), absent = writeAll(Settings());
    return builder.getDictionaryAttr(llvm::filter_to_vector(all, [&](NamedAttribute member) {
      return member.getValue() != absent.get(member.getName());
    }));
  }
  template <typename Settings> DictionaryAttr writeAll(const Settings &settings) {
    SmallVector<NamedAttribute> members;
    settings.Visit([&](const SettingRow &row, const auto &member) {
      members.push_back(builder.getNamedAttr(row.key, write(member)));
    });
    return builder.getDictionaryAttr(members);
  }
};

} // namespace

template <typename Settings> Settings readSettings(DictionaryAttr dictionary) {
  Settings settings;
  AttributeReader::read(dictionary, settings);
  return settings;
}
template MachineSettings readSettings(DictionaryAttr);

template <typename Settings>
DictionaryAttr getSettingsAttr(MLIRContext *context, const Settings &settings) {
  return Writer{Builder(context)}.write(settings);
}
template DictionaryAttr getSettingsAttr(MLIRContext *, const ModelSettings &);
template DictionaryAttr getSettingsAttr(MLIRContext *, const TrainSettings &);
template DictionaryAttr getSettingsAttr(MLIRContext *, const PlanSettings &);
template DictionaryAttr getSettingsAttr(MLIRContext *, const MachineSettings &);
template DictionaryAttr getSettingsAttr(MLIRContext *, const ActivationSettings &);

Config::Config(ModuleOp module)
    : model(readSettings<ModelSettings>(getConfig(module, kModelConfig))),
      train(readSettings<TrainSettings>(getConfig(module, kTrainConfig))),
      plan(readSettings<PlanSettings>(getConfig(module, kPlanConfig))),
      machine(readSettings<MachineSettings>(getConfig(module, kMachineConfig))) {}

ActivationSettings getActivation(Operation *op) {
  return readSettings<ActivationSettings>(op->getAttrOfType<DictionaryAttr>(kActivationAttr));
}

Placement readPlace(Attribute place) {
  Placement placement;
  AttributeReader::read(place, placement);
  return placement;
}
Attribute writePlace(MLIRContext *context, const Placement &place) {
  return Writer{Builder(context)}.write(place);
}

} // namespace boa
