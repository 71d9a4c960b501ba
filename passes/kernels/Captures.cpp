//===- Captures.cpp - What an outlined body takes along -------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/kernels/Captures.h"
#include "passes/kernels/MemoryAccess.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;
using namespace boa;

static LogicalResult add(Captures &captures, Value value, Operation *outlined) {
  Operation *op = value.getDefiningOp();
  if (auto view = dyn_cast_or_null<kernel::ViewOp>(op)) {
    if (!llvm::is_contained(captures.views, view))
      captures.views.push_back(view);
    return success();
  }
  if (!op || !isMemoryOp(op) || isa<memref::AllocOp>(op))
    return outlined->emitOpError("expected captured values to be views with static offsets");
  for (Value operand : op->getOperands())
    if (failed(add(captures, operand, outlined)))
      return failure();
  captures.repeated.insert(op);
  return success();
}

FailureOr<Captures> Captures::get(Region &region) {
  Captures captures;
  llvm::SetVector<Value> values;
  getUsedValuesDefinedAbove(region, values);
  for (Value value : values)
    if (failed(add(captures, value, region.getParentOp())))
      return failure();
  return captures;
}
