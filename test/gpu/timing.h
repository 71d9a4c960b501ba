//===- timing.h - How long work takes on a GPU ------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_TEST_GPU_TIMING_H
#define BOA_TEST_GPU_TIMING_H

#include "test/gpu/session.h"

#include <functional>

namespace boa::gputest {

/// Two events on one stream.
class Timer {
public:
  explicit Timer(const Session &session) : session(session) {}
  ~Timer();
  absl::Status Create();
  absl::Status Record(int which);
  /// Waits for the second, and says how far they are apart.
  absl::StatusOr<double> Read();

private:
  const Session &session;
  cuda::Event events[2] = {};
};

/// Milliseconds of what `enqueue` gives to the session's stream: the median of some samples, by
/// the GPU's clock, after a first one that warms up. What is short is enqueued several times for
/// a sample, what is long is sampled less often.
absl::StatusOr<double> MeasureMs(const Session &session,
                                 const std::function<absl::Status()> &enqueue);

/// The same, unless what came before it failed.
absl::StatusOr<double> MeasureIf(const absl::Status &, const Session &session,
                                 const std::function<absl::Status()> &enqueue);

/// "0.123 ms"; "12.3 us" where it is short.
std::string FormatMs(double milliseconds);
/// Of operations, or bytes, and what they took: "612 TFLOP/s", "2980 GB/s".
std::string FormatOperations(double operations, double milliseconds);
std::string FormatBandwidth(double bytes, double milliseconds);

/// "not measured: NAME: why", once for a part or what it is of; flushed. The exit status of it.
int NotMeasured(const std::string &what, const absl::Status &why);

} // namespace boa::gputest

#endif // BOA_TEST_GPU_TIMING_H
