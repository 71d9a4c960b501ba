//===- TranslationValidation.cpp ------------------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/analysis/TranslationValidation.h"
#include "passes/analysis/ValueNumber.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Remarks.h"

using namespace mlir;

namespace boa {

//===----------------------------------------------------------------------===//
// What a module computes
//===----------------------------------------------------------------------===//

namespace {
/// A tracer that also sums the values that the step phase reads of each storage, in whatever order.
class ReadTracer : public Tracer {
public:
  using Tracer::Tracer;
  llvm::DenseMap<Operation *, uint64_t> reads;

private:
  void valueRead(Operation *op, const Access &access, const Versions &versions) override {
    if (isa<ReadOp>(op))
      reads[StorageOp(access.storage)] += value_number::term(
          value_number::mix(valueOf(versions, access.first, access.count), access.entry));
  }
};

/// Whether the storage is read after a run.
bool isResult(StorageOp storage) { return storage.isLiveOut() && !storage.getPersistent(); }
} // namespace

TracedComputation TracedComputation::compute(ModuleOp module) {
  TracedComputation computation;
  ReadTracer fresh(module), training(module);
  StepOp step = findEntryPoint(module, EntryPoint::step);
  StepOp drain = findEntryPoint(module, EntryPoint::drain);
  // What a run came to; `all`: also what it left for the next.
  auto record = [&](const char *run, const Tracer &tracer, bool all) {
    for (auto storage : module.getOps<StorageOp>()) {
      uint64_t contents = tracer.contents(storage);
      if (isResult(storage))
        computation.outcomes.push_back({run, storage, contents});
      else if (all && storage.getPersistent())
        computation.afterSteps.push_back({run, storage, contents});
      if (all)
        computation.left.push_back({run, storage, contents});
    }
  };
  auto recordTrained = [&](const char *run, const Tracer &tracer) {
    for (auto storage : module.getOps<StorageOp>())
      if (storage.getPersistent())
        computation.outcomes.push_back({run, storage, tracer.contents(storage)});
  };
  bool first = true;
  auto runStep = [&](ReadTracer &tracer, StepOp entry, bool pending) {
    tracer.run(entry, pending);
    record("a step", tracer, /*all=*/true);
    // A run may end there.
    if (std::exchange(first, false)) {
      ReadTracer ended(tracer);
      if (drain)
        ended.run(drain, leavesUpdates(entry));
      recordTrained("the first step", ended);
    }
  };
  if (step)
    computation.steady = trainUntilSteady(training, step, runStep);
  if (drain)
    training.run(drain, step && leavesUpdates(step));
  // What was trained, and by what: whichever run did it.
  for (auto storage : module.getOps<StorageOp>())
    computation.reads.push_back({"training", storage, training.reads.lookup(storage)});
  recordTrained("training", training);
  if (step)
    computation.outcomes.push_back({"training", step, training.work()});
  // A process that resumes has only the trained storages, as one that begins. The check above
  // shows that both compute the same. Where parity matters, it may begin with an even step.
  if (step && dependsOnParity(step)) {
    ReadTracer resumed(training);
    for (int runs = 0; runs < 2; ++runs) {
      resumed.resume();
      resumed.run(step, /*pending=*/false);
      record("a resumed step", resumed, /*all=*/false);
      if (drain)
        resumed.run(drain, leavesUpdates(step));
      recordTrained("a resumed step", resumed);
    }
    computation.outcomes.push_back({"a resumed step", step, resumed.work()});
  }
  for (StepOp entry : module.getOps<StepOp>()) {
    if (entry == drain)
      continue;
    for (const ReadTracer *start : {&fresh, &training}) {
      // Training began with a step, if there is one.
      bool known = start == &fresh ? entry == step : !step;
      if (known)
        continue;
      ReadTracer tracer(*start);
      uint64_t before = tracer.work();
      tracer.run(entry, start == &fresh && leavesUpdates(entry));
      record("an entry point", tracer, /*all=*/start == &fresh);
      // Of a step that leaves updates only some are made.
      if (entry == step)
        continue;
      recordTrained("an entry point", tracer);
      computation.outcomes.push_back({"an entry point", entry, tracer.work() - before});
    }
  }
  return computation;
}

int64_t TracedComputation::hash() const {
  uint64_t hash = outcomes.size();
  for (const Outcome &outcome : outcomes)
    hash = value_number::mix(hash, outcome.value);
  return int64_t(hash);
}

LogicalResult CurrentComputation::checkSame(StringRef wrong) {
  TracedComputation after = TracedComputation::compute(module);
  if (const TracedComputation::Outcome *difference = findDifference(*known, after))
    return difference->of->emitOpError("would not be the same after ")
           << difference->run << ": " << wrong;
  known = std::move(after);
  return success();
}

const TracedComputation::Outcome *
findDifference(const std::vector<TracedComputation::Outcome> &before,
               const std::vector<TracedComputation::Outcome> &after) {
  for (auto [was, is] : llvm::zip(before, after))
    if (was.value != is.value)
      return &is;
  // Other numbers of runs were needed until steps were steady.
  return before.size() == after.size() || after.empty() ? nullptr : &after.back();
}

const TracedComputation::Outcome *findDifference(const TracedComputation &before,
                                                 const TracedComputation &after, bool eachStep) {
  const TracedComputation::Outcome *found = findDifference(before.reads, after.reads);
  if (!found)
    found = findDifference(before.outcomes, after.outcomes);
  return found || !eachStep ? found : findDifference(before.afterSteps, after.afterSteps);
}

//===----------------------------------------------------------------------===//
// Why two orders differ
//===----------------------------------------------------------------------===//

static constexpr StringLiteral kMarkAttr = "boa.mark";

OwningOpRef<ModuleOp> copyProgram(ModuleOp module) {
  OwningOpRef<ModuleOp> copy = cast<ModuleOp>(module->cloneWithoutRegions());
  OpBuilder builder(module.getContext());
  builder.createBlock(&copy->getBodyRegion());
  for (Operation &op : module.getOps())
    if (!isa<func::FuncOp, StageOp>(op))
      builder.clone(op);
  return copy;
}

void markOps(ModuleOp module) {
  int64_t mark = 0;
  Builder builder(module.getContext());
  for (StepOp step : module.getOps<StepOp>())
    step.walk([&](Operation *op) { op->setAttr(kMarkAttr, builder.getI64IntegerAttr(mark++)); });
}

void unmarkOps(ModuleOp module) {
  for (StepOp step : module.getOps<StepOp>())
    step.walk([](Operation *op) { op->removeAttr(kMarkAttr); });
}

namespace {
/// A tracer of the writes that each read of an entry point sees, and of the last write to each
/// entry.
class DependenceTracer : public Tracer {
public:
  /// One execution of an op.
  struct Instance {
    int64_t mark;
    std::string iteration; // in words
    size_t run;
    auto key() const { return std::tie(run, mark, iteration); }
    bool operator<(const Instance &other) const { return key() < other.key(); }
    bool operator==(const Instance &other) const { return key() == other.key(); }
  };
  using Entry = std::pair<std::string, int64_t>; // storage, position
  /// The sorted writes that a value is made of. An accumulated entry has all its contributions.
  using Writes = std::vector<Instance>;

