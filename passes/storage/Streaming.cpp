//===- Streaming.cpp ------------------------------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/storage/Streaming.h"

using namespace mlir;

namespace boa {

bool worksOn(Operation *op, StringRef storage) {
  if (llvm::any_of(op->getOperands(), [&](Value value) { return getStorageOf(value) == storage; }))
    return true;
  const StringRef group = cast<AccessOpInterface>(op).getGroup();
  return !group.empty() &&
         llvm::any_of(ArrayRef{Role::weights, Role::gradients, Role::master},
                      [&](Role role) { return getStorageName(role, group) == storage; });
}

bool StreamedStorages::mustYield(StringRef storage, Operation *op) const {
  if (!contains(storage))
    return false;
  auto walked = op->walk([&](Operation *inner) {
    return computes(inner) && !worksOn(inner, storage) ? WalkResult::interrupt()
                                                       : WalkResult::advance();
  });
  return walked.wasInterrupted();
}

} // namespace boa
