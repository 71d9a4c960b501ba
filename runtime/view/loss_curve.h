//===- loss_curve.h - Losses over the steps of a run ------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A curve has at most kMostPoints points, however long the run is. With more steps than that, a
// point is the mean of several.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_VIEW_LOSS_CURVE_H
#define BOA_RUNTIME_VIEW_LOSS_CURVE_H

#include <cstddef>
#include <cstdint>
#include <vector>

namespace boa {

class LossCurve {
public:
  static constexpr size_t kMostPoints = 512;

  struct Point {
    int64_t first = 0, last = 0; // steps
    double sum = 0;
    int64_t count = 0;
    double loss() const { return sum / double(count); }
  };

  /// Steps ascend. A loss that is not finite is left out.
  void Add(int64_t step, double loss);

  const std::vector<Point> &points() const { return list; }
  bool empty() const { return list.empty(); }
  int64_t steps_of_point() const { return width; }

private:
  void Append(const Point &);

  std::vector<Point> list;
  int64_t width = 1;
};

/// Of a training and its evaluations.
struct Losses {
  LossCurve training, validation;
};

} // namespace boa

#endif // BOA_RUNTIME_VIEW_LOSS_CURVE_H
