//===- Tracer.cpp ---------------------------------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/analysis/Tracer.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/ADT/bit.h"
#include "llvm/Support/xxhash.h"

using namespace mlir;

namespace boa {

/// Zeros of a prefetch: below all versions that a program can make.
static constexpr Version kZeros = INT64_MIN;

/// One step of a hash; a bijection in both, so that one difference is always seen.
static uint64_t mix(uint64_t hash, uint64_t value) {
  return llvm::rotl((hash ^ value) * 0x9e3779b97f4a7c15ull, 29);
}
/// For sums: what is added must not cancel.
static uint64_t term(uint64_t value) { return mix(mix(value, 0x632be59bd9b4e019ull), value); }
static uint64_t hashOf(StringRef name) { return llvm::xxh3_64bits(name); }

bool Access::overlaps(const Access &other) const {
  return StorageOp(storage) == StorageOp(other.storage) && entry == other.entry &&
         first < other.first + other.count && other.first < first + count;
}

Tracer::Tracer(ModuleOp module) : module(module), memory(module) {
  Version initial = 0;
  for (auto storage : module.getOps<StorageOp>()) {
    std::vector<Version> &home = homes[storage];
    home.assign(storage.getEntryCount() * int64_t(storage.getChunks()), kUndefined);
    if (!storage.isLiveIn())
      continue;
    // One for all chunks of an entry: nothing moves a chunk to another's place.
    for (int64_t entry = 0, chunks = storage.getChunks(); entry < storage.getEntryCount(); ++entry)
      std::fill_n(home.data() + entry * chunks, chunks, ++initial);
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
  bool isStep = entry.getSymName() == "step";
  steps += isStep;
  if (pending && steps < 1 + isStep)
    steps = 1 + isStep;
  RunNumbers numbers{std::max<int64_t>(steps, 1), pending ? steps - isStep : 0};
  enumerate(
      entry, numbers, [&](Operation *op, const Position &at) { visit(op, at); },
      [&](LoopOp loop, int64_t chunk) { return together(loop, chunk); });
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

/// Of many versions, of which neighbours are often the same.
int64_t Tracer::inSnapshot(ArrayRef<Version> versions) const {
  uint64_t hash = versions.size(), told = 0;
  for (size_t i = 0; i < versions.size(); ++i) {
    if (i == 0 || versions[i] != versions[i - 1])
      told = inSnapshot(versions[i]);
    hash = mix(hash, told);
  }
  return int64_t(hash);
}

Tracer::Snapshot Tracer::snapshot() const {
  Snapshot all;
  for (auto storage : ModuleOp(module).getOps<StorageOp>())
    all.push_back(inSnapshot(homes.find(storage)->second));
  for (const BufferRef &copy : retained) {
    StorageOp storage = copy->access.storage;
    all.insert(all.end(),
               {int64_t(reinterpret_cast<intptr_t>(storage.getOperation())), copy->access.entry,
                copy->access.first, copy->access.count, inSnapshot(copy->own)});
  }
  return all;
}

uint64_t Tracer::fold(ArrayRef<Version> versions) const {
  uint64_t hash = versions.size(), value = 0;
  for (size_t i = 0; i < versions.size(); ++i) {
    if (i == 0 || versions[i] != versions[i - 1])
      value = valueOf(versions[i]);
    hash = mix(hash, value);
  }
  return hash;
}

/// Entries are asked for far more often than they are written.
uint64_t Tracer::entryValue(StorageOp storage, int64_t entry) const {
  auto &values = homeValues[storage];
  values.resize(storage.getEntryCount());
  std::optional<uint64_t> &value = values[entry];
  int64_t chunks = storage.getChunks();
  if (!value)
    value = fold(ArrayRef(homes.find(storage)->second).slice(entry * chunks, chunks));
  return *value;
}

uint64_t Tracer::contents(StorageOp storage) const {
  uint64_t hash = 0;
  for (int64_t entry = 0; entry < storage.getEntryCount(); ++entry)
    hash = mix(hash, entryValue(storage, entry));
  return hash;
}

void Tracer::checkDefined(Operation *op, const Access &access, const Version *versions) {
  if (llvm::is_contained(ArrayRef(versions, access.count), kUndefined))
    undefinedRead(op, access);
}

/// The value of all that an op takes of an entry at home.
uint64_t Tracer::valueOfHome(Operation *op, const Access &access) {
  StorageOp storage = access.storage;
  const Version *versions = homeOf(access) + access.first;
  checkDefined(op, access, versions);
  return access.count == int64_t(storage.getChunks()) ? entryValue(storage, access.entry)
                                                      : fold(ArrayRef(versions, access.count));
}

/// Adds to each chunk; chunks that held the same hold the same after.
void Tracer::addTo(Operation *op, Version *versions, int64_t count, uint64_t value) {
  Version was = kUndefined, is = kUndefined;
  for (int64_t i = 0; i < count; ++i) {
    if (i == 0 || versions[i] != was) {
      was = versions[i];
      is = make(op, valueOf(was) + term(value), was);
    }
    versions[i] = is;
  }
}

bool Tracer::updateChunks(Operation *op, StringRef group, int64_t step, int64_t count,
                          ArrayRef<Version *> parts) {
  uint64_t norm = 0;
  if (auto it = norms.find(step); it != norms.end())
    norm = it->second;
  uint64_t base = mix(mix(hashOf(group), step), norm);
  constexpr size_t kMost = std::size(kTrainedParts) + 1;
  Version was[kMost] = {}, is[kMost] = {};
  bool defined = true;
  for (int64_t i = 0; i < count; ++i) {
    bool same = i > 0;
    for (size_t p = 0; p < parts.size(); ++p)
      same = same && (!parts[p] || parts[p][i] == was[p]);
    if (!same) {
      uint64_t hash = base;
      for (size_t p = 0; p < parts.size(); ++p) {
        was[p] = parts[p] ? parts[p][i] : kUndefined;
        hash = mix(hash, parts[p] ? valueOf(was[p]) : 0);
        defined = defined && (!parts[p] || was[p] != kUndefined);
      }
      for (size_t p = 1; p < parts.size(); ++p)
        if (parts[p])
          is[p] = make(op, mix(hash, p), was[p]);
    }
    for (size_t p = 1; p < parts.size(); ++p)
      if (parts[p])
        parts[p][i] = is[p];
    workDone += term(valueOf(is[1]));
  }
  return defined;
}

//===----------------------------------------------------------------------===//
// Accesses
//===----------------------------------------------------------------------===//

Access Tracer::resolve(Operation *op, const StorageAccess &access, StorageOp storage,
                       const Position &at) {
  Access now;
  now.kind = access.kind;
  now.storage = storage;
  if (access.indices.size() == storage.getDims().size())
    now.entry = at.getEntry(storage, access.indices);
  now.first = access.chunk ? at.get(access.chunk) : access.first;
  now.parts = at.span(access.chunk);
  now.count = access.count ? access.count * now.parts : int64_t(storage.getChunks());
  now.fresh = access.fresh && at.test(access.fresh, false);
  return now;
}

SmallVector<Access> Tracer::accessesOf(Operation *op, const Position &at) {
  std::shared_ptr<Touched> &known = touched[op];
  if (!known) {
    known = std::make_shared<Touched>();
    for (StorageAccess &access : cast<AccessOpInterface>(op).getAccesses()) {
      auto storage = module.lookupSymbol<StorageOp>(access.storage.getAttr());
      if (storage)
        known->accesses.push_back({std::move(access), storage});
      else if (!access.ifDeclared)
        violation(op, "names a storage that does not exist: @" + access.storage.getValue());
    }
  }
  SmallVector<Access> all;
  for (auto &[access, storage] : known->accesses) {
    Access now = resolve(op, access, storage, at);
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

const Version *Tracer::homeOf(const Access &access) {
  StorageOp storage = access.storage;
  return homes[storage].data() + access.entry * int64_t(storage.getChunks());
}

Version *Tracer::changeHome(const Access &access) {
  StorageOp storage = access.storage;
  if (auto it = homeValues.find(storage); it != homeValues.end())
    it->second[access.entry].reset();
  return homes[storage].data() + access.entry * int64_t(storage.getChunks());
}

const Version *Tracer::chunkOf(const Buffer &buffer, int64_t chunk) {
  return buffer.home ? homeOf(buffer.access) + chunk
                     : buffer.own.data() + (chunk - buffer.access.first);
}

Version *Tracer::changeChunk(Buffer &buffer, int64_t chunk) {
  buffer.value.reset();
  return buffer.home ? changeHome(buffer.access) + chunk
                     : buffer.own.data() + (chunk - buffer.access.first);
}

std::vector<Version> Tracer::contentsOf(const Buffer &buffer) {
  if (!buffer.home)
    return buffer.own;
  const Version *home = homeOf(buffer.access) + buffer.access.first;
  return std::vector<Version>(home, home + buffer.access.count);
}

void Tracer::dropRetained(const Access &access, Operation *by) {
  llvm::erase_if(retained, [&](const BufferRef &buffer) {
    if (!buffer->access.overlaps(access))
      return false;
    dropped(*buffer, by);
    return true;
  });
}

/// Chunks that live alike, none of them in a retained copy: those are taken up one by one.
int64_t Tracer::together(LoopOp loop, int64_t chunk) {
  std::optional<SmallVector<StorageOp, 4>> &known = independent[loop];
  if (!known) {
    known.emplace();
    if (canRunAsOne(loop))
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
    auto ranges = storage.getHomeRanges(chunk, count);
    if (!ranges.empty())
      count = std::min(count, ranges[0].count);
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
      .Case([&](LaunchOp launch) { this->launch(launch); })
      .Case([&](UpdateOp update) { this->update(update, at); })
      .Case([&](NormOp norm) { this->norm(norm); });
}

//===----------------------------------------------------------------------===//
// The step phase
//===----------------------------------------------------------------------===//

void Tracer::read(ReadOp op, const Position &at) {
  for (const Access &access : accessesOf(op, at)) {
    const Version *versions = homeOf(access) + access.first;
    values[op.getValue()] = valueOfHome(op, access);
    valueRead(op, access, versions);
  }
}

void Tracer::write(WriteOp op, const Position &at) {
  for (const Access &access : accessesOf(op, at))
    std::fill_n(changeHome(access) + access.first, access.count,
                make(op, values.lookup(op.getValue())));
}

void Tracer::accumulate(AccumulateOp op, const Position &at) {
  for (const Access &access : accessesOf(op, at)) {
    Version *versions = changeHome(access) + access.first;
    if (access.fresh)
      std::fill_n(versions, access.count, kZeros);
    else if (versions[0] == kUndefined)
      undefinedRead(op, access);
    addTo(op, versions, access.count, values.lookup(op.getValue()));
  }
}

/// A result of a function of what it takes.
static uint64_t resultOf(uint64_t inputs, unsigned number) { return mix(inputs, number + 1); }

void Tracer::call(CallOp op) {
  uint64_t inputs = hashOf(op.getCallee());
  for (Value input : op.getInputs())
    inputs = mix(inputs, values.lookup(input));
  workDone += term(inputs);
  for (auto [i, output] : llvm::enumerate(op.getOutputs()))
    values[output] = resultOf(inputs, i);
}

bool Tracer::checkGroup(Operation *op, StringRef group) {
  if (module.lookupSymbol<GroupOp>(group))
    return true;
  violation(op, "names a group that does not exist: @" + group);
  return false;
}

void Tracer::optimizerUpdate(OptimizerUpdateOp op, const Position &at) {
  auto group = module.lookupSymbol<GroupOp>(op.getGroup());
  if (!checkGroup(op, op.getGroup()))
    return;
  int64_t layer = at.get(op.getLayer());
  if (layer < 0 || layer >= int64_t(group.getRepeat()) || op.getFirst() >= op.getLast() ||
      int64_t(op.getLast()) > group.getChunks())
    return violation(op, "updates layer " + Twine(layer) + ", chunks " + Twine(op.getFirst()) +
                             " to " + Twine(op.getLast()) + ", of a group with " +
                             Twine(group.getRepeat()) + " layers of " + Twine(group.getChunks()) +
                             " chunks");
  int64_t step = at.get(op.getStep());
  if (step == 0)
    return;
  SmallVector<Version *> parts(std::size(kTrainedParts) + 1, nullptr);
  SmallVector<Access> accesses = accessesOf(op, at);
  for (const Access &access : accesses) {
    StringRef name = StorageOp(access.storage).getSymName();
    size_t part = 0;
    for (auto [i, trained] : llvm::enumerate(kTrainedParts))
      if (name == getStorageName(trained, op.getGroup()))
        part = i + 1;
    parts[part] = changeHome(access) + access.first;
    valueRead(op, access, parts[part]);
  }
  if (!accesses.empty() && !updateChunks(op, op.getGroup(), step, accesses.front().count, parts))
    undefinedRead(op, accesses.front());
}

void Tracer::gradientNorm(GradientNormOp op, const Position &at) {
  for (const Access &access : accessesOf(op, at)) {
    const Version *versions = homeOf(access) + access.first;
    gradientSum += term(valueOfHome(op, access));
    valueRead(op, access, versions);
  }
}

void Tracer::finishNorm(FinishNormOp op, const Position &at) {
  norms[at.get(op.getStep())] = mix(gradientSum, 1);
  gradientSum = 0;
}

//===----------------------------------------------------------------------===//
// The storage phase
//===----------------------------------------------------------------------===//

static std::string name(const Access &access) {
  return "@" + StorageOp(access.storage).getSymName().str();
}
static std::string nameEntry(const Access &access) {
  return name(access) + " entry " + std::to_string(access.entry);
}

void Tracer::openBuffer(Operation *op, const Position &at) {
  Value result = op->getResult(0);
  buffers[result] = nullptr;
  SmallVector<Access> accesses = accessesOf(op, at);
  if (accesses.empty())
    return;
  auto buffer = std::make_shared<Buffer>();
  buffer->origin = op;
  Access access = buffer->access = accesses.front();
  buffer->space = cast<BufferType>(result.getType()).getSpace();
  buffer->home = memory.isHome(access.storage, access.first, access.count, buffer->space);
  bool taken = false, reads = isa<PrefetchOp>(op) && !access.fresh;
  const Version *home = homeOf(access) + access.first;
  if (buffer->home) {
    if (access.fresh)
      std::fill_n(changeHome(access) + access.first, access.count, kZeros);
  } else if (!reads) {
    dropRetained(access, op);
    buffer->own.assign(access.count, access.fresh ? kZeros : kUndefined);
  } else {
    auto it = llvm::find_if(retained, [&](const BufferRef &other) {
      return other->access.key() == access.key() &&
             (other->space == buffer->space || !memory.isSeparate());
    });
    if ((taken = it != retained.end())) {
      buffer->own = (*it)->own; // which copies of this trace share
      retained.erase(it);
    } else {
      buffer->own.assign(home, home + access.count);
      if (llvm::is_contained(buffer->own, kUndefined))
        undefinedRead(op, access);
    }
  }
  buffers[result] = buffer;
  open.push_back(buffer);
  opened(op, *buffer, at, taken);
}

Tracer::BufferRef Tracer::lookup(Operation *op, Value value) {
  BufferRef buffer = buffers.lookup(value);
  if (buffer && buffer->released)
    violation(op, "uses a buffer after its release");
  return buffer;
}

void Tracer::offload(OffloadOp op, const Position &at) {
  BufferRef buffer = lookup(op, op.getBuffer());
  SmallVector<Access> accesses = accessesOf(op, at);
  if (!buffer || accesses.empty())
    return;
  const Access &access = accesses.front(), &held = buffer->access;
  if (StorageOp(held.storage) != StorageOp(access.storage))
    return violation(op, "writes a buffer of " + name(held) + " to " + name(access));
  if (access.first < held.first || access.first + access.count > held.first + held.count)
    return violation(op, "writes chunks that its buffer does not hold");
  if (buffer->home) {
    offloaded(op, access, *buffer);
    if (held.entry != access.entry)
      violation(op, "writes " + nameEntry(held) + " to entry " + Twine(access.entry).str() +
                        ", but moves nothing where a storage lives in memory");
    return;
  }
  dropRetained(access, op);
  std::copy_n(chunkOf(*buffer, access.first), access.count, changeHome(access) + access.first);
  offloaded(op, access, *buffer);
}

void Tracer::copy(CopyOp op) {
  BufferRef from = lookup(op, op.getFrom()), to = lookup(op, op.getTo());
  if (!from || !to)
    return;
  const Access &source = from->access, &target = to->access;
  if (StorageOp(source.storage) != StorageOp(target.storage) || source.entry != target.entry)
    return violation(op, "copies " + nameEntry(source) + " to " + nameEntry(target));
  if (target.first < source.first || target.first + target.count > source.first + source.count)
    return violation(op, "copies chunks that its first buffer does not hold");
  const Version *versions = chunkOf(*from, target.first);
  checkDefined(op, target, versions);
  std::copy_n(versions, target.count, changeChunk(*to, target.first));
  copied(op, *from, *to);
}

void Tracer::release(ReleaseOp op, const Position &at) {
  BufferRef buffer = lookup(op, op.getBuffer());
  if (!buffer || buffer->released)
    return;
  bool retain = !buffer->home && at.test(op.getRetain(), false);
  buffer->released = true;
  llvm::erase(open, buffer);
  released(op, *buffer, at, retain);
  if (!retain)
    return;
  dropRetained(buffer->access, op);
  // Its own object: the name in the program is released.
  retained.push_back(std::make_shared<Buffer>(*buffer));
}

uint64_t Tracer::use(Operation *op, Buffer &buffer) {
  if (buffer.home)
    return valueOfHome(op, buffer.access);
  checkDefined(op, buffer.access, buffer.own.data());
  if (!buffer.value)
    buffer.value = fold(buffer.own);
  return *buffer.value;
}

/// A kernel may write one operand before it has read another.
void Tracer::checkAliases(LaunchOp op) {
  unsigned firstWritten = op.getReads().size();
  for (unsigned i = 0; i < op->getNumOperands(); ++i)
    for (unsigned j = std::max(i + 1, firstWritten); j < op->getNumOperands(); ++j) {
      const BufferRef &a = buffers[op->getOperand(i)], &b = buffers[op->getOperand(j)];
      if (!a || !b || (a != b && !(a->home && b->home && a->access.overlaps(b->access))))
        continue;
      violation(op, "writes " + nameEntry(b->access) + " while another operand is the same memory");
      workDone += term(i * 64 + j + 1);
    }
}

void Tracer::launch(LaunchOp op) {
  checkAliases(op);
  unsigned reads = op.getReads().size(), updates = op.getUpdates().size();
  unsigned writes = op.getWrites().size();
  uint64_t inputs = hashOf(op.getKernel());
  SmallVector<BufferRef, 16> operands;
  for (Value operand : op->getOperands())
    operands.push_back(lookup(op, operand));
  for (unsigned i = 0; i < reads; ++i)
    inputs = mix(inputs, operands[i] ? use(op, *operands[i]) : 0);
  workDone += term(inputs);
  // A call's results are what is written whole, then what is added to.
  for (unsigned i = 0; i < updates; ++i)
    if (Buffer *buffer = operands[reads + i].get()) {
      Version *versions = changeChunk(*buffer, buffer->access.first);
      checkDefined(op, buffer->access, versions);
      addTo(op, versions, buffer->access.count, resultOf(inputs, writes + i));
    }
  for (unsigned i = 0; i < writes; ++i)
    if (Buffer *buffer = operands[reads + updates + i].get())
      std::fill_n(changeChunk(*buffer, buffer->access.first), buffer->access.count,
                  make(op, resultOf(inputs, i)));
}

void Tracer::update(UpdateOp op, const Position &at) {
  if (!checkGroup(op, op.getGroup()))
    return;
  // Buffers must be live also where nothing is pending.
  int64_t chunk = at.get(op.getChunk()), count = at.span(op.getChunk());
  int64_t step = at.get(op.getStep());
  SmallVector<Version *> parts;
  for (Value value :
       {op.getGradient(), op.getWeights(), op.getLow(), op.getMomentum(), op.getVariance()}) {
    BufferRef buffer = value ? lookup(op, value) : nullptr;
    parts.push_back(nullptr);
    if (!buffer || step == 0)
      continue;
    const Access &held = buffer->access;
    if (chunk < held.first || chunk + count > held.first + held.count)
      return violation(op,
                       "updates a chunk that a buffer of " + nameEntry(held) + " does not hold");
    parts.back() = changeChunk(*buffer, chunk);
  }
  if (step != 0 && parts[0] && !updateChunks(op, op.getGroup(), step, count, parts))
    undefinedRead(op, buffers[op.getWeights()]->access);
}

void Tracer::norm(NormOp op) {
  if (!checkGroup(op, op.getGroup()))
    return;
  if (BufferRef gradient = lookup(op, op.getGradient()))
    gradientSum += term(use(op, *gradient));
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
