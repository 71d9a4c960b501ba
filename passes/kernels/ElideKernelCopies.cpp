//===- ElideKernelCopies.cpp - What is copied is computed in place --------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Assumes straight-line code on static memrefs, after bufferization. A copy from
// a temporary goes away if the temporary could have been its destination all
// along: from the op that first writes it to the copy nothing else touches the
// destination, and afterwards both are only read.
//
//===----------------------------------------------------------------------===//

#include "passes/kernels/KernelPasses.h"
#include "passes/kernels/MemoryAccess.h"

namespace boa {
#define GEN_PASS_DEF_ELIDEKERNELCOPIES
#include "passes/kernels/KernelPasses.h.inc"
} // namespace boa

using namespace mlir;
using namespace boa;

namespace {

/// Whether all users take the memref as it is: they do not mind its strides.
bool hasOnlyPlainUsers(Value memref) {
  return llvm::all_of(memref.getUsers(), [](Operation *user) {
    return isa<linalg::GenericOp, linalg::FillOp>(user) ||
           (isa<DestinationStyleOpInterface>(user) &&
            isa<kernel::KernelDialect>(user->getDialect()));
  });
}

/// Whether the memref is a temporary, or the only view of one.
bool isTemporary(Value memref) {
  if (auto view = memref.getDefiningOp<memref::SubViewOp>()) {
    memref = view.getSource();
    if (!memref.hasOneUse())
      return false;
  }
  return memref.getDefiningOp<memref::AllocOp>() != nullptr;
}

/// Whether `from` may be `to` from its first access to its last.
bool canReplace(Value from, Value to, Operation *copy) {
  Value root = getMemoryRoot(to), fromRoot = getMemoryRoot(from);
  bool started = false, copied = false, overwritten = false;
  for (Operation &op : *copy->getBlock()) {
    if (&op == copy) {
      if (!started)
        return false;
      copied = true;
      continue;
    }
    bool reads = false, writes = false, other = false, otherWrites = false;
    for (const MemoryAccess &access : getMemoryAccesses(&op)) {
      if (access.root == fromRoot) {
        writes |= access.write;
        reads |= !access.write;
      } else if (access.root == root && mayOverlap(access.memref, to)) {
        other = true;
        otherWrites |= access.write;
      }
    }
    started |= reads || writes;
    if (!started)
      continue;
    if (!copied && other)
      return false;
    if (copied && (writes || (reads && (overwritten || otherWrites))))
      return false;
    overwritten |= copied && otherWrites;
  }
  return true;
}

struct ElideKernelCopies : boa::impl::ElideKernelCopiesBase<ElideKernelCopies> {
  void runOnOperation() override {
    KernelOp func = getOperation();
    Block &block = func.getBody().front();
    SmallVector<linalg::GenericOp> copies;
    for (auto op : block.getOps<linalg::GenericOp>())
      if (isCopy(op))
        copies.push_back(op);
    int64_t elided = 0;
    for (linalg::GenericOp copy : copies) {
      Value from = copy.getInputs()[0], to = copy.getOutputs()[0];
      if (from == to) {
        copy.erase();
        ++elided;
        continue;
      }
      if (!isTemporary(from) || !hasOnlyPlainUsers(from) || !canReplace(from, to, copy))
        continue;
      Operation *first = *llvm::min_element(
          from.getUsers(), [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
      hoistMemory(copy, first);
      copy.erase();
      from.replaceAllUsesWith(to);
      ++elided;
    }
    remark::passed(func.getLoc(), kernelRemark("elide-copies"))
        << "in @" << func.getName() << ": " << remark::metric("copies", int64_t(copies.size()))
        << remark::metric("elided", elided);
  }
};

} // namespace
