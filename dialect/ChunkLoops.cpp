//===- ChunkLoops.cpp - Loops whose iterations are one --------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "dialect/ChunkLoops.h"

#include "llvm/ADT/DenseSet.h"

using namespace mlir;

namespace boa {

/// The chunks that an op touches. An optimizer_update looks up its storages in the module, which
/// may not be verified yet. In a loop over chunks it is never one that runs as one.
static SmallVector<StorageAccess> accessesOf(AccessOpInterface op) {
  return isa<OptimizerUpdateOp>(op) ? SmallVector<StorageAccess>()
                                    : op.getAccesses(op->getParentOfType<ModuleOp>());
}

/// Whether an op touches one chunk of a storage, `chunk`, and uses that for nothing else.
static bool touchesOnly(AccessOpInterface op, Value chunk) {
  const SmallVector<StorageAccess> accesses = accessesOf(op);
  return accesses.size() == 1 && accesses[0].chunk == chunk && accesses[0].count == 1 &&
         llvm::count(op->getOperands(), chunk) == 1;
}

/// Whether an op in a loop over chunks does nothing that other iterations see. `opened`: the
/// buffers that its iteration has opened.
static bool isApart(Operation *op, Value chunk, ArrayRef<Value> opened) {
  if (auto accesses = dyn_cast<AccessOpInterface>(op))
    return touchesOnly(accesses, chunk);
  // Of an entry that is open around the loop, an update touches its chunk.
  if (auto update = dyn_cast<UpdateOp>(op))
    return update.getChunk() == chunk && llvm::count(op->getOperands(), chunk) == 1;
  if (llvm::is_contained(op->getOperands(), chunk))
    return false;
  if (auto copy = dyn_cast<CopyOp>(op))
    return llvm::is_contained(opened, copy.getTo());
  if (auto release = dyn_cast<ReleaseOp>(op))
    return !release.getRetain() && llvm::is_contained(opened, release.getBuffer());
  return op->hasTrait<OpTrait::ConstantLike>();
}

bool canRunAsOne(LoopOp loop) {
  if (loop.getDimension() != Dimension::chunk)
    return false;
  SmallVector<Value> opened;
  for (Operation &op : *loop.getBlock()) {
    if (!isApart(&op, loop.getInductionVar(), opened))
      return false;
    if (isa<AccessOpInterface>(op))
      llvm::append_range(opened, op.getResults());
  }
  // What is open at the end of an iteration is open in the next.
  return llvm::all_of(opened, [](Value buffer) {
    return llvm::count_if(buffer.getUsers(),
                          [](Operation *user) { return isa<ReleaseOp>(user); }) == 1;
  });
}

/// The storages whose buffers an op opens.
static SmallVector<StringAttr> storagesOpenedBy(Operation *op) {
  SmallVector<StringAttr> storages;
  if (auto accesses = dyn_cast<AccessOpInterface>(op); accesses && op->getNumResults() > 0)
    for (const StorageAccess &access : accessesOf(accesses))
      storages.push_back(access.storage.getAttr());
  return storages;
}

LoopOp findLoopBeyond(StepOp step, int64_t most) {
  llvm::DenseSet<StringAttr> retained; // storages
  step.walk([&](ReleaseOp release) {
    if (Operation *opened = release.getBuffer().getDefiningOp(); opened && release.getRetain())
      retained.insert_range(storagesOpenedBy(opened));
  });
  auto isOne = [&](LoopOp loop) {
    SmallVector<StringAttr> opened;
    for (Operation &op : *loop.getBlock())
      llvm::append_range(opened, storagesOpenedBy(&op));
    return loop.getOrder() == LoopOrder::forward && canRunAsOne(loop) && !opened.empty() &&
           llvm::none_of(opened, [&](StringAttr storage) { return retained.contains(storage); });
  };
  Checked total = 0;
  LoopOp beyond;
  step.walk<WalkOrder::PreOrder>([&](LoopOp loop) {
    Checked runs = isOne(loop) ? 1 : loop.getTripCount();
    for (auto around = dyn_cast<LoopOp>(loop->getParentOp()); around;
         around = dyn_cast<LoopOp>(around->getParentOp()))
      runs *= around.getTripCount();
    total += runs;
    if (total.AtMost(most))
      return WalkResult::advance();
    beyond = loop;
    return WalkResult::interrupt();
  });
  return beyond;
}

} // namespace boa
