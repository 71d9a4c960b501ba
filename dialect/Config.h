//===- Config.h - The configuration on the module ---------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// boa.config @model, @train, @plan and @machine as structs of the table of settings
// (runtime/abi/settings.def), and back. A key is the name of a member. An absent key
// means the default. Reading relies on the verifier of boa.config.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_DIALECT_CONFIG_H
#define BOA_DIALECT_CONFIG_H

#include "dialect/Boa.h"
#include "runtime/abi/settings.h"

namespace boa {

/// All settings of a module.
struct Config {
  ModelSettings model;
  TrainSettings train;
  PlanSettings plan;
  MachineSettings machine;

  Config() = default;
  explicit Config(mlir::ModuleOp module);

  int64_t microBatch() const { return SequencesOfMicroBatch(train, plan); }
  int64_t microBatches() const { return CountMicroBatches(train, plan); }
  /// The memory in which the optimizer works.
  Space updateSpace() const {
    return plan.update == UpdatePlace::device ? Space::device : Space::host;
  }
};

/// The settings of a dictionary, which may be null.
template <typename Settings> Settings readSettings(mlir::DictionaryAttr dictionary);
/// The members that differ from their defaults.
template <typename Settings>
mlir::DictionaryAttr getSettingsAttr(mlir::MLIRContext *context, const Settings &settings);

/// Writes one of them to the module's boa.config `name`, or adds that op.
template <typename Settings>
void writeConfig(mlir::ModuleOp module, llvm::StringRef name, const Settings &settings) {
  setConfig(module, name, getSettingsAttr(module.getContext(), settings));
}

/// What the plan says of the results of an op in a stage's body: boa.activation.
ActivationSettings getActivation(mlir::Operation *op);
/// Checks boa.activation on `op`.
mlir::LogicalResult verifyActivation(mlir::Operation *op, mlir::Attribute value);

/// The value of an i64 attribute, or, if `allowReal`, of one that is a floating-point number.
std::optional<double> numberOf(mlir::Attribute value, bool allowReal);

/// A place as an attribute, "ssd" or ["host", 4.0e-01, "ssd"], of which isPlace holds.
bool isPlace(mlir::Attribute place);
Placement readPlace(mlir::Attribute place);
mlir::Attribute writePlace(mlir::MLIRContext *context, const Placement &place);

inline Tier getTier(HomeTier tier) { return *symbolizeTier(WordOf(tier)); }

} // namespace boa

#endif // BOA_DIALECT_CONFIG_H
