//===- Config.cpp - Settings as structs -----------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "dialect/AttributeReader.h"

#include "mlir/IR/Builders.h"

using namespace mlir;

namespace boa {

namespace {

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
  template <typename Settings>
  std::enable_if_t<std::is_class_v<Settings>, Attribute> write(const Settings &settings) {
    return writeAll(settings);
  }
  template <typename Settings> DictionaryAttr writeAll(const Settings &settings) {
    SmallVector<NamedAttribute> members;
    const DictionaryAttr absent = writeDefaults(Settings());
    settings.Visit([&](const SettingRow &row, const auto &member) {
      Attribute value = write(member);
      if (value != absent.get(row.key))
        members.push_back(builder.getNamedAttr(row.key, value));
    });
    return builder.getDictionaryAttr(members);
  }
  template <typename Settings> DictionaryAttr writeDefaults(const Settings &defaults) {
    SmallVector<NamedAttribute> members;
    defaults.Visit([&](const SettingRow &row, const auto &member) {
      members.push_back(builder.getNamedAttr(row.key, write(member)));
    });
    return builder.getDictionaryAttr(members);
  }
};

} // namespace

Config::Config(ModuleOp module) {
  AttributeReader::readAll(getConfig(module, kModelConfig), model);
  AttributeReader::readAll(getConfig(module, kTrainConfig), train);
  AttributeReader::readAll(getConfig(module, kPlanConfig), plan);
  AttributeReader::readAll(getConfig(module, kMachineConfig), machine);
}

ActivationSettings getActivation(Operation *op) {
  ActivationSettings settings;
  AttributeReader::readAll(op->getAttrOfType<DictionaryAttr>(kActivationAttr), settings);
  return settings;
}

Placement readPlace(Attribute place) {
  Placement placement;
  AttributeReader::read(place, placement);
  return placement;
}
Attribute writePlace(MLIRContext *context, const Placement &place) {
  return Writer{Builder(context)}.write(place);
}

DictionaryAttr getSettingsAttr(MLIRContext *context, const ModelSettings &settings) {
  return Writer{Builder(context)}.writeAll(settings);
}
DictionaryAttr getSettingsAttr(MLIRContext *context, const TrainSettings &settings) {
  return Writer{Builder(context)}.writeAll(settings);
}
DictionaryAttr getSettingsAttr(MLIRContext *context, const PlanSettings &settings) {
  return Writer{Builder(context)}.writeAll(settings);
}
DictionaryAttr getSettingsAttr(MLIRContext *context, const MachineSettings &settings) {
  return Writer{Builder(context)}.writeAll(settings);
}
DictionaryAttr getSettingsAttr(MLIRContext *context, const ActivationSettings &settings) {
  return Writer{Builder(context)}.writeAll(settings);
}

} // namespace boa
