//===- ElideTransfers.cpp - --boa-elide-transfers -------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Removes what the naive insertion brings twice: accesses to one entry that follow one
// another in a block share its buffer. What would make the enumerated program compute
// something else is not done. Assumes the storage phase, without retained copies.
//
//===----------------------------------------------------------------------===//
#include "passes/Passes.h"
#include "passes/analysis/TranslationValidation.h"
#include "passes/storage/Streaming.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

#include <algorithm>
#include <set>

using namespace mlir;

namespace boa {
#define GEN_PASS_DEF_ELIDETRANSFERS
#include "passes/Passes.h.inc"

namespace {

/// An entry of a storage: the storage's name, and the values or the constants that are its indices.
using Entry = SmallVector<const void *, 4>;

Entry entryOf(PrefetchOp prefetch) {
  Entry entry{prefetch.getStorageAttr().getAsOpaquePointer()};
  for (Value index : prefetch.getIndices()) {
    auto constant = index.getDefiningOp<arith::ConstantOp>();
    entry.push_back(constant ? constant.getValue().getAsOpaquePointer()
                             : index.getAsOpaquePointer());
  }
  return entry;
}

ReleaseOp releaseOf(Value buffer) {
  for (Operation *user : buffer.getUsers())
    if (auto release = dyn_cast<ReleaseOp>(user))
      return release;
  return {};
}

/// Whether the buffer is released once, in the prefetch's block.
bool isReleasedOnce(PrefetchOp prefetch) {
  Value buffer = prefetch.getBuffer();
  auto isRelease = [](Operation *user) { return isa<ReleaseOp>(user); };
  return llvm::count_if(buffer.getUsers(), isRelease) == 1 &&
         releaseOf(buffer)->getBlock() == prefetch->getBlock();
}

/// Whether an op takes both: as one buffer it would be read and written at once.
bool haveCommonUser(PrefetchOp a, PrefetchOp b) {
  Value other = b.getBuffer();
  return llvm::any_of(a.getBuffer().getUsers(), [&](Operation *user) {
    return llvm::is_contained(user->getOperands(), other);
  });
}

/// Lets the users of `from`'s buffer use `buffer`, and removes the transfer.
void forward(PrefetchOp from, Value buffer) {
  releaseOf(from.getBuffer()).erase();
  from.getBuffer().replaceAllUsesWith(buffer);
  from.erase();
}

/// Whether an op writes to the buffer, or takes it home.
bool isChanged(Value buffer) {
  return llvm::any_of(buffer.getUsers(), [&](Operation *user) {
    return touches(user, getStorageOf(buffer), /*writes=*/true) ||
           hasEffect<MemoryEffects::Write>(user, buffer);
  });
}

class Coalescer {
public:
  Coalescer(MoveFilter &moves, const StreamedStorages &streamed, bool separate)
      : moves(moves), streamed(streamed), separate(separate) {}

  unsigned run(Block &block) {
    for (Operation &op : llvm::make_early_inc_range(block))
      for (Region &region : op.getRegions())
        for (Block &inner : region)
          run(inner);
    // By entry, its accesses in the block's order. They change only where two become one.
    llvm::MapVector<Entry, SmallVector<Operation *, 4>> accesses;
    for (PrefetchOp prefetch : block.getOps<PrefetchOp>())
      accesses[entryOf(prefetch)];
    for (Operation &op : block)
      for (const Entry &entry : entriesOf(op))
        if (auto *found = accesses.find(entry); found != accesses.end())
          found->second.push_back(&op);
    writers = findAccesses(block, /*writes=*/true);
    for (auto &[entry, ops] : accesses)
      while (shareOne(block, ops))
        ++count;
    return count;
  }

private:
  /// The entry of a prefetch, or of those in a chunk loop.
  static llvm::SmallSetVector<Entry, 4> entriesOf(Operation &op) {
    llvm::SmallSetVector<Entry, 4> entries;
    if (auto prefetch = dyn_cast<PrefetchOp>(op))
      entries.insert(entryOf(prefetch));
    if (auto loop = dyn_cast<LoopOp>(op); loop && loop.getDimension() == Dimension::chunk)
      for (auto prefetch : loop.getBlock()->getOps<PrefetchOp>())
        entries.insert(entryOf(prefetch));
    return entries;
  }

  /// Lets two of an entry's accesses in `block` share a buffer.
  bool shareOne(Block &block, SmallVectorImpl<Operation *> &accesses) {
    for (Operation *op : accesses)
      if (auto prefetch = dyn_cast<PrefetchOp>(op); prefetch && prefetch.isWholeEntry() &&
                                                    isReleasedOnce(prefetch) &&
                                                    coalesce(prefetch, block, accesses))
        return true;
    return false;
  }

