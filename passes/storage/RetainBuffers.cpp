//===- RetainBuffers.cpp - --boa-retain-buffers ---------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Where an entry's next access follows its release at once, the buffer waits for it in
// memory. Decided on the enumerated program, so it is exact. Assumes the storage phase;
// leaves a program in which a prefetch is a real read or takes up a retained copy.
//
//===----------------------------------------------------------------------===//
#include "passes/Passes.h"
#include "passes/analysis/TranslationValidation.h"
#include "passes/storage/Streaming.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Remarks.h"

#include <map>

using namespace mlir;

namespace boa {
#define GEN_PASS_DEF_RETAINBUFFERS
#include "passes/Passes.h.inc"

namespace {

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
  Retainer(ModuleOp module, StepOp step, const StreamedStorages &streamed)
      : Tracer(module), step(step), streamed(streamed) {}

  /// Retains copies. One is worth it only if it is with and without a pending step. Steps follow
  /// one another: what one ends with the next may begin with.
  unsigned retainCopies() {
    if (step.getEntryPoint() == EntryPoint::step) {
      auto runStep = [](Retainer &tracer, StepOp step, bool pending) {
        ++tracer.runs;
        tracer.run(step, pending);
      };
      if (!trainUntilSteady(*this, step, runStep))
        return 0;
      for (auto &[entry, copies] : candidates)
        for (const Candidate &copy : copies)
          releases[copy.release][copy.instance].open = copy.run == runs;
    } else {
      for (bool pending : {false, true}) {
        candidates.clear();
        run(step, pending);
      }
    }
    unsigned retained = 0;
    for (auto &[release, instances] : releases)
      retained += retain(cast<ReleaseOp>(release), instances);
    return retained;
  }

private:
  /// The most other slots of a storage, or of a role, that may be taken while a copy waits.
  static constexpr int64_t kPatience = 1;

  /// A buffer that was released, until the next access to its chunks.
  struct Candidate {
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
    if (!buffer.access.reads) {
      forget(buffer.access);
    } else {
      std::vector<Candidate> &copies = candidates[entryOf(buffer.access)];
      auto it = llvm::find_if(copies, [&](const Candidate &copy) {
        return copy.access.key() == buffer.access.key() && buffer.access.parts == 1 &&
               (copy.space == buffer.space || !memory.isSeparate());
      });
      // The copy must be what is at home: not updated and thrown away.
      if (it != copies.end()) {
        if (slotsTakenOf(buffer.access.storage) - it->acquired <= kPatience &&
            it->contents == buffer.own)
          releases[it->release][it->instance].good = true;
        copies.erase(it);
      }
    }
    slotsTaken[buffer.access.storage] += buffer.access.parts;
    takenOfRole[StorageOp(buffer.access.storage).getRole()] += buffer.access.parts;
  }

  void offloaded(OffloadOp, const Access &access, const Buffer &) override { forget(access); }

  void released(ReleaseOp op, const Buffer &buffer, const Position &at, bool) override {
    if (buffer.home)
      return;
    ReleaseInstance instance;
    // Of chunks that are streamed none is kept.
    const bool isChunked = buffer.access.parts > 1;
    for (LoopOp loop : loopsAround(op))
      instance.atLast.push_back(isChunked || at.getEnds(loop.getInductionVar()).second);
    auto &list = releases[op];
    forget(buffer.access);
    if (isChunked)
      return list.push_back(instance);
    candidates[entryOf(buffer.access)].push_back({buffer.access, buffer.space, buffer.own, op,
                                                  list.size(), slotsTakenOf(buffer.access.storage),
                                                  runs});
    list.push_back(instance);
  }

  /// The number of slots that the storage has taken so far. A streamed storage counts those of all
  /// storages of its role: together they are like the entries of one storage of layers.
  int64_t slotsTakenOf(StorageOp storage) {
    return streamed.contains(storage.getSymName()) ? takenOfRole[storage.getRole()]
                                                   : slotsTaken[storage];
  }

  /// Forgets copies of chunks that are written: they are stale.
  void forget(const Access &access) {
    llvm::erase_if(candidates[entryOf(access)],
                   [&](const Candidate &copy) { return copy.access.overlaps(access); });
  }

  using Entry = std::pair<Operation *, int64_t>; // storage, position
  static Entry entryOf(const Access &access) { return {StorageOp(access.storage), access.entry}; }

  /// Retains a buffer under the weakest condition for which every execution is worth it: always, at
  /// the last iteration of one loop, or of all.
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
  llvm::DenseMap<Entry, std::vector<Candidate>> candidates;
  const StreamedStorages &streamed;
  std::map<Operation *, int64_t> slotsTaken; // so far, by storage
  std::map<Role, int64_t> takenOfRole;
  llvm::MapVector<Operation *, std::vector<ReleaseInstance>> releases;
};

struct RetainBuffers : impl::RetainBuffersBase<RetainBuffers> {
  using RetainBuffersBase::RetainBuffersBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    auto &computation = getAnalysis<CurrentComputation>();
    computation.get(); // before
    const StreamedStorages streamed(stream);
    for (StepOp step : module.getOps<StepOp>()) {
      unsigned retained = Retainer(module, step, streamed).retainCopies();
      remark::passed(step.getLoc(),
                     remark::RemarkOpts::name("retain-buffers").category("boa-storage"))
          << "in @" << step.getSymName() << ": " << remark::metric("retained", int64_t(retained));
    }
    if (failed(computation.checkSame("copies were retained that are stale")))
      return signalPassFailure();
    markAnalysesPreserved<CurrentComputation>();
  }
};

} // namespace
} // namespace boa
