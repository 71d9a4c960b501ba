//===- ScheduleTrace.cpp --------------------------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/ScheduleTrace.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace boa {

//===----------------------------------------------------------------------===//
// Enumeration
//===----------------------------------------------------------------------===//

int64_t TraceState::get(Value value) const {
  if (auto it = values.find(value); it != values.end())
    return it->second;
  Operation *op = value.getDefiningOp();
  assert(op && "an index that is neither a loop's nor computed");
  return llvm::TypeSwitch<Operation *, int64_t>(op)
      .Case([](arith::ConstantOp constant) -> int64_t {
        return cast<IntegerAttr>(constant.getValue()).getValue().getSExtValue();
      })
      .Case([&](ShiftOp shift) { return get(shift.getIndex()) + shift.getBy(); })
      .Case([&](AtFirstOp at) -> int64_t { return ends.lookup(at.getIndex()).first; })
      .Case([&](AtLastOp at) -> int64_t { return ends.lookup(at.getIndex()).second; })
      .Case([&](arith::AndIOp both) { return get(both.getLhs()) & get(both.getRhs()); })
      .Default([](Operation *) -> int64_t { return 0; });
}

int64_t TraceState::getEntry(StorageOp storage, OperandRange indices) const {
  int64_t entry = 0;
  for (auto [index, dim] : llvm::zip(indices, storage.getDims())) {
    int64_t at = get(index);
    if (at < 0 || at >= dim)
      return -1;
    entry = entry * dim + at;
  }
  return entry;
}

bool isDelayedTail(LoopOp loop) {
  auto entry = loop->getParentOfType<StepOp>();
  if (loop.getDimension() != "chunk" || !entry)
    return false;
  auto updates = loop.getBlock()->getOps<UpdateOp>();
  return !updates.empty() && (*updates.begin()).getStep() == entry.getPending();
}

struct Enumerator {
  TraceState state;
  function_ref<void(Operation *, const TraceState &)> visit;
  int64_t pending;

  void run(Block &block) {
    for (Operation &op : block) {
      if (auto loop = dyn_cast<LoopOp>(op))
        run(loop);
      else if (!isa<arith::ConstantOp, ShiftOp, AtFirstOp, AtLastOp, arith::AndIOp>(op))
        visit(&op, state);
    }
  }

  void run(LoopOp loop) {
    if (pending == 0 && isDelayedTail(loop))
      return;
    bool reverse = loop.getOrder() == LoopOrder::reverse;
    if (loop.getOrder() == LoopOrder::snake)
      reverse = (state.get(loop.getParity()) + loop.getPhase()) & 1;
    int64_t trips = loop.getTripCount();
    Value iv = loop.getInductionVar();
    for (int64_t i = 0; i < trips; ++i) {
      state.values[iv] = reverse ? loop.getUpper() - 1 - i : loop.getLower() + i;
      state.ends[iv] = {i == 0, i == trips - 1};
      run(*loop.getBlock());
    }
  }
};

void trace(StepOp step, function_ref<void(Operation *, const TraceState &)> visit,
           int64_t pending) {
  Enumerator enumerator{{}, visit, pending};
  enumerator.state.values[step.getStep()] = 2;
  enumerator.state.values[step.getPending()] = pending;
  enumerator.run(*step.getBlock());
}

Access getAccess(Operation *op, const TraceState &state) {
  Access access;
  llvm::TypeSwitch<Operation *>(op).Case<PrefetchOp, CreateOp, OffloadOp>([&](auto transfer) {
    access.storage =
        SymbolTable::lookupNearestSymbolFrom<StorageOp>(op, transfer.getStorageAttr());
    access.entry = state.getEntry(access.storage, transfer.getIndices());
    access.first = transfer.getFirst() ? state.get(transfer.getFirst()) : 0;
    access.count = transfer.isWholeEntry() ? access.storage.getChunks() : transfer.getCount();
  });
  return access;
}

Operation *getOrigin(Value buffer) {
  Operation *op = buffer.getDefiningOp();
  if (auto await = dyn_cast_or_null<AwaitOp>(op))
    return await.getToken().getDefiningOp();
  return op;
}

//===----------------------------------------------------------------------===//
// Dataflow
//===----------------------------------------------------------------------===//

static constexpr StringLiteral kMarkAttr = "boa.mark";

void markOps(StepOp step) {
  int64_t mark = 0;
  Builder builder(step.getContext());
  step.walk([&](Operation *op) { op->setAttr(kMarkAttr, builder.getI64IntegerAttr(mark++)); });
}