  /// Finds one other of the entry's accesses in `block` that can share the buffer.
  bool coalesce(PrefetchOp prefetch, Block &block, SmallVectorImpl<Operation *> &accesses) {
    Value buffer = prefetch.getBuffer();
    ReleaseOp release = releaseOf(buffer);
    for (auto *access = accesses.begin(); access != accesses.end(); ++access) {
      Operation &op = **access;
      PrefetchOp other = findAccess(&op, prefetch);
      if (!other || other.getZero() || !isReleasedOnce(other) || haveCommonUser(prefetch, other))
        continue;
      // In another memory: a copy of what is there, where that is all that is needed.
      bool copies = separate && other.getType().getSpace() != prefetch.getType().getSpace();
      if (copies && isChanged(other.getBuffer()))
        continue;
      if (prefetch->isBeforeInBlock(&op)) {
        if (isTooLong(prefetch, &op, prefetch.getStorage()) ||
            isOverwritten(prefetch, prefetch, &op) || !allow(prefetch, other))
          continue;
        Operation *last = &op;
        if (auto whole = dyn_cast<PrefetchOp>(op))
          last = releaseOf(whole.getBuffer());
        if (release->isBeforeInBlock(last))
          release->moveAfter(last);
        if (other == &op)
          accesses.erase(access);
        copies ? copyFrom(other, buffer) : forward(other, buffer);
        return true;
      }
      // A chunk loop before: bring the whole entry first, update it in place.
      if (!copies && isa<LoopOp>(op) && !prefetch.getZero() &&
          !isTooLong(&op, prefetch, prefetch.getStorage()) &&
          !isOverwritten(prefetch, &op, prefetch) && allow(prefetch, other)) {
        for (Value index : prefetch.getIndices())
          if (auto constant = index.getDefiningOp<arith::ConstantOp>();
              constant && constant->getBlock() == &block && op.isBeforeInBlock(constant))
            constant->moveBefore(&op);
        prefetch->moveBefore(&op);
        // It now stands before the loop in the list, too.
        std::rotate(access, llvm::find(accesses, prefetch), llvm::find(accesses, prefetch) + 1);
        forward(other, buffer);
        return true;
      }
    }
    return false;
  }

  /// Fills `from`'s buffer, which is in another memory, out of `buffer`.
  void copyFrom(PrefetchOp from, Value buffer) {
    OpBuilder builder(from);
    auto create = CreateOp::create(builder, from.getLoc(), from.getType(), from.getStorage(),
                                   from.getIndices(), from.getFirst(), from.getCount());
    CopyOp::create(builder, from.getLoc(), buffer, create);
    writers[from.getStorage()].push_back(create);
    from.getBuffer().replaceAllUsesWith(create);
    from.erase();
  }

  /// Whether an op between two others of a block writes to the prefetch's storage without the
  /// prefetch's buffer. A later access must see that, so it cannot take the buffer.
  bool isOverwritten(PrefetchOp prefetch, Operation *from, Operation *to) {
    return llvm::any_of(writers[prefetch.getStorage()], [&](Operation *op) {
      Operation *inBlock = from->getBlock()->findAncestorOpInBlock(*op);
      return from->isBeforeInBlock(inBlock) && inBlock->isBeforeInBlock(to) &&
             !llvm::is_contained(op->getOperands(), prefetch.getBuffer());
    });
  }

  /// Whether a buffer of the storage may not be held from one op to another: there is a loop over
  /// layers between them, or the storage is streamed and others compute.
  bool isTooLong(Operation *from, Operation *to, StringRef storage) const {
    for (Operation *op = from->getNextNode(); op && op != to; op = op->getNextNode())
      if (auto loop = dyn_cast<LoopOp>(op);
          (loop && loop.getDimension() == Dimension::layer) || streamed.mustYield(storage, op))
        return true;
    return false;
  }

  /// The access of an op to the entry of `prefetch`.
  static PrefetchOp findAccess(Operation *op, PrefetchOp prefetch) {
    if (auto other = dyn_cast<PrefetchOp>(op))
      return other != prefetch && other.isWholeEntry() ? other : PrefetchOp();
    auto loop = dyn_cast<LoopOp>(op);
    if (!loop || loop.getDimension() != Dimension::chunk)
      return {};
    for (auto other : loop.getBlock()->getOps<PrefetchOp>())
      if (entryOf(other) == entryOf(prefetch))
        return other;
    return {};
  }

  /// Asks for a move, once of each pair.
  bool allow(PrefetchOp prefetch, PrefetchOp other) {
    return !refused.count({prefetch, other}) &&
           (moves.allow(other) || !refused.insert({prefetch, other}).second);
  }

  MoveFilter &moves;
  const StreamedStorages &streamed;
  bool separate;
  llvm::StringMap<SmallVector<Operation *, 4>> writers; // of the block, by storage
  std::set<std::pair<Operation *, Operation *>> refused;
  unsigned count = 0;
};

struct ElideTransfers : impl::ElideTransfersBase<ElideTransfers> {
  using ElideTransfersBase::ElideTransfersBase;

  void runOnOperation() override {
    bool separate = Memory(getOperation()).isSeparate();
    const StreamedStorages streamed(stream);
    auto coalesce = [&](StepOp step, MoveFilter &moves) {
      return Coalescer(moves, streamed, separate).run(*step.getBlock());
    };
    transformEntries(getOperation(), getAnalysis<CurrentComputation>(), "elide-transfers", "shared",
                     coalesce);
    markAnalysesPreserved<CurrentComputation>();
  }
};

} // namespace
} // namespace boa
