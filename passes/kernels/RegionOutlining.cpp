//===- RegionOutlining.cpp - From a region to a function ------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/kernels/RegionOutlining.h"
#include "passes/kernels/MemoryAccess.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/MemRef/Utils/MemRefUtils.h"
#include "mlir/Transforms/RegionUtils.h"

#include <numeric>
#include <optional>

using namespace mlir;
using namespace boa;

/// The widest access of any target, which is all that need be known of a slice.
static constexpr int64_t kSliceAlignment = 16;

int64_t CapturedMemory::getAlignment(int64_t most) const {
  return std::gcd(offset, isSlice ? std::min(most, kSliceAlignment) : most);
}

static CapturedMemory asMemory(kernel::ViewOp view) {
  return {view.getMemory(), memrefOf(view.getMemory()), view.getBase(),
          static_cast<int64_t>(view.getOffset())};
}

/// The slice of a view as memory of its own, if its elements lie side by side and `region` does
/// nothing with it that depends on its layout.
static std::optional<CapturedMemory> asMemory(memref::SubViewOp slice, Region &region) {
  auto view = slice.getSource().getDefiningOp<kernel::ViewOp>();
  MemRefType type = slice.getType();
  if (!view || !memref::isStaticShapeAndContiguousRowMajor(type) ||
      !type.getElementType().isIntOrFloat())
    return std::nullopt;
  for (Operation *user : slice->getUsers())
    if (region.isAncestor(user->getParentRegion()) && isMemoryOp(user))
      return std::nullopt;
  auto [strides, offset] = type.getStridesAndOffset();
  CapturedMemory memory = asMemory(view);
  memory.memref = slice;
  memory.type = MemRefType::get(type.getShape(), type.getElementType());
  memory.offset += offset * getElementBytes(type);
  memory.isSlice = true;
  return memory;
}

static LogicalResult add(Captures &captures, Value value, Operation *outlined) {
  Operation *op = value.getDefiningOp();
  if (auto view = dyn_cast_or_null<kernel::ViewOp>(op)) {
    auto isView = [&](const CapturedMemory &memory) { return memory.memref == value; };
    if (llvm::none_of(captures.memory, isView))
      captures.memory.push_back(asMemory(view));
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
  llvm::SetVector<Value> values;
  getUsedValuesDefinedAbove(region, values);
  llvm::DenseMap<Value, unsigned> parts; // of each root
  for (Value value : values)
    if (isa<MemRefType>(value.getType()))
      ++parts[getMemoryRoot(value)];
  Captures captures;
  for (Value value : values) {
    // Arguments are disjoint: of the memory around a slice nothing else may be used.
    if (auto slice = value.getDefiningOp<memref::SubViewOp>();
        slice && parts[getMemoryRoot(value)] == 1)
      if (std::optional<CapturedMemory> memory = asMemory(slice, region)) {
        captures.memory.push_back(*memory);
        continue;
      }
    if (failed(add(captures, value, region.getParentOp())))
      return failure();
  }
  return captures;
}

/// A hash of everything but the function's name and attributes.
static llvm::hash_code computeHash(FunctionOpInterface func) {
  llvm::hash_code hash = hash_value(func.getFunctionType());
  func.getFunctionBody().walk([&](Operation *op) {
    hash = llvm::hash_combine(
        hash, OperationEquivalence::computeHash(op, OperationEquivalence::ignoreHashValue,
                                                OperationEquivalence::ignoreHashValue,
                                                OperationEquivalence::IgnoreLocations));
  });
  return hash;
}

FunctionOpInterface DistinctFunctions::find(FunctionOpInterface func) {
  SmallVectorImpl<FunctionOpInterface> &earlier = byHash[computeHash(func)];
  StringAttr name = func.getNameAttr();
  auto isSame = [&](FunctionOpInterface other) {
    func.setName(other.getNameAttr());
    bool same =
        OperationEquivalence::isEquivalentTo(func, other, OperationEquivalence::IgnoreLocations);
    func.setName(name);
    return same;
  };
  if (auto *same = llvm::find_if(earlier, isSame); same != earlier.end())
    return *same;
  earlier.push_back(func);
  return func;
}
