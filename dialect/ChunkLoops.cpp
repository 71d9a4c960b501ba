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

/// Whether an op touches `chunk` alone, and uses it for nothing else, or changes only buffers that
/// its iteration has `opened`.
static bool staysInIteration(AccessOpInterface op, Value chunk, ArrayRef<Value> opened) {
  const SmallVector<StorageAccess> accesses = op.getAccesses();
  auto isOfChunk = [&](const StorageAccess &access) {
    return access.chunk == chunk && access.count == 1;
  };
  if (op.getChunk() == chunk || (!accesses.empty() && llvm::all_of(accesses, isOfChunk)))
    return llvm::count(op->getOperands(), chunk) == 1;
  SmallVector<MemoryEffects::EffectInstance> effects;
  cast<MemoryEffectOpInterface>(*op).getEffects(effects);
  llvm::erase_if(effects, [](const MemoryEffects::EffectInstance &effect) {
    return isa<MemoryEffects::Read>(effect.getEffect());
  });
  return !effects.empty() &&
         llvm::all_of(effects, [&](const MemoryEffects::EffectInstance &effect) {
           return effect.getValue() && llvm::is_contained(opened, effect.getValue());
         });
}

bool canRunAsOne(LoopOp loop) {
  if (loop.getDimension() != Dimension::chunk)
    return false;
  SmallVector<Value> opened;
  for (Operation &op : *loop.getBlock()) {
    auto access = dyn_cast<AccessOpInterface>(op);
    if (access && staysInIteration(access, loop.getInductionVar(), opened))
      llvm::append_range(opened, op.getResults());
    else if (!op.hasTrait<OpTrait::ConstantLike>())
      return false;
  }
  // What is open at the end of an iteration is open in the next.
  return llvm::all_of(opened, [](Value buffer) {
    return llvm::count_if(buffer.getUsers(), [&](Operation *user) {
             return hasEffect<MemoryEffects::Free>(user, buffer);
           }) == 1;
  });
}

LoopOp findLoopBeyond(StepOp step, int64_t most) {
  llvm::DenseSet<StringRef> retained; // storages
  step.walk([&](AccessOpInterface op) {
    if (Value buffer = op.getRetained())
      retained.insert(getStorageOf(buffer));
  });
  auto isOne = [&](LoopOp loop) {
    SmallVector<StringRef> opened;
    for (Operation &op : *loop.getBlock())
      for (Value buffer : op.getResults())
        if (StringRef storage = getStorageOf(buffer); !storage.empty())
          opened.push_back(storage);
    return loop.getOrder() == LoopOrder::forward && canRunAsOne(loop) && !opened.empty() &&
           llvm::none_of(opened, [&](StringRef storage) { return retained.contains(storage); });
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
