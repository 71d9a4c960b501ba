//===- run_log.h - The log of a training's runs -----------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The file of --log, for people. A run adds its settings once its state is open, then its messages
// but for the line of progress, and its end. Each line begins with the local time.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_VIEW_RUN_LOG_H
#define BOA_RUNTIME_VIEW_RUN_LOG_H

#include "runtime/io/output_file.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include <cstdint>
#include <map>
#include <string>

namespace boa {

class RunLog {
public:
  /// Adds to the file, which is made if need be.
  static absl::StatusOr<RunLog> Open(const std::string &path);

  /// The beginning of a run. `identity`: of the state. `settings`: on which its losses depend.
  /// `environment`: versions of its parts.
  absl::Status Begin(const std::string &identity, int64_t after,
                     const std::map<std::string, std::string> &settings,
                     const std::map<std::string, std::string> &environment);
  /// Lines, without those that are empty.
  absl::Status Say(absl::string_view text);
  /// How the run ended: at a step, or with an error.
  absl::Status End(const absl::Status &, int64_t step);

private:
  OutputFile file;
};

} // namespace boa

#endif // BOA_RUNTIME_VIEW_RUN_LOG_H
