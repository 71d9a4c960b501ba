//===- updates.h - Updates and norms ----------------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The optimizer's queue, on the host. Where a GPU does the work, the host still makes the same
// decisions. Each update checks that its results are finite, and each norm checks the gradients.
// So a model that has lost its numbers is never committed. Where `nonfinite` is "skip", a step
// whose norm is not finite is left out: none of its updates, delayed ones included, changes a
// bit.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_DEVICE_UPDATES_H
#define BOA_RUNTIME_DEVICE_UPDATES_H

#include "runtime/abi/program.h"
#include "runtime/device/work.h"
#include "runtime/support/mutex.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

namespace boa {

/// The numbers that an update of a step takes.
struct UpdateNumbers {
  float rate = 0, gradient_scale = 1; // the last is the factor of clipping
  float scalars[BOA_MOST_SCALARS] = {};
};

class Updates {
public:
  /// The optimizer may be null if the program updates nothing.
  Updates(const Program &, const boa_optimizer *);

  /// Called one after another, in the order of the program. `addresses` are those of the chunk, in
  /// the order of Work::buffers; null where there is no such tensor.
  absl::Status Update(const Work &, const std::vector<char *> &addresses);
  void Norm(const Work &, const float *gradient);
  absl::Status FinishNorm(int64_t step);

  // The same in parts, for elements that the host does not process.

  /// Of an update of this step. Nothing: the step is left out.
  absl::StatusOr<std::optional<UpdateNumbers>> Numbers(int64_t step) const;
  /// Of the bits by which an update rounds states.
  uint32_t Seed(const Work &) const;
  /// A parameter's elements in the chunks of a work, counted from the start of these chunks.
  struct Piece {
    int64_t begin, end;
    const Parameter &parameter;
  };
  std::vector<Piece> PiecesOf(const Work &) const;
  /// Sums of squares of those pieces.
  void AddNorm(const Work &, const std::vector<double> &squares);
  /// After an update: returns an error that names a tensor which is not finite, if there is one.
  /// Called from any thread.
  absl::Status CheckFinite(const Work &, const std::vector<char *> &addresses) const;

  /// From any thread: device.h.
  std::map<int64_t, double> TakeNorms();

private:
  /// Elements of an entry with the same factor of the learning rate and weight decay.
  struct Range {
    int64_t begin, end;
    float lr_scale, decay;
  };
  /// The norm of some chunks of a gradient.
  struct GradientNorm {
    double squares = 0;
    std::string not_finite; // the first such tensor
  };
  bool StateIsFinite(const Group &, const std::vector<char *> &addresses, int64_t i) const;

  const Program &program;
  const boa_optimizer *const optimizer;
  std::vector<std::vector<Range>> ranges; // by group
  // Of this step's gradients, by group, entry and first chunk.
  std::map<std::tuple<int32_t, int64_t, int32_t>, GradientNorm> norms;
  std::map<int64_t, double> clip_factors; // by step
  Mutex mutex;
  std::map<int64_t, double> step_norms ABSL_GUARDED_BY(mutex); // for TakeNorms
};

} // namespace boa

#endif // BOA_RUNTIME_DEVICE_UPDATES_H
