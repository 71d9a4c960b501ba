//===- StorageTrace.cpp ---------------------------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/analysis/StorageTrace.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Remarks.h"
#include "llvm/ADT/bit.h"

using namespace mlir;

namespace boa {

/// Zeros of a prefetch: below all versions that a program can make.
static constexpr Version kZeros = INT64_MIN;

/// One step of a hash; a bijection in both, so that one difference is always seen.
static uint64_t mix(uint64_t hash, Version version) {
  return llvm::rotl((hash ^ uint64_t(version)) * 0x9e3779b97f4a7c15ull, 29);
}

/// Whether entries hold values before the step begins.
static bool isLiveIn(StorageOp storage) {
  return storage.getPersistent() || storage.getRole() == "tokens" || storage.getRole() == "targets";
}

StorageTrace::StorageTrace(ModuleOp module) : module(module) {
  Version initial = 0;
  for (auto storage : module.getOps<StorageOp>()) {
    std::vector<Version> &home = homes[storage];
    home.assign(storage.getEntryCount() * int64_t(storage.getChunks()), kUndefined);
    if (isLiveIn(storage))
      for (Version &version : home)
        version = ++initial;
  }
}

void StorageTrace::run(StepOp entry, bool pending) {
  buffers.clear();
  open.clear();
  if (previous != entry) {
    for (const BufferRef &copy : retained)
      abandoned(*copy);
    retained.clear();
  }
  previous = entry;
  begun.push_back(next);
  bool isStep = entry.getSymName() == "step";
  steps += isStep;
  if (pending && steps < 1 + isStep)
    steps = 1 + isStep;
  RunNumbers numbers{std::max<int64_t>(steps, 1), pending ? steps - isStep : 0};
  trace(entry, [&](Operation *op, const TraceState &state) { visit(op, state); }, numbers);
}

int64_t StorageTrace::inSnapshot(Version version) const {
  if (version >= kUndefined || version == kZeros)
    return version;
  size_t run = begun.size() - 1;
  while (begun[run] <= version)
    --run;
  int64_t age = begun.size() - 1 - run;
  return -(age << 40 | (begun[run] - version));
}

StorageTrace::Snapshot StorageTrace::snapshot() const {
  Snapshot all;
  auto add = [&](const std::vector<Version> &versions) {
    for (Version version : versions)
      all.push_back(inSnapshot(version));
  };
  for (auto storage : ModuleOp(module).getOps<StorageOp>())
    add(homes.find(storage)->second);
  for (const BufferRef &copy : retained) {
    StorageOp storage = copy->access.storage;
    all.insert(all.end(), {int64_t(reinterpret_cast<intptr_t>(storage.getOperation())),
                           copy->access.entry, copy->access.first, copy->access.count});
    add(copy->own);
  }
  return all;
}

/// Programs repeat each op often: its storage is looked up once.
Access StorageTrace::accessOf(Operation *op, const TraceState &state) {
  StorageOp &storage = storages[op];
  Access access = getAccess(op, state, storage);
  storage = access.storage;
  return access;
}

Version *StorageTrace::homeOf(const Access &access) {
  StorageOp storage = access.storage;
  return homes[storage].data() + access.entry * int64_t(storage.getChunks());
}

Version *StorageTrace::chunkOf(Buffer &buffer, int64_t chunk) {
  return buffer.home ? homeOf(buffer.access) + chunk
                     : buffer.own.data() + (chunk - buffer.access.first);
}

std::vector<Version> StorageTrace::contentsOf(const Buffer &buffer) {
  if (!buffer.home)
    return buffer.own;
  const Version *home = homeOf(buffer.access) + buffer.access.first;
  return std::vector<Version>(home, home + buffer.access.count);
}

bool StorageTrace::overlap(const Access &a, const Access &b) {
  return StorageOp(a.storage) == StorageOp(b.storage) && a.entry == b.entry &&
         a.first < b.first + b.count && b.first < a.first + a.count;
}

void StorageTrace::dropRetained(const Access &access, Operation *by) {
  llvm::erase_if(retained, [&](const BufferRef &buffer) {
    if (!overlap(buffer->access, access))
      return false;
    dropped(*buffer, by);
    return true;
  });
}

void StorageTrace::visit(Operation *op, const TraceState &state) {
  if (isa<PrefetchOp, CreateOp>(op))
    return openBuffer(op, state);
  if (auto await = dyn_cast<AwaitOp>(op)) {
    buffers[await.getBuffer()] = buffers.lookup(await.getToken());
    return;
  }
  if (auto transfer = dyn_cast<OffloadOp>(op))
    return offload(transfer, state);
  if (auto free = dyn_cast<ReleaseOp>(op))
    return release(free, state);
  if (auto kernel = dyn_cast<LaunchOp>(op))
    return launch(kernel);
  if (auto optimizer = dyn_cast<UpdateOp>(op))
    return update(optimizer, state);
  auto norm = dyn_cast<NormOp>(op);
  if (!norm)
    return;
  checkGroup(op, norm.getGroup());
  if (BufferRef gradient = lookup(op, norm.getGradient()))
    use(op, 0, *gradient, gradient->access.first, gradient->access.count);
}

/// Chunks outside the entry are as bad as an entry outside the storage.
static bool inBounds(const Access &access) {
  return access.entry >= 0 && access.first >= 0 && access.count > 0 &&
         access.first + access.count <= int64_t(StorageOp(access.storage).getChunks());
}

static std::string name(const Access &access) {
  return "@" + StorageOp(access.storage).getSymName().str();
}
static std::string nameTransferred(Operation *op) {
  auto prefetch = dyn_cast<PrefetchOp>(op);
  return prefetch ? "@" + prefetch.getStorage().str() : op->getName().getStringRef().str();
}
static std::string nameEntry(const Access &access) {
  return name(access) + " entry " + std::to_string(access.entry);
}

void StorageTrace::openBuffer(Operation *op, const TraceState &state) {
  auto buffer = std::make_shared<Buffer>();
  buffer->origin = op;
  Access access = buffer->access = accessOf(op, state);
  buffers[op->getResult(0)] = nullptr;
  if (!inBounds(access))
    return violation(op, "indexes " + name(access) + " out of bounds");
  auto prefetch = dyn_cast<PrefetchOp>(op);
  bool zero = prefetch && state.test(prefetch.getZero(), false);
  bool taken = false;
  buffer->home = access.storage.getTier() != Tier::ssd;
  if (!buffer->home && (!prefetch || zero)) {
    dropRetained(access, op);
    buffer->own.assign(access.count, zero ? kZeros : kUndefined);
  } else if (!buffer->home) {
    auto it = llvm::find_if(
        retained, [&](const BufferRef &other) { return other->access.key() == access.key(); });
    if ((taken = it != retained.end())) {
      buffer->own = (*it)->own; // which copies of this trace share
      retained.erase(it);
    } else {
      const Version *home = homeOf(access) + access.first;
      buffer->own.assign(home, home + access.count);
      if (llvm::is_contained(buffer->own, kUndefined))
        undefinedRead(op, access);
    }
  } else if (zero) {
    std::fill_n(homeOf(access) + access.first, access.count, kZeros);
  }
  buffers[op->getResult(0)] = buffer;
  open.push_back(buffer);
  opened(op, *buffer, state, taken);
}

StorageTrace::BufferRef StorageTrace::lookup(Operation *op, Value value) {
  BufferRef buffer = buffers.lookup(value);
  if (buffer && buffer->released)
    violation(op, "uses a buffer after its release");
  return buffer;
}

void StorageTrace::offload(OffloadOp op, const TraceState &state) {
  BufferRef buffer = lookup(op, op.getBuffer());
  Access access = accessOf(op, state);
  if (!inBounds(access))
    return violation(op, "indexes " + name(access) + " out of bounds");
  if (!buffer)
    return;
  const Access &held = buffer->access;
  if (StorageOp(held.storage) != StorageOp(access.storage))
    return violation(op, "writes a buffer of " + name(held) + " to " + name(access));
  if (access.first < held.first || access.first + access.count > held.first + held.count)
    return violation(op, "writes chunks that its buffer does not hold");
  if (buffer->home) {
    offloaded(op, access);
    if (held.entry != access.entry)
      violation(op, "writes " + nameEntry(held) + " to entry " + Twine(access.entry).str() +
                        ", but moves nothing where a storage lives in memory");
    return;
  }
  dropRetained(access, op);
  std::copy_n(chunkOf(*buffer, access.first), access.count, homeOf(access) + access.first);
  offloaded(op, access);
}

void StorageTrace::release(ReleaseOp op, const TraceState &state) {
  BufferRef buffer = lookup(op, op.getBuffer());
  if (!buffer || buffer->released)
    return;
  bool retain = !buffer->home && state.test(op.getRetain(), false);
  buffer->released = true;
  llvm::erase(open, buffer);
  released(op, *buffer, state, retain);
  if (!retain)
    return;
  dropRetained(buffer->access, op);
  // Its own object: the name in the program is released.
  retained.push_back(std::make_shared<Buffer>(*buffer));
}

void StorageTrace::use(Operation *op, unsigned operand, Buffer &buffer, int64_t first,
                       int64_t count) {
  const Version *versions = chunkOf(buffer, first);
  uint64_t hash = first;
  bool undefined = false;
  for (int64_t i = 0; i < count; ++i) {
    hash = mix(hash, inSnapshot(versions[i]));
    undefined |= versions[i] == kUndefined;
  }
  if (undefined)
    undefinedRead(op, buffer.access);
  uses.push_back({op, operand, hash, getMark(op)});
}

/// A kernel may write one operand before it has read another.
void StorageTrace::checkAliases(LaunchOp op) {
  unsigned firstWritten = op.getReads().size();
  for (unsigned i = 0; i < op->getNumOperands(); ++i)
    for (unsigned j = std::max(i + 1, firstWritten); j < op->getNumOperands(); ++j) {
      BufferRef a = buffers.lookup(op->getOperand(i)), b = buffers.lookup(op->getOperand(j));
      if (!a || !b || (a != b && !(a->home && b->home && overlap(a->access, b->access))))
        continue;
      violation(op, "writes " + nameEntry(b->access) + " while another operand is the same memory");
      uses.push_back({op, j, i, getMark(op)});
    }
}

void StorageTrace::launch(LaunchOp op) {
  checkAliases(op);
  unsigned reads = op.getReads().size(), updates = op.getUpdates().size();
  for (unsigned i = 0; i < op->getNumOperands(); ++i) {
    BufferRef buffer = lookup(op, op->getOperand(i));
    if (buffer && i < reads + updates)
      use(op, i, *buffer, buffer->access.first, buffer->access.count);
  }
  for (unsigned i = reads; i < op->getNumOperands(); ++i) {
    --next;
    if (BufferRef buffer = buffers.lookup(op->getOperand(i)))
      std::fill_n(chunkOf(*buffer, buffer->access.first), buffer->access.count, next);
  }
}

void StorageTrace::checkGroup(Operation *op, StringRef group) {
  if (!module.lookupSymbol<GroupOp>(group))
    violation(op, "names a group that does not exist: @" + group);
}

void StorageTrace::update(UpdateOp op, const TraceState &state) {
  checkGroup(op, op.getGroup());
  // Buffers must be live also where nothing is pending.
  int64_t chunk = state.get(op.getChunk());
  bool runs = state.get(op.getStep()) != 0;
  for (OpOperand &operand : op->getOpOperands()) {
    if (!isa<BufferType>(operand.get().getType()))
      continue;
    BufferRef buffer = lookup(op, operand.get());
    if (!buffer || !runs)
      continue;
    const Access &held = buffer->access;
    if (chunk < held.first || chunk >= held.first + held.count) {
      violation(op, "updates a chunk that a buffer of " + nameEntry(held) + " does not hold");
      continue;
    }
    use(op, operand.getOperandNumber(), *buffer, chunk, 1);
    if (operand.get() != op.getGradient())
      *chunkOf(*buffer, chunk) = --next;
  }
}

//===----------------------------------------------------------------------===//
// Two programs
//===----------------------------------------------------------------------===//

bool leavesUpdates(StepOp step) { return !step.getPending().use_empty(); }

LogicalResult emitNotSteady(StepOp step) {
  return step.emitOpError("does not become steady: each of the first runs leaves something else "
                          "in storages or retained copies than every run before it");
}

namespace {
/// Contents after an entry point, in a form to compare.
class Follower : public StorageTrace {
public:
  using StorageTrace::StorageTrace;

