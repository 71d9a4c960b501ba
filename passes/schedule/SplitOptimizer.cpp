//===- SplitOptimizer.cpp - --boa-split-optimizer -------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Moves each update to where its gradient is complete, and its tail to before
// the first use of the weights in the next step. The delayed share: GreedySnake,
// arXiv 2512.17570. Updates are elementwise, so splitting an entry by chunks
// changes no bit. Refuses what would let an update come before a gradient that
// it needs or after a read that must see it: the step is enumerated before and
// after.
//
//===----------------------------------------------------------------------===//
#include "dialect/Config.h"
#include "passes/Passes.h"
#include "passes/analysis/TranslationValidation.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Remarks.h"

using namespace mlir;

namespace boa {
#define GEN_PASS_DEF_SPLITOPTIMIZER
#include "passes/Passes.h.inc"

namespace {

class Splitter {
public:
  Splitter(StepOp step, double delay) : step(step), delay(delay), builder(step) {}

  void run() {
    SmallVector<OptimizerUpdateOp> updates;
    step.walk([&](OptimizerUpdateOp update) { updates.push_back(update); });
    createDrain();
    SmallVector<GradientNormOp> norms;
    step.walk([&](GradientNormOp norm) { norms.push_back(norm); });
    for (GradientNormOp norm : norms)
      moveNorm(norm);
    for (OptimizerUpdateOp update : updates)
      split(update);
  }

private:
  /// The loop at the top of the step that holds `op`.
  Operation *topLevel(Operation *op) { return step.getBlock()->findAncestorOpInBlock(*op); }

  void createDrain() {
    builder.setInsertionPointAfter(step);
    drain = StepOp::create(builder, step.getLoc(), EntryPoint::drain);
  }

  /// Emits an update of chunks [first, last) at the builder's insertion point.
  void emit(GroupOp group, Value layer, int64_t first, int64_t last, Value of) {
    if (first < last)
      OptimizerUpdateOp::create(builder, group.getLoc(), group.getSymName(), layer, first, last,
                                of);
  }
  void emitLoop(GroupOp group, int64_t first, int64_t last, Value of) {
    if (first == last)
      return;
    OpBuilder::InsertionGuard guard(builder);
    if (group.getRepeat() == 1)
      return emit(group, arith::ConstantIndexOp::create(builder, group.getLoc(), 0), first, last,
                  of);
    auto loop = LoopOp::create(builder, group.getLoc(), Dimension::layer, 0, group.getRepeat());
    builder.setInsertionPointToStart(loop.getBlock());
    emit(group, loop.getInductionVar(), first, last, of);
  }

  /// The layer loops that hold the first, or the last, `OpT` of each entry of a storage of the
  /// group. There are none if some are outside of layer loops, or if a loop has only some of the
  /// entries.
  template <typename OpT> SmallVector<LoopOp, 0> findLoops(GroupOp group, Role role, bool last) {
    const std::string name = getStorageName(role, group.getSymName());
    const int64_t repeat = group.getRepeat();
    SmallVector<LoopOp> ofEntry(repeat);
    llvm::BitVector found(repeat);
    step.walk([&](OpT op) {
      if (op.getStorage() != name)
        return;
      auto loop = dyn_cast<LoopOp>(topLevel(op));
      if (repeat == 1 || (loop && loop.getDimension() != Dimension::layer))
        loop = LoopOp();
      const int64_t begin = loop ? loop.getLower() : 0, end = loop ? loop.getUpper() : repeat;
      for (int64_t entry = begin; entry < std::min(end, repeat); ++entry)
        if (last || !found.test(entry)) {
          ofEntry[entry] = loop;
          found.set(entry);
        }
    });
    llvm::SetVector<LoopOp> loops(ofEntry.begin(), ofEntry.end());
    int64_t entries = 0;
    for (LoopOp loop : loops)
      entries += loop ? loop.getTripCount() : 0;
    return found.all() && entries == repeat ? loops.takeVector() : SmallVector<LoopOp, 0>();
  }

  /// The last contribution to a group's gradient.
  AccumulateOp lastContribution(GroupOp group) {
    std::string name = getStorageName(Role::gradients, group.getSymName());
    AccumulateOp last;
    step.walk([&](AccumulateOp accumulate) {
      if (accumulate.getStorage() == name)
        last = accumulate;
    });
    return last;
  }

