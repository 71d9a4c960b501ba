//===- ChunkMap.h - A value for each chunk ----------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A layer has thousands of chunks, and most are alike. The map keeps and computes one value for
// each run of equal chunks. (llvm::IntervalMap does that, too, but it cannot be copied.)
//
//===----------------------------------------------------------------------===//
#ifndef BOA_PASSES_ANALYSIS_CHUNKMAP_H
#define BOA_PASSES_ANALYSIS_CHUNKMAP_H

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"

#include <cassert>
#include <cstdint>

namespace boa {

/// A value for each of some chunks that follow one another. Equal maps have equal runs.
template <typename T> class ChunkMap {
public:
  /// Neighbours with the same value. They are maximal, unless a query has cut them.
  struct Run {
    int64_t first, count;
    T value;
  };

  ChunkMap() = default;
  ChunkMap(int64_t first, int64_t count, T value) : end(first + count), starts{{first, value}} {}

  /// The run that holds `chunk`, from there on.
  Run from(int64_t chunk) const {
    auto next = llvm::upper_bound(starts, chunk,
                                  [](int64_t at, const Start &start) { return at < start.first; });
    assert(next != starts.begin() && chunk < end && "no such chunk");
    return {chunk, (next == starts.end() ? end : next->first) - chunk, std::prev(next)->second};
  }

  /// Calls `visit(run)` for the runs that [first, first + count) consists of, in order.
  template <typename Visit> void forEach(int64_t first, int64_t count, Visit visit) const {
    for (int64_t last = first + count; first < last;) {
      Run run = from(first);
      run.count = std::min(run.count, last - first);
      visit(run);
      first += run.count;
    }
  }

  void set(int64_t first, int64_t count, T value) {
    int64_t last = first + count;
    assert(count > 0 && last <= end && "no such chunks");
    auto startsBefore = [](const Start &start, int64_t at) { return start.first < at; };
    auto begin = llvm::lower_bound(starts, first, startsBefore);
    auto past = llvm::lower_bound(starts, last, startsBefore);
    llvm::SmallVector<Start, 2> now;
    if (begin == starts.begin() || std::prev(begin)->second != value)
      now.push_back({first, value});
    bool cut = last < end && (past == starts.end() || past->first != last);
    if (cut && std::prev(past)->second != value)
      now.push_back({last, std::prev(past)->second});
    else if (!cut && past != starts.end() && past->second == value)
      ++past; // goes on
    auto at = starts.erase(begin, past);
    starts.insert(at, now.begin(), now.end());
  }

  /// Takes chunks [first, first + count) of `other`.
  void copy(const ChunkMap &other, int64_t first, int64_t count) {
    other.forEach(first, count, [&](Run run) { set(run.first, run.count, run.value); });
  }

  bool operator==(const ChunkMap &other) const {
    return end == other.end && starts == other.starts;
  }

private:
  using Start = std::pair<int64_t, T>;
  int64_t end = 0;
  llvm::SmallVector<Start, 2> starts; // of the runs
};

} // namespace boa

#endif // BOA_PASSES_ANALYSIS_CHUNKMAP_H
