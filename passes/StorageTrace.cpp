//===- StorageTrace.cpp ---------------------------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/StorageTrace.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/IRMapping.h"
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

void StorageTrace::run(StepOp entry, int64_t pending) {
  buffers.clear();
  open.clear();
  if (previous != entry)
    retained.clear();
  previous = entry;
  trace(entry, [&](Operation *op, const TraceState &state) { visit(op, state); }, pending);
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
    hash = mix(hash, versions[i]);
    undefined |= versions[i] == kUndefined;
  }
  if (undefined)
    undefinedRead(op, buffer.access);
  uses.push_back({op, operand, hash});
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
      uses.push_back({op, j, i});
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

namespace {
/// Contents after an entry point, in a form to compare.
class Follower : public StorageTrace {
public:
  using StorageTrace::StorageTrace;

  void follow(StepOp entry, int64_t pending, Computation &computation) {
    uses.clear();
    run(entry, pending);
    llvm::append_range(computation.uses, uses);
    for (auto storage : module.getOps<StorageOp>()) {
      // What outlives the program; of gradients only what is read again, which
      // the next entry points tell.
      bool trained = storage.getPersistent() && storage.getRole() != "gradients";
      if (!trained && storage.getRole() != "loss" && storage.getRole() != "logits")
        continue;
      uint64_t hash = 0;
      for (Version version : homes[storage])
        hash = mix(hash, version);
      computation.finals.push_back({storage, hash});
    }
  }
};
} // namespace

Computation Computation::compute(ModuleOp module) {
  Computation computation;
  runEntries(module, Follower(module), [&](Follower &trace, StepOp entry, int64_t pending) {
    trace.follow(entry, pending, computation);
  });
  return computation;
}

/// Where two computations part: an op, or a storage; null if they do not.
static Operation *findDifference(const Computation &before, const Computation &after) {
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

LogicalResult checkSameComputation(const Computation &before, const Computation &after,
                                   StringRef transformation) {
  Operation *op = findDifference(before, after);
  if (!op)
    return success();
  return op->emitOpError(transformation)
         << (isa<StorageOp>(op) ? " would change what it holds after an entry point"
                                : " would change what it reads");
}

Computation transformEntries(ModuleOp module, function_ref<unsigned(StepOp)> transform,
                             std::map<Operation *, unsigned> &done) {
  Computation before = Computation::compute(module);
  SmallVector<StepOp> entries(module.getOps<StepOp>());
  SmallVector<StepOp> originals;
  for (StepOp entry : entries) {
    originals.push_back(cast<StepOp>(entry->clone()));
    done[entry] = transform(entry);
  }
  Computation after = Computation::compute(module);
  // Rarely: undo all, then keep what can be kept of them one by one.
  if (findDifference(before, after)) {
    for (auto [entry, original] : llvm::zip(entries, originals))
      entry.getBody().takeBody(original.getBody());
    after = Computation::compute(module); // the ops are new
    for (auto [entry, original] : llvm::zip(entries, originals)) {
      before = after;
      IRMapping map;
      entry.getBody().cloneInto(&original.getBody(), map);
      done[entry] = transform(entry);
      after = Computation::compute(module);
      if (!findDifference(before, after))
        continue;
      entry.getBody().takeBody(original.getBody());
      done[entry] = 0;
      after = Computation::compute(module);
    }
  }
  for (StepOp original : originals)
    original.erase();
  return after;
}

} // namespace boa
