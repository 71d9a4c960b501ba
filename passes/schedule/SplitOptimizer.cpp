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
#include "passes/Config.h"
#include "passes/Passes.h"
#include "passes/analysis/ScheduleTrace.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Remarks.h"

#include <map>
#include <set>

using namespace mlir;

namespace boa {
#define GEN_PASS_DEF_SPLITOPTIMIZER
#include "passes/Passes.h.inc"

namespace {

/// The loop at the top of the step that holds `op`.
Operation *topLevel(StepOp step, Operation *op) {
  while (op->getParentOp() != step)
    op = op->getParentOp();
  return op;
}

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
  void createDrain() {
    builder.setInsertionPointAfter(step);
    drain = StepOp::create(builder, step.getLoc(), "drain");
  }

  /// An update of chunks [first, last) at the builder's insertion point.
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
    auto loop = LoopOp::create(builder, group.getLoc(), "layer", 0, group.getRepeat());
    builder.setInsertionPointToStart(loop.getBlock());
    emit(group, loop.getInductionVar(), first, last, of);
  }

  /// The last contribution to a group's gradient.
  AccumulateOp lastContribution(GroupOp group) {
    std::string name = getStorageName("gradients", group.getSymName());
    AccumulateOp last;
    step.walk([&](AccumulateOp accumulate) {
      if (accumulate.getStorage() == name)
        last = accumulate;
    });
    return last;
  }

  /// Erases `op` and the loop around it where nothing is left in that.
  void eraseWithLoop(Operation *op) {
    auto loop = dyn_cast<LoopOp>(op->getParentOp());
    op->erase();
    if (loop && loop.getBlock()->empty())
      loop.erase();
  }

