//===- ChunkLoops.cpp - Loops whose iterations are one --------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "dialect/ChunkLoops.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace boa {

/// Whether an op uses `chunk` as the one chunk that it is about, if at all.
static bool isAboutChunk(Operation *op, Value chunk) {
  unsigned uses = llvm::count(op->getOperands(), chunk);
  if (uses == 0)
    return true;
  auto one = [&](auto access) { return access.getFirst() == chunk && access.getCount() == 1; };
  return uses == 1 && llvm::TypeSwitch<Operation *, bool>(op)
                          .Case<PrefetchOp, CreateOp, OffloadOp>(one)
                          .Case([&](UpdateOp update) { return update.getChunk() == chunk; })
                          .Default(false);
}

bool canRunAsOne(LoopOp loop) {
  if (loop.getDimension() != Dimension::chunk)
    return false;
  Value chunk = loop.getInductionVar();
  SmallVector<Value> opened;
  for (Operation &op : *loop.getBlock()) {
    if (!isa<PrefetchOp, CreateOp, CopyOp, OffloadOp, ReleaseOp, UpdateOp, arith::ConstantOp>(op) ||
        !isAboutChunk(&op, chunk))
      return false;
    if (auto prefetch = dyn_cast<PrefetchOp>(op); prefetch && prefetch.getFirst() != chunk)
      return false;
    if (auto create = dyn_cast<CreateOp>(op); create && create.getFirst() != chunk)
      return false;
    if (auto offload = dyn_cast<OffloadOp>(op); offload && offload.getFirst() != chunk)
      return false;
    if (auto update = dyn_cast<UpdateOp>(op); update && update.getChunk() != chunk)
      return false;
    if (auto copy = dyn_cast<CopyOp>(op); copy && !llvm::is_contained(opened, copy.getTo()))
      return false;
    if (isa<PrefetchOp, CreateOp>(op))
      opened.push_back(op.getResult(0));
    if (auto release = dyn_cast<ReleaseOp>(op))
      if (release.getRetain() || !llvm::is_contained(opened, release.getBuffer()))
        return false;
  }
  // What is open at the end of an iteration is open in the next.
  return llvm::all_of(opened, [](Value buffer) {
    return llvm::count_if(buffer.getUsers(),
                          [](Operation *user) { return isa<ReleaseOp>(user); }) == 1;
  });
}

/// The storage of a buffer that an op opens; null: it opens none.
static StringAttr storageOf(Operation *op) {
  return llvm::TypeSwitch<Operation *, StringAttr>(op)
      .Case<PrefetchOp, CreateOp>([](auto open) { return open.getStorageAttr().getAttr(); })
      .Default(StringAttr());
}

LoopOp findLoopBeyond(StepOp step, int64_t most) {
  llvm::DenseSet<StringAttr> retained; // storages
  step.walk([&](ReleaseOp release) {
    if (Operation *opened = release.getBuffer().getDefiningOp(); opened && release.getRetain())
      retained.insert(storageOf(opened));
  });
  auto isOne = [&](LoopOp loop) {
    SmallVector<StringAttr> opened;
    for (Operation &op : *loop.getBlock())
      if (StringAttr storage = storageOf(&op))
        opened.push_back(storage);
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