  std::map<std::pair<Instance, Entry>, Writes> reads;
  std::map<int64_t, Operation *> ops; // by mark

  explicit DependenceTracer(StepOp step) : Tracer(step->getParentOfType<ModuleOp>()) {
    for (int64_t runs = 0; runs < int64_t(leastSteps(step)); ++runs)
      run(step, runs > 0 && leavesUpdates(step));
  }

  std::map<Entry, Writes> finals() {
    std::map<Entry, Writes> all;
    for (auto storage : module.getOps<StorageOp>())
      for (int64_t entry = 0; entry < storage.getEntryCount(); ++entry)
        homes[storage][entry].forEach(0, storage.getChunks(), [&](Versions::Run run) {
          llvm::append_range(all[{storage.getSymName().str(), entry}], writesOf(run.value));
        });
    for (auto &[entry, writes] : all)
      sortUnique(writes);
    return all;
  }

private:
  static void sortUnique(Writes &writes) {
    llvm::sort(writes);
    writes.erase(llvm::unique(writes), writes.end());
  }
  Instance instanceOf(Operation *op, const Position::Iteration &iteration, size_t run) {
    auto attr = op->getAttrOfType<IntegerAttr>(kMarkAttr);
    int64_t mark = attr ? attr.getInt() : -1;
    ops[mark] = op;
    return {mark, describeIteration(iteration), run};
  }
  Writes writesOf(Version version) {
    Writes writes;
    for (; version < 0 && version != INT64_MIN; version = madeBy(version).before)
      writes.push_back(
          instanceOf(madeBy(version).op, iterations[madeBy(version).iteration], runOf(version)));
    return writes;
  }
  void valueRead(Operation *op, const Access &access, const Versions &versions) override {
    Writes writes;
    versions.forEach(access.first, access.count,
                     [&](Versions::Run run) { llvm::append_range(writes, writesOf(run.value)); });
    sortUnique(writes);
    Entry entry{StorageOp(access.storage).getSymName().str(), access.entry};
    reads[{instanceOf(op, here(), currentRun()), entry}] = std::move(writes);
  }
};

/// The first write of `writes` that `others` lacks; null if there is none.
const DependenceTracer::Instance *findMissing(const DependenceTracer::Writes &writes,
                                              const DependenceTracer::Writes &others) {
  for (const auto &write : writes)
    if (!llvm::is_contained(others, write))
      return &write;
  return nullptr;
}

/// Notes an execution, unless it is null.
void note(InFlightDiagnostic &diag, DependenceTracer &tracer, const DependenceTracer::Instance *of,
          const Twine &what, StringRef in = ", in ") {
  if (!of)
    return;
  Diagnostic &note = diag.attachNote(tracer.ops[of->mark]->getLoc()) << what;
  if (!of->iteration.empty())
    note << in << of->iteration;
}
} // namespace

/// Fails, with an error, if the dependences of one entry point differ.
static LogicalResult checkDependences(StepOp step, StepOp original, StringRef transformation) {
  DependenceTracer before(original), after(step);
  for (const auto &[key, was] : before.reads) {
    const auto &[reader, place] = key;
    auto it = after.reads.find(key);
    if (it != after.reads.end() && it->second == was)
      continue;
    InFlightDiagnostic diag = step.emitOpError(transformation)
                              << " is illegal: a read of @" << place.first << " entry "
                              << place.second << " would see another write";
    note(diag, before, &reader, "the read is here");
    DependenceTracer::Writes is = it == after.reads.end() ? DependenceTracer::Writes() : it->second;
    DependenceTracer &tracer = was.empty() ? after : before;
    const DependenceTracer::Instance *write = findMissing(was, is);
    if (!write)
      write = findMissing(is, was);
    note(diag, tracer, write, "the dependence is on this write of @" + Twine(place.first));
    return diag;
  }
  auto was = before.finals(), is = after.finals();
  for (auto &[entry, writes] : was) {
    if (writes == is[entry])
      continue;
    InFlightDiagnostic diag = step.emitOpError(transformation)
                              << " is illegal: it would change the last write of @" << entry.first
                              << " entry " << entry.second;
    note(diag, before, findMissing(writes, is[entry]), "in the order given it is this one", " of ");
    note(diag, after, findMissing(is[entry], writes), "in the new order it is this one", " of ");
    return diag;
  }
  return success();
}

LogicalResult checkSameOrder(ModuleOp module, ModuleOp original, const TracedComputation &before,
                             const TracedComputation &after, StringRef transformation) {
  if (!findDifference(before, after) && !findDifference(before.left, after.left))
    return success();
  for (auto [step, was] : llvm::zip(module.getOps<StepOp>(), original.getOps<StepOp>()))
    if (failed(checkDependences(step, was, transformation)))
      return failure();
  return module.emitError(transformation) << " is illegal: it would change the results";
}

//===----------------------------------------------------------------------===//
// Filtered moves
//===----------------------------------------------------------------------===//

static std::string nameTransferred(Operation *op) {
  auto prefetch = dyn_cast<PrefetchOp>(op);
  return prefetch ? "@" + prefetch.getStorage().str() : op->getName().getStringRef().str();
}

bool MoveFilter::allow(Operation *op) {
  size_t number = asked++;
  if (refused.count(number))
    refusedMoves.push_back({op->getLoc(), nameTransferred(op)});
  return number < most && !refused.count(number);
}

/// Transforms one entry point, of which some moves are bad.
struct EntryTransformer {
  ModuleOp module;
  StepOp entry, original;
  function_ref<unsigned(StepOp, MoveFilter &)> transform;
  const TracedComputation &before;
  std::set<size_t> refused;

