//===- slots.h - Homes, buffers and slots -----------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The layout of each memory, and the owner of each slot in it. Every memory holds the
// homes of chunks first (with the kernels' workspace), then the pools of slots, of one storage
// or shared by several. A slot holds one buffer. If a pool has no free slot, buffers wait for one
// in the order of their requests, which is program order.
//
// Ownership: a buffer has its slot from the grant until GiveBack. Numbers of buffers are
// used again; homes stay for ever. Memory is a space and an offset, never an address.
// Threads: none of its own, no lock; the engine's mutex guards it.
// Errors: none. PoolFor returns -1 if no slot is large enough.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_ENGINE_SLOTS_H
#define BOA_RUNTIME_ENGINE_SLOTS_H

#include "runtime/abi/program.h"
#include "runtime/device/work.h"

#include <cstdint>
#include <deque>
#include <functional>
#include <vector>

namespace boa {

class Slots {
public:
  /// Chunks [first, first + count) of an entry, in a slot or at home in memory.
  struct Buffer {
    int32_t storage = 0, first = 0, count = 0;
    int64_t entry = 0;
    Location base;              // nowhere until a slot is granted
    int32_t space = BOA_DEVICE; // where it is, or will be
    bool home = false;          // never released
    int32_t pool = -1, slot = -1;
    uint32_t opener = 0; // the command that waits for the slot
  };
  /// Chunks of an entry that lie side by side in one memory.
  struct Range {
    int32_t first = 0, count = 0, space = BOA_DEVICE;
  };

  explicit Slots(const Program &);

  // The arena.

  /// Size of a space. Unified memory belongs to the device alone.
  int64_t Bytes(int32_t space) const { return spaces[space].bytes; }
  /// The largest part of them in use: homes, the workspace, and of each pool the most slots
  /// that had a buffer at one time.
  int64_t PeakBytes(int32_t space) const;
  Location workspace() const { return scratch; }
  int64_t ChunkBytes(int32_t storage) const { return program.storages[storage].chunk_bytes(); }
  bool HasChunks(int32_t storage, int64_t entry, int32_t first, int32_t count) const;

  // Homes.

  bool LivesOnDisk(int32_t storage, int64_t entry, int32_t chunk) const {
    return LayoutOf(storage, entry).range_of[chunk] < 0;
  }
  /// The range that a chunk lives in; null: on SSD.
  const Range *RangeOf(int32_t storage, int64_t entry, int32_t chunk) const;
  /// The first chunk in (chunk, end] that lives in another range than this one.
  int32_t EndOfRange(int32_t storage, int64_t entry, int32_t chunk, int32_t end) const;
  /// The buffer of the range that a chunk lives in; 0: on SSD.
  uint32_t HomeBuffer(int32_t storage, int64_t entry, int32_t chunk) const;

  // Buffers.

  const Buffer &buffer(uint32_t id) const { return buffers[id]; }
  /// Homes have the numbers from 1 to this one.
  uint32_t home_count() const { return homes; }
  Location At(uint32_t buffer, int32_t chunk) const;
  /// The pool of the smallest slots that hold so many chunks: in this space, or else, where
  /// memory is unified, in the other.
  int32_t PoolFor(int32_t storage, int32_t count, int32_t space) const;
  /// A buffer without a slot. It will have one of this pool.
  uint32_t Open(int32_t storage, int64_t entry, int32_t first, int32_t count, int32_t space,
                int32_t pool);
  /// Asks for the buffer's slot. False: it waits, and `opener` with it.
  bool Request(uint32_t buffer, uint32_t opener);
  /// Ends a buffer that no command uses any more. Its slot is free, its number unused.
  void GiveBack(uint32_t buffer);
  /// Whenever a slot gets or loses a buffer: the buffer's storage, the space, and the bytes of all
  /// slots there that have a buffer of the storage.
  using Watcher = std::function<void(int32_t storage, int32_t space, int64_t bytes)>;
  void Watch(Watcher);
  /// Grants a free slot of the pool to the buffer that waits longest. Returns the opener of
  /// that buffer; 0: none waits, or no slot is free.
  uint32_t GrantNext(int32_t pool);

private:
  struct Pool {
    int32_t space = BOA_DEVICE;
    Location base;
    int64_t stride = 0;
    std::vector<int32_t> free;
    int32_t used = 0, most_used = 0;
    std::deque<uint32_t> waiting; // buffers, in program order
  };
  /// A pool, and the chunks of a storage that a slot of it holds.
  struct Member {
    int32_t pool = -1, chunks = 0;
  };
  /// Where the chunks of some entries live.
  struct Layout {
    std::vector<Range> ranges;
    std::vector<int32_t> range_of; // by chunk; -1: it lives on SSD
  };
  struct Entry {
    int32_t layout = 0;
    uint32_t first_home = 0; // the buffer of its first range; those of the others follow
  };
  /// The memory of a storage.
  struct Place {
    std::vector<Layout> layouts;
    std::vector<Entry> entries;
    std::vector<Member> pools; // the smaller ones first
  };
  struct Space {
    int64_t bytes = 0, fixed = 0; // fixed: homes and the workspace
  };

  const Layout &LayoutOf(int32_t storage, int64_t entry) const {
    const Place &place = places[storage];
    return place.layouts[place.entries[entry].layout];
  }
  Layout MakeLayout(const std::vector<Home> &) const;
  void LayOutHomes();
  void LayOutPools();
  Location Take(int32_t space, int64_t bytes);
  uint32_t NewBuffer(int32_t storage, int64_t entry, int32_t first, int32_t count, int32_t space);
  void Grant(Pool &, uint32_t buffer);
  void Tell(const Pool &, uint32_t buffer, int64_t sign);

  const Program &program;
  Space spaces[2];
  Location scratch;
  std::vector<Place> places; // by storage
  std::vector<Pool> pools;
  std::deque<Buffer> buffers{1};
  std::vector<uint32_t> unused;
  uint32_t homes = 0;
  Watcher watcher;
  std::vector<int64_t> in_use[2]; // by space and storage, if somebody watches
};

} // namespace boa

#endif // BOA_RUNTIME_ENGINE_SLOTS_H