  /// Erases `op`, and the loop around it if nothing is left in it.
  void eraseWithLoop(Operation *op) {
    auto loop = dyn_cast<LoopOp>(op->getParentOp());
    op->erase();
    if (loop && loop.getBlock()->empty())
      loop.erase();
  }

  /// Moves a norm to where the layer's gradient is still in memory.
  void moveNorm(GradientNormOp norm) {
    auto group = SymbolTable::lookupNearestSymbolFrom<GroupOp>(step, norm.getGroupAttr());
    AccumulateOp last = lastContribution(group);
    auto loop = dyn_cast_or_null<LoopOp>(last ? topLevel(last) : nullptr);
    if (!loop)
      return;
    auto layers = findLoops<AccumulateOp>(group, Role::gradients, /*last=*/true);
    for (LoopOp each : layers) {
      builder.setInsertionPointToEnd(each.getBlock());
      GradientNormOp::create(builder, norm.getLoc(), norm.getGroup(), each.getInductionVar());
    }
    if (!layers.empty()) {
      eraseWithLoop(norm);
    } else if (group.getRepeat() == 1) {
      builder.setInsertionPointAfter(loop);
      GradientNormOp::create(builder, norm.getLoc(), norm.getGroup(),
                             arith::ConstantIndexOp::create(builder, norm.getLoc(), 0));
      eraseWithLoop(norm);
    }
  }

  void split(OptimizerUpdateOp update) {
    auto group = SymbolTable::lookupNearestSymbolFrom<GroupOp>(step, update.getGroupAttr());
    int64_t chunks = group.getChunks();
    int64_t head = chunks - getDelayedChunks(chunks, delay);
    emitHead(group, update, head);
    emitTail(group, head, chunks);
    builder.setInsertionPointToEnd(drain.getBlock());
    emitLoop(group, head, chunks, drain.getPending());
    eraseWithLoop(update);
  }

  /// Emits the head: at the end of the layer's backward, or after the loop that makes the last
  /// contribution to the gradient. It stays where it is if the norm of all gradients comes first.
  void emitHead(GroupOp group, OptimizerUpdateOp update, int64_t head) {
    AccumulateOp last = lastContribution(group);
    bool needsNorm = false;
    step.walk([&](FinishNormOp) { needsNorm = true; });
    SmallVector<LoopOp, 0> layers;
    if (!needsNorm)
      layers = findLoops<AccumulateOp>(group, Role::gradients, /*last=*/true);
    for (LoopOp loop : layers) {
      builder.setInsertionPointToEnd(loop.getBlock());
      emit(group, loop.getInductionVar(), 0, head, step.getStep());
    }
    if (!layers.empty())
      return;
    builder.setInsertionPointAfter(topLevel(needsNorm || !last ? update : last));
    emitLoop(group, 0, head, step.getStep());
  }

  /// Emits the tail: before the first read of the weights in the step.
  void emitTail(GroupOp group, int64_t head, int64_t chunks) {
    std::string name = getStorageName(Role::weights, group.getSymName());
    ReadOp first;
    step.walk([&](ReadOp read) {
      if (!first && read.getStorage() == name)
        first = read;
    });
    if (!first) {
      builder.setInsertionPointToStart(step.getBlock());
      return emitLoop(group, head, chunks, step.getPending());
    }
    auto layers = findLoops<ReadOp>(group, Role::weights, /*last=*/false);
    for (LoopOp loop : layers) {
      builder.setInsertionPointToStart(loop.getBlock());
      emit(group, loop.getInductionVar(), head, chunks, step.getPending());
    }
    if (!layers.empty())
      return;
    builder.setInsertionPoint(topLevel(first));
    emitLoop(group, head, chunks, step.getPending());
  }

