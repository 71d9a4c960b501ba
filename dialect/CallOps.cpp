//===- CallOps.cpp - Calls and launches -----------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Their verifiers: a buffer of another type than what a kernel expects is memory that it writes
// past.
//
//===----------------------------------------------------------------------===//
#include "dialect/CallLayout.h"
#include "dialect/EntryAccess.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;

namespace boa {

//===----------------------------------------------------------------------===//
// Against the function
//===----------------------------------------------------------------------===//

/// Whether an operand may have this type. Weights come as they are stored: f32, or bf16, which the
/// kernel widens.
static bool accepts(const CallSlot &slot, Type found) {
  if (found == slot.type)
    return true;
  auto tensor = dyn_cast<RankedTensorType>(found);
  return slot.kind == CallSlot::Kind::group && tensor &&
         tensor.getShape() == slot.type.getShape() && tensor.getElementType().isBF16();
}

/// Checks the values that a call or launch takes, or gives back, against the slots of the layout.
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
  std::string why = CallLayout::findFault(func);
  if (why.empty())
    return success();
  return op->emitOpError("cannot call ") << callee << ": it " << why;
}

//===----------------------------------------------------------------------===//
// boa.call
//===----------------------------------------------------------------------===//

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

// A result is named after the storage in which it is put.
void CallOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  for (Value result : getOutputs()) {
    std::string name;
    for (Operation *user : result.getUsers()) {
      if (auto write = dyn_cast<WriteOp>(user))
        name = getEntryName(user, write.getStorageAttr(), write.getIndices(), false, /*made=*/true);
      else if (auto add = dyn_cast<AccumulateOp>(user))
        name = getEntryName(user, add.getStorageAttr(), add.getIndices(), false, /*made=*/true);
      if (!name.empty())
        break;
    }
    setName(result, name);
  }
}

//===----------------------------------------------------------------------===//
// boa.launch
//===----------------------------------------------------------------------===//

static SmallVector<Type> contentsOf(OperandRange buffers) {
  return llvm::map_to_vector(
      buffers, [](Value buffer) { return cast<BufferType>(buffer.getType()).getContents(); });
}

/// Checks some buffers of a launch against those of the kernel.
static LogicalResult verifyBuffers(LaunchOp launch, StringRef does, ArrayAttr kernel,
                                   OperandRange buffers) {
  SmallVector<Type> found = contentsOf(buffers);
  if (kernel.size() != found.size())
    return launch.emitOpError("expected ")
           << kernel.size() << " buffers that @" << launch.getKernel() << " " << does
           << " but found " << found.size();
  for (auto [i, type] : llvm::enumerate(kernel.getAsValueRange<TypeAttr>()))
    if (type != found[i])
      return launch.emitOpError("expected buffer ")
             << i << " that @" << launch.getKernel() << " " << does << " to hold " << type
             << " but found " << found[i];
  return success();
}

// A kernel that is not in this module is refused where it is needed.
LogicalResult LaunchOp::verifySymbolUses(SymbolTableCollection &tables) {
  auto kernel = tables.lookupNearestSymbolFrom<KernelOp>(*this, getKernelAttr());
  auto func = tables.lookupNearestSymbolFrom<FunctionOpInterface>(*this, getKernelAttr());
  if (Value prepared = func ? getPrepared() : Value()) {
    PreparedAttr asked = kernel ? kernel.getPreparedAttr() : PreparedAttr();
    Type found = cast<BufferType>(prepared.getType()).getContents();
    if (!asked || asked.getType() != found)
      return emitOpError("has a prepared operand of ")
             << found << " for which " << getKernelAttr() << " does not ask";
  }
  if (kernel)
    return failure(failed(verifyBuffers(*this, "reads", kernel.getReads(), getReads())) ||
                   failed(verifyBuffers(*this, "updates", kernel.getUpdates(), getUpdates())) ||
                   failed(verifyBuffers(*this, "writes", kernel.getWrites(), getWrites())));
  if (!func)
    return success();
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

} // namespace boa

#define GET_OP_CLASSES
#include "dialect/CallOps.cpp.inc"
