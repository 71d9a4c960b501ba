//===- Interpreter.h - What a program computes, on tiny data ----*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Runs entry points of the step and of the storage phase on words: each chunk of each
// entry is one. A second opinion on what passes/analysis decides, so it shares nothing
// with it: it is written from dialect/*.td and runtime/abi/abi.h.
//
// What is undefined is garbage, which differs from one seed to another, and is
// marked, so that its use is known. Where a rule of runtime/abi/abi.h is broken the first
// such is kept in words; what happens then is garbage, too.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_TEST_PASSES_RANDOM_INTERPRETER_H
#define BOA_TEST_PASSES_RANDOM_INTERPRETER_H

#include "dialect/Boa.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/MapVector.h"

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace boa::random {

/// A hash of two; what it is of does not cancel in sums.
uint64_t mix(uint64_t a, uint64_t b);

/// What a chunk holds.
struct Word {
  uint64_t value = 0;
  bool defined = false;
};
using Words = std::vector<Word>;

/// A trainer's memory, and a run of entry points on it.
class Machine {
public:
  /// Trained state is there; all else is garbage of the seed.
  Machine(mlir::ModuleOp module, uint64_t garbage);

  /// Other tokens and targets than before, as a trainer brings for each step.
  void bringData();
  void run(StepOp entry, int64_t step, int64_t pending);

  /// What the homes of a storage hold, undefined words as one value.
  uint64_t contents(StorageOp storage) const;
  /// Sums of all that kernels, and updates, were given so far: in any order.
  uint64_t kernels = 0, updates = 0;

  std::string undefined; // the first use of what nothing wrote
  std::string fault;     // the first broken rule
  /// The most slots live at once, by storage and the number of its pool.
  std::map<std::pair<std::string, size_t>, int64_t> peaks;
  /// How often a retained copy was taken up, and slots were taken.
  int64_t takenUp = 0, slotsTaken = 0;

private:
  struct Store {
    StorageOp op;
    int64_t chunks;
    Words home;              // entry by entry
    std::vector<Tier> tiers; // as home
    std::vector<PoolAttr> pools;
    std::vector<int64_t> live; // by pool
  };
  struct Buffer {
    Store *store;
    int64_t entry, first, count;
    Space space;
    bool home = false, released = false;
    int pool = -1;
    Words own; // unless home
    Word &at(int64_t chunk) {
      return home ? store->home[entry * store->chunks + chunk] : own[chunk - first];
    }
    bool overlaps(const Buffer &other) const {
      return store == other.store && entry == other.entry && first < other.first + other.count &&
             other.first < first + count;
    }
  };
  using BufferRef = std::shared_ptr<Buffer>;
  /// The value of a tensor: of an entry's chunks, or one for as many as it will fill.
  struct Tensor {
    Words words;
    bool entry = false;
    Word at(int64_t chunk) const;
  };

  int64_t get(mlir::Value value);
  bool test(mlir::Value value) { return value && get(value) != 0; }
  void run(mlir::Block &block);
  void run(LoopOp loop);
  void execute(mlir::Operation *op);
  Word garbage();
  void fail(mlir::Operation *op, const llvm::Twine &why);
  void use(mlir::Operation *op, const Word &word);

  Store *find(llvm::StringRef name);
  /// The first word of an entry; null where that is out of bounds.
  Word *entryOf(mlir::Operation *op, Store *store, mlir::ValueRange indices, int64_t *number);
  uint64_t hashOf(mlir::Operation *op, uint64_t hash, const Tensor &tensor);
  void add(mlir::Operation *op, Word &word, uint64_t value);
  /// One chunk: gradient, weights, lower halves if there are any, states.
  void update(mlir::Operation *op, llvm::StringRef group, int64_t step,
              llvm::ArrayRef<Word *> parts);

  void call(CallOp op);
  void optimizerUpdate(OptimizerUpdateOp op);
  void open(mlir::Operation *op, llvm::StringRef storage, mlir::ValueRange indices,
            mlir::Value first, int64_t count, bool bring, bool zero);
  void takeSlot(mlir::Operation *op, Buffer &buffer);
  void freeSlot(Buffer &buffer);
  int poolFor(const Store &store, int64_t count, Space space) const;
  /// Live slots of a pool, of all storages that share it.
  int64_t &liveIn(Store &store, int pool) {
    const int64_t shared = store.pools[pool].getShared();
    return shared ? sharedLive[shared] : store.live[pool];
  }
  void stage(mlir::Operation *op, Buffer &buffer, int64_t entry, int64_t first, int64_t count);
  void dropRetained(const Buffer &buffer, int64_t entry, int64_t first, int64_t count, bool space);
  BufferRef lookup(mlir::Operation *op, mlir::Value value);
  Tensor contentsOf(Buffer &buffer);
  void expectSpace(mlir::Operation *op, const Buffer &buffer, Space space);
  void offload(OffloadOp op);
  void copy(CopyOp op);
  void release(ReleaseOp op);
  void launch(LaunchOp op);
  void chunkUpdate(UpdateOp op);

  mlir::ModuleOp module;
  bool separate = false, direct = false;
  Space updateSpace = Space::host;
  uint64_t garbageState;
  llvm::MapVector<llvm::StringRef, std::unique_ptr<Store>> stores;
  llvm::DenseMap<mlir::Value, int64_t> numbers;
  llvm::DenseMap<mlir::Value, std::pair<bool, bool>> ends; // at first, at last
  llvm::DenseMap<mlir::Value, Tensor> tensors;
  llvm::DenseMap<mlir::Value, BufferRef> buffers;
  std::vector<BufferRef> live, retained;
  std::map<int64_t, int64_t> sharedLive; // slots, by the number of a shared pool
  uint64_t normSum = 0;
  std::map<int64_t, uint64_t> norms;
  StepOp previous;
  int64_t batches = 0;
};

/// What somebody sees of a program, in what a trainer runs.
struct Observation {
  std::string what;
  uint64_t value;
  /// While updates may be outstanding: a split of the optimizer changes it.
  bool pending;
};
struct Observations {
  std::vector<Observation> all;
  std::string undefined, fault;
  std::map<std::pair<std::string, size_t>, int64_t> peaks;
  int64_t takenUp = 0, slotsTaken = 0;
};

/// Runs all that a trainer does: steps, drains, evaluations, from the beginning and after a
/// commit.
Observations observe(mlir::ModuleOp module, uint64_t garbage = 1);

/// The first in which they differ, in words; empty: none. `pending`: also in what is seen
/// while updates are outstanding.
std::string findDifference(const Observations &before, const Observations &after, bool pending);

} // namespace boa::random

#endif // BOA_TEST_PASSES_RANDOM_INTERPRETER_H
