//===- launch_times.cpp ---------------------------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/device/cuda/launch_times.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace boa::cuda {

absl::StatusOr<std::unique_ptr<LaunchTimes>> LaunchTimes::Create(const Gpu &gpu) {
  const char *const name = std::getenv("BOA_CUDA_TIMES");
  if (!name || !*name)
    return nullptr;
  FILE *const file = std::fopen(name, "we");
  if (!file)
    return absl::InvalidArgumentError(absl::StrCat(
        "BOA_CUDA_TIMES=", name, ": ", std::strerror(errno), ": name a file that can be written"));
  return std::unique_ptr<LaunchTimes>(new LaunchTimes(gpu, file));
}

LaunchTimes::~LaunchTimes() {
  Write();
  std::fclose(file);
  const Driver &driver = gpu.driver();
  auto drop = [&](const Launch &launch) {
    for (Event event : {launch.begin, launch.end})
      if (event)
        driver.EventDestroy.address(event);
  };
  drop(begun);
  std::for_each(launches.begin(), launches.end(), drop);
  for (const std::vector<Launch> &kernel : kernels)
    std::for_each(kernel.begin(), kernel.end(), drop);
  for (Event event : free_events)
    driver.EventDestroy.address(event);
}

absl::Status LaunchTimes::TakeEvent(Event &event) {
  {
    MutexLock lock(mutex);
    if (!free_events.empty()) {
      event = free_events.back();
      free_events.pop_back();
      return absl::OkStatus();
    }
  }
  return gpu.driver().Call("making an event", gpu.driver().EventCreate, &event, kBlockingSync);
}

absl::Status LaunchTimes::Begin(Stream stream) {
  absl::Status status = TakeEvent(begun.begin);
  if (status.ok())
    status = TakeEvent(begun.end);
  if (status.ok())
    status = gpu.driver().Call("timing a launch", gpu.driver().EventRecord, begun.begin, stream);
  return status;
}

absl::Status LaunchTimes::End(Stream stream, std::string name) {
  begun.name = std::move(name);
  absl::Status status =
      gpu.driver().Call("timing a launch", gpu.driver().EventRecord, begun.end, stream);
  launches.push_back(std::exchange(begun, {}));
  return status;
}

void LaunchTimes::EndKernel(const std::string &kernel) {
  for (Launch &launch : launches)
    launch.name = absl::StrCat(kernel, ": ", launch.name);
  MutexLock lock(mutex);
  kernels.push_back(std::exchange(launches, {}));
}

absl::Status LaunchTimes::Finish() {
  std::vector<Launch> over;
  {
    MutexLock lock(mutex);
    over = std::move(kernels.front());
    kernels.pop_front();
  }
  absl::Status status;
  for (const Launch &launch : over) {
    float milliseconds = 0;
    if (status.ok())
      status = gpu.driver().Call("asking how long a launch took", gpu.driver().EventElapsedTime,
                                 &milliseconds, launch.begin, launch.end);
    Sum &sum = sums[launch.name];
    ++sum.count;
    sum.seconds += double(milliseconds) / 1e3;
  }
  MutexLock lock(mutex);
  for (const Launch &launch : over)
    free_events.insert(free_events.end(), {launch.begin, launch.end});
  return status;
}

void LaunchTimes::Write() const {
  std::vector<std::pair<std::string, Sum>> all(sums.begin(), sums.end());
  std::stable_sort(all.begin(), all.end(), [](const auto &one, const auto &other) {
    return one.second.seconds > other.second.seconds;
  });
  Sum whole;
  for (const auto &[name, sum] : all) {
    whole.count += sum.count;
    whole.seconds += sum.seconds;
  }
  std::fprintf(file, "%lld launches, %.6g s on %s, without the gaps between them\n",
               static_cast<long long>(whole.count), whole.seconds, gpu.Describe().c_str());
  std::fprintf(file, "%7s %12s %9s %12s  %s\n", "share", "seconds", "count", "mean us", "launch");
  for (const auto &[name, sum] : all)
    std::fprintf(file, "%6.2f%% %12.6f %9lld %12.2f  %s\n",
                 whole.seconds > 0 ? 100 * sum.seconds / whole.seconds : 0, sum.seconds,
                 static_cast<long long>(sum.count), 1e6 * sum.seconds / double(sum.count),
                 name.c_str());
}

} // namespace boa::cuda
