//===- SlotPools.h - Buffers of a step and their slots ----------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The sizes in which the buffers of each storage are taken in each space, and the pools of
// slots that hold them: one for each size, or, to save memory, one for several.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_PASSES_STORAGE_SLOTPOOLS_H
#define BOA_PASSES_STORAGE_SLOTPOOLS_H

#include "dialect/Boa.h"
#include "runtime/abi/abi.h"

#include "llvm/ADT/DenseSet.h"

#include <deque>
#include <map>
#include <vector>

namespace boa {

struct SlotPool;

/// Buffers of one size that a storage takes in a space.
struct SlotNeed {
  StorageOp storage;
  Space space;
  int64_t chunks = 0;   // of a buffer
  int64_t streamed = 0; // buffers that a step takes one after another
  SlotPool *pool = nullptr;

  int64_t slotBytes() { return boa_slot_stride(storage.getChunkBytes() * chunks); }
};

struct SlotPool {
  size_t number = 0;
  llvm::SmallVector<SlotNeed *, 1> needs; // none: another pool has them
  int64_t live = 0, peak = 0;             // slots
  size_t place = 0;                       // among the pools that have live slots
  int64_t lookahead = 0;                  // slots to look ahead, wished for
  int64_t slots = 0;                      // given
  int64_t shared = 0;                     // its number among those of several storages

  Space space() const { return needs.front()->space; }
  Role role() const { return StorageOp(needs.front()->storage).getRole(); }
  /// The bytes of a slot: those of the largest need.
  int64_t slotBytes() const;
};

class SlotPools {
public:
  SlotNeed &get(StorageOp storage, Space space, int64_t chunks);
  /// The needs of one storage, sorted by space (the device first) and by size.
  llvm::SmallVector<SlotNeed *> of(StorageOp storage);

  void take(SlotNeed &need);
  void giveBack(SlotNeed &need);
  /// Is called before an entry point runs, whose slots are its own.
  void forgetLive();

  /// Makes one of the two pools of a space that save most bytes so, until `fits`. Returns false if
  /// no two are left that save any.
  bool shareUntil(Space space, llvm::function_ref<bool()> fits);

private:
  friend class SlotSharing;
  /// The numbers of slots of the pools that have some.
  using Moment = std::vector<std::pair<size_t, int64_t>>;

  void count(SlotPool &pool, int64_t change);
  void noteMoment();

  llvm::DenseMap<mlir::Operation *, std::map<std::pair<int, int64_t>, SlotNeed>> all;
  std::deque<SlotPool> pools;
  // Since a slot was given back, some were taken: never were more of these live since.
  bool rises = false;
  std::vector<SlotPool *> live; // pools that have live slots
  uint64_t liveHash = 0;        // of their numbers and slots
  // Each moment before slots are given back, once: micro-batches and layers repeat them.
  llvm::DenseSet<uint64_t> known;
  std::vector<Moment> moments;
};

} // namespace boa

#endif // BOA_PASSES_STORAGE_SLOTPOOLS_H