  /// A layer's gradient is measured while it is still in memory.
  void moveNorm(GradientNormOp norm) {
    auto group = SymbolTable::lookupNearestSymbolFrom<GroupOp>(step, norm.getGroupAttr());
    AccumulateOp last = lastContribution(group);
    auto loop = dyn_cast_or_null<LoopOp>(last ? topLevel(step, last) : nullptr);
    if (!loop)
      return;
    if (loop.getDimension() == "layer" && group.getRepeat() > 1) {
      builder.setInsertionPointToEnd(loop.getBlock());
      GradientNormOp::create(builder, norm.getLoc(), norm.getGroup(), loop.getInductionVar());
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

  /// The head: at the end of the layer's backward, or after the loop that makes
  /// the last contribution to the gradient. Stays put where the norm of all
  /// gradients comes first.
  void emitHead(GroupOp group, OptimizerUpdateOp update, int64_t head) {
    AccumulateOp last = lastContribution(group);
    bool needsNorm = false;
    step.walk([&](FinishNormOp) { needsNorm = true; });
    auto loop = dyn_cast<LoopOp>(topLevel(step, needsNorm || !last ? update : last));
    if (loop && loop.getDimension() == "layer" && group.getRepeat() > 1) {
      builder.setInsertionPointToEnd(loop.getBlock());
      return emit(group, loop.getInductionVar(), 0, head, step.getStep());
    }
    builder.setInsertionPointAfter(loop);
    emitLoop(group, 0, head, step.getStep());
  }

  /// The tail: before the first read of the weights in the step.
  void emitTail(GroupOp group, int64_t head, int64_t chunks) {
    std::string name = getStorageName("weights", group.getSymName());
    ReadOp first;
    step.walk([&](ReadOp read) {
      if (!first && read.getStorage() == name)
        first = read;
    });
    if (!first) {
      builder.setInsertionPointToStart(step.getBlock());
      return emitLoop(group, head, chunks, step.getPending());
    }
    auto loop = cast<LoopOp>(topLevel(step, first));
    if (loop.getDimension() == "layer" && group.getRepeat() > 1) {
      builder.setInsertionPointToStart(loop.getBlock());
      return emit(group, loop.getInductionVar(), head, chunks, step.getPending());
    }
    builder.setInsertionPoint(loop);
    emitLoop(group, head, chunks, step.getPending());
  }

  StepOp step, drain;
  double delay;
  OpBuilder builder;
};

/// What the updates of a step see and who sees them.
class UpdateTrace {
public:
  /// A group's name and a layer.
  using Entry = std::pair<std::string, int64_t>;
  /// The contributions that a gradient is made of.
  using Gradient = std::multiset<Operation *>;

  UpdateTrace(StepOp step, RunNumbers numbers) : step(step) {
    trace(step, [&](Operation *op, const TraceState &state) { visit(op, state); }, numbers);
  }

  /// Null where `after` applies each update once, in this step or the next, with
  /// the gradient of its own step, and no read sees other weights; else the group
  /// of which that does not hold.
  const std::string *findDifference(const UpdateTrace &after) const {
    for (const auto &[entry, chunks] : updated) {
      std::multiset<int64_t> moved = after.chunksOf(after.updated, entry);
      std::multiset<int64_t> pending = after.chunksOf(after.delayed, entry);
      moved.insert(pending.begin(), pending.end());
      if (moved != chunks)
        return &entry.first;
    }
    for (const auto &[entry, chunks] : after.updated)
      if (!updated.count(entry) || after.used.at(entry) != used.at(entry))
        return &entry.first;
    for (const auto &[entry, chunks] : after.delayed)
      if (!updated.count(entry) || !after.usedDelayed.at(entry).empty())
        return &entry.first;
    for (auto [was, is] : llvm::zip(reads, after.reads))
      if (was.updated != is.updated || is.delayed != after.chunksOf(after.delayed, is.entry))
        return &is.entry.first;
    for (const auto &[entry, gradient] : measured)
      if (auto it = after.measured.find(entry);
          it == after.measured.end() || it->second != gradient)
        return &entry.first;
    return nullptr;
  }

private:
  using Chunks = std::map<Entry, std::multiset<int64_t>>;
  struct Read {
    Entry entry;
    std::multiset<int64_t> updated, delayed;
  };

  static std::multiset<int64_t> chunksOf(const Chunks &chunks, const Entry &entry) {
    auto it = chunks.find(entry);
    return it == chunks.end() ? std::multiset<int64_t>() : it->second;
  }
  void visit(Operation *op, const TraceState &state) {
    auto indexed = [&](StringRef name, OperandRange indices) -> Entry {
      return {name.str(), indices.empty() ? 0 : state.get(indices[0])};
    };
    if (auto read = dyn_cast<ReadOp>(op)) {
      StringRef group = read.getStorage();
      Entry entry = indexed(group, read.getIndices());
      if (!group.consume_front("weights."))
        return;
      entry.first = group.str();
      reads.push_back({entry, chunksOf(updated, entry), chunksOf(delayed, entry)});
    } else if (auto accumulate = dyn_cast<AccumulateOp>(op)) {
      StringRef group = accumulate.getStorage();
      Entry entry = indexed(group, accumulate.getIndices());
      if (!group.consume_front("gradients."))
        return;
      entry.first = group.str();
      if (state.get(accumulate.getInitial()))
        gradients[entry].clear();
      gradients[entry].insert(op);
    } else if (auto norm = dyn_cast<GradientNormOp>(op)) {
      Entry entry{getGroupName(norm.getGroup()).str(), state.get(norm.getLayer())};
      summed[entry] = gradients[entry];
    } else if (isa<FinishNormOp>(op)) {
      measured = summed;
    } else if (auto update = dyn_cast<OptimizerUpdateOp>(op)) {
      Entry entry{getGroupName(update.getGroup()).str(), state.get(update.getLayer())};
      bool pending = update.getStep() == step.getPending();
      for (int64_t c = update.getFirst(); c < int64_t(update.getLast()); ++c)
        (pending ? delayed : updated)[entry].insert(c);
      (pending ? usedDelayed : used)[entry] = gradients[entry];
    }
  }

  StepOp step;
  std::map<Entry, Gradient> gradients, used, usedDelayed, summed, measured;
  Chunks updated, delayed;
  std::vector<Read> reads;
};

/// What Splitter assumes: a step that has not been split.
LogicalResult checkSplittable(ModuleOp module, StepOp step) {
  if (auto drain = module.lookupSymbol("drain"))
    return step.emitOpError("is split already: its drain is there").attachNote(drain->getLoc())
           << "here";
  llvm::StringMap<Operation *> seen;
  WalkResult walked = step.walk([&](Operation *op) -> WalkResult {
    if (isa<OptimizerUpdateOp, GradientNormOp, AccumulateOp, ReadOp>(op) &&
        op->getParentOp() == step)
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

  void runOnOperation() override {
    ModuleOp module = getOperation();
    auto step = module.lookupSymbol<StepOp>("step");
    if (!step)
      return;
    if (delay < 0 || delay > 1) {
      step.emitOpError("expected a delay in [0, 1] but found ") << double(delay);
      return signalPassFailure();
    }
    FinishNormOp norm;
    step.walk([&](FinishNormOp op) { norm = op; });
    if (norm && delay > 0 && delay < 1) {
      Config train = Config::train(module);
      bool skips = train.skipsNonfinite() && !(train.real("clip") > 0);
      auto diag =
          step.emitOpError("cannot split the optimizer at a delay of ")
          << double(delay) << ": "
          << (skips ? "leaving out steps with nonfinite = skip" : "clipping by the global norm")
          << " needs every gradient of the step before the first update; legal are delay = 0 "
             "(update after backward) "
          << "and delay = 1 (update in the next step)";
      diag.attachNote(norm.getLoc()) << "the norm is complete here";
      return signalPassFailure();
    }
    if (failed(checkSplittable(module, step)))
      return signalPassFailure();
    SmallVector<RunNumbers> parities = getParities(step);
    std::vector<UpdateTrace> before;
    for (RunNumbers numbers : parities)
      before.emplace_back(step, numbers);
    Splitter(step, delay).run();
    std::string group;
    for (auto [numbers, was] : llvm::zip(parities, before))
      if (const std::string *found = was.findDifference(UpdateTrace(step, numbers)))
        group = *found;
    if (!group.empty()) {
      step.emitOpError("cannot split the update of @")
          << group << " at a delay of " << double(delay)
          << ": it would see another gradient, or a read of @weights." << group
          << " would see other weights";
      return signalPassFailure();
    }
    remark::passed(step.getLoc(),
                   remark::RemarkOpts::name("split-optimizer").category("boa-schedule"))
        << "delayed a share of " << remark::metric("delay", double(delay)) << " of each update";
  }
};

} // namespace
} // namespace boa
