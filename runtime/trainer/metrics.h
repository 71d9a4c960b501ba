//===- metrics.h - One JSON object for each step ----------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What a step did, as it was measured, and the file of --metrics: one line each,
// written when the step ends. A new run writes a new file. A resumed run continues its
// own file after the line of the step that it resumes from: lines of steps that were
// lost, and a torn last line, are cut off, but only when the first new line is written.
// Whatever ends the run before that, a refusal or a kill, leaves the file as it was.
// Each line names the run by the identity of its state; another run's file is refused.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_TRAINER_METRICS_H
#define BOA_RUNTIME_TRAINER_METRICS_H

#include "runtime/abi/program.h"
#include "runtime/device/work.h"
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
  std::string run;           // empty: of a simulation
  double loss = 0, rate = 0; // not a number: there is no loss
  int64_t tokens = 0;
  double seconds = 0;
  double flops = 0;                       // operations of the kernels that ran
  int64_t launches = 0, launch_calls = 0; // that they had a GPU do, and calls of its driver for it
  BytesByRole read, written;
  std::map<std::string, double> waited; // seconds that compute waited, by link
  int64_t peak_device_bytes = 0, peak_host_bytes = 0;
  std::optional<double> gradient_norm;   // before clipping, where the step needed it
  std::optional<double> validation_loss; // where the step was evaluated

  /// What an engine counted, and its peaks so far.
  void Take(const Program &, const Counters &, const Engine &);
};

/// The line of a record, without the newline. Numbers read back to the same bits.
std::string FormatMetrics(const StepRecord &);

class Metrics {
public:
  /// For a new run. Refuses a file that holds anything.
  static absl::StatusOr<Metrics> Create(const std::string &path);
  /// For a run that continues from step `after`. Refuses the file of another run.
  static absl::StatusOr<Metrics> Continue(const std::string &path, int64_t after,
                                          const std::string &run);
  /// As Create, without making the file.
  static absl::Status CheckNew(const std::string &path);
  /// A pipe that nobody reads any more takes every line.
  absl::Status Write(const StepRecord &);

private:
  OutputFile file;
  int64_t kept = -1;         // bytes to keep at the first line; negative: that was written
  bool line_is_open = false; // what is kept ends without a newline
};

} // namespace boa

#endif // BOA_RUNTIME_TRAINER_METRICS_H
