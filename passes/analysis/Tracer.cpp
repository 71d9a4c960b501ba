//===- Tracer.cpp ---------------------------------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What both phases share. What the ops of each do: TracerStep.cpp, TracerStorage.cpp.
//
//===----------------------------------------------------------------------===//
#include "passes/analysis/Tracer.h"

#include "passes/analysis/ValueNumber.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace boa::value_number;

namespace boa {

bool Access::overlaps(const Access &other) const {
  return StorageOp(storage) == StorageOp(other.storage) && entry == other.entry &&
         first < other.first + other.count && other.first < first + count;
}

Tracer::Tracer(ModuleOp module) : module(module), memory(module), iterations(1) {
  Version initial = 0;
  for (auto storage : module.getOps<StorageOp>()) {
    // One for all chunks of an entry: nothing moves a chunk to another's place.
    for (int64_t entry = 0; entry < storage.getEntryCount(); ++entry)
      homes[storage].emplace_back(0, storage.getChunks(),
                                  storage.isLiveIn() ? ++initial : kUndefined);
  }
}

void Tracer::run(StepOp entry, bool pending) {
  buffers.clear();
  values.clear();
  open.clear();
  if (previous != entry) {
    for (const BufferRef &copy : retained)
      abandoned(*copy);
    retained.clear();
  }
  previous = entry;
  begun.push_back(made.size());
  if (entry.getEntryPoint() != EntryPoint::drain)
    bringInputs();
  bool isStep = entry.getEntryPoint() == EntryPoint::step;
  steps += isStep;
  if (pending && steps < 1 + isStep)
    steps = 1 + isStep;
  RunNumbers numbers{std::max<int64_t>(steps, 1), pending ? steps - isStep : 0};
  enumerate(
      entry, numbers, [&](Operation *op, const Position &at) { visit(op, at); },
      [&](LoopOp loop, int64_t chunk) { return together(loop, chunk); });
}

void Tracer::resume() {
  for (const BufferRef &copy : retained)
    abandoned(*copy);
  retained.clear();
  previous = StepOp();
  for (auto storage : module.getOps<StorageOp>())
    if (!storage.isLiveIn())
      for (Versions &entry : homes[storage])
        entry.set(0, storage.getChunks(), kUndefined);
}

/// Brings new inputs: those that a trainer brings for a run are not those of the run before.
void Tracer::bringInputs() {
  ++brought;
  for (auto storage : module.getOps<StorageOp>()) {
    if (!storage.isLiveIn() || storage.getPersistent())
      continue;
    uint64_t hash = mix(hashOf(storage.getSymName()), brought);
    for (Versions &entry : homes[storage]) {
      made.push_back({storage, hash = mix(hash, 1), /*iteration=*/0, kUndefined});
      entry.set(0, storage.getChunks(), -int64_t(made.size()));
    }
  }
}

//===----------------------------------------------------------------------===//
// Versions
//===----------------------------------------------------------------------===//

Version Tracer::make(Operation *op, uint64_t value, Version before) {
  if (iterationSerial != now->serial() || iterations.empty()) {
    iterations.push_back(now->iteration());
    iterationSerial = now->serial();
  }
  made.push_back({op, value, int64_t(iterations.size()) - 1, before});
  return -int64_t(made.size());
}

uint64_t Tracer::valueOf(Version version) const {
  if (version == kZeros)
    return 0;
  return version < 0 ? made[-version - 1].value : mix(0x7f4a7c15, version);
}

/// The value number of versions. Versions may differ whose value is one.
uint64_t Tracer::valueOf(const Versions &versions, int64_t first, int64_t count) const {
  uint64_t hash = mix(first, count), value = 0;
  int64_t length = 0;
  versions.forEach(first, count, [&](Versions::Run run) {
    uint64_t next = valueOf(run.value);
    if (length && next != value) {
      hash = mix(mix(hash, value), length);
      length = 0;
    }
    value = next;
    length += run.count;
  });
  return mix(mix(hash, value), length);
}

uint64_t Tracer::contents(StorageOp storage) const {
  uint64_t hash = 0;
  for (const Versions &entry : homes.find(storage)->second)
    hash = mix(hash, valueOf(entry, 0, storage.getChunks()));
  return hash;
}

size_t Tracer::runOf(Version version) const {
  size_t run = begun.size() - 1;
  while (begun[run] > size_t(-version - 1))
    --run;
  return run;
}

int64_t Tracer::inSnapshot(Version version) const {
  if (version >= kUndefined || version == kZeros)
    return version;
  size_t run = runOf(version);
  return -(int64_t(currentRun() - run) << 40 | (-version - int64_t(begun[run])));
}

int64_t Tracer::inSnapshot(const Versions &versions, int64_t first, int64_t count) const {
  uint64_t hash = count;
  versions.forEach(first, count, [&](Versions::Run run) {
    hash = mix(mix(hash, inSnapshot(run.value)), run.count);
  });
  return int64_t(hash);
}

Tracer::Snapshot Tracer::snapshot() const {
  Snapshot all;
  for (auto storage : ModuleOp(module).getOps<StorageOp>()) {
    uint64_t hash = 0;
    for (const Versions &entry : homes.find(storage)->second)
      hash = mix(hash, inSnapshot(entry, 0, storage.getChunks()));
    all.push_back(int64_t(hash));
  }
  for (const BufferRef &copy : retained) {
    const Access &access = copy->access;
    StorageOp storage = access.storage;
    all.insert(all.end(),
               {int64_t(reinterpret_cast<intptr_t>(storage.getOperation())), access.entry,
                access.first, access.count, inSnapshot(copy->own, access.first, access.count)});
  }
  return all;
}

static bool isDefined(const Versions &versions, int64_t first, int64_t count) {
  bool defined = true;
  versions.forEach(first, count,
                   [&](Versions::Run run) { defined = defined && run.value != kUndefined; });
  return defined;
}

uint64_t Tracer::use(Operation *op, const Access &access, const Versions &versions) {
  if (!isDefined(versions, access.first, access.count))
    undefinedRead(op, access);
  return valueOf(versions, access.first, access.count);
}

void Tracer::addTo(Operation *op, const Access &access, Versions &versions, uint64_t value) {
  if (!isDefined(versions, access.first, access.count))
    undefinedRead(op, access);
  Versions before = versions;
  before.forEach(access.first, access.count, [&](Versions::Run run) {
    versions.set(run.first, run.count, make(op, valueOf(run.value) + term(value), run.value));
  });
}

bool Tracer::updateChunks(Operation *op, StringRef group, int64_t step, int64_t first,
                          int64_t count, ArrayRef<Versions *> parts) {
  uint64_t norm = 0;
  if (auto it = norms.find(step); it != norms.end())
    norm = it->second;
  bool defined = true;
  for (int64_t last = first + count; first < last; first += count) {
    // The chunks from `first` on in which each part holds one version.
    count = last - first;
    for (Versions *part : parts)
      if (part)
        count = std::min(count, part->from(first).count);
    uint64_t hash = mix(mix(hashOf(group), step), norm);
    for (Versions *part : parts) {
      Version version = part ? part->from(first).value : kZeros;
      hash = mix(hash, part ? valueOf(version) : 0);
      defined = defined && version != kUndefined;
    }
    for (size_t p = 1; p < parts.size(); ++p)
      if (Versions *part = parts[p])
        part->set(first, count, make(op, mix(hash, p), part->from(first).value));
    workDone += count * term(mix(hash, 1));
  }
  return defined;
}

//===----------------------------------------------------------------------===//
// Accesses
//===----------------------------------------------------------------------===//

Access Tracer::resolve(const StorageAccess &access, StorageOp storage, const Position &at) {
  Access now;
  now.storage = storage;
  if (access.indices.size() == storage.getDims().size())
    now.entry = at.getEntry(storage, access.indices);
  now.first = access.chunk ? at.get(access.chunk) : access.first;
  now.parts = at.span(access.chunk);
  now.count = access.count ? access.count * now.parts : int64_t(storage.getChunks());
  now.fresh = access.fresh && at.test(access.fresh, false);
  now.reads = access.mayRead() && !now.fresh;
  return now;
}

Tracer::Touched &Tracer::touchedBy(Operation *op) {
  std::shared_ptr<Touched> &known = touched[op];
  if (known)
    return *known;
  known = std::make_shared<Touched>();
  for (StorageAccess &access : cast<AccessOpInterface>(op).getAccesses()) {
    auto storage = module.lookupSymbol<StorageOp>(access.storage.getAttr());
    if (storage)
      known->accesses.push_back({std::move(access), storage});
    else
      violation(op, "names a storage that does not exist: @" + access.storage.getValue());
  }
  for (OpOperand &operand : op->getOpOperands()) {
    const bool reads = hasEffect<OpOperand *, MemoryEffects::Read>(op, &operand);
    const bool writes = hasEffect<OpOperand *, MemoryEffects::Write>(op, &operand);
    if (reads || writes)
      (!writes ? known->reads
       : reads ? known->updates
               : known->writes)
          .push_back(operand.getOperandNumber());
  }
  auto launch = dyn_cast<LaunchOp>(op);
  if (launch && launch.getPrepared())
    if (auto kernel = module.lookupSymbol<KernelOp>(launch.getKernelAttr().getAttr()))
      known->prepared = kernel.getPreparedAttr();
  if (known->prepared)
    known->reads.pop_back();
  return *known;
}

SmallVector<Access> Tracer::accessesOf(Operation *op, const Position &at) {
  SmallVector<Access> all;
  for (auto &[access, storage] : touchedBy(op).accesses) {
    Access now = resolve(access, storage, at);
    bool inBounds = now.entry >= 0 && now.first >= 0 && now.count > 0 &&
                    now.first + now.count <= int64_t(storage.getChunks());
    if (!inBounds) {
      violation(op, "indexes @" + storage.getSymName() + " out of bounds");
      return {};
    }
    all.push_back(std::move(now));
  }
  return all;
}

Versions &Tracer::homeOf(const Access &access) {
  return homes[StorageOp(access.storage)][access.entry];
}

/// Drops retained copies. With separate memories it drops those in one space alone, if `in` is
/// given.
void Tracer::dropRetained(const Access &access, Operation *by, std::optional<Space> in) {
  llvm::erase_if(retained, [&](const BufferRef &buffer) {
    if (!buffer->access.overlaps(access) || (in && memory.isSeparate() && buffer->space != *in))
      return false;
    dropped(*buffer, by);
    return true;
  });
}

/// The number of chunks that live alike, none of them in a retained copy: those are taken up one by
/// one.
int64_t Tracer::together(LoopOp loop, int64_t chunk) {
  std::optional<SmallVector<StorageOp, 4>> &known = independent[loop];
  if (!known) {
    known.emplace();
    if (loop.canRunAsOne())
      for (Operation &op : *loop.getBlock())
        if (auto accesses = dyn_cast<AccessOpInterface>(op))
          for (const StorageAccess &access : accesses.getAccesses())
            if (auto storage = module.lookupSymbol<StorageOp>(access.storage.getAttr()))
              known->push_back(storage);
  }
  if (known->empty())
    return 1;
  int64_t count = int64_t(loop.getUpper()) - chunk;
  for (StorageOp storage : *known) {
    for (const BufferRef &copy : retained)
      if (StorageOp(copy->access.storage) == storage)
        return 1;
    // In every entry.
    for (const StorageOp::EntryRange &range : storage.getEntryRanges()) {
      auto homes = storage.getHomeRanges(range.first, chunk, count);
      if (!homes.empty())
        count = std::min(count, homes[0].count);
    }
  }
  return std::max<int64_t>(count, 1);
}

void Tracer::visit(Operation *op, const Position &at) {
  now = &at;
  llvm::TypeSwitch<Operation *>(op)
      .Case([&](ReadOp read) { this->read(read, at); })
      .Case([&](WriteOp write) { this->write(write, at); })
      .Case([&](AccumulateOp accumulate) { this->accumulate(accumulate, at); })
      .Case([&](CallOp call) { this->call(call); })
      .Case([&](OptimizerUpdateOp update) { optimizerUpdate(update, at); })
      .Case([&](GradientNormOp norm) { gradientNorm(norm, at); })
      .Case([&](FinishNormOp norm) { finishNorm(norm, at); })
      .Case<PrefetchOp, CreateOp>([&](auto) { openBuffer(op, at); })
      .Case([&](OffloadOp offload) { this->offload(offload, at); })
      .Case([&](CopyOp copy) { this->copy(copy); })
      .Case([&](ReleaseOp release) { this->release(release, at); })
      .Case([&](LaunchOp launch) { compute(launch, launch.getKernel()); })
      .Case([&](UpdateOp update) { this->update(update, at); })
      .Case([&](NormOp norm) { this->norm(norm); })
      .Default([&](Operation *other) { compute(other, other->getName().getStringRef()); });
}

//===----------------------------------------------------------------------===//
// Training
//===----------------------------------------------------------------------===//

bool leavesUpdates(StepOp step) { return !step.getPending().use_empty(); }

LogicalResult emitNotSteady(StepOp step) {
  return step.emitOpError("does not become steady: each of the first runs leaves something else "
                          "in storages or retained copies than every run before it");
}

} // namespace boa
