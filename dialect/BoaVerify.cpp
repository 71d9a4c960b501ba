//===- BoaVerify.cpp - Verifiers of what names another symbol -------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Accesses against the storages that they name, calls and launches against the
// function, updates against the group: a buffer of another type than what a kernel
// expects is memory that it writes past.
//
//===----------------------------------------------------------------------===//
#include "dialect/Boa.h"
#include "dialect/CallLayout.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;

namespace boa {

//===----------------------------------------------------------------------===//
// Symbols: storages, groups, functions
//===----------------------------------------------------------------------===//

static LogicalResult verifyGroup(Operation *op, FlatSymbolRefAttr name,
                                 SymbolTableCollection &tables) {
  auto group = tables.lookupNearestSymbolFrom<GroupOp>(op, name);
  if (!group)
    return op->emitOpError("names a group that does not exist: ") << name;
  if (group.getFrozen())
    return op->emitOpError("expected a group that is trained, but ") << name << " is frozen";
  return success();
}
LogicalResult OptimizerUpdateOp::verifySymbolUses(SymbolTableCollection &tables) {
  return verifyGroup(*this, getGroupAttr(), tables);
}
LogicalResult GradientNormOp::verifySymbolUses(SymbolTableCollection &tables) {
  return verifyGroup(*this, getGroupAttr(), tables);
}

/// The storage must exist, be indexed in all its dimensions and, where `value`
/// is given, have entries of that type.
static LogicalResult verifyAccess(Operation *op, FlatSymbolRefAttr name, OperandRange indices,
                                  Type value, SymbolTableCollection &tables) {
  auto storage = tables.lookupNearestSymbolFrom<StorageOp>(op, name);
  if (!storage)
    return op->emitOpError("names a storage that does not exist: ") << name;
  if (indices.size() != storage.getDims().size())
    return op->emitOpError("expected ") << storage.getDims().size() << " indices of " << name;
  if (value && value != storage.getType()) {
    InFlightDiagnostic diag = op->emitOpError("expected an entry of ")
                              << name << ", " << storage.getType() << ", but found " << value;
    diag.attachNote(storage.getLoc()) << "the storage is declared here";
    return diag;
  }
  return success();
}
LogicalResult ReadOp::verifySymbolUses(SymbolTableCollection &tables) {
  return verifyAccess(*this, getStorageAttr(), getIndices(), getValue().getType(), tables);
}
LogicalResult WriteOp::verifySymbolUses(SymbolTableCollection &tables) {
  return verifyAccess(*this, getStorageAttr(), getIndices(), getValue().getType(), tables);
}
LogicalResult AccumulateOp::verifySymbolUses(SymbolTableCollection &tables) {
  return verifyAccess(*this, getStorageAttr(), getIndices(), getValue().getType(), tables);
}
LogicalResult PrefetchOp::verifySymbolUses(SymbolTableCollection &tables) {
  return verifyAccess(*this, getStorageAttr(), getIndices(), getBuffer().getType().getContents(),
                      tables);
}
LogicalResult CreateOp::verifySymbolUses(SymbolTableCollection &tables) {
  return verifyAccess(*this, getStorageAttr(), getIndices(), getBuffer().getType().getContents(),
                      tables);
}
LogicalResult OffloadOp::verifySymbolUses(SymbolTableCollection &tables) {
  return verifyAccess(*this, getStorageAttr(), getIndices(), getBuffer().getType().getContents(),
                      tables);
}
//===----------------------------------------------------------------------===//
// Calls and launches: against the function
//===----------------------------------------------------------------------===//

/// Weights come as they are stored: f32, or bf16, which the kernel widens.
static bool accepts(const CallSlot &slot, Type found) {
  if (found == slot.type)
    return true;
  auto tensor = dyn_cast<RankedTensorType>(found);
  return slot.kind == CallSlot::Kind::group && tensor &&
         tensor.getShape() == slot.type.getShape() && tensor.getElementType().isBF16();
}

/// Of what a call or launch gives, or takes back, against the slots of the layout.
static LogicalResult verifySlots(Operation *op, FlatSymbolRefAttr callee, StringRef what,
                                 ArrayRef<CallSlot> slots, ArrayRef<Type> found, bool input) {
  if (slots.size() != found.size())
    return op->emitOpError("expected ")
           << slots.size() << " " << what << "s of " << callee << " but found " << found.size();
  for (auto [i, slot] : llvm::enumerate(slots))
    if (input ? !accepts(slot, found[i]) : found[i] != slot.type) {
      InFlightDiagnostic diag = op->emitOpError("expected ")
                                << what << " " << i << " of " << callee << " to be " << slot.type;
      if (!slot.group.empty())
        diag << ", of group " << slot.group << ",";
      return diag << " but found " << found[i];
    }
  return success();
}

static LogicalResult verifyLayout(Operation *op, FlatSymbolRefAttr callee,
                                  FunctionOpInterface func) {
  std::string why = CallLayout::whyNot(func);
  if (why.empty())
    return success();
  return op->emitOpError("cannot call ") << callee << ": it " << why;
}

LogicalResult CallOp::verifySymbolUses(SymbolTableCollection &tables) {
  auto func = tables.lookupNearestSymbolFrom<FunctionOpInterface>(*this, getCalleeAttr());
  if (!func)
    return emitOpError("expected a function named @") << getCallee();
  if (failed(verifyLayout(*this, getCalleeAttr(), func)))
    return failure();
  CallLayout layout = CallLayout::get(func);
  if (failed(verifySlots(*this, getCalleeAttr(), "operand", layout.inputs,
                         llvm::to_vector(getInputs().getTypes()), /*input=*/true)))
    return failure();
  return verifySlots(*this, getCalleeAttr(), "result", layout.outputs,
                     llvm::to_vector(getOutputs().getTypes()), /*input=*/false);
}

static SmallVector<Type> contentsOf(OperandRange buffers) {
  return llvm::map_to_vector(
      buffers, [](Value buffer) { return cast<BufferType>(buffer.getType()).getContents(); });
}

/// What a kernel's buffers hold, noted when it was made of a function.
static LogicalResult verifyContents(LaunchOp launch, ArrayAttr contents) {
  SmallVector<Type> found = contentsOf(launch.getOperands());
  if (contents.size() != found.size())
    return launch.emitOpError("expected ") << contents.size() << " buffers of @"
                                           << launch.getKernel() << " but found " << found.size();
  for (auto [i, type] : llvm::enumerate(contents.getAsValueRange<TypeAttr>()))
    if (type != found[i])
      return launch.emitOpError("expected buffer ")
             << i << " of @" << launch.getKernel() << " to hold " << type << " but found "
             << found[i];
  return success();
}

// A kernel that is not in this module is refused where it is needed.
LogicalResult LaunchOp::verifySymbolUses(SymbolTableCollection &tables) {
  auto func = tables.lookupNearestSymbolFrom<FunctionOpInterface>(*this, getKernelAttr());
  if (!func)
    return success();
  if (func->hasAttr(kKernelAttr)) {
    auto contents = func->getAttrOfType<ArrayAttr>(kContentsAttr);
    return contents ? verifyContents(*this, contents) : success();
  }
  if (failed(verifyLayout(*this, getKernelAttr(), func)))
    return failure();
  CallLayout layout = CallLayout::get(func);
  if (failed(verifySlots(*this, getKernelAttr(), "operand", layout.inputs, contentsOf(getReads()),
                         /*input=*/true)) ||
      failed(verifySlots(*this, getKernelAttr(), "gradient", layout.updates(),
                         contentsOf(getUpdates()),
                         /*input=*/false)))
    return failure();
  return verifySlots(*this, getKernelAttr(), "other result", layout.writes(),
                     contentsOf(getWrites()),
                     /*input=*/false);
}

//===----------------------------------------------------------------------===//
// Updates and norms: against the group
//===----------------------------------------------------------------------===//

/// The storage of a buffer; empty if what made it is not known.
static StringRef storageOf(Value buffer) {
  Operation *op = getOrigin(buffer);
  if (auto prefetch = dyn_cast_or_null<PrefetchOp>(op))
    return prefetch.getStorage();
  if (auto create = dyn_cast_or_null<CreateOp>(op))
    return create.getStorage();
  return {};
}

LogicalResult CopyOp::verify() {
  if (getFrom().getType().getContents() != getTo().getType().getContents() ||
      (!storageOf(getFrom()).empty() && storageOf(getFrom()) != storageOf(getTo())))
    return emitOpError("expected two buffers of one storage");
  if (!getTo().getDefiningOp<CreateOp>())
    return emitOpError("expected a buffer to fill that boa.create made");
  return success();
}

/// `buffer` must be of the group's storage for `role`, and hold a packed entry.
static LogicalResult verifyPart(Operation *op, GroupOp group, Role role, Value buffer,
                                ArrayRef<Type> elements) {
  if (!buffer)
    return success();
  std::string expected = getStorageName(role, group.getSymName());
  if (StringRef found = storageOf(buffer); !found.empty() && found != expected)
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

/// The buffers must be of the group's states, in their order.
static LogicalResult verifyStates(UpdateOp op, GroupOp group) {
  SmallVector<StorageOp, 4> states =
      getTrainedStorages(group->getParentOfType<ModuleOp>(), group.getSymName());
  llvm::erase_if(states, [](StorageOp storage) { return storage.getRole() != Role::state; });
  if (states.size() != op.getStates().size())
    return op.emitOpError("expected ") << states.size() << " states of @" << group.getSymName()
                                       << " but found " << op.getStates().size();
  for (auto [storage, buffer] : llvm::zip(states, op.getStates())) {
    if (StringRef found = storageOf(buffer); !found.empty() && found != storage.getSymName())
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
  auto group = tables.lookupNearestSymbolFrom<GroupOp>(*this, getGroupAttr());
  if (!group)
    return emitOpError("names a group that does not exist: ") << getGroupAttr();
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
  auto group = tables.lookupNearestSymbolFrom<GroupOp>(*this, getGroupAttr());
  if (!group)
    return emitOpError("names a group that does not exist: ") << getGroupAttr();
  return verifyPart(*this, group, Role::gradients, getGradient(), {Float32Type::get(getContext())});
}

} // namespace boa
