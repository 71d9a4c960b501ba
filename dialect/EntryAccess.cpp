//===- EntryAccess.cpp - How ops name an entry of a storage ---------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A value is named after its meaning: a buffer after the role of its storage. The description of
// the dialect lists the names.
//
//===----------------------------------------------------------------------===//
#include "dialect/EntryAccess.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/SymbolTable.h"

using namespace mlir;

namespace boa {

LogicalResult verifyAccess(Operation *op, FlatSymbolRefAttr name, OperandRange indices, Type value,
                           SymbolTableCollection &tables) {
  auto storage = tables.lookupNearestSymbolFrom<StorageOp>(op, name);
  if (!storage)
    return op->emitOpError("names a storage that does not exist: ") << name;
  if (indices.size() != storage.getDims().size())
    return op->emitOpError("expected ") << storage.getDims().size() << " indices of " << name;
  if (value != storage.getType()) {
    InFlightDiagnostic diag = op->emitOpError("expected an entry of ")
                              << name << ", " << storage.getType() << ", but found " << value;
    diag.attachNote(storage.getLoc()) << "the storage is declared here";
    return diag;
  }
  return success();
}

/// The name of what a storage holds. `made` says that it is a result that is written, as opposed to
/// an operand that is read.
static StringRef getRoleName(StorageOp storage, bool made) {
  switch (storage.getRole()) {
  case Role::weights:
    return "w";
  case Role::master:
    return "low";
  case Role::gradients:
    return "g";
  case Role::checkpoints:
    return made ? "y" : "x";
  case Role::boundary_gradients:
    return made ? "dx" : "dy";
  case Role::loss_gradients:
    return "dloss";
  default:
    return storage.getLabel();
  }
}

std::string getEntryName(Operation *op, FlatSymbolRefAttr name, ValueRange indices, bool chunk,
                         bool made) {
  auto storage = name ? SymbolTable::lookupNearestSymbolFrom<StorageOp>(op, name) : StorageOp();
  if (!storage)
    return {};
  if (storage.getRole() == Role::input)
    return storage.getLabel().str();
  std::string result = getRoleName(storage, made).str();
  // "weights.block", "saved.block.bf16", "saved.block.q"
  auto [stage, type] = storage.getSymName().split('.').second.split('.');
  APInt layer;
  if (!indices.empty() && !isLayerIndex(indices.front())) {
    if (!stage.empty())
      result += ("." + stage).str();
    else if (matchPattern(indices.front(), m_ConstantInt(&layer)))
      result += "." + std::to_string(layer.getSExtValue());
  }
  if (!type.empty())
    result += ("." + type).str();
  return chunk ? result + ".c" : result;
}

} // namespace boa
