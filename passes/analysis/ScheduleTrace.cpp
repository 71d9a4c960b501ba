//===- ScheduleTrace.cpp --------------------------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/analysis/ScheduleTrace.h"

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
      .Default([](Operation *op) -> int64_t {
        llvm::report_fatal_error("an index that boa.step's verifier should refuse: " +
                                 op->getName().getStringRef());
      });
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

bool dependsOnParity(StepOp step) {
  return llvm::any_of(
      llvm::concat<OpOperand>(step.getStep().getUses(), step.getPending().getUses()),
      [](OpOperand &use) {
        auto loop = dyn_cast<LoopOp>(use.getOwner());
        return loop && loop.getParity() == use.get();
      });
}

SmallVector<RunNumbers> getParities(StepOp step) {
  SmallVector<RunNumbers> numbers{{2, 1}};
  if (dependsOnParity(step))
    numbers.push_back({3, 2});
  return numbers;
}

struct Enumerator {
  TraceState state;
  function_ref<void(Operation *, const TraceState &)> visit;

  void run(Block &block) {
    for (Operation &op : block) {
      if (auto loop = dyn_cast<LoopOp>(op))
        run(loop);
      else if (!isa<arith::ConstantOp, ShiftOp, AtFirstOp, AtLastOp, arith::AndIOp>(op))
        visit(&op, state);
    }
  }

