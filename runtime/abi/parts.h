//===- parts.h - A parameter in parts of one --------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The entries of a group may be parts of one parameter, equal and in order along one dimension.
// Files, states and users know the whole. Here is all arithmetic between its elements and those
// of a part.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_ABI_PARTS_H
#define BOA_RUNTIME_ABI_PARTS_H

#include "runtime/abi/program.h"

#include "absl/status/status.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <numeric>
#include <vector>

namespace boa {

class Parts {
public:
  /// `shape`: of a part. `split`: the dimension, or -1: every entry is a whole by itself.
  Parts(const std::vector<int64_t> &shape, int64_t split, int64_t entries)
      : shape(shape), split(split), count(split < 0 ? 1 : entries),
        run(std::accumulate(shape.begin() + std::max<int64_t>(split, 0), shape.end(), int64_t{1},
                            std::multiplies<>())) {}
  Parts(const Group &group, const Parameter &parameter)
      : Parts(parameter.shape, parameter.split, group.count) {}

  std::vector<int64_t> WholeShape() const {
    std::vector<int64_t> whole = shape;
    if (split >= 0)
      whole[size_t(split)] *= count;
    return whole;
  }

  /// Calls `take(entry, first, count)` for elements that stand side by side in the whole and in a
  /// part: [first, first + count) of the part, or the whole with `entry` unchanged. Together they
  /// are the elements [first, first + count) of a part, in order.
  template <typename Take>
  absl::Status ForEachOfPart(int64_t entry, int64_t first, int64_t elements, Take take) const {
    if (split < 0)
      return take(entry, first, elements);
    for (int64_t at = first, end = first + elements, next; at < end; at = next) {
      next = std::min(end, (at / run + 1) * run);
      if (absl::Status status =
              take(int64_t{0}, (at / run * count + entry) * run + at % run, next - at);
          !status.ok())
        return status;
    }
    return absl::OkStatus();
  }
  /// The other way, of elements [first, first + count) of the whole: with the entry of each run,
  /// and its first element there.
  template <typename Take>
  absl::Status ForEachOfWhole(int64_t entry, int64_t first, int64_t elements, Take take) const {
    if (split < 0)
      return take(entry, first, elements);
    for (int64_t at = first, end = first + elements, next; at < end; at = next) {
      const int64_t which = at / run;
      next = std::min(end, (which + 1) * run);
      if (absl::Status status = take(which % count, which / count * run + at % run, next - at);
          !status.ok())
        return status;
    }
    return absl::OkStatus();
  }

private:
  std::vector<int64_t> shape;
  int64_t split, count;
  int64_t run; // elements that stand side by side
};

/// The entries of a group that are parameters by themselves.
inline int64_t CountWholes(const Group &group) { return IsOfParts(group) ? 1 : group.count; }

} // namespace boa

#endif // BOA_RUNTIME_ABI_PARTS_H
