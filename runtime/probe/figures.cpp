//===- figures.cpp - What was measured of a machine -----------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/probe/figures.h"

#include <algorithm>
#include <utility>

namespace boa {

Figure MedianOf(std::vector<double> samples, std::string how) {
  std::sort(samples.begin(), samples.end());
  const size_t count = samples.size();
  const double median = (samples[(count - 1) / 2] + samples[count / 2]) / 2;
  const double quarters = samples[count - 1 - count / 4] - samples[count / 4];
  return {median, median > 0 ? quarters / median : 0, std::move(how)};
}

} // namespace boa
