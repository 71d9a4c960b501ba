//===- Memory.cpp - The interpreter's storage phase -----------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Buffers, homes, retained copies and slots, as runtime/abi/abi.h has them. A buffer that is
// not its chunks' home is memory of its own; a released one holds garbage.
//
//===----------------------------------------------------------------------===//
#include "test/passes/random/Interpreter.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/xxhash.h"

using namespace mlir;

namespace boa::random {

//===----------------------------------------------------------------------===//
// Slots
//===----------------------------------------------------------------------===//

/// The smallest of the space that holds it; where memory is one, else of the other.
int Machine::poolFor(const Store &store, int64_t count, Space space) const {
  for (bool other : {false, true}) {
    if (other && separate)
      break;
    int best = -1;
    for (auto [i, pool] : llvm::enumerate(store.pools))
      if ((pool.getSpace() == space) != other && pool.getChunks() >= count &&
          (best < 0 || pool.getChunks() < store.pools[best].getChunks()))
        best = int(i);
    if (best >= 0)
      return best;
  }
  return -1;
}

void Machine::takeSlot(Operation *op, Buffer &buffer) {
  ++slotsTaken;
  Store &store = *buffer.store;
  if (!store.op.getPoolsAttr())
    return;
  buffer.pool = poolFor(store, buffer.count, buffer.space);
  if (buffer.pool < 0)
    return fail(op, "no slot of @" + store.op.getSymName() + " can hold it");
  int64_t count = ++liveIn(store, buffer.pool);
  int64_t &peak = peaks[{store.op.getSymName().str(), size_t(buffer.pool)}];
  peak = std::max(peak, count);
  if (count > store.pools[buffer.pool].getSlots())
    fail(op, "more slots of @" + store.op.getSymName() + " than there are");
}

void Machine::freeSlot(Buffer &buffer) {
  if (buffer.pool >= 0)
    --liveIn(*buffer.store, buffer.pool);
  buffer.pool = -1;
}

/// What passes between SSD and a device of its own memory takes a slot of the host's for a
/// chunk, but where the SSD reaches that memory.
void Machine::stage(Operation *op, Buffer &buffer, int64_t entry, int64_t first, int64_t count) {
  Store &store = *buffer.store;
  if (!separate || direct || buffer.home || buffer.space != Space::device ||
      !store.op.getPoolsAttr())
    return;
  for (int64_t c = first; c < first + count; ++c)
    if (store.tiers[entry * store.chunks + c] == Tier::ssd) {
      int pool = poolFor(store, 1, Space::host);
      if (pool < 0)
        return fail(op, "no slot on the way of @" + store.op.getSymName());
      int64_t &peak = peaks[{store.op.getSymName().str(), size_t(pool)}];
      peak = std::max(peak, liveIn(store, pool) + 1);
      if (liveIn(store, pool) + 1 > store.pools[pool].getSlots())
        fail(op, "no slot free on the way of @" + store.op.getSymName());
      return;
    }
}

//===----------------------------------------------------------------------===//
// Buffers
//===----------------------------------------------------------------------===//

/// Retained copies that share a chunk with these; `space`: of separate memories in the
/// buffer's alone.
void Machine::dropRetained(const Buffer &buffer, int64_t entry, int64_t first, int64_t count,
                           bool space) {
  Buffer chunks{buffer.store, entry, first, count, buffer.space, false, false, -1, {}};
  llvm::erase_if(retained, [&](const BufferRef &copy) {
    if (!copy->overlaps(chunks) || (space && separate && copy->space != buffer.space))
      return false;
    freeSlot(*copy);
    return true;
  });
}

void Machine::open(Operation *op, StringRef storage, ValueRange indices, Value firstChunk,
                   int64_t count, bool bring, bool zero) {
  buffers[op->getResult(0)] = nullptr;
  auto buffer = std::make_shared<Buffer>();
  Store *store = buffer->store = find(storage);
  if (!entryOf(op, store, indices, &buffer->entry))
    return;
  int64_t first = buffer->first = firstChunk ? get(firstChunk) : 0;
  if (count == 0)
    count = store->chunks;
  buffer->count = count;
  if (first < 0 || first + count > store->chunks)
    return fail(op, "chunks that there are not");
  Space space = buffer->space = cast<BufferType>(op->getResult(0).getType()).getSpace();
  ArrayRef<Tier> tiers = store->tiers;
  buffer->home =
      llvm::all_of(tiers.slice(buffer->entry * store->chunks + first, count), [&](Tier tier) {
        return tier != Tier::ssd &&
               (!separate || (tier == Tier::device) == (space == Space::device));
      });
  if (!buffer->home) {
    if (!bring || zero) {
      dropRetained(*buffer, buffer->entry, first, count, /*space=*/false);
    } else {
      auto it = llvm::find_if(retained, [&](const BufferRef &copy) {
        return copy->store == store && copy->entry == buffer->entry && copy->first == first &&
               copy->count == count && (!separate || copy->space == space);
      });
      if (it != retained.end()) {
        BufferRef copy = *it;
        retained.erase(it);
        ++takenUp;
        copy->released = false;
        buffers[op->getResult(0)] = copy;
        live.push_back(copy);
        return;
      }
    }
    takeSlot(op, *buffer);
    buffer->own.resize(count);
  }
  for (int64_t c = first; c < first + count; ++c)
    if (zero)
      buffer->at(c) = {0, true};
    else if (!buffer->home) // a home holds what it holds
      buffer->at(c) = !bring ? garbage() : store->home[buffer->entry * store->chunks + c];
  if (bring && !zero)
    stage(op, *buffer, buffer->entry, first, count);
  buffers[op->getResult(0)] = buffer;
  live.push_back(buffer);
}

Machine::BufferRef Machine::lookup(Operation *op, Value value) {
  BufferRef buffer = buffers.lookup(value);
  if (!buffer)
    return nullptr;
  if (buffer->released || !llvm::is_contained(live, buffer)) {
    fail(op, "a buffer of @" + buffer->store->op.getSymName() + " after its release");
    return nullptr;
  }
  return buffer;
}

Machine::Tensor Machine::contentsOf(Buffer &buffer) {
  Tensor tensor;
  tensor.entry = true;
  for (int64_t c = buffer.first; c < buffer.first + buffer.count; ++c)
    tensor.words.push_back(buffer.at(c));
  return tensor;
}

void Machine::expectSpace(Operation *op, const Buffer &buffer, Space space) {
  if (separate && buffer.space != space)
    fail(op, "a buffer in another memory");
}

void Machine::offload(OffloadOp op) {
  BufferRef buffer = lookup(op, op.getBuffer());
  Store *store = find(op.getStorage());
  int64_t entry = 0, count = op.getCount() ? int64_t(op.getCount()) : store->chunks;
  int64_t first = op.getFirst() ? get(op.getFirst()) : 0;
  Word *home = entryOf(op, store, op.getIndices(), &entry);
  if (!buffer || !home)
    return;
  if (store != buffer->store || first < buffer->first ||
      first + count > buffer->first + buffer->count)
    return fail(op, "chunks of @" + store->op.getSymName() + " that its buffer does not hold");
  if (buffer->home && buffer->entry != entry)
    return fail(op, "a home to another entry");
  dropRetained(*buffer, entry, first, count, /*space=*/false);
  if (buffer->home)
    return;
  stage(op, *buffer, entry, first, count);
  for (int64_t c = first; c < first + count; ++c)
    home[c] = buffer->at(c);
}

void Machine::copy(CopyOp op) {
  BufferRef from = lookup(op, op.getFrom()), to = lookup(op, op.getTo());
  if (!from || !to)
    return;
  if (from->store != to->store || to->first < from->first ||
      to->first + to->count > from->first + from->count)
    return fail(op, "chunks that its first buffer does not hold");
  if (from->entry != to->entry)
    fail(op, "chunks of another entry");
  for (int64_t c = to->first; c < to->first + to->count; ++c)
    to->at(c) = from->at(c);
}

void Machine::release(ReleaseOp op) {
  BufferRef buffer = lookup(op, op.getBuffer());
  if (!buffer)
    return;
  bool retain = !buffer->home && test(op.getRetain());
  llvm::erase(live, buffer);
  if (buffer->home) {
    buffer->released = true;
    return;
  }
  if (retain) {
    // The name in the program is released; what was retained is known by its chunks.
    dropRetained(*buffer, buffer->entry, buffer->first, buffer->count, /*space=*/true);
    retained.push_back(std::make_shared<Buffer>(*buffer));
    buffer->pool = -1;
  } else {
    freeSlot(*buffer);
  }
  buffer->released = true;
}

//===----------------------------------------------------------------------===//
// Kernels and updates
//===----------------------------------------------------------------------===//

void Machine::launch(LaunchOp op) {
  SmallVector<BufferRef> operands;
  for (Value operand : op->getOperands()) {
    operands.push_back(lookup(op, operand));
    if (!operands.back())
      return;
    expectSpace(op, *operands.back(), Space::device);
  }
  size_t reads = op.getReads().size(), updates = op.getUpdates().size();
  size_t writes = op.getWrites().size();
  uint64_t inputs = llvm::xxh3_64bits(op.getKernel());
  for (size_t i = 0; i < reads; ++i)
    inputs = hashOf(op, inputs, contentsOf(*operands[i]));
  // It may write one operand before it has read another.
  for (size_t i = reads; i < operands.size(); ++i)
    for (size_t j = 0; j < i; ++j)
      if (operands[i] == operands[j] ||
          (operands[i]->home && operands[j]->home && operands[i]->overlaps(*operands[j]))) {
        fail(op, "two operands in one memory");
        inputs = garbage().value;
      }
  kernels += mix(inputs, 1);
  // A call's results are what is written whole, then what is added to.
  for (size_t i = 0; i < updates + writes; ++i) {
    bool updated = i < updates;
    Buffer &buffer = *operands[reads + i];
    Tensor result{{{mix(inputs, 1000 + (updated ? writes + i : i - updates)), true}}, false};
    for (int64_t c = buffer.first; c < buffer.first + buffer.count; ++c)
      if (updated)
        add(op, buffer.at(c), result.at(c).value);
      else
        buffer.at(c) = result.at(c);
  }
}

void Machine::chunkUpdate(UpdateOp op) {
  int64_t chunk = get(op.getChunk()), step = get(op.getStep());
  SmallVector<Word *> parts;
  SmallVector<Value> operands{op.getGradient(), op.getWeights()};
  if (op.getLow())
    operands.push_back(op.getLow());
  llvm::append_range(operands, op.getStates());
  for (Value value : operands) {
    parts.push_back(nullptr);
    BufferRef buffer = lookup(op, value);
    if (!buffer)
      return;
    expectSpace(op, *buffer, updateSpace);
    if (step == 0)
      continue;
    if (chunk < buffer->first || chunk >= buffer->first + buffer->count)
      return fail(op, "a chunk that its buffer does not hold");
    parts.back() = &buffer->at(chunk);
  }
  if (step != 0)
    update(op, op.getGroup(), step, parts);
}

//===----------------------------------------------------------------------===//
// What a trainer runs
//===----------------------------------------------------------------------===//

namespace {
/// S: a step; D: drain; E: every other entry point. `before`: steps made before a commit.
struct Plan {
  const char *runs;
  int64_t before;
};
constexpr Plan kPlans[] = {{"SSSSSDEESSD", 0}, {"SDSSDSD", 0}, {"ESSESED", 0},
                           {"SSSSD", 3},       {"ED", 2},      {"SED", 1}};

class Watcher {
public:
  Watcher(ModuleOp module, Observations &seen) : module(module), seen(seen) {
    step = findEntryPoint(module, EntryPoint::step);
    drain = findEntryPoint(module, EntryPoint::drain);
    leaves = step && !step.getPending().use_empty();
  }

