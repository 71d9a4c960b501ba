//===- traffic.h - Copies both ways, beside something else ------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_TEST_GPU_TRAFFIC_H
#define BOA_TEST_GPU_TRAFFIC_H

#include "absl/status/status.h"

#include <atomic>
#include <cstdint>
#include <functional>
#include <thread>

namespace boa::gputest {

/// A thread with a session of its own, which copies to and from the device until it is stopped.
class Traffic {
public:
  ~Traffic() { Stop(); }
  /// Returns when the first copies are done.
  absl::Status Start();
  /// Bytes that were copied both ways since it started.
  int64_t Copied() const { return copied; }
  void Stop();

private:
  /// Calls `done` after each pair of copies.
  absl::Status Copy(const std::function<void()> &done);

  std::atomic<bool> stopped{false};
  std::atomic<int64_t> copied{0};
  std::thread thread;
  absl::Status status;
};

} // namespace boa::gputest

#endif // BOA_TEST_GPU_TRAFFIC_H