  Computation::Run follow(StepOp entry, bool pending) {
    uses.clear();
    run(entry, pending);
    Computation::Run result{uses, {}};
    for (auto storage : module.getOps<StorageOp>()) {
      // What outlives the program.
      if (!storage.getPersistent() && storage.getRole() != "loss" && storage.getRole() != "logits")
        continue;
      uint64_t hash = 0;
      for (Version version : homes[storage])
        hash = mix(hash, inSnapshot(version));
      result.finals.push_back({storage, hash});
    }
    return result;
  }
};
} // namespace

Computation Computation::compute(ModuleOp module) {
  Computation computation;
  computation.training =
      runEntries(module, Follower(module), [&](Follower &trace, StepOp entry, bool pending) {
        computation.runs.push_back(trace.follow(entry, pending));
      });
  return computation;
}

const Computation::Run &Computation::step(size_t i) const {
  if (i >= training.runs)
    i = training.earlier + (i - training.earlier) % (training.runs - training.earlier);
  return runs[i];
}

/// Where two runs part: an op, or a storage; null if they do not.
static Operation *findDifference(const Computation::Run &before, const Computation::Run &after) {
  for (auto [was, is] : llvm::zip(before.uses, after.uses))
    if (!(was == is))
      return was.op;
  if (before.uses.size() != after.uses.size())
    return before.uses.empty() ? after.uses.front().op : before.uses.back().op;
  for (auto [was, is] : llvm::zip(before.finals, after.finals))
    if (was != is)
      return was.first;
  return nullptr;
}

/// The same of all runs that there can be: those until both are steady, and one round
/// of what they repeat from there.
static Operation *findDifference(ModuleOp module, const Computation &before,
                                 const Computation &after) {
  if (!before.training.steady || !after.training.steady)
    return module.lookupSymbol<StepOp>("step");
  size_t most = std::max(before.training.runs, after.training.runs);
  for (size_t i = 0; before.training.runs > 0 && i < 2 * most; ++i)
    if (Operation *op = findDifference(before.step(i), after.step(i)))
      return op;
  for (size_t i = before.training.runs, j = after.training.runs;
       i < before.runs.size() && j < after.runs.size(); ++i, ++j)
    if (Operation *op = findDifference(before.runs[i], after.runs[j]))
      return op;
  return nullptr;
}

LogicalResult checkSameComputation(ModuleOp module, const Computation &before,
                                   const Computation &after, StringRef transformation) {
  Operation *op = findDifference(module, before, after);
  if (!op)
    return success();
  if (!after.training.steady)
    return emitNotSteady(cast<StepOp>(op));
  return op->emitOpError(transformation)
         << (isa<StorageOp>(op) ? " would change what it holds after an entry point"
                                : " would change what it reads");
}

//===----------------------------------------------------------------------===//
// Moves
//===----------------------------------------------------------------------===//

bool Moves::allow(Operation *op) {
  size_t number = asked++;
  if (refused.count(number))
    refusedMoves.push_back(op);
  return number < most && !refused.count(number);
}

/// One entry point of which some moves are bad.
struct EntryTransformer {
  ModuleOp module;
  StepOp entry, original;
  function_ref<unsigned(StepOp, Moves &)> transform;
  const Computation &before;
  std::set<size_t> refused;

