//===- loss_curve.cpp - Losses over the steps of a run --------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/view/loss_curve.h"

#include <cmath>
#include <utility>

namespace boa {

/// Joins a point to the one before it if both are of the same `width` steps.
void LossCurve::Append(const Point &point) {
  if (list.empty() || (list.back().first - 1) / width != (point.first - 1) / width) {
    list.push_back(point);
    return;
  }
  Point &into = list.back();
  into.last = point.last;
  into.sum += point.sum;
  into.count += point.count;
}

void LossCurve::Add(int64_t step, double loss) {
  if (!std::isfinite(loss))
    return;
  Append({step, step, loss, 1});
  while (list.size() > kMostPoints) {
    width *= 2;
    for (const Point &point : std::exchange(list, {}))
      Append(point);
  }
}

} // namespace boa
