//===- pool.h - Free space of a data file -----------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_STATE_POOL_H
#define BOA_RUNTIME_STATE_POOL_H

#include <cstdint>
#include <iterator>
#include <map>
#include <optional>

namespace boa {

/// The ranges of a file that nothing stands in; neighbours are one range.
///
/// Runs are taken from the lowest place where they fit. Between two commits all of
/// a state is written once, in the same order each time, so what a commit gives
/// back is what the next one takes, and nothing is scattered.
class Pool {
public:
  void Give(int64_t offset, int64_t bytes) {
    if (bytes <= 0)
      return;
    auto next = ranges.lower_bound(offset);
    if (next != ranges.end() && next->first == offset + bytes) {
      bytes += next->second;
      next = ranges.erase(next);
    }
    if (next != ranges.begin()) {
      auto before = std::prev(next);
      if (before->first + before->second == offset) {
        before->second += bytes;
        return;
      }
    }
    ranges[offset] = bytes;
  }

  /// The lowest place for `bytes`.
  std::optional<int64_t> Take(int64_t bytes) {
    for (auto range = ranges.begin(); range != ranges.end(); ++range)
      if (range->second >= bytes)
        return Cut(range, range->first, bytes);
    return std::nullopt;
  }

  /// The highest one.
  std::optional<int64_t> TakeLast(int64_t bytes) {
    for (auto range = ranges.rbegin(); range != ranges.rend(); ++range)
      if (range->second >= bytes)
        return Cut(std::prev(range.base()), range->first + range->second - bytes, bytes);
    return std::nullopt;
  }

private:
  int64_t Cut(std::map<int64_t, int64_t>::iterator range, int64_t offset, int64_t bytes) {
    int64_t begin = range->first, end = range->first + range->second;
    ranges.erase(range);
    if (offset > begin)
      ranges[begin] = offset - begin;
    if (offset + bytes < end)
      ranges[offset + bytes] = end - offset - bytes;
    return offset;
  }

  std::map<int64_t, int64_t> ranges; // bytes by offset
};

} // namespace boa

#endif // BOA_RUNTIME_STATE_POOL_H
