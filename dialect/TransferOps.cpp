//===- TransferOps.cpp - Buffers for chunks of entries --------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "dialect/EntryAccess.h"

using namespace mlir;

namespace boa {

using Kind = StorageAccess::Kind;

template <typename OpTy> static StorageAccess accessOf(OpTy op, Kind kind) {
  return {kind, op.getStorageAttr(), op.getIndices(), op.getFirst(), 0, int64_t(op.getCount())};
}

/// Checks that chunks have a first one, and a number of 32 bits, as in the runtime's ABI.
template <typename OpTy> static LogicalResult verifyChunks(OpTy op) {
  const int64_t count = op.getCount();
  if (bool(op.getFirst()) == (count != 0) && count >= 0 && count <= kMostExtent)
    return success();
  return op.emitOpError("expected a first chunk and a count of 1 to ")
         << kMostExtent << ", or neither, but found count = " << count;
}

Operation *getOrigin(Value buffer) {
  Operation *op = buffer.getDefiningOp();
  return isa_and_nonnull<PrefetchOp, CreateOp>(op) ? op : nullptr;
}

StringRef storageOf(Value buffer) {
  Operation *op = getOrigin(buffer);
  if (auto prefetch = dyn_cast_or_null<PrefetchOp>(op))
    return prefetch.getStorage();
  if (auto create = dyn_cast_or_null<CreateOp>(op))
    return create.getStorage();
  return {};
}

SmallVector<StorageAccess> PrefetchOp::getAccesses(ModuleOp) {
  StorageAccess access = accessOf(*this, Kind::read);
  access.fresh = getZero();
  return {access};
}
LogicalResult PrefetchOp::verify() { return verifyChunks(*this); }
LogicalResult PrefetchOp::verifySymbolUses(SymbolTableCollection &tables) {
  return verifyAccess(*this, getStorageAttr(), getIndices(), getBuffer().getType().getContents(),
                      tables);
}
void PrefetchOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getBuffer(), getEntryName(*this, getStorageAttr(), getIndices(), bool(getFirst()),
                                    /*made=*/false));
}

SmallVector<StorageAccess> CreateOp::getAccesses(ModuleOp) {
  return {accessOf(*this, Kind::write)};
}
LogicalResult CreateOp::verify() { return verifyChunks(*this); }
LogicalResult CreateOp::verifySymbolUses(SymbolTableCollection &tables) {
  return verifyAccess(*this, getStorageAttr(), getIndices(), getBuffer().getType().getContents(),
                      tables);
}
void CreateOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getBuffer(), getEntryName(*this, getStorageAttr(), getIndices(), bool(getFirst()),
                                    /*made=*/true));
}

bool CopyOp::staysInIteration(Value, ArrayRef<Value> opened) {
  return llvm::is_contained(opened, getTo());
}
LogicalResult CopyOp::verify() {
  if (getFrom().getType().getContents() != getTo().getType().getContents() ||
      (!storageOf(getFrom()).empty() && storageOf(getFrom()) != storageOf(getTo())))
    return emitOpError("expected two buffers of one storage");
  if (!getTo().getDefiningOp<CreateOp>())
    return emitOpError("expected a buffer to fill that boa.create made");
  return success();
}

SmallVector<StorageAccess> OffloadOp::getAccesses(ModuleOp) {
  return {accessOf(*this, Kind::write)};
}
LogicalResult OffloadOp::verify() { return verifyChunks(*this); }
LogicalResult OffloadOp::verifySymbolUses(SymbolTableCollection &tables) {
  return verifyAccess(*this, getStorageAttr(), getIndices(), getBuffer().getType().getContents(),
                      tables);
}

bool ReleaseOp::staysInIteration(Value, ArrayRef<Value> opened) {
  return !getRetain() && llvm::is_contained(opened, getBuffer());
}

} // namespace boa

#define GET_OP_CLASSES
#include "dialect/TransferOps.cpp.inc"
