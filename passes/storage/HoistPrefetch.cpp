//===- HoistPrefetch.cpp - --boa-hoist-prefetch ---------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Loop-invariant transfers leave their loop, inside out. Legal where the loop
// touches the storage through that one buffer only, and each iteration finds
// there what the one before it wrote home. Then prefetches rise to the top of
// their block. A move after which the program would compute something else is not
// made. How far the runtime looks ahead beyond that is the number of slots
// (--boa-assign-buffers): commands wait for slots, not the program.
//
//===----------------------------------------------------------------------===//
#include "passes/Passes.h"
#include "passes/analysis/TranslationValidation.h"
#include "passes/storage/Streaming.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Transforms/LoopInvariantCodeMotionUtils.h"

using namespace mlir;

namespace boa {
#define GEN_PASS_DEF_HOISTPREFETCH
#include "passes/Passes.h.inc"

namespace {

/// A prefetch, the ops that follow from it, in one block.
struct Transfer {
  PrefetchOp prefetch;
  ReleaseOp release;
  SmallVector<OffloadOp> offloads;
};

/// The transfer of `prefetch` if all of it is in the loop's own block.
std::optional<Transfer> match(PrefetchOp prefetch) {
  Transfer transfer{prefetch, {}, {}};
  for (Operation *user : prefetch.getBuffer().getUsers()) {
    if (auto release = dyn_cast<ReleaseOp>(user)) {
      if (transfer.release || release.getRetain())
        return std::nullopt;
      transfer.release = release;
    }
    if (auto offload = dyn_cast<OffloadOp>(user))
      transfer.offloads.push_back(offload);
  }
  if (!transfer.release || transfer.release->getBlock() != prefetch->getBlock())
    return std::nullopt;
  return transfer;
}

/// Whether the buffer that the loop writes goes home before the iteration ends: else the next
/// iteration reads older contents there.
bool isWrittenHome(LoopOp loop, const Transfer &transfer) {
  Value buffer = PrefetchOp(transfer.prefetch).getBuffer();
  return llvm::all_of(buffer.getUsers(), [&](Operation *user) {
    if (!hasEffect<MemoryEffects::Write>(user, buffer))
      return true;
    Operation *inBlock = loop.getBlock()->findAncestorOpInBlock(*user);
    return llvm::any_of(transfer.offloads, [&](OffloadOp offload) {
      return inBlock && offload->getBlock() == loop.getBlock() &&
             inBlock->isBeforeInBlock(offload) &&
             (offload.isWholeEntry() ||
              offload.getCount() == PrefetchOp(transfer.prefetch).getCount());
    });
  });
}

/// `users` are the ops of the loop that touch the storage.
bool isInvariant(LoopOp loop, const Transfer &transfer, ArrayRef<Operation *> users) {
  PrefetchOp prefetch = transfer.prefetch;
  SmallVector<Value> operands(prefetch.getIndices());
  if (prefetch.getFirst())
    operands.push_back(prefetch.getFirst());
  if (!llvm::all_of(operands, [&](Value value) { return loop.isDefinedOutsideOfLoop(value); }))
    return false;
  if (Value zero = prefetch.getZero(); zero && !matchPattern(zero, m_Zero())) {
    // Any other zeroes in each iteration.
    auto at = zero.getDefiningOp<AtFirstOp>();
    if (!at || at.getIndex() != loop.getInductionVar())
      return false;
  }
  if (!isWrittenHome(loop, transfer))
    return false;
  return llvm::all_of(users,
                      [&](Operation *op) {
                        return op == prefetch || llvm::is_contained(transfer.offloads, op);
                      }) &&
         llvm::all_of(transfer.offloads, [&](OffloadOp offload) {
           return offload->getBlock() == loop.getBlock() &&
                  offload.getIndices() == prefetch.getIndices() &&
                  offload.getFirst() == prefetch.getFirst();
         });
}

void hoist(LoopOp loop, Transfer transfer) {
  PrefetchOp prefetch = transfer.prefetch;
  if (Value zero = prefetch.getZero(); zero && !matchPattern(zero, m_Zero())) {
    // Zero in the first iteration: zero before the loop.
    OpBuilder builder(loop);
    prefetch.getZeroMutable().assign(
        arith::ConstantIntOp::create(builder, loop.getLoc(), 1, 1).getResult());
  }
  prefetch->moveBefore(loop);
  transfer.release->moveAfter(loop);
  for (OffloadOp offload : transfer.offloads)
    offload->moveAfter(loop);
}

/// Hoists transfers from a loop, inner loops first. Returns how many left a loop.
unsigned hoistFrom(LoopOp loop, MoveFilter &moves, const StreamedStorages &streamed) {
  unsigned count = 0;
  for (LoopOp inner : llvm::make_early_inc_range(loop.getBlock()->getOps<LoopOp>()))
    count += hoistFrom(inner, moves, streamed);
  moveLoopInvariantCode(loop);
  // Chunks of an entry stay streamed: that loop is there to bound memory.
  if (loop.getDimension() == Dimension::chunk)
    return count;
  auto users = findAccesses(*loop.getBlock());
  for (PrefetchOp prefetch : llvm::make_early_inc_range(loop.getBlock()->getOps<PrefetchOp>()))
    if (auto transfer = match(prefetch);
        transfer && isInvariant(loop, *transfer, users[prefetch.getStorage()]) &&
        !streamed.mustYield(prefetch.getStorage(), loop) && moves.allow(prefetch)) {
      hoist(loop, *transfer);
      ++count;
    }
  return count;
}

/// Whether `op` needs what `prefetch` would overwrite: in memory both are one.
bool usesStorage(Operation *op, PrefetchOp prefetch) {
  return prefetch.getZero() && llvm::any_of(op->getOperands(), [&](Value operand) {
           return getStorageOf(operand) == prefetch.getStorage();
         });
}

/// Whether `op` releases a buffer of the entry that `prefetch` brings. Above that release the
/// entry would take two slots, and its copy could not be retained.
bool releasesEntry(Operation *op, PrefetchOp prefetch) {
  return llvm::any_of(op->getOperands(), [&](Value operand) {
    if (!hasEffect<MemoryEffects::Free>(op, operand))
      return false;
    auto other = operand.getDefiningOp<PrefetchOp>();
    return other && other.getStorage() == prefetch.getStorage() &&
           llvm::equal(other.getIndices(), prefetch.getIndices(), isSameIndex);
  });
}

/// Moves each prefetch up its block: above launches, not above an access to the
/// same storage, a release of the same entry, nor above what it is computed from. A streamed one
/// stays: it would take its slot beside the one that is released before it.
void raisePrefetches(Block &block, MoveFilter &moves, const StreamedStorages &streamed) {
  for (Operation &op : llvm::make_early_inc_range(block)) {
    for (Region &region : op.getRegions())
      for (Block &inner : region)
        raisePrefetches(inner, moves, streamed);
    auto prefetch = dyn_cast<PrefetchOp>(op);
    if (!prefetch || streamed.contains(prefetch.getStorage()))
      continue;
    Operation *before = &op;
    while (Operation *previous = before->getPrevNode()) {
      bool blocked = previous->getNumRegions() != 0 || isa<PrefetchOp>(previous) ||
                     touches(previous, prefetch.getStorage()) || usesStorage(previous, prefetch) ||
                     releasesEntry(previous, prefetch);
      for (Value operand : op.getOperands())
        blocked |= operand.getDefiningOp() == previous;
      if (blocked)
        break;
      before = previous;
    }
    if (before != &op && moves.allow(&op))
      op.moveBefore(before);
  }
}

struct HoistPrefetch : impl::HoistPrefetchBase<HoistPrefetch> {
  using HoistPrefetchBase::HoistPrefetchBase;

  void runOnOperation() override {
    const StreamedStorages streamed(stream);
    auto transform = [&](StepOp step, MoveFilter &moves) {
      unsigned count = 0;
      for (LoopOp loop : llvm::make_early_inc_range(step.getBlock()->getOps<LoopOp>()))
        count += hoistFrom(loop, moves, streamed);
      raisePrefetches(*step.getBlock(), moves, streamed);
      return count;
    };
    transformEntries(getOperation(), getAnalysis<CurrentComputation>(), "hoist-prefetch", "hoisted",
                     transform);
    markAnalysesPreserved<CurrentComputation>();
  }
};

} // namespace
} // namespace boa
