//===- dealer.h - Which path a chunk goes to --------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_STATE_DEALER_H
#define BOA_RUNTIME_STATE_DEALER_H

#include "runtime/abi/program.h"

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace boa {

/// Deals chunks to the paths in proportion to their weights. Each storage is in proportion by
/// itself. A storage with too few chunks keeps the proportion of all storages together.
class Dealer {
public:
  explicit Dealer(std::vector<double> the_weights)
      : weights(std::move(the_weights)), total(weights.size()), storage(weights.size()) {}
  void NextStorage() { storage.assign(weights.size(), 0); }
  size_t Deal(int64_t bytes) {
    size_t best = 0;
    for (size_t path = 1; path < weights.size(); ++path)
      if (Load(path, bytes) < Load(best, bytes))
        best = path;
    storage[best] += double(bytes);
    total[best] += double(bytes);
    return best;
  }

private:
  std::pair<double, double> Load(size_t path, int64_t bytes) const {
    return {(storage[path] + double(bytes)) / weights[path],
            (total[path] + double(bytes)) / weights[path]};
  }
  std::vector<double> weights, total, storage;
};

/// The weights of a machine's paths: the bytes that each moves in the same time. All are equal
/// unless the machine gives the limits of every path.
std::vector<double> StripeWeights(const MachineSettings &, size_t paths);

} // namespace boa

#endif // BOA_RUNTIME_STATE_DEALER_H
