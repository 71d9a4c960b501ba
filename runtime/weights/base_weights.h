//===- base_weights.h - Weights of another state ----------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_WEIGHTS_BASE_WEIGHTS_H
#define BOA_RUNTIME_WEIGHTS_BASE_WEIGHTS_H

#include "runtime/abi/program.h"
#include "runtime/io/file_system.h"
#include "runtime/state/commit_reader.h"
#include "runtime/weights/check_parameters.h"
#include "runtime/weights/saved_values.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

namespace boa {

/// The master weights of a commit, by parameter. Chunks, offsets, weight type, paths and optimizer
/// of that state may be others than the program's.
///
/// Ownership: it owns the opened commit (CommitReader); the file system outlives it.
/// Threads: one. Errors name the state, and the parameter that does not fit.
class BaseWeights {
public:
  /// `from`: the directory of a state, or a commit of it (FindCommit). FailedPrecondition
  /// unless it has the parameters of the program, each of the same shape.
  static absl::StatusOr<std::unique_ptr<BaseWeights>>
  Open(FileSystem &, const Program &, const std::string &from, Adapters = Adapters::present);

  BaseState Origin() const { return commit->Origin(); }
  const Computation &computation() const { return commit->computation(); }
  /// The settings of its training (CommitRecord::extra).
  const std::map<std::string, std::string> &settings() const {
    return commit->saved().record.extra;
  }

  /// Whether it has the parameter: it may lack those of new adapters.
  bool Has(const Group &group, const Parameter &parameter) const {
    return saved.Has(group, parameter);
  }
  /// Elements [first, first + count) of a parameter that it has, in an entry of its group.
  absl::Status Read(const Group &group, int64_t entry, const Parameter &parameter, int64_t first,
                    int64_t count, float *values) {
    return saved.ReadMaster(group, entry, parameter, first, count, values);
  }

private:
  explicit BaseWeights(std::unique_ptr<CommitReader> opened)
      : commit(std::move(opened)),
        saved(commit->parameters(), commit->saved(),
              [reader = commit.get()](const SavedTable &table, size_t index, void *data) {
                return reader->Read(table, index, data);
              }) {}

  const std::unique_ptr<CommitReader> commit;
  SavedValues saved;
};

} // namespace boa

#endif // BOA_RUNTIME_WEIGHTS_BASE_WEIGHTS_H
