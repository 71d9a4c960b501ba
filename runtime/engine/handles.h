//===- handles.h - The program's handles, and retained copies ---*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A handle (boa_buffer) names chunks of a buffer. It holds a number and the number's
// generation, so a handle that was dropped is never taken for a later one. A handle that
// the program released with `retain` is kept for a later request for the same chunks.
//
// Ownership: the table of handles and the retained ones. Buffers belong to Slots.
// Threads: none of its own, no lock; the engine's mutex guards it.
// Errors: Lookup of a dropped handle returns null.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_ENGINE_HANDLES_H
#define BOA_RUNTIME_ENGINE_HANDLES_H

#include "runtime/abi/abi.h"

#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

namespace boa {

class BufferHandles {
public:
  /// The chunks of a buffer that a handle names.
  struct View {
    uint32_t buffer = 0, generation = 1;
    int32_t first = 0, count = 0;
    bool Holds(int32_t begin, int32_t chunks) const {
      return begin >= first && chunks > 0 && begin + chunks <= first + count;
    }
  };

  /// `separate`: copies in different spaces are different.
  explicit BufferHandles(bool separate) : separate(separate) {}

  boa_buffer New(uint32_t buffer, int32_t first, int32_t count);
  void Drop(boa_buffer);
  /// Valid until the next call of New.
  const View *Lookup(boa_buffer) const;

  /// Keeps a handle to these chunks.
  void Retain(boa_buffer, int32_t storage, int64_t entry, int32_t first, int32_t count,
              int32_t space);
  /// Takes out the handle to exactly these chunks; 0: none is retained.
  boa_buffer TakeRetained(int32_t storage, int64_t entry, int32_t first, int32_t count,
                          int32_t space);
  /// Takes out the handles that share a chunk with these: in one space of separate memories, or
  /// (-1) in both.
  std::vector<boa_buffer> TakeOverlapping(int32_t storage, int64_t entry, int32_t first,
                                          int32_t count, int32_t space);
  /// Takes out all retained handles.
  std::vector<boa_buffer> TakeAll();

private:
  /// Storage, entry, first chunk, count, space (0 if memory is unified).
  using Key = std::tuple<int32_t, int64_t, int32_t, int32_t, int32_t>;

  const bool separate;
  std::vector<View> views{1};
  std::vector<uint32_t> unused;
  std::map<Key, boa_buffer> retained;
};

} // namespace boa

#endif // BOA_RUNTIME_ENGINE_HANDLES_H
