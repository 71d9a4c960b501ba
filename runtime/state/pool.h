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
#include <set>
#include <utility>

namespace boa {

/// The free ranges of a file. Neighbours are one range.
///
/// A run takes the lowest range in which it fits. Between two commits a trainer writes the whole
/// state once, always in the same order. So the next commit takes the ranges that the last one
/// gave back, and nothing is scattered.
///
/// Ownership: it owns only its lists. Threads: one at a time. Errors: none; the caller gives
/// only ranges that are not free already.
class Pool {
public:
  void Give(int64_t offset, int64_t bytes) {
    if (bytes <= 0)
      return;
    auto next = ranges.lower_bound(offset);
    if (next != ranges.end() && next->first == offset + bytes) {
      bytes += next->second;
      next = Remove(next);
    }
    if (next != ranges.begin()) {
      auto before = std::prev(next);
      if (before->first + before->second == offset) {
        offset = before->first;
        bytes += before->second;
        Remove(before);
      }
    }
    Add(offset, bytes);
  }

  /// The lowest place for `bytes`. If many ranges are too small, the smallest that fits.
  std::optional<int64_t> Take(int64_t bytes) {
    int tried = 0;
    for (auto range = ranges.begin(); range != ranges.end() && tried < kMostTried; ++range, ++tried)
      if (range->second >= bytes)
        return Cut(range, range->first, bytes);
    auto fit = by_size.lower_bound({bytes, 0});
    if (fit == by_size.end())
      return std::nullopt;
    return Cut(ranges.find(fit->second), fit->second, bytes);
  }

  /// The highest place for `bytes`.
  std::optional<int64_t> TakeLast(int64_t bytes) {
    for (auto range = ranges.rbegin(); range != ranges.rend(); ++range)
      if (range->second >= bytes)
        return Cut(std::prev(range.base()), range->first + range->second - bytes, bytes);
    return std::nullopt;
  }

private:
  int64_t Cut(std::map<int64_t, int64_t>::iterator range, int64_t offset, int64_t bytes) {
    int64_t begin = range->first, end = range->first + range->second;
    Remove(range);
    if (offset > begin)
      Add(begin, offset - begin);
    if (offset + bytes < end)
      Add(offset + bytes, end - offset - bytes);
    return offset;
  }

  void Add(int64_t offset, int64_t bytes) {
    ranges[offset] = bytes;
    by_size.insert({bytes, offset});
  }
  std::map<int64_t, int64_t>::iterator Remove(std::map<int64_t, int64_t>::iterator range) {
    by_size.erase({range->second, range->first});
    return ranges.erase(range);
  }

  static constexpr int kMostTried = 64;
  std::map<int64_t, int64_t> ranges;             // bytes by offset
  std::set<std::pair<int64_t, int64_t>> by_size; // bytes and offset of each
};

} // namespace boa

#endif // BOA_RUNTIME_STATE_POOL_H
