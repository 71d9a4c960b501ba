//===- ElideTransfers.cpp - --boa-elide-transfers -------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Removes what the naive insertion moves twice: live buffers are shared, short
// waits are spent in memory, writes that nobody reads are dropped. The second
// and third are decided on the enumerated program, so they are exact; of the first,
// what would make that program compute something else is not done. Assumes the storage
// phase; leaves a program in which every prefetch is a real read or takes up a
// retained copy.
//
//===----------------------------------------------------------------------===//
#include "passes/Passes.h"
#include "passes/analysis/Computation.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Remarks.h"
#include "llvm/ADT/BitVector.h"

#include <map>
#include <set>

using namespace mlir;

namespace boa {
#define GEN_PASS_DEF_ELIDETRANSFERS
#include "passes/Passes.h.inc"

namespace {

//===----------------------------------------------------------------------===//
// 1. One buffer for accesses that follow one another in a block
//===----------------------------------------------------------------------===//

bool sameIndex(Value a, Value b) {
  if (a == b)
    return true;
  auto left = a.getDefiningOp<arith::ConstantOp>(), right = b.getDefiningOp<arith::ConstantOp>();
  return left && right && left.getValue() == right.getValue();
}

bool sameEntry(PrefetchOp a, PrefetchOp b) {
  return a.getStorage() == b.getStorage() &&
         llvm::equal(a.getIndices(), b.getIndices(),
                     [](Value x, Value y) { return sameIndex(x, y); });
}

ReleaseOp releaseOf(Value buffer) {
  for (Operation *user : buffer.getUsers())
    if (auto release = dyn_cast<ReleaseOp>(user))
      return release;
  return {};
}

/// Released once, in the prefetch's block.
bool isSimple(PrefetchOp prefetch) {
  Value buffer = prefetch.getBuffer();
  auto isRelease = [](Operation *user) { return isa<ReleaseOp>(user); };
  return llvm::count_if(buffer.getUsers(), isRelease) == 1 &&
         releaseOf(buffer)->getBlock() == prefetch->getBlock();
}

/// Whether an op takes both: as one buffer it would be read and written at once.
bool meet(PrefetchOp a, PrefetchOp b) {
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

/// Fills `from`'s buffer, which is in another memory, out of `buffer`.
void copyFrom(PrefetchOp from, Value buffer) {
  OpBuilder builder(from);
  auto create = CreateOp::create(builder, from.getLoc(), from.getType(), from.getStorage(),
                                 from.getIndices(), from.getFirst(), from.getCount());
  CopyOp::create(builder, from.getLoc(), buffer, create);
  from.getBuffer().replaceAllUsesWith(create);
  from.erase();
}

/// Whether nobody writes to it.
bool isOnlyRead(Value buffer) {
  return llvm::all_of(buffer.getUsers(), [&](Operation *user) {
    if (auto update = dyn_cast<UpdateOp>(user))
      return update.getGradient() == buffer;
    if (auto launch = dyn_cast<LaunchOp>(user))
      return !llvm::is_contained(launch.getUpdates(), buffer) &&
             !llvm::is_contained(launch.getWrites(), buffer);
    return isa<NormOp, ReleaseOp>(user);
  });
}

/// A loop over layers between two ops of a block: too long to hold a buffer.
bool spansLayers(Operation *from, Operation *to) {
  for (Operation *op = from->getNextNode(); op && op != to; op = op->getNextNode())
    if (auto loop = dyn_cast<LoopOp>(op); loop && loop.getDimension() == Dimension::layer)
      return true;
  return false;
}

/// Whether something between two ops of a block sets the entry's storage other
/// than from `buffer`: then `buffer` is not what a later access must see.
bool isOverwritten(Operation *from, Operation *to, StringRef storage, Value buffer) {
  bool overwritten = false;
  for (Operation *op = from->getNextNode(); op && op != to; op = op->getNextNode())
    op->walk([&](Operation *nested) {
      if (auto create = dyn_cast<CreateOp>(nested))
        overwritten |= create.getStorage() == storage;
      if (auto offload = dyn_cast<OffloadOp>(nested))
        overwritten |= offload.getStorage() == storage && offload.getBuffer() != buffer;
    });
  return overwritten;
}

class Coalescer {
public:
  Coalescer(Moves &moves, bool separate) : moves(moves), separate(separate) {}

  unsigned run(Block &block) {
    for (Operation &op : llvm::make_early_inc_range(block))
      for (Region &region : op.getRegions())
        for (Block &inner : region)
          run(inner);
    bool changed = true;
    while (changed) {
      changed = false;
      for (PrefetchOp prefetch : block.getOps<PrefetchOp>())
        if (prefetch.isWholeEntry() && isSimple(prefetch) && coalesce(prefetch, block)) {
          changed = true;
          ++count;
          break;
        }
    }
    return count;
  }

private:
  /// Finds one other access to the entry in `block`, or in a chunk loop of it,
  /// that can share the buffer.
  bool coalesce(PrefetchOp prefetch, Block &block) {
    Value buffer = prefetch.getBuffer();
    ReleaseOp release = releaseOf(buffer);
    for (Operation &op : block) {
      PrefetchOp other = findAccess(&op, prefetch);
      if (!other || other.getZero() || !isSimple(other) || meet(prefetch, other))
        continue;
      // In another memory: a copy of what is there, where that is all that is needed.
      bool copies = separate && other.getType().getSpace() != prefetch.getType().getSpace();
      if (copies && !isOnlyRead(other.getBuffer()))
        continue;
      if (prefetch->isBeforeInBlock(&op)) {
        if (spansLayers(prefetch, &op) ||
            isOverwritten(prefetch, &op, prefetch.getStorage(), buffer) || !allow(prefetch, other))
          continue;
        Operation *last = &op;
        if (auto whole = dyn_cast<PrefetchOp>(op))
          last = releaseOf(whole.getBuffer());
        if (release->isBeforeInBlock(last))
          release->moveAfter(last);
        copies ? copyFrom(other, buffer) : forward(other, buffer);
        return true;
      }
      // A chunk loop before: bring the whole entry first, update it in place.
      if (!copies && isa<LoopOp>(op) && !prefetch.getZero() && !spansLayers(&op, prefetch) &&
          !isOverwritten(&op, prefetch, prefetch.getStorage(), buffer) && allow(prefetch, other)) {
        for (Value index : prefetch.getIndices())
          if (auto constant = index.getDefiningOp<arith::ConstantOp>();
              constant && constant->getBlock() == &block && op.isBeforeInBlock(constant))
            constant->moveBefore(&op);
        prefetch->moveBefore(&op);
        forward(other, buffer);
        return true;
      }
    }
    return false;
  }

  static PrefetchOp findAccess(Operation *op, PrefetchOp prefetch) {
    if (auto other = dyn_cast<PrefetchOp>(op))
      return other != prefetch && other.isWholeEntry() && sameEntry(prefetch, other) ? other
                                                                                     : PrefetchOp();
    auto loop = dyn_cast<LoopOp>(op);
    if (!loop || loop.getDimension() != Dimension::chunk)
      return {};
    for (auto other : loop.getBlock()->getOps<PrefetchOp>())
      if (sameEntry(prefetch, other))
        return other;
    return {};
  }

  /// Asked once of each pair.
  bool allow(PrefetchOp prefetch, PrefetchOp other) {
    return !refused.count({prefetch, other}) &&
           (moves.allow(other) || !refused.insert({prefetch, other}).second);
  }

  Moves &moves;
  bool separate;
  std::set<std::pair<Operation *, Operation *>> refused;
  unsigned count = 0;
};

//===----------------------------------------------------------------------===//
// 2. Retain a buffer whose entry is used again at once
//===----------------------------------------------------------------------===//

/// One execution of a release.
struct ReleaseInstance {
  SmallVector<bool> atLast; // of each loop around it, innermost first
  bool good = false;        // the entry's next access is a read, soon
  bool open = false;        // that access would be in a run that is not enumerated
};

SmallVector<LoopOp> loopsAround(Operation *op) {
  SmallVector<LoopOp> loops;
  for (Operation *parent = op->getParentOp(); parent; parent = parent->getParentOp())
    if (auto loop = dyn_cast<LoopOp>(parent))
      loops.push_back(loop);
  return loops;
}

class Retainer : public Tracer {
public:
  Retainer(ModuleOp module, StepOp step) : Tracer(module), step(step) {}

  /// A copy is worth retaining only if it is with and without a pending step.
  /// Steps follow one another: what one ends with the next may begin with.
  unsigned retainCopies() {
    if (step.getEntryPoint() == EntryPoint::step) {
      auto runStep = [](Retainer &tracer, StepOp step, bool pending) {
        ++tracer.runs;
        tracer.run(step, pending);
      };
      if (!trainUntilSteady(*this, step, runStep))
        return 0;
      for (auto &[entry, copies] : waiting)
        for (const Waiting &copy : copies)
          releases[copy.release][copy.instance].open = copy.run == runs;
    } else {
      for (bool pending : {false, true}) {
        waiting.clear();
        run(step, pending);
      }
    }
    unsigned retained = 0;
    for (auto &[release, instances] : releases)
      retained += retain(cast<ReleaseOp>(release), instances);
    return retained;
  }

private:
  /// Other slots of a storage that may be taken while a copy waits.
  static constexpr int64_t kPatience = 1;

  /// A buffer that was released, until the next access to its chunks.
  struct Waiting {
    Access access;
    Space space;
    Versions contents;
    Operation *release;
    size_t instance;
    int64_t acquired;
    int64_t run;
  };

  void opened(Operation *op, const Buffer &buffer, const Position &at, bool) override {
    if (buffer.home)
      return;
    if (!isa<PrefetchOp>(op) || buffer.access.fresh) {
      forget(buffer.access);
    } else {
      std::vector<Waiting> &copies = waiting[entryOf(buffer.access)];
      auto it = llvm::find_if(copies, [&](const Waiting &copy) {
        return copy.access.key() == buffer.access.key() && buffer.access.parts == 1 &&
               (copy.space == buffer.space || !memory.isSeparate());
      });
      // The copy must be what is at home: not updated and thrown away.
      if (it != copies.end()) {
        if (slotsTaken[buffer.access.storage] - it->acquired <= kPatience &&
            it->contents == buffer.own)
          releases[it->release][it->instance].good = true;
        copies.erase(it);
      }
    }
    slotsTaken[buffer.access.storage] += buffer.access.parts;
  }

  void offloaded(OffloadOp, const Access &access, const Buffer &) override { forget(access); }

  void released(ReleaseOp op, const Buffer &buffer, const Position &at, bool) override {
    if (buffer.home)
      return;
    ReleaseInstance instance;
    // Of chunks that are streamed none is kept.
    bool streamed = buffer.access.parts > 1;
    for (LoopOp loop : loopsAround(op))
      instance.atLast.push_back(streamed || at.isAtLast(loop));
    auto &list = releases[op];
    forget(buffer.access);
    if (streamed)
      return list.push_back(instance);
    waiting[entryOf(buffer.access)].push_back({buffer.access, buffer.space, buffer.own, op,
                                               list.size(), slotsTaken[buffer.access.storage],
                                               runs});
    list.push_back(instance);
  }

  /// A write to any of its chunks makes a copy stale.
  void forget(const Access &access) {
    llvm::erase_if(waiting[entryOf(access)],
                   [&](const Waiting &copy) { return copy.access.overlaps(access); });
  }

  using Entry = std::pair<Operation *, int64_t>; // storage, position
  static Entry entryOf(const Access &access) { return {StorageOp(access.storage), access.entry}; }

  /// The weakest condition under which every execution is worth retaining:
  /// always, at the last iteration of one loop, or of all.
  bool retain(ReleaseOp release, ArrayRef<ReleaseInstance> instances) {
    if (release.getRetain() ||
        llvm::none_of(instances, [](const ReleaseInstance &i) { return i.good; }))
      return false;
    SmallVector<LoopOp> loops = loopsAround(release);
    auto holds = [&](ArrayRef<unsigned> last) {
      bool any = false;
      for (const ReleaseInstance &instance : instances) {
        if (instance.open || !llvm::all_of(last, [&](unsigned i) { return instance.atLast[i]; }))
          continue;
        if (!instance.good)
          return false;
        any = true;
      }
      return any;
    };
    SmallVector<SmallVector<unsigned>> candidates{{}};
    for (unsigned i = 0; i < loops.size(); ++i)
      candidates.push_back({i});
    if (loops.size() > 1)
      candidates.push_back(llvm::to_vector(llvm::seq<unsigned>(0, loops.size())));
    for (ArrayRef<unsigned> last : candidates)
      if (holds(last)) {
        release.getRetainMutable().assign(condition(release, loops, last));
        return true;
      }
    return false;
  }

  static Value condition(ReleaseOp release, MutableArrayRef<LoopOp> loops,
                         ArrayRef<unsigned> last) {
    OpBuilder builder(release);
    Location loc = release.getLoc();
    Value all;
    for (unsigned i : last) {
      Value at = AtLastOp::create(builder, loc, builder.getI1Type(), loops[i].getInductionVar());
      all = all ? arith::AndIOp::create(builder, loc, all, at).getResult() : at;
    }
    return all ? all : arith::ConstantIntOp::create(builder, loc, 1, 1).getResult();
  }

  StepOp step;
  int64_t runs = 0;
  llvm::DenseMap<Entry, std::vector<Waiting>> waiting;
  std::map<Operation *, int64_t> slotsTaken; // so far, by storage
  llvm::MapVector<Operation *, std::vector<ReleaseInstance>> releases;
};

//===----------------------------------------------------------------------===//
// 3. Offloads that nobody reads
//===----------------------------------------------------------------------===//

class DeadOffloads : public Tracer {
public:
  using ReadChunks = llvm::DenseMap<Operation *, llvm::BitVector>; // by offload

  DeadOffloads(ModuleOp module, ReadChunks &readChunks) : Tracer(module), readChunks(&readChunks) {}

  static unsigned run(ModuleOp module) {
    StepOp step = findEntryPoint(module, EntryPoint::step);
    if (!step)
      return 0;
    // What a step leaves on SSD, the next step or another entry point reads.
    ReadChunks readChunks;
    bool steady = runEntries(module, DeadOffloads(module, readChunks),
                             [](DeadOffloads &trace, StepOp entry, bool pending) {
                               trace.Tracer::run(entry, pending);
                               // A run that does not follow directly reads them from home.
                               for (const auto &copy : trace.retained)
                                 trace.markRead(copy->access);
                             });
    if (!steady)
      return 0;
    unsigned changed = 0;
    step.walk([&](OffloadOp offload) { changed += narrow(offload, readChunks); });
    return changed;
  }

  /// And who wrote what is there.
  Snapshot snapshot() const override {
    Snapshot all = Tracer::snapshot();
    for (auto storage : ModuleOp(module).getOps<StorageOp>())
      if (auto it = writers.find(storage); it != writers.end())
        for (const ChunkMap<Operation *> &entry : it->second)
          entry.forEach(0, storage.getChunks(), [&](ChunkMap<Operation *>::Run run) {
            all.insert(all.end(), {reinterpret_cast<intptr_t>(run.value), run.first});
          });
    return all;
  }

private:
  /// The offloads that wrote an entry's chunks; null: none.
  ChunkMap<Operation *> &writersOf(const Access &access) {
    StorageOp storage = access.storage;
    std::vector<ChunkMap<Operation *>> &all = writers[storage];
    if (all.empty())
      all.resize(storage.getEntryCount(), {0, int64_t(storage.getChunks()), nullptr});
    return all[access.entry];
  }

  void opened(Operation *op, const Buffer &buffer, const Position &at, bool retained) override {
    if (isa<PrefetchOp>(op) && !retained && !buffer.access.fresh)
      markRead(buffer.access);
  }
  void markRead(const Access &access) {
    writersOf(access).forEach(access.first, access.count, [&](ChunkMap<Operation *>::Run run) {
      if (!run.value)
        return;
      llvm::BitVector &read = (*readChunks)[run.value];
      read.resize(StorageOp(access.storage).getChunks());
      read.set(run.first, run.first + run.count);
    });
  }
  void offloaded(OffloadOp op, const Access &access, const Buffer &) override {
    writersOf(access).set(access.first, access.count, op);
  }

  static bool narrow(OffloadOp offload, const ReadChunks &readChunks) {
    auto storage =
        SymbolTable::lookupNearestSymbolFrom<StorageOp>(offload, offload.getStorageAttr());
    // Trained state outlives the program, and results are read after it, from their homes.
    Memory memory(storage->getParentOfType<ModuleOp>());
    Space space = offload.getBuffer().getType().getSpace();
    if (storage.isLiveOut() &&
        (storage.getPersistent() || !memory.isHome(storage, 0, storage.getChunks(), space)))
      return false;
    auto it = readChunks.find(offload);
    if (it == readChunks.end()) {
      offload.erase();
      return true;
    }
    int64_t first = it->second.find_first(), count = it->second.find_last() + 1 - first;
    if (!offload.isWholeEntry() || count == int64_t(storage.getChunks()))
      return false;
    OpBuilder builder(offload);
    offload.getFirstMutable().assign(
        arith::ConstantIndexOp::create(builder, offload.getLoc(), first).getResult());
    offload.setCount(count);
    return true;
  }

  llvm::DenseMap<Operation *, std::vector<ChunkMap<Operation *>>> writers; // of entries, by storage
  ReadChunks *readChunks;
};

struct ElideTransfers : impl::ElideTransfersBase<ElideTransfers> {
  using ElideTransfersBase::ElideTransfersBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    std::map<Operation *, unsigned> shared;
    bool separate = Memory(module).isSeparate();
    auto coalesce = [&](StepOp step, Moves &moves) {
      return Coalescer(moves, separate).run(*step.getBlock());
    };
    auto &computation = getAnalysis<CurrentComputation>();
    const Computation &before = computation.get();
    transformEntries(module, before, "elide-transfers", coalesce, shared);
    for (StepOp step : module.getOps<StepOp>()) {
      unsigned retained = Retainer(module, step).retainCopies();
      remark::passed(step.getLoc(),
                     remark::RemarkOpts::name("elide-transfers").category("boa-storage"))
          << "in @" << step.getSymName() << ": " << remark::metric("shared", int64_t(shared[step]))
          << ", " << remark::metric("retained", int64_t(retained));
    }
    unsigned dead = DeadOffloads::run(module);
    remark::passed(module.getLoc(),
                   remark::RemarkOpts::name("elide-offloads").category("boa-storage"))
        << "dropped or narrowed " << remark::metric("offloads", int64_t(dead));
    Computation after = Computation::compute(module);
    if (const Computation::Outcome *difference = findDifference(before, after)) {
      difference->of->emitOpError("would not be the same after ")
          << difference->run << ": transfers were elided that it needs";
      return signalPassFailure();
    }
    computation.replace(std::move(after));
    markAnalysesPreserved<CurrentComputation>();
  }
};

} // namespace
} // namespace boa
