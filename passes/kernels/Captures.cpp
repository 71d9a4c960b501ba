//===- Captures.cpp - What an outlined body takes along -------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/kernels/Captures.h"
#include "passes/kernels/MemoryAccess.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/MemRef/Utils/MemRefUtils.h"
#include "mlir/Transforms/RegionUtils.h"

#include "llvm/ADT/MapVector.h"

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

/// What every view is aligned to, in bytes.
constexpr int64_t kViewAlignment = 64;

/// The slice of a view as a view, if its elements lie side by side; else null.
static Value asView(memref::SubViewOp slice) {
  auto view = slice.getSource().getDefiningOp<kernel::ViewOp>();
  auto type = slice.getType();
  if (!view || !memref::isStaticShapeAndContiguousRowMajor(type))
    return Value();
  auto [strides, offset] = type.getStridesAndOffset();
  offset = view.getOffset() + offset * type.getElementTypeBitWidth() / 8;
  if (offset % kViewAlignment != 0)
    return Value();
  OpBuilder builder(slice);
  return kernel::ViewOp::create(builder, slice.getLoc(),
                                MemRefType::get(type.getShape(), type.getElementType()),
                                view.getBase(), offset);
}

/// Different views are disjoint: nothing else of the memory may be used inside.
static void detachSlices(Region &region) {
  llvm::SetVector<Value> values;
  getUsedValuesDefinedAbove(region, values);
  llvm::MapVector<Value, SmallVector<Value>> parts;
  for (Value value : values)
    if (isa<MemRefType>(value.getType()))
      parts[getMemoryRoot(value)].push_back(value);
  for (auto &[root, values] : parts)
    if (auto slice = values[0].getDefiningOp<memref::SubViewOp>(); slice && values.size() == 1)
      if (Value view = asView(slice))
        replaceAllUsesInRegionWith(slice, view, region);
}

FailureOr<Captures> Captures::get(Region &region) {
  detachSlices(region);
  Captures captures;
  llvm::SetVector<Value> values;
  getUsedValuesDefinedAbove(region, values);
  for (Value value : values)
    if (failed(add(captures, value, region.getParentOp())))
      return failure();
  return captures;
}

FunctionOpInterface boa::findSame(FunctionOpInterface func, ArrayRef<FunctionOpInterface> earlier) {
  StringAttr name = func.getNameAttr();
  auto isSame = [&](FunctionOpInterface other) {
    func.setName(other.getNameAttr());
    bool same =
        OperationEquivalence::isEquivalentTo(func, other, OperationEquivalence::IgnoreLocations);
    func.setName(name);
    return same;
  };
  auto *same = llvm::find_if(earlier, isSame);
  return same == earlier.end() ? FunctionOpInterface() : *same;
}
