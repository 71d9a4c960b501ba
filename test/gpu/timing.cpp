//===- timing.cpp ---------------------------------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "test/gpu/timing.h"

#include "absl/strings/str_format.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>

namespace boa::gputest {

/// A sample is of at least this, if that takes no more repeats than these; all samples together
/// are of no more than this, but one there is.
static constexpr double kSampleMs = 1, kAllMs = 150;
static constexpr int kMostRepeats = 50, kSamples = 15;

Timer::~Timer() {
  for (cuda::Event event : events)
    if (event)
      session.driver().EventDestroy.address(event);
}

absl::Status Timer::Create() {
  absl::Status status;
  for (cuda::Event &event : events)
    if (status.ok())
      status = session.driver().Call("making an event", session.driver().EventCreate, &event, 0u);
  return status;
}

absl::Status Timer::Record(int which) {
  return session.driver().Call("timing", session.driver().EventRecord, events[which],
                               session.stream());
}

absl::StatusOr<double> Timer::Read() {
  float milliseconds = 0;
  absl::Status status = session.Wait();
  if (status.ok())
    status = session.driver().Call("timing", session.driver().EventElapsedTime, &milliseconds,
                                   events[0], events[1]);
  if (!status.ok())
    return status;
  return double(milliseconds);
}

absl::StatusOr<double> MeasureMs(const Session &session,
                                 const std::function<absl::Status()> &enqueue) {
  Timer timer(session);
  absl::Status status = timer.Create();
  auto sample = [&](int repeats) -> absl::StatusOr<double> {
    if (status.ok())
      status = timer.Record(0);
    for (int i = 0; i < repeats && status.ok(); ++i)
      status = enqueue();
    if (status.ok())
      status = timer.Record(1);
    if (!status.ok())
      return status;
    auto all = timer.Read();
    return all.ok() ? *all / repeats : all;
  };
  absl::StatusOr<double> first = sample(1); // it may load code
  if (first.ok() && *first < kAllMs)
    first = sample(1);
  if (!first.ok() || *first >= kAllMs)
    return first;
  const double once = std::max(*first, 1e-3);
  const int repeats = std::clamp(int(std::ceil(kSampleMs / once)), 1, kMostRepeats);
  const int count = std::clamp(int(kAllMs / (once * repeats)), 1, kSamples);
  std::vector<double> samples;
  for (int i = 0; i < count; ++i) {
    auto one = sample(repeats);
    if (!one.ok())
      return one;
    samples.push_back(*one);
  }
  std::nth_element(samples.begin(), samples.begin() + count / 2, samples.end());
  return samples[count / 2];
}

absl::StatusOr<double> MeasureIf(const absl::Status &before, const Session &session,
                                 const std::function<absl::Status()> &enqueue) {
  return before.ok() ? MeasureMs(session, enqueue) : absl::StatusOr<double>(before);
}

std::string FormatMs(double milliseconds) {
  return milliseconds < 0.1 ? absl::StrFormat("%.1f us", milliseconds * 1e3)
                            : absl::StrFormat("%.3f ms", milliseconds);
}

std::string FormatOperations(double operations, double milliseconds) {
  return milliseconds > 0 ? absl::StrFormat("%.4g TFLOP/s", operations / milliseconds * 1e-9)
                          : "- TFLOP/s";
}

std::string FormatBandwidth(double bytes, double milliseconds) {
  return milliseconds > 0 && bytes > 0 ? absl::StrFormat("%.4g GB/s", bytes / milliseconds * 1e-6)
                                       : "- GB/s";
}

int NotMeasured(const std::string &what, const absl::Status &why) {
  std::printf("not measured: %s: %s\n", what.c_str(), std::string(why.message()).c_str());
  return 1;
}

} // namespace boa::gputest