void unmarkOps(StepOp step) {
  step.walk([&](Operation *op) { op->removeAttr(kMarkAttr); });
}

namespace {
/// Follows, for each entry, the writes that its current value is made of.
class DataflowBuilder {
public:
  explicit DataflowBuilder(StepOp step) : step(step) {}

  Dataflow run() {
    trace(step, [&](Operation *op, const TraceState &state) { visit(op, state); });
    return std::move(flow);
  }

private:
  using Entry = std::pair<std::string, int64_t>;

  int64_t markOf(Operation *op) {
    auto attr = op->getAttrOfType<IntegerAttr>(kMarkAttr);
    int64_t mark = attr ? attr.getInt() : -1;
    flow.ops[mark] = op;
    return mark;
  }
  Entry entryOf(FlatSymbolRefAttr name, OperandRange indices, const TraceState &state) {
    auto storage = SymbolTable::lookupNearestSymbolFrom<StorageOp>(step, name);
    return {name.getValue().str(), storage ? state.getEntry(storage, indices) : -1};
  }
  void read(Operation *op, const Entry &entry) {
    std::vector<Dataflow::Instance> seen = value[entry];
    llvm::sort(seen);
    flow.reads[{markOf(op), entry.first, entry.second}].push_back(std::move(seen));
  }
  /// The entry that stands for iteration identity in a write.
  void write(Operation *op, const Entry &entry, int64_t instance, bool keep) {
    auto &seen = value[entry];
    if (!keep)
      seen.clear();
    seen.push_back({markOf(op), instance});
  }
  /// What tells one execution of an accumulation from another: the entries that
  /// its value was computed from are told by the micro-batch and layer indices.
  int64_t instanceOf(Operation *op, const TraceState &state) {
    int64_t instance = 0;
    for (Operation *parent = op->getParentOp(); parent; parent = parent->getParentOp())
      if (auto loop = dyn_cast<LoopOp>(parent))
        instance += state.get(loop.getInductionVar()) *
                    (loop.getDimension() == "micro_batch" ? 1 : (1 << 20));
    return instance;
  }
  void visit(Operation *op, const TraceState &state) {
    if (auto access = dyn_cast<ReadOp>(op))
      return read(op, entryOf(access.getStorageAttr(), access.getIndices(), state));
    if (auto access = dyn_cast<WriteOp>(op))
      return write(op, entryOf(access.getStorageAttr(), access.getIndices(), state),
                   instanceOf(op, state), /*keep=*/false);
    if (auto access = dyn_cast<AccumulateOp>(op))
      return write(op, entryOf(access.getStorageAttr(), access.getIndices(), state),
                   instanceOf(op, state), /*keep=*/!state.get(access.getInitial()));
    if (auto update = dyn_cast<OptimizerUpdateOp>(op)) {
      std::string group = update.getGroup().str();
      int64_t layer = state.get(update.getLayer());
      read(op, {"gradients." + group, layer});
      return write(op, {"weights." + group, layer}, instanceOf(op, state), /*keep=*/true);
    }
    if (auto norm = dyn_cast<GradientNormOp>(op))
      return read(op, {"gradients." + norm.getGroup().str(), state.get(norm.getLayer())});
  }

  StepOp step;
  Dataflow flow;
  std::map<Entry, std::vector<Dataflow::Instance>> value;
};
} // namespace

Dataflow Dataflow::compute(StepOp step) { return DataflowBuilder(step).run(); }

LogicalResult checkSameDataflow(StepOp step, const Dataflow &before, const Dataflow &after,
                                StringRef transformation) {
  for (const auto &[key, seen] : before.reads) {
    auto it = after.reads.find(key);
    // An op that reads one entry several times must see the same values each
    // time, in any order of the times.
    std::vector<std::vector<Dataflow::Instance>> was = seen, is;
    if (it != after.reads.end())
      is = it->second;
    llvm::sort(was);
    llvm::sort(is);
    if (was == is)
      continue;
    const auto &[mark, storage, entry] = key;
    InFlightDiagnostic diag = step.emitOpError(transformation)
                              << " is illegal: it would change what a read of @" << storage
                              << " entry " << entry << " sees";
    diag.attachNote(before.ops.lookup(mark)->getLoc()) << "the read is here";
    for (const auto &list : was)
      for (const auto &[writer, instance] : list)
        if (Operation *op = before.ops.lookup(writer)) {
          diag.attachNote(op->getLoc()) << "the dependence is on this write of @" << storage;
          return diag;
        }
    return diag;
  }
  return success();
}

} // namespace boa
