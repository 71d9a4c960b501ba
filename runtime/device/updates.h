//===- updates.h - Updates and norms on the host ----------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The optimizer's queue. Each update looks whether what it made is finite, and each
// norm whether the gradients are: a model that has lost its numbers is never committed.
// Where `nonfinite` is "skip", a step whose norm is not finite is left out: none of its
// updates, delayed ones included, changes a bit.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_DEVICE_UPDATES_H
#define BOA_RUNTIME_DEVICE_UPDATES_H

#include "runtime/engine/work.h"
#include "runtime/program.h"

#include "absl/status/status.h"

#include <map>
#include <mutex>
#include <string>
#include <tuple>
#include <vector>

namespace boa {

struct UpdateRange;

class Updates {
public:
  explicit Updates(const Program &);

  /// One after another, in the order of the program. `addresses` of the chunk:
  /// weights, low, momentum, variance, gradient; null where there is none.
  absl::Status Update(const Work &, char *const (&addresses)[5]);
  void Norm(const Work &, const float *gradient);
  absl::Status FinishNorm(int64_t step);

  /// From any thread: device.h.
  std::vector<int64_t> TakeSkipped();

private:
  /// Elements with the same weight decay.
  struct DecayRange {
    int64_t begin, end;
    bool decay;
  };
  /// Of some chunks of a gradient.
  struct GradientNorm {
    double squares = 0;
    std::string not_finite; // the first such tensor
  };
  absl::Status NotFinite(const Work &, const UpdateRange &range, int64_t first) const;

  const Program &program;
  std::vector<std::vector<DecayRange>> decay; // by group
  // Of this step's gradients, by group, entry and first chunk.
  std::map<std::tuple<int32_t, int64_t, int32_t>, GradientNorm> norms;
  std::map<int64_t, double> clip_factors; // by step
  std::mutex mutex;
  std::vector<int64_t> left_out; // steps, for TakeSkipped; under the mutex
};

} // namespace boa

#endif // BOA_RUNTIME_DEVICE_UPDATES_H
