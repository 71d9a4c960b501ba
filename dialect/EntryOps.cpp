//===- EntryOps.cpp - Reads and writes of whole entries, as values --------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "dialect/EntryAccess.h"

using namespace mlir;

namespace boa {

using Kind = StorageAccess::Kind;

SmallVector<StorageAccess> ReadOp::getAccesses() {
  return {{Kind::read, getStorageAttr(), getIndices(), Value()}};
}
LogicalResult ReadOp::verifySymbolUses(SymbolTableCollection &tables) {
  return verifyAccess(*this, getStorageAttr(), getIndices(), getValue().getType(), tables);
}
void ReadOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getValue(), getEntryName(*this, getStorageAttr(), getIndices(), false, /*made=*/false));
}

SmallVector<StorageAccess> WriteOp::getAccesses() {
  return {{Kind::write, getStorageAttr(), getIndices(), Value()}};
}
LogicalResult WriteOp::verifySymbolUses(SymbolTableCollection &tables) {
  return verifyAccess(*this, getStorageAttr(), getIndices(), getValue().getType(), tables);
}

SmallVector<StorageAccess> AccumulateOp::getAccesses() {
  return {{Kind::accumulate, getStorageAttr(), getIndices(), Value(), 0, 0, getInitial()}};
}
LogicalResult AccumulateOp::verifySymbolUses(SymbolTableCollection &tables) {
  return verifyAccess(*this, getStorageAttr(), getIndices(), getValue().getType(), tables);
}

} // namespace boa

#define GET_OP_CLASSES
#include "dialect/EntryOps.cpp.inc"