  void follow(const Plan &plan, uint64_t garbage) {
    Machine machine(module, garbage);
    int64_t number = plan.before, pending = 0;
    bool outstanding = false; // or might be, were the optimizer split
    std::string done = "after " + std::to_string(plan.before) + " steps, ";
    for (const char *run = plan.runs; *run; ++run) {
      done += *run;
      auto see = [&](StringRef what, uint64_t value, bool whilePending) {
        seen.all.push_back({done + ": " + what.str(), value, whilePending || evaluatedEarly});
      };
      // The trainer drains before: from here on a split of the optimizer may show.
      evaluatedEarly |= *run == 'E' && outstanding;
      if (*run == 'S' && step) {
        machine.bringData();
        machine.run(step, ++number, pending);
        pending = leaves ? number : 0;
        outstanding = true;
      } else if (*run == 'D') {
        if (pending && drain) {
          machine.run(drain, number, pending);
          pending = 0;
        }
        outstanding = false;
      } else if (*run == 'E') {
        for (StepOp entry : module.getOps<StepOp>()) {
          if (entry == step || entry == drain)
            continue;
          machine.bringData();
          machine.run(entry, std::max<int64_t>(number, 1), 0);
          results(machine, see);
        }
      }
      if (*run == 'S')
        results(machine, see);
      for (StorageOp storage : module.getOps<StorageOp>())
        if (storage.getPersistent())
          see(storage.getSymName(), machine.contents(storage), outstanding);
      see("kernels", machine.kernels, false);
      see("updates", machine.updates, outstanding);
    }
    evaluatedEarly = false;
    if (seen.undefined.empty() && !machine.undefined.empty())
      seen.undefined = done + ": " + machine.undefined;
    if (seen.fault.empty() && !machine.fault.empty())
      seen.fault = done + ": " + machine.fault;
    for (auto &[pool, peak] : machine.peaks)
      seen.peaks[pool] = std::max(seen.peaks[pool], peak);
    seen.takenUp += machine.takenUp;
    seen.slotsTaken += machine.slotsTaken;
  }

private:
  /// What is read after a run.
  template <typename See> void results(Machine &machine, See see) {
    for (StorageOp storage : module.getOps<StorageOp>())
      if (!storage.getPersistent() &&
          (storage.getRole() == Role::loss || storage.getRole() == Role::logits))
        see(storage.getSymName(), machine.contents(storage), false);
  }

  ModuleOp module;
  Observations &seen;
  StepOp step, drain;
  bool leaves = false, evaluatedEarly = false;
};
} // namespace

Observations observe(ModuleOp module, uint64_t garbage) {
  Observations seen;
  Watcher watcher(module, seen);
  for (const Plan &plan : kPlans)
    watcher.follow(plan, garbage);
  return seen;
}

std::string findDifference(const Observations &before, const Observations &after, bool pending) {
  if (before.all.size() != after.all.size())
    return "other entry points or storages";
  for (auto [was, is] : llvm::zip(before.all, after.all))
    if (was.value != is.value && (pending || !was.pending))
      return was.what;
  return "";
}

} // namespace boa::random
