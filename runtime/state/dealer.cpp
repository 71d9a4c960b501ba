//===- dealer.cpp - Which path a chunk goes to ----------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/state/dealer.h"

namespace boa {

std::vector<double> StripeWeights(const MachineSettings &machine, size_t paths) {
  bool reads = machine.ssd.size() >= paths, writes = reads;
  for (size_t path = 0; path < paths && path < machine.ssd.size(); ++path) {
    reads &= machine.ssd[path].read > 0;
    writes &= machine.ssd[path].write > 0;
  }
  std::vector<double> weights(paths, 1);
  for (size_t path = 0; path < paths && (reads || writes); ++path) {
    double time = 0; // to read and write one byte
    if (reads)
      time += 1 / double(machine.ssd[path].read);
    if (writes)
      time += 1 / double(machine.ssd[path].write);
    weights[path] = 1 / time;
  }
  return weights;
}

} // namespace boa
