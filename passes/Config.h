//===- Config.h - The configuration on the module ---------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Typed reading of boa.config @train and boa.config @machine, whose fields
// dialect/BoaDialect.td lists.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_PASSES_CONFIG_H
#define BOA_PASSES_CONFIG_H

#include "dialect/Boa.h"
#include "runtime/abi.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinOps.h"

namespace boa {

/// A dictionary with typed access; absent fields give the fallback.
class Config {
public:
  explicit Config(mlir::DictionaryAttr dictionary) : dictionary(dictionary) {}
  static Config train(mlir::ModuleOp module) { return Config(getConfig(module, kTrainConfig)); }
  static Config machine(mlir::ModuleOp module) { return Config(getConfig(module, kMachineConfig)); }

  int64_t integer(llvm::StringRef key, int64_t fallback = 0) const {
    auto attr = get<mlir::IntegerAttr>(key);
    return attr ? attr.getInt() : fallback;
  }
  double real(llvm::StringRef key, double fallback = 0) const {
    if (auto attr = get<mlir::FloatAttr>(key))
      return attr.getValueAsDouble();
    auto whole = get<mlir::IntegerAttr>(key); // delay = 1, say
    return whole ? double(whole.getInt()) : fallback;
  }
  bool flag(llvm::StringRef key, bool fallback) const {
    auto attr = get<mlir::BoolAttr>(key);
    return attr ? attr.getValue() : fallback;
  }
  std::string string(llvm::StringRef key, llvm::StringRef fallback = "") const {
    auto attr = get<mlir::StringAttr>(key);
    return attr ? attr.str() : fallback.str();
  }
  Config section(llvm::StringRef key) const { return Config(get<mlir::DictionaryAttr>(key)); }
  mlir::ArrayAttr list(llvm::StringRef key) const { return get<mlir::ArrayAttr>(key); }
  mlir::Attribute attribute(llvm::StringRef key) const { return get<mlir::Attribute>(key); }

  /// Whether the first update of a step must know its global gradient norm: to
  /// clip by it, or to leave the step out.
  bool needsNorm() const { return boa_needs_norm(real("clip"), skipsNonfinite()); }
  bool skipsNonfinite() const { return string("nonfinite") == "skip"; }

  /// Micro-batches of one step.
  int64_t microBatches() const {
    return integer("batch", 1) / std::max<int64_t>(1, integer("micro_batch", 1));
  }

private:
  template <typename T> T get(llvm::StringRef key) const {
    return dictionary ? dictionary.getAs<T>(key) : T();
  }
  mlir::DictionaryAttr dictionary;
};

} // namespace boa

#endif // BOA_PASSES_CONFIG_H
