//===- order.h - The order of windows and of sources ------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Orders as functions of a position, without a state. So a run that is resumed goes on where it
// stopped, and no list of windows is in memory.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_DATA_ORDER_H
#define BOA_RUNTIME_DATA_ORDER_H

#include <cstddef>
#include <cstdint>
#include <vector>

namespace boa {

/// The value at `position` of a permutation of 0 .. count - 1 that the key names.
int64_t Permute(uint64_t key, int64_t position, int64_t count);

/// The window at a position of a source: all windows once in each epoch, each epoch in an order of
/// its own.
int64_t WindowAt(uint64_t seed, int64_t position, int64_t windows);

/// Which of several sources each sample is from. Of as many successive samples as the sum of
/// shares, each source has its share exactly. They are spread evenly; the seed moves the beginning.
class Mixture {
public:
  Mixture() = default;
  Mixture(std::vector<int64_t> shares, uint64_t seed);

  struct Place {
    size_t source = 0;
    int64_t position = 0; // among the samples of that source
  };
  Place At(int64_t sample) const;
  /// Samples of each source among the first `samples`.
  std::vector<int64_t> Count(int64_t samples) const;

private:
  std::vector<int64_t> shares = {1};
  std::vector<int64_t> left;   // sum of the shares from each source on
  std::vector<int64_t> phases; // each below `left`
};

} // namespace boa

#endif // BOA_RUNTIME_DATA_ORDER_H
