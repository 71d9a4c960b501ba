//===- VerticalSchedule.cpp - --boa-vertical-schedule ---------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Loop distribution and interchange of the micro_batch loop, then the snake.
// Order and its cost: GreedySnake, arXiv 2512.17570. Assumes the step phase;
// values cross the statements of the body through storages only (scalar
// expansion), except indices and conditions, which are computed again. Refuses
// values that cross otherwise, and an order in which a read would see another
// write or an entry would end with another.
//
//===----------------------------------------------------------------------===//
#include "dialect/Config.h"
#include "passes/Passes.h"
#include "passes/analysis/TranslationValidation.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Remarks.h"

using namespace mlir;

namespace boa {
#define GEN_PASS_DEF_VERTICALSCHEDULE
#include "passes/Passes.h.inc"

namespace {

bool isMicroBatch(LoopOp loop) { return loop.getDimension() == Dimension::micro_batch; }

/// The body's ops in runs that stay together: each inner loop by itself, and
/// each call with the reads before it and the writes after it. A call that reads
/// nothing stays with the call before it.
SmallVector<SmallVector<Operation *>> splitStatements(Block &body) {
  SmallVector<SmallVector<Operation *>> statements;
  bool open = false, stored = false;
  for (Operation &op : body) {
    if (isa<IndexOpInterface>(op))
      continue;
    bool isLoop = isa<LoopOp>(op);
    if (isLoop || !open || (stored && isa<ReadOp>(op))) {
      statements.emplace_back();
      stored = false;
    }
    statements.back().push_back(&op);
    open = !isLoop;
    stored |= isa<WriteOp, AccumulateOp>(op);
  }
  return statements;
}

/// Clones `op` with the index arithmetic that it needs.
void cloneWithIndices(OpBuilder &builder, Operation *op, IRMapping &map) {
  op->walk([&](Operation *nested) {
    for (Value operand : nested->getOperands()) {
      Operation *def = operand.getDefiningOp();
      if (isa_and_nonnull<IndexOpInterface>(def) && !map.contains(operand) && !op->isAncestor(def))
        cloneWithIndices(builder, def, map);
    }
  });
  builder.clone(*op, map);
}

LogicalResult checkNotSnake(LoopOp loop) {
  if (loop.getOrder() != LoopOrder::snake)
    return success();
  return loop.emitOpError("cannot be interchanged: expected order forward or reverse but found "
                          "snake");
}

/// Checks that a loop can be distributed. Distribution parts statements, so a value of one that
/// another takes would have to cross loops. And a loop that becomes an outer one cannot take its
/// direction from what is then inside it.
LogicalResult checkDistributable(StepOp step, LoopOp micro) {
  if (failed(checkNotSnake(micro)))
    return failure();
  auto statements = splitStatements(*micro.getBlock());
  llvm::DenseMap<Operation *, unsigned> statementOf;
  for (auto [i, statement] : llvm::enumerate(statements))
    for (Operation *op : statement)
      statementOf[op] = i;
  for (size_t i = 0; i < statements.size(); ++i) {
    const auto &statement = statements[i];
    if (auto layers = dyn_cast<LoopOp>(statement.front()); layers && failed(checkNotSnake(layers)))
      return failure();
    for (Operation *op : statement) {
      WalkResult walked = op->walk([&](Operation *nested) {
        for (Value operand : nested->getOperands()) {
          Operation *def = operand.getDefiningOp();
          auto it = statementOf.find(def);
          if (!def || it == statementOf.end() || it->second == i)
            continue;
          InFlightDiagnostic diag =
              step.emitOpError("the vertical schedule is illegal: a value would cross from one "
                               "loop to another; expected it to go through a storage");
          diag.attachNote(nested->getLoc()) << "it is used here";
          diag.attachNote(def->getLoc()) << "and defined here";
          return WalkResult::interrupt();
        }
        return WalkResult::advance();
      });
      if (walked.wasInterrupted())
        return failure();
    }
  }
  return success();
}

/// Emits micro_batch loops, one a statement, layer loops outside.
class Distributor {
public:
  explicit Distributor(LoopOp micro) : micro(micro), builder(micro) {}

