//===- TransferOps.cpp - Buffers for chunks of entries --------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "dialect/EntryAccess.h"

#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;

namespace boa {

/// Checks that chunks have a first one, and a number of 32 bits, as in the runtime's ABI.
template <typename OpTy> static LogicalResult verifyChunks(OpTy op) {
  const int64_t count = op.getCount();
  if (bool(op.getFirst()) == (count != 0) && count >= 0 && count <= kMostExtent)
    return success();
  return op.emitOpError("expected a first chunk and a count of 1 to ")
         << kMostExtent << ", or neither, but found count = " << count;
}

AccessOpInterface getOrigin(Value buffer) {
  return isa<BufferType>(buffer.getType()) ? buffer.getDefiningOp<AccessOpInterface>()
                                           : AccessOpInterface();
}

bool computes(Operation *op) {
  auto access = dyn_cast<AccessOpInterface>(op);
  return access && (access.getQueue() == Queue::compute || access.getQueue() == Queue::optimizer) &&
         llvm::any_of(op->getOperandTypes(), llvm::IsaPred<BufferType>);
}

bool touches(Operation *op, StringRef storage, bool writes) {
  auto access = dyn_cast<AccessOpInterface>(op);
  return access && llvm::any_of(access.getAccesses(), [&](const StorageAccess &touched) {
           return touched.storage.getValue() == storage && (!writes || touched.writes());
         });
}

llvm::StringMap<SmallVector<Operation *, 4>> findAccesses(Block &block, bool writes) {
  llvm::StringMap<SmallVector<Operation *, 4>> found;
  block.walk([&](AccessOpInterface op) {
    for (const StorageAccess &access : op.getAccesses())
      if (!writes || access.writes())
        found[access.storage.getValue()].push_back(op);
  });
  return found;
}

StringRef getStorageOf(Value buffer) {
  AccessOpInterface origin = getOrigin(buffer);
  return origin ? origin.getAccesses()[0].storage.getValue() : StringRef();
}

bool isSameIndex(Value a, Value b) {
  return a == b || isEqualConstantIntOrValue(getAsOpFoldResult(a), getAsOpFoldResult(b));
}

void PrefetchOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getBuffer(), getEntryName(*this, getStorageAttr(), getIndices(), bool(getFirst()),
                                    /*made=*/false));
}

void CreateOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getBuffer(), getEntryName(*this, getStorageAttr(), getIndices(), bool(getFirst()),
                                    /*made=*/true));
}

LogicalResult CopyOp::verify() {
  if (getFrom().getType().getContents() != getTo().getType().getContents() ||
      (getOrigin(getFrom()) && getStorageOf(getFrom()) != getStorageOf(getTo())))
    return emitOpError("expected two buffers of one storage");
  if (!getTo().getDefiningOp<CreateOp>())
    return emitOpError("expected a buffer to fill that boa.create made");
  return success();
}

Value ReleaseOp::getRetained() { return getRetain() ? getBuffer() : Value(); }
void ReleaseOp::getEffects(SmallVectorImpl<MemoryEffects::EffectInstance> &effects) {
  effects.emplace_back(MemoryEffects::Free::get(), &getBufferMutable());
  if (getRetain()) // a copy that a later prefetch finds
    effects.emplace_back(MemoryEffects::Write::get());
}

} // namespace boa

#define GET_OP_CLASSES
#include "dialect/TransferOps.cpp.inc"
