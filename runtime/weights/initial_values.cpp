//===- initial_values.cpp - Initial parameters ----------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/weights/initial_values.h"

#include "runtime/abi/parts.h"
#include "runtime/support/random.h"

#include <algorithm>
#include <cmath>

namespace boa {
namespace {

/// The two independent standard normal values number 2 * pair and 2 * pair + 1.
void NormalPair(uint64_t key, uint64_t pair, double &even, double &odd) {
  constexpr double kTwoPi = 6.28318530717958647692;
  const uint64_t hash = Hash({key, pair});
  // (0, 1], for the logarithm: the largest value is 6.7 deviations.
  const double radius = std::sqrt(-2 * std::log(((hash >> 32) + 1) * 0x1p-32));
  const double angle = kTwoPi * ((hash & 0xffffffff) * 0x1p-32);
  even = radius * std::cos(angle);
  odd = radius * std::sin(angle);
}

void FillNormal(uint64_t key, double deviation, int64_t first, int64_t count, float *values) {
  for (int64_t i = first; i < first + count;) {
    double pair[2];
    NormalPair(key, i / 2, pair[0], pair[1]);
    do
      values[i - first] = static_cast<float>(deviation * pair[i % 2]);
    while (++i % 2 != 0 && i < first + count);
  }
}

} // namespace

/// Of a whole parameter.
static void WholeValues(const Program &program, const Group &g, int64_t entry, const Parameter &p,
                        int64_t first, int64_t count, float *values) {
  const uint64_t key =
      Hash({static_cast<uint64_t>(program.train.seed), static_cast<uint64_t>(g.number),
            static_cast<uint64_t>(entry), static_cast<uint64_t>(p.number)});
  if (p.init == "normal") {
    FillNormal(key, p.init_scale, first, count, values);
  } else if (p.init == "uniform") {
    for (int64_t i = 0; i < count; ++i) {
      const double unit = Unit(Hash({key, static_cast<uint64_t>(first + i)}));
      values[i] = static_cast<float>(p.init_scale * (2 * unit - 1));
    }
  } else {
    std::fill_n(values, count, p.init == "ones" ? 1.0f : 0.0f);
  }
}

void InitialValues(const Program &program, int64_t group, int64_t entry, int64_t parameter,
                   int64_t first, int64_t count, float *values) {
  const Group &g = program.groups[group];
  const Parameter &p = g.parameters[parameter];
  (void)Parts(g, p).ForEachOfPart(entry, first, count,
                                  [&](int64_t whole, int64_t begin, int64_t elements) {
                                    WholeValues(program, g, whole, p, begin, elements, values);
                                    values += elements;
                                    return absl::OkStatus();
                                  });
}

} // namespace boa
