//===- UpdateOps.cpp - The optimizer's updates and norms ------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "dialect/EntryAccess.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;

namespace boa {

//===----------------------------------------------------------------------===//
// Step phase
//===----------------------------------------------------------------------===//

using Kind = StorageAccess::Kind;

/// The group of that name. Null, with an error, if it does not exist.
static GroupOp findGroup(Operation *op, FlatSymbolRefAttr name, SymbolTableCollection &tables) {
  auto group = tables.lookupNearestSymbolFrom<GroupOp>(op, name);
  if (!group)
    op->emitOpError("names a group that does not exist: ") << name;
  return group;
}
static LogicalResult verifyGroup(Operation *op, FlatSymbolRefAttr name,
                                 SymbolTableCollection &tables) {
  GroupOp group = findGroup(op, name, tables);
  if (group && group.getFrozen())
    return op->emitOpError("expected a group that is trained, but ") << name << " is frozen";
  return success(bool(group));
}

LogicalResult OptimizerUpdateOp::verify() {
  const int64_t first = getFirst(), last = getLast();
  if (first >= 0 && last >= 0 && first <= kMostExtent && last <= kMostExtent)
    return success();
  return emitOpError("expected chunks from 0 to ")
         << kMostExtent << " but found " << first << " to " << last;
}
LogicalResult OptimizerUpdateOp::verifySymbolUses(SymbolTableCollection &tables) {
  return verifyGroup(*this, getGroupAttr(), tables);
}
SmallVector<StorageAccess> OptimizerUpdateOp::getAccesses() {
  SmallVector<StorageAccess> accesses;
  auto add = [&](Kind kind, StringRef storage) {
    const int64_t first = getFirst(), count = int64_t(getLast()) - first;
    auto name = FlatSymbolRefAttr::get(getContext(), storage);
    accesses.push_back({kind, name, {getLayer()}, Value(), first, count});
  };
  add(Kind::read, getStorageName(Role::gradients, getGroup()));
  for (StorageOp storage : getTrainedStorages((*this)->getParentOfType<ModuleOp>(), getGroup()))
    add(Kind::update, storage.getSymName());
  return accesses;
}

LogicalResult GradientNormOp::verifySymbolUses(SymbolTableCollection &tables) {
  return verifyGroup(*this, getGroupAttr(), tables);
}
SmallVector<StorageAccess> GradientNormOp::getAccesses() {
  const std::string gradients = getStorageName(Role::gradients, getGroup());
  return {{Kind::read, FlatSymbolRefAttr::get(getContext(), gradients), {getLayer()}, Value()}};
}

//===----------------------------------------------------------------------===//
// Storage phase
//===----------------------------------------------------------------------===//

/// Checks that `buffer` is of the group's storage for `role`, and holds a packed entry.
static LogicalResult verifyPart(Operation *op, GroupOp group, Role role, Value buffer,
                                ArrayRef<Type> elements) {
  if (!buffer)
    return success();
  std::string expected = getStorageName(role, group.getSymName());
  if (StringRef found = getStorageOf(buffer); !found.empty() && found != expected)
    return op->emitOpError("expected a buffer of @")
           << expected << " as " << getStorageName(role) << " but found one of @" << found;
  Type contents = cast<BufferType>(buffer.getType()).getContents();
  auto tensor = dyn_cast<RankedTensorType>(contents);
  if (tensor && tensor.getRank() == 1 && tensor.getNumElements() == group.getPaddedElements() &&
      llvm::is_contained(elements, tensor.getElementType()))
    return success();
  return op->emitOpError("expected ")
         << getStorageName(role) << " of @" << group.getSymName() << " to be "
         << RankedTensorType::get({group.getPaddedElements()}, elements.front()) << " but found "
         << contents;
}

/// Checks that the buffers are of the group's states, in their order.
static LogicalResult verifyStates(UpdateOp op, GroupOp group) {
  SmallVector<StorageOp, 4> states =
      getTrainedStorages(group->getParentOfType<ModuleOp>(), group.getSymName());
  llvm::erase_if(states, [](StorageOp storage) { return storage.getRole() != Role::state; });
  if (states.size() != op.getStates().size())
    return op.emitOpError("expected ") << states.size() << " states of @" << group.getSymName()
                                       << " but found " << op.getStates().size();
  for (auto [storage, buffer] : llvm::zip(states, op.getStates())) {
    if (StringRef found = getStorageOf(buffer); !found.empty() && found != storage.getSymName())
      return op.emitOpError("expected a buffer of @")
             << storage.getSymName() << " as " << storage.getLabel() << " but found one of @"
             << found;
    Type contents = cast<BufferType>(buffer.getType()).getContents();
    if (contents != storage.getType())
      return op.emitOpError("expected ")
             << storage.getLabel() << " of @" << group.getSymName() << " to be "
             << storage.getType() << " but found " << contents;
  }
  return success();
}

LogicalResult UpdateOp::verifySymbolUses(SymbolTableCollection &tables) {
  GroupOp group = findGroup(*this, getGroupAttr(), tables);
  if (!group)
    return failure();
  Type f32 = Float32Type::get(getContext()), bf16 = BFloat16Type::get(getContext());
  Type i16 = IntegerType::get(getContext(), 16);
  if (failed(verifyPart(*this, group, Role::weights, getWeights(), {f32, bf16})) ||
      failed(verifyPart(*this, group, Role::gradients, getGradient(), {f32})) ||
      failed(verifyPart(*this, group, Role::master, getLow(), {i16})) ||
      failed(verifyStates(*this, group)))
    return failure();
  bool wide = getElementTypeOrSelf(getWeights().getType().getContents()) == f32;
  if (wide == bool(getLow()))
    return emitOpError(wide ? "expected no lower halves: the weights are f32"
                            : "expected the lower halves of the weights, which are bf16");
  return success();
}

LogicalResult NormOp::verifySymbolUses(SymbolTableCollection &tables) {
  GroupOp group = findGroup(*this, getGroupAttr(), tables);
  return failure(!group || failed(verifyPart(*this, group, Role::gradients, getGradient(),
                                             {Float32Type::get(getContext())})));
}

} // namespace boa

#define GET_OP_CLASSES
#include "dialect/UpdateOps.cpp.inc"
