//===- launch_times.h - How long each launch takes --------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_DEVICE_CUDA_LAUNCH_TIMES_H
#define BOA_RUNTIME_DEVICE_CUDA_LAUNCH_TIMES_H

#include "runtime/device/cuda/gpu.h"
#include "runtime/support/mutex.h"

#include <cstdio>
#include <deque>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace boa::cuda {

/// Times each launch, product and attention of kernels by the GPU's clock, and writes a table of
/// them at the end. For BOA_CUDA_TIMES=FILE. There are no CUDA graphs meanwhile.
class LaunchTimes {
public:
  /// Null where the variable is not set. An error: the file cannot be written.
  static absl::StatusOr<std::unique_ptr<LaunchTimes>> Create(const Gpu &);
  /// Writes the table. The context is current, and nothing is under way.
  ~LaunchTimes();

  /// Before and after a call is enqueued; on the thread that enqueues.
  absl::Status Begin(Stream);
  absl::Status End(Stream, std::string name);
  /// All since the last kernel was `kernel`'s.
  void EndKernel(const std::string &kernel);
  /// The oldest kernel that was not finished is over. On one thread, with the context current.
  absl::Status Finish();

private:
  struct Launch {
    std::string name;
    Event begin = nullptr, end = nullptr;
  };
  struct Sum {
    int64_t count = 0;
    double seconds = 0;
  };
  LaunchTimes(const Gpu &gpu, FILE *file) : gpu(gpu), file(file) {}
  absl::Status TakeEvent(Event &);
  void Write() const;

  const Gpu &gpu;
  FILE *const file;
  Launch begun;                 // the enqueuing thread's
  std::vector<Launch> launches; // its, too: of the kernel that is being enqueued
  Mutex mutex;
  std::deque<std::vector<Launch>> kernels ABSL_GUARDED_BY(mutex);
  std::vector<Event> free_events ABSL_GUARDED_BY(mutex);
  std::map<std::string, Sum> sums; // by kernel and launch; of the thread that finishes
};

} // namespace boa::cuda

#endif // BOA_RUNTIME_DEVICE_CUDA_LAUNCH_TIMES_H