  void run() {
    for (ArrayRef<Operation *> statement : splitStatements(*micro.getBlock())) {
      OpBuilder::InsertionGuard guard(builder);
      if (auto layers = dyn_cast<LoopOp>(statement.front()))
        interchange(layers);
      else
        distribute(statement);
    }
    micro.erase();
  }

private:
  LoopOp createLike(LoopOp loop) {
    auto copy = LoopOp::create(builder, loop.getLoc(), loop.getDimension(), loop.getLower(),
                               loop.getUpper(), loop.getOrder());
    builder.setInsertionPointToStart(copy.getBlock());
    return copy;
  }
  void distribute(ArrayRef<Operation *> statement) {
    LoopOp loop = createLike(micro);
    IRMapping map;
    map.map(micro.getInductionVar(), loop.getInductionVar());
    for (Operation *op : statement)
      cloneWithIndices(builder, op, map);
  }
  /// Turns micro { layers { body } } into layers { micro { body } }.
  void interchange(LoopOp layers) {
    LoopOp outer = createLike(layers);
    LoopOp inner = createLike(micro);
    IRMapping map;
    map.map(micro.getInductionVar(), inner.getInductionVar());
    map.map(layers.getInductionVar(), outer.getInductionVar());
    for (Operation &op : *layers.getBlock())
      cloneWithIndices(builder, &op, map);
  }

  LoopOp micro;
  OpBuilder builder;
};

/// Lets nest number k (each layer's nest counts) run in reverse where k is odd.
void applySnake(StepOp step) {
  int64_t nest = 0;
  for (LoopOp loop : llvm::make_early_inc_range(step.getBlock()->getOps<LoopOp>())) {
    if (isMicroBatch(loop)) {
      loop.setOrder(nest & 1 ? LoopOrder::reverse : LoopOrder::forward);
      ++nest;
      continue;
    }
    for (LoopOp inner : loop.getBlock()->getOps<LoopOp>()) {
      if (!isMicroBatch(inner))
        continue;
      // Layer l is nest number nest + l, or nest + (last - l) in reverse.
      bool reverse = loop.getOrder() == LoopOrder::reverse;
      int64_t phase =
          reverse ? nest + int64_t(loop.getUpper()) - 1 : nest - int64_t(loop.getLower());
      inner.setOrder(LoopOrder::snake);
      inner.getParityMutable().assign(loop.getInductionVar());
      inner.setPhase(phase & 1);
      nest += loop.getTripCount();
    }
  }
}

struct VerticalSchedule : impl::VerticalScheduleBase<VerticalSchedule> {
  using VerticalScheduleBase::VerticalScheduleBase;

  static SmallVector<LoopOp> microBatchLoops(StepOp step) {
    return llvm::filter_to_vector(step.getBlock()->getOps<LoopOp>(), isMicroBatch);
  }

  void runOnOperation() override {
    ModuleOp module = getOperation();
    const PlanSettings plan = Config(module).plan;
    if (plan.schedule != Schedule::vertical) {
      remark::missed(module.getLoc(),
                     remark::RemarkOpts::name("vertical-schedule").category("boa-schedule"))
          << "left micro-batches outside: the plan's schedule is horizontal";
      return markAllAnalysesPreserved();
    }
    SmallVector<StepOp> steps;
    for (StepOp step : module.getOps<StepOp>()) {
      SmallVector<LoopOp> loops = microBatchLoops(step);
      for (LoopOp loop : loops)
        if (failed(checkDistributable(step, loop)))
          return signalPassFailure();
      if (!loops.empty())
        steps.push_back(step);
    }
    if (steps.empty())
      return;
    const bool snakes = snake.hasValue() ? bool(snake) : plan.snake;
    auto &computation = getAnalysis<CurrentComputation>();
    const TracedComputation &before = computation.get();
    markOps(module);
    const OwningOpRef<ModuleOp> original = copyProgram(module);
    for (StepOp step : steps) {
      for (LoopOp loop : microBatchLoops(step))
        Distributor(loop).run();
      if (snakes)
        applySnake(step);
    }
    TracedComputation after = TracedComputation::compute(module);
    if (failed(checkSameOrder(module, *original, before, after, "the vertical schedule")))
      signalPassFailure();
    computation.replace(std::move(after));
    markAnalysesPreserved<CurrentComputation>();
    unmarkOps(module);
    for (StepOp step : steps)
      remark::passed(step.getLoc(),
                     remark::RemarkOpts::name("vertical-schedule").category("boa-schedule"))
          << "distributed and interchanged the micro_batch loop of @" << step.getSymName();
  }
};

} // namespace
} // namespace boa
