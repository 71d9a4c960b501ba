//===- AttributeReader.h - Settings from attributes -------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the verifier of boa.config and the readers of Config.h share.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_DIALECT_ATTRIBUTEREADER_H
#define BOA_DIALECT_ATTRIBUTEREADER_H

#include "dialect/Config.h"

namespace boa {

/// The value of an i64 attribute, or, if `allowReal`, of one that is a floating-point number.
inline std::optional<double> numberOf(mlir::Attribute value, bool allowReal) {
  if (auto real = mlir::dyn_cast<mlir::FloatAttr>(value); real && allowReal)
    return real.getValueAsDouble();
  auto integer = mlir::dyn_cast<mlir::IntegerAttr>(value); // delay = 1, say
  if (integer && integer.getType().isSignlessInteger(64))
    return double(integer.getInt());
  return std::nullopt;
}

/// Sets a member from its attribute.
struct AttributeReader {
  mlir::DictionaryAttr dictionary;

  template <typename Member> void operator()(const SettingRow &row, Member &member) const {
    if (mlir::Attribute value = dictionary.get(row.key))
      read(value, member);
  }

  template <typename Settings>
  static void readAll(mlir::DictionaryAttr dictionary, Settings &settings) {
    if (dictionary)
      settings.Visit(AttributeReader{dictionary});
  }
  static void read(mlir::Attribute value, std::string &member) {
    member = mlir::cast<mlir::StringAttr>(value).getValue().str();
  }
  static void read(mlir::Attribute value, bool &member) {
    member = mlir::cast<mlir::BoolAttr>(value).getValue();
  }
  static void read(mlir::Attribute value, int64_t &member) {
    member = mlir::cast<mlir::IntegerAttr>(value).getInt();
  }
  static void read(mlir::Attribute value, double &member) { member = *numberOf(value, true); }
  static void read(mlir::Attribute value, Placement &member) {
    member.parts.clear();
    auto parts = mlir::dyn_cast<mlir::ArrayAttr>(value);
    for (mlir::Attribute part : parts ? parts.getValue() : llvm::ArrayRef<mlir::Attribute>(value)) {
      if (auto share = mlir::dyn_cast<mlir::FloatAttr>(part))
        member.parts.back().share = share.getValueAsDouble();
      else if (auto layers = mlir::dyn_cast<mlir::IntegerAttr>(part))
        member.parts.back().layers = layers.getInt();
      else
        member.parts.push_back(
            {*ParseWord<HomeTier>(mlir::cast<mlir::StringAttr>(part).getValue())});
    }
  }
  template <typename Enum>
  static std::enable_if_t<std::is_enum_v<Enum>> read(mlir::Attribute value, Enum &member) {
    member = *ParseWord<Enum>(mlir::cast<mlir::StringAttr>(value).getValue());
  }
  template <typename Settings>
  static std::enable_if_t<std::is_class_v<Settings>> read(mlir::Attribute value, Settings &member) {
    readAll(mlir::cast<mlir::DictionaryAttr>(value), member);
  }
  template <typename Settings>
  static void read(mlir::Attribute value, std::vector<Settings> &member) {
    for (auto section : mlir::cast<mlir::ArrayAttr>(value).getAsRange<mlir::DictionaryAttr>())
      readAll(section, member.emplace_back());
  }
};

} // namespace boa

#endif // BOA_DIALECT_ATTRIBUTEREADER_H
