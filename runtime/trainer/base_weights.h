//===- base_weights.h - Weights of another state ----------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_TRAINER_BASE_WEIGHTS_H
#define BOA_RUNTIME_TRAINER_BASE_WEIGHTS_H

#include "runtime/abi/program.h"
#include "runtime/io/file_system.h"
#include "runtime/state/commit_reader.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>

namespace boa {

/// The master weights of a commit, by parameter. Chunks, offsets, weight type, paths and optimizer
/// of that state may be others than the program's.
///
/// Ownership: it owns the opened state, which nobody trains meanwhile; the file system outlives it.
/// Threads: one. Errors name the state, and the parameter that does not fit.
class BaseWeights {
public:
  /// `from`: the directory of a state, or DIR@STEP for an earlier commit. FailedPrecondition
  /// unless it has the parameters of the program, each of the same shape.
  static absl::StatusOr<std::unique_ptr<BaseWeights>> Open(FileSystem &, const Program &,
                                                           const std::string &from);

  BaseState Origin() const { return commit->Origin(); }
  const Computation &computation() const { return commit->computation(); }

  /// Elements [first, first + count) of a parameter in an entry of its group.
  absl::Status Read(const Group &, int64_t entry, const Parameter &, int64_t first, int64_t count,
                    float *values);

private:
  /// The chunk of a table that was read last.
  struct Held {
    const SavedTable *table = nullptr;
    size_t index = 0;
    std::unique_ptr<char, decltype(&std::free)> data{nullptr, &std::free};
  };

  explicit BaseWeights(std::unique_ptr<CommitReader> commit) : commit(std::move(commit)) {}
  absl::Status Hold(Held &, const SavedTable &, size_t index);

  const std::unique_ptr<CommitReader> commit;
  Held high, low; // f32, or its halves
};

} // namespace boa

#endif // BOA_RUNTIME_TRAINER_BASE_WEIGHTS_H
