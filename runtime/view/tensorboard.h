//===- tensorboard.h - The measurements of steps for TensorBoard --*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The folder of --tensorboard. Each run of the trainer adds a file of events. A resumed run
// tells TensorBoard at which step it begins, so that steps which were lost disappear. A new
// training is refused where the events of another one are: TensorBoard would mix them.
//
// Format: records of TFRecord (length and data, each with a masked CRC-32C) that hold
// tensorflow.Event in protobuf's encoding.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_VIEW_TENSORBOARD_H
#define BOA_RUNTIME_VIEW_TENSORBOARD_H

#include "runtime/io/output_file.h"
#include "runtime/view/metrics.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include <cstdint>
#include <string>

namespace boa {

class EventFile {
public:
  /// Creates the folder if it is not there, and a new file in it. `after`: the steps of the run
  /// `identity` that were done before.
  static absl::StatusOr<EventFile> Create(const std::string &folder, const std::string &identity,
                                          int64_t after);
  /// Refuses a folder that holds events of another run than `identity`; empty: of any run.
  static absl::Status Check(const std::string &folder, const std::string &identity);

  absl::Status Write(const StepRecord &);

private:
  OutputFile file;
};

} // namespace boa

#endif // BOA_RUNTIME_VIEW_TENSORBOARD_H
