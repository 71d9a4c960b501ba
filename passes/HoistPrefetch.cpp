//===- HoistPrefetch.cpp - --boa-hoist-prefetch ---------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Loop-invariant transfers leave their loop, inside out. Legal where the loop
// touches the storage through that one buffer only. Then prefetches rise to the
// top of their block. How far the runtime looks ahead beyond that is the number
// of slots (--boa-assign-buffers): commands wait for slots, not the program.
//
//===----------------------------------------------------------------------===//
#include "passes/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Remarks.h"

using namespace mlir;

namespace boa {
#define GEN_PASS_DEF_HOISTPREFETCH
#include "passes/Passes.h.inc"

namespace {

StringRef storageOf(Operation *op) {
  if (auto prefetch = dyn_cast<PrefetchOp>(op))
    return prefetch.getStorage();
  if (auto create = dyn_cast<CreateOp>(op))
    return create.getStorage();
  if (auto offload = dyn_cast<OffloadOp>(op))
    return offload.getStorage();
  return {};
}

/// A prefetch, the ops that follow from it, in one block.
struct Transfer {
  PrefetchOp prefetch;
  AwaitOp await;
  ReleaseOp release;
  SmallVector<OffloadOp> offloads;
};

/// The transfer of `prefetch` if all of it is in the loop's own block.
std::optional<Transfer> match(PrefetchOp prefetch) {
  Transfer transfer{prefetch, {}, {}, {}};
  if (!prefetch.getToken().hasOneUse())
    return std::nullopt;
  transfer.await = dyn_cast<AwaitOp>(*prefetch.getToken().user_begin());
  if (!transfer.await || transfer.await->getBlock() != prefetch->getBlock())
    return std::nullopt;
  for (Operation *user : transfer.await.getBuffer().getUsers()) {
    if (auto release = dyn_cast<ReleaseOp>(user))
      transfer.release = release;
    if (auto offload = dyn_cast<OffloadOp>(user))
      transfer.offloads.push_back(offload);
  }
  if (!transfer.release || transfer.release->getBlock() != prefetch->getBlock())
    return std::nullopt;
  return transfer;
}

bool definedOutside(LoopOp loop, ValueRange values) {
  return llvm::all_of(values, [&](Value value) {
    return !value || !loop.getBody().isAncestor(value.getParentRegion());
  });
}

/// Index arithmetic on invariant operands leaves the loop first.
void hoistIndices(LoopOp loop) {
  for (Operation &op : llvm::make_early_inc_range(*loop.getBlock()))
    if (isa<arith::ConstantOp, ShiftOp, AtFirstOp, AtLastOp>(op) &&
        definedOutside(loop, op.getOperands()))
      op.moveBefore(loop);
}

bool isInvariant(LoopOp loop, const Transfer &transfer) {
  PrefetchOp prefetch = transfer.prefetch;
  SmallVector<Value> operands(prefetch.getIndices());
  operands.push_back(prefetch.getFirst());
  if (!definedOutside(loop, operands))
    return false;
  if (Value zero = prefetch.getZero(); zero && !definedOutside(loop, zero)) {
    auto at = zero.getDefiningOp<AtFirstOp>();
    if (!at || at.getIndex() != loop.getInductionVar())
      return false;
  }
  bool only = true;
  loop.walk([&](Operation *op) {
    if (op != prefetch && storageOf(op) == prefetch.getStorage() &&
        !llvm::is_contained(transfer.offloads, op))
      only = false;
  });
  for (OffloadOp offload : transfer.offloads)
    only &= offload->getBlock() == loop.getBlock() &&
            offload.getIndices() == prefetch.getIndices() &&
            offload.getFirst() == prefetch.getFirst();
  return only;
}

void hoist(LoopOp loop, Transfer transfer) {
  PrefetchOp prefetch = transfer.prefetch;
  if (Value zero = prefetch.getZero(); zero && !definedOutside(loop, zero)) {
    // Zero in the first iteration: zero before the loop.
    OpBuilder builder(loop);
    prefetch.getZeroMutable().assign(
        arith::ConstantIntOp::create(builder, loop.getLoc(), 1, 1).getResult());
  }
  prefetch->moveBefore(loop);
  transfer.await->moveBefore(loop);
  transfer.release->moveAfter(loop);
  for (OffloadOp offload : transfer.offloads)
    offload->moveAfter(loop);
}

/// Inner loops first. Returns how many transfers left a loop.
unsigned hoistFrom(LoopOp loop) {
  unsigned count = 0;
  for (LoopOp inner : llvm::make_early_inc_range(loop.getBlock()->getOps<LoopOp>()))
    count += hoistFrom(inner);
  hoistIndices(loop);
  // Chunks of an entry stay streamed: that loop is there to bound memory.
  if (loop.getDimension() == "chunk")
    return count;
  for (PrefetchOp prefetch : llvm::make_early_inc_range(loop.getBlock()->getOps<PrefetchOp>()))
    if (auto transfer = match(prefetch); transfer && isInvariant(loop, *transfer)) {
      hoist(loop, *transfer);
      ++count;
    }
  return count;
}

/// Moves each prefetch up its block: above launches, not above an access to the
/// same storage nor above what it is computed from.
void raisePrefetches(Block &block) {
  for (Operation &op : llvm::make_early_inc_range(block)) {
    for (Region &region : op.getRegions())
      for (Block &inner : region)
        raisePrefetches(inner);
    auto prefetch = dyn_cast<PrefetchOp>(op);
    if (!prefetch)
      continue;
    Operation *before = &op;
    while (Operation *previous = before->getPrevNode()) {
      bool blocked = previous->getNumRegions() != 0 || storageOf(previous) == prefetch.getStorage() ||
                     isa<PrefetchOp>(previous);
      for (Value operand : op.getOperands())
        blocked |= operand.getDefiningOp() == previous;
      if (blocked)
        break;
      before = previous;
    }
    op.moveBefore(before);
  }
}

struct HoistPrefetch : impl::HoistPrefetchBase<HoistPrefetch> {
  using HoistPrefetchBase::HoistPrefetchBase;

  void runOnOperation() override {
    for (StepOp step : getOperation().getOps<StepOp>()) {
      unsigned hoisted = 0;
      for (LoopOp loop : llvm::make_early_inc_range(step.getBlock()->getOps<LoopOp>()))
        hoisted += hoistFrom(loop);
      raisePrefetches(*step.getBlock());
      remark::passed(step.getLoc(),
                     remark::RemarkOpts::name("hoist-prefetch").category("boa-storage"))
          << "moved transfers out of loops in @" << step.getSymName() << ": "
          << remark::metric("hoisted", int64_t(hoisted));
    }
  }
};

} // namespace
} // namespace boa
