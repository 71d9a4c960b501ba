//===- EntryOps.cpp - Reads and writes of whole entries, as values --------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "dialect/EntryAccess.h"

using namespace mlir;

namespace boa {

void ReadOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getValue(), getEntryName(*this, getStorageAttr(), getIndices(), false, /*made=*/false));
}

} // namespace boa

#define GET_OP_CLASSES
#include "dialect/EntryOps.cpp.inc"