  struct Attempt {
    bool same;
    unsigned done;
    MoveFilter moves;
  };
  void restore() {
    IRMapping map;
    Region copy;
    original.getBody().cloneInto(&copy, map);
    entry.getBody().takeBody(copy);
  }
  bool isSame() {
    TracedComputation after = TracedComputation::compute(module);
    return after.steady && !findDifference(before, after);
  }
  /// Makes the first `most` moves but for those refused.
  Attempt attempt(size_t most) {
    restore();
    MoveFilter moves;
    moves.most = most;
    moves.refused = refused;
    unsigned done = transform(entry, moves);
    return {isSame(), done, std::move(moves)};
  }
  /// Refuses one bad move after another, each found by halving. If none of them is to blame, the
  /// entry point stays as it was.
  Attempt run() {
    while (true) {
      Attempt all = attempt(SIZE_MAX);
      if (all.same)
        return all;
      size_t good = 0, bad = all.moves.asked;
      if (bad == 0 || !attempt(0).same) {
        restore();
        return {true, 0, MoveFilter()};
      }
      while (bad - good > 1) {
        size_t middle = good + (bad - good) / 2;
        (attempt(middle).same ? good : bad) = middle;
      }
      refused.insert(bad - 1);
    }
  }
};

void transformEntries(ModuleOp module, CurrentComputation &computation, StringRef name,
                      StringRef metric, function_ref<unsigned(StepOp, MoveFilter &)> transform) {
  const TracedComputation &before = computation.get();
  const auto options = remark::RemarkOpts::name(name).category("boa-storage");
  SmallVector<StepOp> entries(module.getOps<StepOp>());
  SmallVector<StepOp> originals;
  SmallVector<int64_t> done;
  for (StepOp entry : entries) {
    originals.push_back(cast<StepOp>(entry->clone()));
    MoveFilter moves;
    done.push_back(transform(entry, moves));
  }
  TracedComputation after = TracedComputation::compute(module);
  // Rarely: undo all, then look for the bad moves in one after another.
  if (!after.steady || findDifference(before, after)) {
    for (auto [entry, original] : llvm::zip(entries, originals))
      EntryTransformer{module, entry, original, transform, before, {}}.restore();
    for (auto [entry, original, moved] : llvm::zip(entries, originals, done)) {
      auto attempt = EntryTransformer{module, entry, original, transform, before, {}}.run();
      moved = attempt.done;
      for (const MoveFilter::Refusal &move : attempt.moves.getRefused())
        remark::missed(move.loc, options)
            << "left a transfer of " << move.transferred << " in @" << entry.getSymName()
            << " as it was: the program would compute something else";
    }
    after = TracedComputation::compute(module);
  }
  computation.replace(std::move(after));
  for (auto [entry, original, moved] : llvm::zip(entries, originals, done)) {
    original.erase();
    remark::passed(entry.getLoc(), options)
        << "in @" << entry.getSymName() << ": " << remark::metric(metric, moved);
  }
}

} // namespace boa
