//===- saved_values.h - Elements of a commit, by parameter ------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_WEIGHTS_SAVED_VALUES_H
#define BOA_RUNTIME_WEIGHTS_SAVED_VALUES_H

#include "runtime/abi/program.h"
#include "runtime/state/manifest.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace boa {

/// Master weights and states of the optimizer in a commit, by parameter. Chunks, places and the
/// type of weights may be others than the program's, and what is frozen.
///
/// Ownership: it owns a chunk of each role that was read, of columns in parts one of each part.
/// Commit and parameters outlive it. Threads: one. Errors: those of `read`.
class SavedValues {
public:
  /// Brings a chunk of a table, `index` by entry, then chunk, to memory aligned to 4096.
  using ReadChunk = std::function<absl::Status(const SavedTable &, size_t index, void *data)>;
  SavedValues(const std::vector<SavedParameter> &parameters, const SavedCommit &commit,
              ReadChunk read)
      : parameters(parameters), commit(commit), narrow(HasHalves(commit)), read(std::move(read)) {}

  /// Whether the commit has the parameter.
  bool Has(const Group &group, const Parameter &parameter) const {
    return Find(group, parameter) != nullptr;
  }
  /// Elements [first, first + count) of a parameter that it has, in an entry of the group.
  absl::Status ReadMaster(const Group &, int64_t entry, const Parameter &, int64_t first,
                          int64_t count, float *values);

  /// Whether the commit has a state of the optimizer for the parameter. Otherwise it is zero.
  bool HasState(const std::string &role, const Group &, const Parameter &) const;
  /// The same elements of that state, of `size` bytes each.
  absl::Status ReadState(const std::string &role, int64_t size, const Group &, int64_t entry,
                         const Parameter &, int64_t first, int64_t count, char *bytes);

private:
  /// The chunk that was read last.
  struct Held {
    const SavedTable *table = nullptr;
    size_t index = 0;
    std::unique_ptr<char, decltype(&std::free)> data{nullptr, &std::free};
  };

  const SavedParameter *Find(const Group &, const Parameter &) const;
  absl::StatusOr<const char *> Hold(const SavedTable &, size_t index, int64_t lane);
  /// Calls `take` with each run of elements in one chunk: where to hold it, its number in the
  /// table, its first element there, and the number of elements.
  template <typename Take>
  absl::Status ForEachRun(const Parts &, const SavedParameter &, const SavedTable &,
                          int64_t chunk_elements, int64_t entry, int64_t first, int64_t count,
                          Take take) const;

  const std::vector<SavedParameter> &parameters;
  const SavedCommit &commit;
  const bool narrow; // its weights are bf16
  const ReadChunk read;
  std::map<std::pair<std::string, int64_t>, Held> held; // by role; of parts also by entry
};

} // namespace boa

#endif // BOA_RUNTIME_WEIGHTS_SAVED_VALUES_H
