//===- metrics.h - One JSON object for each step ----------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What a step did, as it was measured, and the file of --metrics: one line each,
// written when the step ends. A resumed run continues the file after the line of
// the step that it resumes from: lines of steps that were lost, and a torn last
// line, are cut off, but only when the first new line is written. Whatever ends the
// run before that, a refusal or a kill, leaves the file as it was.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_TRAINER_METRICS_H
#define BOA_RUNTIME_TRAINER_METRICS_H

#include "runtime/engine/work.h"
#include "runtime/program.h"
#include "runtime/trainer/file.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace boa {

class Engine;

/// Bytes by tier, then by role: ["ssd"]["weights"].
using BytesByRole = std::map<std::string, std::map<std::string, int64_t>>;

struct StepRecord {
  int64_t step = 0;          // from 1
  double loss = 0, rate = 0; // not a number: there is no loss
  int64_t tokens = 0;
  double seconds = 0;
  double flops = 0;                       // operations of the kernels that ran
  int64_t launches = 0, launch_calls = 0; // that they had a GPU do, and calls of its driver for it
  BytesByRole read, written;
  std::map<std::string, double> waited; // seconds that compute waited, by link
  int64_t peak_device_bytes = 0, peak_host_bytes = 0;
  std::optional<double> validation_loss; // where the step was evaluated

  /// What an engine counted, and its peaks so far.
  void Take(const Program &, const Counters &, const Engine &);
};

/// The line of a record, without the newline. Numbers read back to the same bits.
std::string FormatMetrics(const StepRecord &);

class Metrics {
public:
  /// `after`: the step that the run continues from, 0 for a fresh one.
  static absl::StatusOr<Metrics> Open(const std::string &path, int64_t after);
  /// A pipe that nobody reads any more takes every line.
  absl::Status Write(const StepRecord &);

private:
  OutputFile file;
  int64_t kept = -1;         // bytes to keep at the first line; negative: that was written
  bool line_is_open = false; // what is kept ends without a newline
};

} // namespace boa

#endif // BOA_RUNTIME_TRAINER_METRICS_H
