//===- ElideTransfers.cpp - --boa-elide-transfers -------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Removes what the naive insertion moves twice: live buffers are shared, short
// waits are spent in memory, writes that nobody reads are dropped. The second
// and third are decided on the enumerated program, so they are exact. Assumes
// the storage phase; leaves a program in which every prefetch is a real read or
// takes up a retained copy.
//
//===----------------------------------------------------------------------===//
#include "passes/Passes.h"
#include "passes/ScheduleTrace.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Remarks.h"

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

AwaitOp awaitOf(PrefetchOp prefetch) { return cast<AwaitOp>(*prefetch.getToken().user_begin()); }
ReleaseOp releaseOf(Value buffer) {
  for (Operation *user : buffer.getUsers())
    if (auto release = dyn_cast<ReleaseOp>(user))
      return release;
  return {};
}

/// Lets the users of `from`'s buffer use `buffer`, and removes the transfer.
void forward(PrefetchOp from, Value buffer) {
  AwaitOp await = awaitOf(from);
  releaseOf(await.getBuffer()).erase();
  await.getBuffer().replaceAllUsesWith(buffer);
  await.erase();
  from.erase();
}

/// A loop over layers between two ops of a block: too long to hold a buffer.
bool spansLayers(Operation *from, Operation *to) {
  for (Operation *op = from->getNextNode(); op && op != to; op = op->getNextNode())
    if (auto loop = dyn_cast<LoopOp>(op); loop && loop.getDimension() == "layer")
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
  unsigned run(Block &block) {
    for (Operation &op : llvm::make_early_inc_range(block))
      for (Region &region : op.getRegions())
        for (Block &inner : region)
          run(inner);
    bool changed = true;
    while (changed) {
      changed = false;
      for (PrefetchOp prefetch : block.getOps<PrefetchOp>())
        if (prefetch.isWholeEntry() && coalesce(prefetch, block)) {
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
    Value buffer = awaitOf(prefetch).getBuffer();
    ReleaseOp release = releaseOf(buffer);
    if (!release || release->getBlock() != &block)
      return false;
    for (Operation &op : block) {
      PrefetchOp other = findAccess(&op, prefetch);
      if (!other)
        continue;
      if (prefetch->isBeforeInBlock(&op)) {
        if (spansLayers(prefetch, &op) ||
            isOverwritten(prefetch, &op, prefetch.getStorage(), buffer))
          continue;
        Operation *last = &op;
        if (auto whole = dyn_cast<PrefetchOp>(op)) {
          if (whole.getZero())
            continue;
          last = releaseOf(awaitOf(whole).getBuffer());
        }
        if (release->isBeforeInBlock(last))
          release->moveAfter(last);
        forward(other, buffer);
        return true;
      }
      // A chunk loop before: bring the whole entry first, update it in place.
      if (isa<LoopOp>(op) && !prefetch.getZero() && !spansLayers(&op, prefetch) &&
          !isOverwritten(&op, prefetch, prefetch.getStorage(), buffer)) {
        Operation *await = awaitOf(prefetch);
        for (Value index : prefetch.getIndices())
          if (auto constant = index.getDefiningOp<arith::ConstantOp>())
            constant->moveBefore(&op);
        prefetch->moveBefore(&op);
        await->moveBefore(&op);
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
    if (!loop || loop.getDimension() != "chunk")
      return {};
    for (auto other : loop.getBlock()->getOps<PrefetchOp>())
      if (sameEntry(prefetch, other))
        return other;
    return {};
  }

  unsigned count = 0;
};

//===----------------------------------------------------------------------===//
// 2. Retain a buffer whose entry is used again at once
//===----------------------------------------------------------------------===//

/// One execution of a release.
struct ReleaseInstance {
  SmallVector<bool> atLast; // of each loop around it, innermost first
  bool good = false;        // the entry's next access is a read, soon
};

SmallVector<LoopOp> loopsAround(Operation *op) {
  SmallVector<LoopOp> loops;
  for (Operation *parent = op->getParentOp(); parent; parent = parent->getParentOp())
    if (auto loop = dyn_cast<LoopOp>(parent))
      loops.push_back(loop);
  return loops;
}

class Retainer {
public:
  explicit Retainer(StepOp step) : step(step), probe(step.getContext()) {}

  unsigned run() {
    collect();
    unsigned retained = 0;
    for (auto &[release, instances] : releases)
      retained += retain(cast<ReleaseOp>(release), instances);
    return retained;
  }

private:
  /// Other slots of a storage that may be taken while a copy waits.
  static constexpr int64_t kPatience = 1;

  void collect() {
    struct Waiting {
      Operation *release;
      size_t instance;
      int64_t acquired;
    };
    using Key = decltype(Access().key());
    std::map<Key, Waiting> waiting;
    std::map<Operation *, int64_t> acquired; // slots taken so far, by storage
    llvm::DenseMap<Value, Key> held;
    llvm::DenseMap<Value, int64_t> unused;
    trace(step, [&](Operation *op, const TraceState &state) {
      if (isa<PrefetchOp, CreateOp>(op)) {
        Access access = getAccess(op, state);
        Key key = access.key();
        held[op->getResult(0)] = key;
        auto prefetch = dyn_cast<PrefetchOp>(op);
        bool reads = prefetch && !state.test(prefetch.getZero(), false);
        int64_t &count = acquired[access.storage];
        if (auto it = waiting.find(key); it != waiting.end()) {
          if (reads && count - it->second.acquired <= kPatience)
            releases[it->second.release][it->second.instance].good = true;
          waiting.erase(it);
        }
        ++count;
      } else if (auto await = dyn_cast<AwaitOp>(op)) {
        held[await.getBuffer()] = held[await.getToken()];
      } else if (auto release = dyn_cast<ReleaseOp>(op)) {
        Key key = held[release.getBuffer()];
        StorageOp storage = cast<StorageOp>(std::get<0>(key));
        if (storage.getTier() != Tier::ssd)
          return;
        ReleaseInstance instance;
        for (LoopOp loop : loopsAround(op))
          instance.atLast.push_back(isAtLast(loop, state));
        auto &list = releases[op];
        waiting[key] = {op, list.size(), acquired[storage]};
        list.push_back(instance);
      }
    });
  }

  static bool isAtLast(LoopOp loop, const TraceState &state) {
    int64_t value = state.get(loop.getInductionVar());
    bool reverse = loop.getOrder() == LoopOrder::reverse;
    if (loop.getOrder() == LoopOrder::snake)
      reverse = (state.get(loop.getParity()) + int64_t(loop.getPhase())) & 1;
    return value == int64_t(reverse ? loop.getLower() : loop.getUpper() - 1);
  }

  /// The weakest condition under which every execution is worth retaining:
  /// always, at the last iteration of one loop, or of all.
  bool retain(ReleaseOp release, ArrayRef<ReleaseInstance> instances) {
    if (llvm::none_of(instances, [](const ReleaseInstance &i) { return i.good; }))
      return false;
    SmallVector<LoopOp> loops = loopsAround(release);
    auto holds = [&](ArrayRef<unsigned> last) {
      bool any = false;
      for (const ReleaseInstance &instance : instances) {
        if (!llvm::all_of(last, [&](unsigned i) { return instance.atLast[i]; }))
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

  static Value condition(ReleaseOp release, MutableArrayRef<LoopOp> loops, ArrayRef<unsigned> last) {
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
  OpBuilder probe;
  llvm::MapVector<Operation *, std::vector<ReleaseInstance>> releases;
};

//===----------------------------------------------------------------------===//
// 3. Offloads that nobody reads
//===----------------------------------------------------------------------===//

class DeadOffloads {
public:
  explicit DeadOffloads(ModuleOp module) : module(module) {}

  unsigned run() {
    auto step = module.lookupSymbol<StepOp>("step");
    if (!step)
      return 0;
    // What a step leaves on SSD, the next step or the drain reads.
    follow(step);
    auto afterStep = writer;
    follow(step);
    writer = afterStep;
    if (auto drain = module.lookupSymbol<StepOp>("drain"))
      follow(drain);
    unsigned changed = 0;
    step.walk([&](OffloadOp offload) { changed += narrow(offload); });
    return changed;
  }

private:
  using Chunk = std::tuple<Operation *, int64_t, int64_t>;

  void follow(StepOp entry) {
    using Key = decltype(Access().key());
    std::set<Key> retained;
    llvm::DenseMap<Value, Key> held;
    trace(entry, [&](Operation *op, const TraceState &state) {
      if (auto await = dyn_cast<AwaitOp>(op))
        held[await.getBuffer()] = held[await.getToken()];
      if (auto release = dyn_cast<ReleaseOp>(op))
        if (state.test(release.getRetain(), false))
          retained.insert(held[release.getBuffer()]);
      if (!isa<PrefetchOp, CreateOp, OffloadOp>(op))
        return;
      Access access = getAccess(op, state);
      if (access.entry < 0)
        return;
      held[op->getResult(0)] = access.key();
      auto prefetch = dyn_cast<PrefetchOp>(op);
      bool reads = prefetch && !state.test(prefetch.getZero(), false) &&
                   !retained.erase(access.key());
      for (int64_t c = access.first; c < access.first + access.count; ++c) {
        Chunk chunk{access.storage, access.entry, c};
        if (isa<OffloadOp>(op))
          writer[chunk] = op;
        else if (auto it = writer.find(chunk); reads && it != writer.end())
          readChunks[it->second].insert(c);
      }
    });
  }

  bool narrow(OffloadOp offload) {
    auto storage = SymbolTable::lookupNearestSymbolFrom<StorageOp>(offload, offload.getStorageAttr());
    // Trained state outlives the program.
    if (storage.getPersistent() && storage.getRole() != "gradients")
      return false;
    auto it = readChunks.find(offload);
    if (it == readChunks.end()) {
      offload.erase();
      return true;
    }
    int64_t first = *it->second.begin(), count = *it->second.rbegin() + 1 - first;
    if (!offload.isWholeEntry() || count == int64_t(storage.getChunks()))
      return false;
    OpBuilder builder(offload);
    offload.getFirstMutable().assign(
        arith::ConstantIndexOp::create(builder, offload.getLoc(), first).getResult());
    offload.setCount(count);
    return true;
  }

  ModuleOp module;
  std::map<Chunk, Operation *> writer;
  std::map<Operation *, std::set<int64_t>> readChunks;
};

struct ElideTransfers : impl::ElideTransfersBase<ElideTransfers> {
  using ElideTransfersBase::ElideTransfersBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    for (StepOp step : module.getOps<StepOp>()) {
      unsigned shared = Coalescer().run(*step.getBlock());
      unsigned retained = Retainer(step).run();
      remark::passed(step.getLoc(),
                     remark::RemarkOpts::name("elide-transfers").category("boa-storage"))
          << "in @" << step.getSymName() << ": " << remark::metric("shared", int64_t(shared))
          << ", " << remark::metric("retained", int64_t(retained));
    }
    unsigned dead = DeadOffloads(module).run();
    remark::passed(module.getLoc(),
                   remark::RemarkOpts::name("elide-offloads").category("boa-storage"))
        << "dropped or narrowed " << remark::metric("offloads", int64_t(dead));
  }
};

} // namespace
} // namespace boa
