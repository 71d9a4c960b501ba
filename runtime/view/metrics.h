//===- metrics.h - One JSON object for each step ----------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The measurements of a step, and the file of --metrics, which gets a line when a step
// ends. A new run writes a new file.
//
// A resumed run continues its own file. The first new line replaces the lines of steps
// that were lost, and a torn last line. If the run ends before that, the file stays
// unchanged. Each line names the run by the identity of its state. The file of another
// run is refused.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_VIEW_METRICS_H
#define BOA_RUNTIME_VIEW_METRICS_H

#include "runtime/abi/program.h"
#include "runtime/device/work.h"
#include "runtime/io/output_file.h"
#include "runtime/view/loss_curve.h"

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
  std::string run;           // empty: a simulation
  double loss = 0, rate = 0; // not a number: a simulation has no loss
  int64_t tokens = 0;
  std::map<std::string, int64_t> tokens_of; // by source; empty: there is one source
  double seconds = 0;
  double flops = 0;                       // operations of the kernels that ran
  int64_t launches = 0, launch_calls = 0; // on a GPU, and the calls of its driver for them
  BytesByRole read, written;
  std::map<std::string, double> waited; // seconds that compute waited, by link
  int64_t peak_device_bytes = 0, peak_host_bytes = 0;
  std::optional<double> gradient_norm;   // before clipping, if the step needs it
  std::optional<double> validation_loss; // if an evaluation follows the step

  /// Copies an engine's counters, and its peaks so far.
  void Take(const Program &, const Counters &, const Engine &);
};

/// The line of a record, without the newline. Numbers read back to the same bits.
std::string FormatMetrics(const StepRecord &);

class Metrics {
public:
  /// For a new run. Refuses a file that is not empty.
  static absl::StatusOr<Metrics> Create(const std::string &path);
  /// For a run that continues from step `after`. Refuses the file of another run.
  static absl::StatusOr<Metrics> Continue(const std::string &path, int64_t after,
                                          const std::string &run);
  /// Like Create, but does not create the file.
  static absl::Status CheckNew(const std::string &path);
  /// Succeeds on a pipe that nobody reads any more.
  absl::Status Write(const StepRecord &);
  /// Of the steps that a resumed run keeps.
  const Losses &former() const { return former_losses; }

private:
  OutputFile file;
  Losses former_losses;
  int64_t kept = -1;         // bytes to keep at the first line; negative: it was written
  bool line_is_open = false; // the kept bytes end without a newline
};

} // namespace boa

#endif // BOA_RUNTIME_VIEW_METRICS_H
