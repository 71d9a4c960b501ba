//===- Activations.cpp ----------------------------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/model/Activations.h"

#include "dialect/Config.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;

namespace boa {

StringRef getActivationName(Operation *op) {
  auto name = op->getAttrOfType<StringAttr>(kNameAttr);
  return name ? name.getValue() : op->getName().stripDialect();
}

bool isFree(Operation *op) {
  auto cost = dyn_cast<CostOpInterface>(op);
  return isa<arith::ConstantOp>(op) || (cost && cost.getFlops() == 0) ||
         (isa<CastOp>(op) && isa<BlockArgument>(op->getOperand(0)));
}

bool isComputedAgain(Operation *op) { return isFree(op) || !getActivation(op).save; }

Attribute getOwnPlace(Operation *op) {
  const Placement place = getActivation(op).place;
  return place.parts.empty() ? Attribute() : writePlace(op->getContext(), place);
}

LogicalResult verifyActivations(func::FuncOp forward) {
  llvm::StringMap<Operation *> firstOf; // of those that may be saved, by name
  for (Operation &op : forward.getBody().front().without_terminator()) {
    if (isFree(&op) && op.hasAttr(kActivationAttr))
      return op.emitOpError("costs nothing, so it is always computed again: expected "
                            "boa.activation on what it is computed from");
    if (isComputedAgain(&op))
      continue;
    StringRef name = getActivationName(&op);
    Operation *first = firstOf.try_emplace(name, &op).first->second;
    if (getOwnPlace(first) == getOwnPlace(&op))
      continue;
    InFlightDiagnostic diag = op.emitOpError("has another place than a value of the same name, ")
                              << name << ": expected a boa.name of its own";
    diag.attachNote(first->getLoc()) << "the other value is here";
    return diag;
  }
  return success();
}

void dropActivationAttrs(func::FuncOp func) {
  for (Operation &op : func.getBody().front())
    for (StringRef name : {StringRef(kNameAttr), StringRef(kActivationAttr)})
      op.removeDiscardableAttr(name);
}

} // namespace boa