  struct Attempt {
    bool same;
    unsigned done;
    Computation after;
    Moves moves;
  };
  void restore() {
    IRMapping map;
    Region copy;
    original.getBody().cloneInto(&copy, map);
    entry.getBody().takeBody(copy);
  }
  /// The first `most` moves but for those refused.
  Attempt attempt(size_t most) {
    restore();
    Moves moves;
    moves.most = most;
    moves.refused = refused;
    unsigned done = transform(entry, moves);
    Computation after = Computation::compute(module);
    bool same = !findDifference(module, before, after);
    return {same, done, std::move(after), std::move(moves)};
  }
  /// Refuses one bad move after another, each found by halving. Where it is none of
  /// them, the entry point stays as it was.
  Attempt run() {
    while (true) {
      Attempt all = attempt(SIZE_MAX);
      if (all.same)
        return all;
      size_t good = 0, bad = all.moves.asked;
      if (bad == 0 || !attempt(0).same) {
        restore();
        return {true, 0, Computation::compute(module), Moves()};
      }
      while (bad - good > 1) {
        size_t middle = good + (bad - good) / 2;
        (attempt(middle).same ? good : bad) = middle;
      }
      refused.insert(bad - 1);
    }
  }
};

Computation transformEntries(ModuleOp module, StringRef name,
                             function_ref<unsigned(StepOp, Moves &)> transform,
                             std::map<Operation *, unsigned> &done) {
  SmallVector<StepOp> entries(module.getOps<StepOp>());
  SmallVector<StepOp> originals;
  for (StepOp entry : entries)
    markOps(entry);
  Computation before = Computation::compute(module);
  for (StepOp entry : entries) {
    originals.push_back(cast<StepOp>(entry->clone()));
    Moves moves;
    done[entry] = transform(entry, moves);
  }
  Computation after = Computation::compute(module);
  // Rarely: undo all, then look for the bad moves in one after another.
  if (findDifference(module, before, after)) {
    for (auto [entry, original] : llvm::zip(entries, originals))
      EntryTransformer{module, entry, original, transform, before, {}}.restore();
    for (auto [entry, original] : llvm::zip(entries, originals)) {
      auto attempt = EntryTransformer{module, entry, original, transform, before, {}}.run();
      done[entry] = attempt.done;
      after = std::move(attempt.after);
      for (Operation *op : attempt.moves.getRefused()) {
        remark::missed(op->getLoc(), remark::RemarkOpts::name(name).category("boa-storage"))
            << "left a transfer of " << nameTransferred(op) << " in @" << entry.getSymName()
            << " as it was: the program would compute something else";
      }
    }
  }
  for (StepOp original : originals)
    original.erase();
  for (StepOp entry : entries)
    unmarkOps(entry);
  return after;
}

} // namespace boa
