//===- Memory.h - Homes, spaces and the ways between them -------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Maps homes and spaces to the memories of a machine (runtime/abi/abi.h states the same for a
// run). On a machine of one memory the spaces are names in the accounts only.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_PASSES_ANALYSIS_MEMORY_H
#define BOA_PASSES_ANALYSIS_MEMORY_H

#include "dialect/Boa.h"

#include "llvm/ADT/STLFunctionalExtras.h"

namespace boa {

/// A way that bytes take between memories and SSD.
enum class Link { ssdRead, ssdWrite, toDevice, toHost };

class Memory {
public:
  explicit Memory(mlir::ModuleOp module);

  /// Whether device and host are two memories.
  bool isSeparate() const { return separate; }

  /// Chunks of an entry that live side by side in one memory. If device and host are one,
  /// the space is that of the first chunk.
  struct Piece {
    Space space;
    int64_t first, count;
  };
  /// The chunks [first, first + count) of an entry.
  struct Chunks {
    StorageOp storage;
    int64_t entry, first, count;
  };
  /// The pieces of these chunks that live in memory, in order.
  llvm::SmallVector<Piece, 2> getPieces(Chunks chunks) const;
  /// Whether a buffer of these chunks in `space` is their home itself: one piece there.
  bool isHome(Chunks chunks, Space space) const;
  /// Whether that is so for the same chunks of every entry.
  bool isHomeInAllEntries(StorageOp storage, int64_t first, int64_t count, Space space) const;

  /// The pool that gives a slot to a buffer of so many chunks in `space`: the smallest of that
  /// space that holds it; on one memory, otherwise, of the other space; null if there is none.
  PoolAttr getPool(StorageOp storage, Space space, int64_t chunks) const;

  /// Calls `move` for each link that chunks take from their homes to a buffer in `space` that is
  /// not their home, or back home.
  using Move = llvm::function_ref<void(Link, int64_t bytes)>;
  void transfer(Chunks chunks, Space space, bool home, Move move) const;
  /// Calls `move` for each link from one buffer to another.
  void copy(StorageOp storage, int64_t count, Space from, Space to, Move move) const;

  /// Whether these chunks pass through a slot in host memory on their way.
  bool isStaged(Chunks chunks, Space space) const;

private:
  /// Whether an SSD reaches a buffer there by way of the host's memory alone.
  bool passesHost(Space space) const { return separate && !direct && space == Space::device; }

  bool separate, direct;
};

} // namespace boa

#endif // BOA_PASSES_ANALYSIS_MEMORY_H