  StepOp step, drain;
  double delay;
  OpBuilder builder;
};

/// Checks what Splitter assumes: a step that has not been split.
LogicalResult checkSplittable(ModuleOp module, StepOp step) {
  if (auto drain = findEntryPoint(module, EntryPoint::drain))
    return step.emitOpError("is split already: its drain is there").attachNote(drain->getLoc())
           << "here";
  llvm::StringMap<Operation *> seen;
  WalkResult walked = step.walk([&](Operation *op) -> WalkResult {
    auto mayRead = [](const StorageAccess &access) { return access.mayRead(); };
    if (auto access = dyn_cast<AccessOpInterface>(op);
        access && op->getParentOp() == step && llvm::any_of(access.getAccesses(), mayRead))
      return op->emitOpError("expected to be in a loop of @") << step.getSymName();
    auto update = dyn_cast<OptimizerUpdateOp>(op);
    if (!update)
      return WalkResult::advance();
    auto group = SymbolTable::lookupNearestSymbolFrom<GroupOp>(step, update.getGroupAttr());
    if (update.getStep() != step.getStep())
      return update.emitOpError("expected an update of the step itself");
    if (update.getFirst() != 0 || int64_t(update.getLast()) != group.getChunks())
      return update.emitOpError("expected all ")
             << group.getChunks() << " chunks of @" << update.getGroup();
    if (Operation *&first = seen[update.getGroup()]) {
      InFlightDiagnostic diag = update.emitOpError("updates @") << update.getGroup() << " again";
      diag.attachNote(first->getLoc()) << "it is also updated here";
      return diag;
    } else {
      first = op;
    }
    return WalkResult::advance();
  });
  return failure(walked.wasInterrupted());
}

struct SplitOptimizer : impl::SplitOptimizerBase<SplitOptimizer> {
  using SplitOptimizerBase::SplitOptimizerBase;

  /// Reports an update before a contribution to its gradient, or after a read that must see it.
  LogicalResult refuse(ModuleOp module, const TracedComputation::Outcome &difference) {
    StepOp step = findEntryPoint(module, EntryPoint::step);
    for (auto group : module.getOps<GroupOp>())
      if (difference.of == findStorage(module, Role::weights, group.getSymName()))
        return step.emitOpError("cannot split the update of @")
               << getUserName(group.getSymName()) << " at a delay of " << share
               << ": it would see another gradient, or a read of @weights."
               << getUserName(group.getSymName()) << " would see other weights";
    return step.emitOpError("cannot split the optimizer at a delay of ")
           << share << ": a kernel would see weights of another step";
  }

  void runOnOperation() override {
    ModuleOp module = getOperation();
    StepOp step = findEntryPoint(module, EntryPoint::step);
    if (!step)
      return;
    const Config config(module);
    share = delay.hasValue() ? double(delay) : config.plan.delay;
    if (share < 0 || share > 1) {
      step.emitOpError("expected a delay in [0, 1] but found ") << share;
      return signalPassFailure();
    }
    FinishNormOp norm;
    step.walk([&](FinishNormOp op) { norm = op; });
    if (norm && share > 0 && share < 1) {
      bool skips = config.train.nonfinite == Nonfinite::skip && !(config.train.clip > 0);
      auto diag =
          step.emitOpError("cannot split the optimizer at a delay of ")
          << share << ": "
          << (skips ? "leaving out steps with nonfinite = skip" : "clipping by the global norm")
          << " needs every gradient of the step before the first update; legal are delay = 0 "
             "(update after backward) "
          << "and delay = 1 (update in the next step)";
      diag.attachNote(norm.getLoc()) << "the norm is complete here";
      return signalPassFailure();
    }
    if (failed(checkSplittable(module, step)))
      return signalPassFailure();
    auto &computation = getAnalysis<CurrentComputation>();
    const TracedComputation &before = computation.get();
    Splitter(step, share).run();
    TracedComputation after = TracedComputation::compute(module);
    if (const TracedComputation::Outcome *difference =
            findDifference(before, after, /*eachStep=*/false)) {
      (void)refuse(module, *difference);
      return signalPassFailure();
    }
    computation.replace(std::move(after));
    markAnalysesPreserved<CurrentComputation>();
    remark::passed(step.getLoc(),
                   remark::RemarkOpts::name("split-optimizer").category("boa-schedule"))
        << "delayed a share of " << remark::metric("delay", share) << " of each update";
  }

  double share = 0; // delayed
};

} // namespace
} // namespace boa
