//===- Interpreter.cpp ----------------------------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "test/passes/random/Interpreter.h"

#include "dialect/Config.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/xxhash.h"

using namespace mlir;

namespace boa::random {

uint64_t mix(uint64_t a, uint64_t b) {
  uint64_t x = a * 0x9e3779b97f4a7c15ull + b + 0x632be59bd9b4e019ull;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}
static uint64_t nameHash(StringRef name) { return llvm::xxh3_64bits(name); }

Machine::Machine(ModuleOp module, uint64_t seed) : module(module), garbageState(mix(seed, 77)) {
  separate = IsSeparate(Config(module).machine);
  direct = Config(module).machine.direct;
  updateSpace = Config(module).updateSpace();
  for (auto op : module.getOps<StorageOp>()) {
    auto store = std::make_unique<Store>();
    store->op = op;
    store->chunks = op.getChunks();
    int64_t entries = 1;
    for (int64_t dim : op.getDims())
      entries *= dim;
    for (int64_t i = 0; i < entries * store->chunks; ++i)
      store->home.push_back(op.getPersistent() ? Word{mix(nameHash(op.getSymName()), i), true}
                                               : garbage());
    int64_t entry = 0;
    for (auto range : op.getHomes().getAsRange<EntryHomesAttr>())
      for (; entry < (range.getEnd() ? range.getEnd() : entries); ++entry)
        for (HomeAttr home : range.getHomes()) {
          int64_t end = home.getChunks() ? int64_t(store->tiers.size()) + home.getChunks()
                                         : (entry + 1) * store->chunks;
          store->tiers.resize(end, home.getTier());
        }
    if (ArrayAttr pools = op.getPoolsAttr())
      for (Attribute pool : pools)
        store->pools.push_back(cast<PoolAttr>(pool));
    store->live.assign(store->pools.size(), 0);
    stores[op.getSymName()] = std::move(store);
  }
}

void Machine::bringData() {
  ++batches;
  for (auto &[name, store] : stores)
    if (Role role = store->op.getRole(); role == Role::input || role == Role::loss_gradients)
      for (size_t i = 0; i < store->home.size(); ++i)
        store->home[i] = {mix(mix(nameHash(name), batches), i), true};
}

void Machine::run(StepOp entry, int64_t step, int64_t pending) {
  if (previous && previous != entry) {
    for (const BufferRef &buffer : retained)
      freeSlot(*buffer);
    retained.clear();
  }
  previous = entry;
  numbers.clear();
  tensors.clear();
  buffers.clear();
  numbers[entry.getStep()] = step;
  numbers[entry.getPending()] = pending;
  run(*entry.getBlock());
  if (!live.empty())
    fail(entry, "a buffer of @" + live.front()->store->op.getSymName() + " is never released");
}

uint64_t Machine::contents(StorageOp storage) const {
  uint64_t hash = 0;
  auto it = stores.find(storage.getSymName());
  for (const Word &word : it->second->home)
    hash = mix(hash, word.defined ? word.value : 12345);
  return hash;
}

Word Machine::garbage() { return {garbageState = mix(garbageState, 3), false}; }

void Machine::fail(Operation *op, const Twine &why) {
  if (fault.empty())
    fault = (op->getName().getStringRef() + ": " + why).str();
}

void Machine::use(Operation *op, const Word &word) {
  if (word.defined || !undefined.empty())
    return;
  llvm::raw_string_ostream stream(undefined);
  op->print(stream, OpPrintingFlags().skipRegions());
}

//===----------------------------------------------------------------------===//
// Control
//===----------------------------------------------------------------------===//

int64_t Machine::get(Value value) {
  if (auto it = numbers.find(value); it != numbers.end())
    return it->second;
  return llvm::TypeSwitch<Operation *, int64_t>(value.getDefiningOp())
      .Case([](arith::ConstantOp op) {
        auto attr = cast<IntegerAttr>(op.getValue());
        return op.getType().isInteger(1) ? !attr.getValue().isZero() : attr.getInt();
      })
      .Case([&](ShiftOp op) { return get(op.getIndex()) + int64_t(op.getBy()); })
      .Case([&](AtFirstOp op) { return ends[op.getIndex()].first; })
      .Case([&](AtLastOp op) { return ends[op.getIndex()].second; })
      .Case([&](arith::AndIOp op) { return test(op.getLhs()) && test(op.getRhs()); });
}

void Machine::run(Block &block) {
  for (Operation &op : block)
    if (auto loop = dyn_cast<LoopOp>(op))
      run(loop);
    else
      execute(&op);
}

void Machine::run(LoopOp loop) {
  if (loop.getGuard() && !test(loop.getGuard()))
    return;
  bool down = loop.getOrder() == LoopOrder::reverse;
  if (loop.getOrder() == LoopOrder::snake)
    down = (get(loop.getParity()) + int64_t(loop.getPhase())) % 2 != 0;
  int64_t trips = loop.getUpper() - loop.getLower();
  Value iv = loop.getInductionVar();
  for (int64_t i = 0; i < trips; ++i) {
    numbers[iv] = down ? int64_t(loop.getUpper()) - 1 - i : int64_t(loop.getLower()) + i;
    ends[iv] = {i == 0, i + 1 == trips};
    run(*loop.getBlock());
  }
}

Machine::Store *Machine::find(StringRef name) {
  auto it = stores.find(name);
  return it == stores.end() ? nullptr : it->second.get();
}

Word *Machine::entryOf(Operation *op, Store *store, ValueRange indices, int64_t *number) {
  int64_t entry = 0;
  for (auto [index, dim] : llvm::zip(indices, store->op.getDims())) {
    int64_t at = get(index);
    if (at < 0 || at >= dim) {
      fail(op, "out of the bounds of @" + store->op.getSymName());
      return nullptr;
    }
    entry = entry * dim + at;
  }
  if (number)
    *number = entry;
  return store->home.data() + entry * store->chunks;
}

//===----------------------------------------------------------------------===//
// What is computed
//===----------------------------------------------------------------------===//

Word Machine::Tensor::at(int64_t chunk) const {
  if (words.empty())
    return {};
  if (entry && chunk < int64_t(words.size()))
    return words[chunk];
  return {mix(words[0].value, chunk), words[0].defined};
}

uint64_t Machine::hashOf(Operation *op, uint64_t hash, const Tensor &tensor) {
  for (const Word &word : tensor.words) {
    use(op, word);
    hash = mix(hash, word.value);
  }
  return mix(hash, tensor.words.size());
}

void Machine::add(Operation *op, Word &word, uint64_t value) {
  use(op, word);
  word.value += value;
}

static uint64_t resultOf(uint64_t inputs, int64_t number) { return mix(inputs, 1000 + number); }

void Machine::call(CallOp op) {
  uint64_t inputs = nameHash(op.getCallee());
  for (Value input : op.getInputs())
    inputs = hashOf(op, inputs, tensors[input]);
  kernels += mix(inputs, 1);
  for (auto [i, output] : llvm::enumerate(op.getOutputs()))
    tensors[output] = {{{resultOf(inputs, i), true}}, false};
}

void Machine::update(Operation *op, StringRef group, int64_t step, ArrayRef<Word *> parts) {
  auto norm = norms.find(step);
  uint64_t hash = mix(mix(nameHash(group), step), norm == norms.end() ? 0 : norm->second);
  for (Word *part : parts) {
    if (part)
      use(op, *part);
    hash = mix(hash, part ? part->value : 0);
  }
  updates += mix(hash, 2);
  for (size_t i = 1; i < parts.size(); ++i)
    if (parts[i])
      *parts[i] = {mix(hash, 10 + i), true};
}

void Machine::optimizerUpdate(OptimizerUpdateOp op) {
  int64_t step = get(op.getStep());
  if (step == 0)
    return;
  SmallVector<Word *> entries;
  SmallVector<std::string> names{getStorageName(Role::gradients, op.getGroup())};
  for (StorageOp storage : getTrainedStorages(module, op.getGroup()))
    names.push_back(storage.getSymName().str());
  for (const std::string &name : names) {
    Store *store = find(name);
    if (!store)
      return fail(op, "a group without gradients");
    if (int64_t(op.getLast()) > store->chunks)
      return fail(op, "chunks that there are not");
    entries.push_back(entryOf(op, store, ValueRange(op.getLayer()), nullptr));
    if (!entries.back())
      return;
  }
  for (int64_t c = op.getFirst(); c < int64_t(op.getLast()); ++c) {
    SmallVector<Word *> parts;
    for (Word *entry : entries)
      parts.push_back(entry + c);
    update(op, op.getGroup(), step, parts);
  }
}

void Machine::execute(Operation *op) {
  llvm::TypeSwitch<Operation *>(op)
      .Case([&](ReadOp read) {
        Store *store = find(read.getStorage());
        Word *words = entryOf(op, store, read.getIndices(), nullptr);
        Tensor &tensor = tensors[read.getValue()];
        tensor.entry = true;
        tensor.words.assign(store->chunks, Word());
        for (int64_t c = 0; c < store->chunks; ++c)
          use(op, tensor.words[c] = words ? words[c] : garbage());
      })
      .Case([&](WriteOp write) {
        Store *store = find(write.getStorage());
        const Tensor &tensor = tensors[write.getValue()];
        if (Word *words = entryOf(op, store, write.getIndices(), nullptr))
          for (int64_t c = 0; c < store->chunks; ++c)
            words[c] = tensor.at(c);
      })
      .Case([&](AccumulateOp accumulate) {
        Store *store = find(accumulate.getStorage());
        const Tensor &tensor = tensors[accumulate.getValue()];
        if (Word *words = entryOf(op, store, accumulate.getIndices(), nullptr))
          for (int64_t c = 0; c < store->chunks; ++c) {
            if (test(accumulate.getInitial()))
              words[c] = {0, true};
            add(op, words[c], tensor.at(c).value);
          }
      })
      .Case([&](CallOp call) { this->call(call); })
      .Case([&](OptimizerUpdateOp update) { optimizerUpdate(update); })
      .Case([&](GradientNormOp norm) {
        Store *store = find(getStorageName(Role::gradients, norm.getGroup()));
        if (Word *words = store ? entryOf(op, store, norm.getLayer(), nullptr) : nullptr)
          normSum += hashOf(op, 5, {Words(words, words + store->chunks), true});
      })
      .Case([&](FinishNormOp norm) {
        norms[get(norm.getStep())] = mix(normSum, 6);
        normSum = 0;
      })
      .Case([&](PrefetchOp prefetch) {
        open(op, prefetch.getStorage(), prefetch.getIndices(), prefetch.getFirst(),
             prefetch.getCount(), /*bring=*/true, test(prefetch.getZero()));
      })
      .Case([&](CreateOp create) {
        open(op, create.getStorage(), create.getIndices(), create.getFirst(), create.getCount(),
             /*bring=*/false, /*zero=*/false);
      })
      .Case([&](OffloadOp offload) { this->offload(offload); })
      .Case([&](CopyOp copy) { this->copy(copy); })
      .Case([&](ReleaseOp release) { this->release(release); })
      .Case([&](LaunchOp launch) { this->launch(launch); })
      .Case([&](UpdateOp update) { chunkUpdate(update); })
      .Case([&](NormOp norm) {
        if (BufferRef buffer = lookup(op, norm.getGradient())) {
          expectSpace(op, *buffer, updateSpace);
          normSum += hashOf(op, 5, contentsOf(*buffer));
        }
      });
}

} // namespace boa::random
