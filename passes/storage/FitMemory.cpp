//===- FitMemory.cpp ------------------------------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/storage/FitMemory.h"

#include "dialect/Config.h"
#include "passes/Passes.h"
#include "passes/analysis/TranslationValidation.h"
#include "passes/storage/MemoryNeed.h"
#include "passes/storage/Streaming.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Remarks.h"
#include "mlir/Transforms/Passes.h"

#include <map>

using namespace mlir;

namespace boa {

void shareConstants(OpPassManager &pm) { pm.addNestedPass<StepOp>(createCanonicalizerPass()); }

void buildTransfers(OpPassManager &pm, ArrayRef<std::string> streamed) {
  HoistPrefetchOptions hoist;
  ElideTransfersOptions elide;
  RetainBuffersOptions retain;
  hoist.stream = elide.stream = retain.stream = SmallVector<std::string>(streamed);
  // Out of the loops before anything is shared: then accesses to one entry
  // stand in one block.
  pm.addPass(createHoistPrefetch(hoist));
  pm.addPass(createElideTransfers(elide));
  pm.addPass(createRetainBuffers(retain));
  // What a retained copy spares is read by nobody.
  pm.addPass(createElideOffloads());
  shareConstants(pm);
}

namespace {

/// The most trials of how many storages to stream, behind the two of none and of all.
constexpr int kMostTrials = 5;

/// A tracer of the storages whose buffers are held while others compute.
class HeldBuffers : public Tracer {
public:
  explicit HeldBuffers(ModuleOp module) : Tracer(module) {}

  /// Finds such storages, first the one whose buffers take most bytes for most of the time.
  static std::vector<std::string> find(ModuleOp module) {
    std::map<std::string, double> costs;
    for (StepOp step : module.getOps<StepOp>()) {
      HeldBuffers tracer(module);
      for (bool pending : {false, leavesUpdates(step)})
        tracer.run(step, pending);
      // Some are retained for ever.
      while (!tracer.since.empty())
        tracer.end(tracer.since.begin());
      for (auto [storage, cost] : tracer.costs)
        costs[StorageOp(cast<StorageOp>(storage)).getSymName().str()] += cost;
    }
    std::vector<std::string> names;
    for (const auto &[name, cost] : costs)
      names.push_back(name);
    llvm::stable_sort(names, [&](const std::string &a, const std::string &b) {
      return costs.at(a) > costs.at(b);
    });
    return names;
  }

private:
  struct Since {
    int64_t clock = 0, own = 0;
  };
  using Key = std::tuple<Operation *, int64_t, int64_t, int64_t, int>;

  Key keyOf(const Buffer &buffer) {
    return std::tuple_cat(buffer.access.key(),
                          std::tuple(memory.isSeparate() ? int(buffer.space) : 0));
  }
  void computes(Operation *op) override {
    ++clock;
    auto [known, isNew] = worked.try_emplace(op);
    if (isNew)
      for (auto storage : module.getOps<StorageOp>())
        if (worksOn(op, storage.getSymName()))
          known->second.push_back(storage);
    for (Operation *storage : known->second)
      ++own[storage];
  }
  void opened(Operation *, const Buffer &buffer, const Position &, bool retained) override {
    if (!buffer.home && !retained)
      since[keyOf(buffer)] = {clock, own[StorageOp(buffer.access.storage)]};
  }
  void released(ReleaseOp, const Buffer &buffer, const Position &, bool retain) override {
    if (!buffer.home && !retain)
      end(since.find(keyOf(buffer)));
  }
  void dropped(const Buffer &buffer, Operation *) override { end(since.find(keyOf(buffer))); }

  void end(std::map<Key, Since>::iterator held) {
    if (held == since.end())
      return;
    const auto &[storage, entry, first, count, space] = held->first;
    const int64_t others = (clock - held->second.clock) - (own[storage] - held->second.own);
    if (others > 0)
      costs[storage] += double(others) * double(count) * cast<StorageOp>(storage).getChunkBytes();
    since.erase(held);
  }

  int64_t clock = 0;                                            // kernels, updates and norms so far
  llvm::DenseMap<Operation *, SmallVector<Operation *>> worked; // by op: storages
  std::map<Operation *, int64_t> own;                           // of the clock, by storage
  std::map<Key, Since> since;
  llvm::MapVector<Operation *, double> costs;
};

struct KeepNaiveProgram : PassWrapper<KeepNaiveProgram, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(KeepNaiveProgram)
  explicit KeepNaiveProgram(NaiveProgram program) : program(std::move(program)) {}
  StringRef getName() const override { return "KeepNaiveProgram"; }
  void runOnOperation() override {
    *program = copyProgram(getOperation());
    markAllAnalysesPreserved();
  }

private:
  NaiveProgram program;
};

struct FitMemory : PassWrapper<FitMemory, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(FitMemory)
  FitMemory(NaiveProgram naive, Streamed streamed, bool placesWeights)
      : naive(std::move(naive)), mostTrials(streamed == Streamed::few ? kMostTrials : 0),
        placesWeights(placesWeights) {}
  StringRef getName() const override { return "FitMemory"; }