  void run(LoopOp loop) {
    if (loop.getGuard() && state.get(loop.getGuard()) == 0)
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
           RunNumbers numbers) {
  Enumerator enumerator{{}, visit};
  enumerator.state.values[step.getStep()] = numbers.step;
  enumerator.state.values[step.getPending()] = numbers.pending;
  enumerator.run(*step.getBlock());
}

Access getAccess(Operation *op, const TraceState &state, StorageOp storage) {
  Access access;
  llvm::TypeSwitch<Operation *>(op).Case<PrefetchOp, CreateOp, OffloadOp>([&](auto transfer) {
    access.storage =
        storage ? storage
                : SymbolTable::lookupNearestSymbolFrom<StorageOp>(op, transfer.getStorageAttr());
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

int64_t getMark(Operation *op) {
  auto attr = op->getAttrOfType<IntegerAttr>(kMarkAttr);
  return attr ? attr.getInt() : -1;
}

void unmarkOps(StepOp step) {
  step.walk([&](Operation *op) { op->removeAttr(kMarkAttr); });
}

namespace {
/// Follows, for each entry, the writes that its current value is made of.
class DataflowBuilder {
public:
  explicit DataflowBuilder(StepOp step) : step(step) {}

  Dataflow run(RunNumbers numbers) {
    trace(step, [&](Operation *op, const TraceState &state) { visit(op, state); }, numbers);
    for (auto &[entry, writes] : value)
      llvm::sort(writes);
    flow.finals = std::move(value);
    return std::move(flow);
  }

private:
  using Entry = Dataflow::Entry;

  Dataflow::Instance instanceOf(Operation *op, const TraceState &state) {
    int64_t mark = getMark(op);
    flow.ops[mark] = op;
    // Loops of one dimension keep their order; those of different ones may not.
    SmallVector<LoopOp> loops;
    for (Operation *parent = op->getParentOp(); parent; parent = parent->getParentOp())
      if (auto loop = dyn_cast<LoopOp>(parent))
        loops.push_back(loop);
    std::reverse(loops.begin(), loops.end());
    llvm::stable_sort(loops,
                      [](LoopOp a, LoopOp b) { return a.getDimension() < b.getDimension(); });
    std::string iteration;
    for (LoopOp loop : loops)
      iteration += (iteration.empty() ? "" : ", ") + loop.getDimension().str() + " " +
                   std::to_string(state.get(loop.getInductionVar()));
    return {mark, iteration};
  }
  Entry entryOf(FlatSymbolRefAttr name, OperandRange indices, const TraceState &state) {
    auto storage = SymbolTable::lookupNearestSymbolFrom<StorageOp>(step, name);
    return {name.getValue().str(), storage ? state.getEntry(storage, indices) : -1};
  }
  void read(Operation *op, const Entry &entry, const TraceState &state) {
    Dataflow::Writes seen = value[entry];
    llvm::sort(seen);
    flow.reads[{instanceOf(op, state), entry}] = std::move(seen);
  }
  void write(Operation *op, const Entry &entry, const TraceState &state, bool keep) {
    auto &writes = value[entry];
    if (!keep)
      writes.clear();
    writes.push_back(instanceOf(op, state));
  }
  void visit(Operation *op, const TraceState &state) {
    // The global norm is one more value: a sum until it is finished, then read
    // by every update.
    const Entry norm{"global norm", 0};
    if (auto access = dyn_cast<ReadOp>(op)) {
      read(op, entryOf(access.getStorageAttr(), access.getIndices(), state), state);
    } else if (auto access = dyn_cast<WriteOp>(op)) {
      write(op, entryOf(access.getStorageAttr(), access.getIndices(), state), state,
            /*keep=*/false);
    } else if (auto access = dyn_cast<AccumulateOp>(op)) {
      write(op, entryOf(access.getStorageAttr(), access.getIndices(), state), state,
            /*keep=*/!state.get(access.getInitial()));
    } else if (auto update = dyn_cast<OptimizerUpdateOp>(op)) {
      std::string group = getGroupName(update.getGroup()).str();
      int64_t layer = state.get(update.getLayer());
      read(op, norm, state);
      read(op, {"gradients." + group, layer}, state);
      // Updates of one entry do not commute: each sees those before it.
      read(op, {"weights." + group, layer}, state);
      write(op, {"weights." + group, layer}, state, /*keep=*/true);
    } else if (auto add = dyn_cast<GradientNormOp>(op)) {
      read(op, {getStorageName("gradients", add.getGroup()), state.get(add.getLayer())}, state);
      write(op, norm, state, /*keep=*/true);
    } else if (isa<FinishNormOp>(op)) {
      read(op, norm, state);
      write(op, norm, state, /*keep=*/false);
    }
  }

  StepOp step;
  Dataflow flow;
  std::map<Entry, Dataflow::Writes> value;
};

/// The first write of `writes` that `others` lacks; null if there is none.
const Dataflow::Instance *firstNotIn(const Dataflow::Writes &writes,
                                     const Dataflow::Writes &others) {
  for (const Dataflow::Instance &write : writes)
    if (!llvm::is_contained(others, write))
      return &write;
  return nullptr;
}

void noteFinal(InFlightDiagnostic &diag, const Dataflow &flow, const Dataflow::Instance *write,
               StringRef when) {
  if (!write)
    return;
  Operation *op = flow.ops.lookup(write->first);
  Diagnostic &note = diag.attachNote(op->getLoc()) << when << " it is this one";
  if (!write->second.empty())
    note << " of " << write->second;
}
} // namespace

Dataflow Dataflow::compute(StepOp step, RunNumbers numbers) {
  return DataflowBuilder(step).run(numbers);
}

LogicalResult checkSameDataflow(StepOp step, const Dataflow &before, const Dataflow &after,
                                StringRef transformation) {
  for (const auto &[key, was] : before.reads) {
    const auto &[reader, place] = key;
    auto it = after.reads.find(key);
    if (it != after.reads.end() && it->second == was)
      continue;
    InFlightDiagnostic diag = step.emitOpError(transformation)
                              << " is illegal: it would change what a read of @" << place.first
                              << " entry " << place.second << " sees";
    diag.attachNote(before.ops.lookup(reader.first)->getLoc()) << "the read is here";
    Dataflow::Writes is = it == after.reads.end() ? Dataflow::Writes() : it->second;
    const Dataflow &flow = was.empty() ? after : before;
    for (const auto &[writer, iteration] : was.empty() ? is : was) {
      diag.attachNote(flow.ops.lookup(writer)->getLoc())
          << "the dependence is on this write of @" << place.first;
      break;
    }
    return diag;
  }
  for (const auto &[entry, was] : before.finals) {
    auto it = after.finals.find(entry);
    Dataflow::Writes is = it == after.finals.end() ? Dataflow::Writes() : it->second;
    if (was == is)
      continue;
    InFlightDiagnostic diag = step.emitOpError(transformation)
                              << " is illegal: it would change the last write of @" << entry.first
                              << " entry " << entry.second;
    noteFinal(diag, before, firstNotIn(was, is), "in the order given");
    noteFinal(diag, after, firstNotIn(is, was), "in the new order");
    return diag;
  }
  return success();
}

} // namespace boa