  void runOnOperation() override {
    ModuleOp module = getOperation();
    const MachineSettings machine = Config(module).machine;
    if (placesWeights && machine.device_memory == 0 && machine.host_memory == 0)
      return;
    if (placesWeights)
      for (ModuleOp each : {module, **naive})
        moveWeightsToSsd(each);
    Attempt held = attempt([&] {
      OpPassManager assign(ModuleOp::getOperationName());
      assign.addPass(createAssignBuffers());
      return runPipeline(assign, module);
    });
    std::vector<std::string> all;
    if (held.needsMemory)
      all = HeldBuffers::find(module);
    if (placesWeights) {
      if (!all.empty())
        adopt(*stream(all).program, all.size(), all.size());
      return;
    }
    if (all.empty())
      return conclude(held);

    Attempt streams = stream(all);
    if (!streams.done)
      return conclude(streams);
    size_t few = 0, enough = all.size();
    for (int trial = 0; trial < mostTrials && enough - few > 1; ++trial) {
      const size_t middle = few + (enough - few) / 2;
      Attempt fewer = stream(ArrayRef(all).take_front(middle));
      (fewer.done ? enough : few) = middle;
      if (fewer.done)
        streams = std::move(fewer);
    }
    PassManager verify(&getContext());
    verify.addPass(createVerifyStorage());
    if (failed(verify.run(*streams.program)))
      return signalPassFailure();
    conclude(streams);
    adopt(*streams.program, enough, all.size());
  }

private:
  struct Attempt {
    bool done = false, needsMemory = false;
    std::vector<Diagnostic> said;
    OwningOpRef<ModuleOp> program = {};
  };

  Attempt attempt(llvm::function_ref<LogicalResult()> compile) {
    Attempt made;
    ScopedDiagnosticHandler quiet(&getContext(), [&](Diagnostic &diagnostic) {
      made.needsMemory |= MemoryNeed::of(diagnostic).has_value();
      made.said.push_back(std::move(diagnostic));
      return success();
    });
    made.done = succeeded(compile());
    return made;
  }

  Attempt stream(ArrayRef<std::string> storages) {
    OwningOpRef<ModuleOp> program = (*naive)->clone();
    (*program)->setAttrs(getOperation()->getAttrs()); // what kernels need
    PassManager pm(&getContext());
    buildTransfers(pm, storages);
    pm.addPass(createAssignBuffers());
    Attempt made = attempt([&] { return pm.run(*program); });
    made.program = std::move(program);
    return made;
  }

  void conclude(Attempt &made) {
    for (Diagnostic &diagnostic : made.said)
      getContext().getDiagEngine().emit(std::move(diagnostic));
    if (!made.done)
      signalPassFailure();
  }

  /// Moves weights to SSD. Their places are decided behind this, by --boa-place-weights.
  static void moveWeightsToSsd(ModuleOp module) {
    auto ssd = HomeAttr::get(module.getContext(), Tier::ssd, 0);
    for (auto storage : module.getOps<StorageOp>())
      if (storage.getRole() == Role::weights)
        storage.setHomesAttr(StorageOp::makeHomes(ssd));
  }

  /// Takes the program's entry points and slots.
  void adopt(ModuleOp program, size_t streamed, size_t held) {
    ModuleOp module = getOperation();
    for (auto [was, is] : llvm::zip_equal(module.getOps<StorageOp>(), program.getOps<StorageOp>()))
      was->setAttrs(is->getAttrDictionary());
    SmallVector<StepOp> old(module.getOps<StepOp>()), now(program.getOps<StepOp>());
    for (auto [was, is] : llvm::zip_equal(old, now)) {
      is->moveBefore(was);
      was.erase();
    }
    module->setAttrs(program->getAttrDictionary());
    remark::passed(module.getLoc(), remark::RemarkOpts::name("fit-memory").category("boa-storage"))
        << "memory is short, so it streams " << remark::metric("streamed", int64_t(streamed))
        << " of " << remark::metric("held", int64_t(held))
        << " storages whose buffers were held while others compute";
  }

  NaiveProgram naive;
  const int mostTrials;
  const bool placesWeights;
};

} // namespace

std::unique_ptr<Pass> createKeepNaiveProgram(NaiveProgram program) {
  return std::make_unique<KeepNaiveProgram>(std::move(program));
}

std::unique_ptr<Pass> createFitMemory(NaiveProgram program, Streamed streamed, bool placesWeights) {
  return std::make_unique<FitMemory>(std::move(program), streamed, placesWeights);
}

} // namespace boa
