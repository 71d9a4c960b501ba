//===- stream.cpp - One of the GPU's queues -------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Between events the GPU's clock tells the time, whenever a wait for one wakes. What it says in
// the host's time is found out as we go: nothing is over after it was seen to be over, and what
// was seen soonest, of so many, was over just then.
//
//===----------------------------------------------------------------------===//
#include "runtime/device/cuda/stream.h"

#include "runtime/device/cuda/ranges.h"
#include "runtime/device/host.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <iterator>
#include <tuple>

namespace boa::cuda {

absl::Status GpuStream::Create(DeviceListener *new_listener) {
  listener = new_listener;
  const Driver &driver = gpu.driver();
  absl::Status status = driver.Call("making a stream", driver.StreamCreate, &stream, kNonBlocking);
  for (auto &pair : events)
    for (Event &event : pair)
      if (status.ok())
        status = driver.Call("making an event", driver.EventCreate, &event, kBlockingSync);
  // As if work had been before all other.
  last_end = events[kDepth][1];
  last_end_ns = Host::Now();
  if (status.ok())
    status = driver.Call("noting the beginning", driver.EventRecord, last_end, stream);
  return status;
}

absl::Status GpuStream::Start() {
  absl::Status status = enqueuing.Start();
  return status.ok() ? finishing.Start() : status;
}

void GpuStream::Stop() {
  enqueuing.Stop();
  finishing.Stop();
}

GpuStream::~GpuStream() {
  Stop();
  const Driver &driver = gpu.driver();
  for (auto &pair : events)
    for (Event event : pair)
      if (event)
        driver.EventDestroy.address(event);
  if (stream)
    driver.StreamDestroy.address(stream);
}

void GpuStream::Enqueue(Work &work) {
  {
    MutexLock lock(mutex);
    while (enqueued - finished >= kDepth)
      finished_one.Wait(mutex);
  }
  const auto [begin, end] = events[enqueued++ % std::size(events)];
  const Driver &driver = gpu.driver();
  // Work behind a piece that was not enqueued would run too early.
  absl::Status status = failed ? absl::CancelledError("not begun") : gpu.Enter();
  if (status.ok())
    status = order.Await(driver, work, stream);
  if (status.ok())
    status = driver.Call("noting the beginning", driver.EventRecord, begin, stream);
  if (status.ok()) {
    const Range range(name(work).c_str());
    status = enqueue(work);
  }
  if (status.ok())
    status = driver.Call("noting the end", driver.EventRecord, end, stream);
  failed = !status.ok();
  order.Enqueued(work, failed ? nullptr : end);
  finishing.Add({&work, begin, end, std::move(status)});
}

/// Milliseconds from the end of the work before it to its beginning, and to its end.
absl::Status GpuStream::Await(const Enqueued &work, float (&milliseconds)[2]) {
  const Driver &driver = gpu.driver();
  absl::Status status = gpu.Enter();
  if (status.ok())
    status = work.status;
  if (status.ok())
    status = driver.Call("waiting for the GPU", driver.EventSynchronize, work.end);
  for (int i = 0; i < 2; ++i)
    if (status.ok())
      status = driver.Call("asking how long it took", driver.EventElapsedTime, &milliseconds[i],
                           last_end, i == 0 ? work.begin : work.end);
  // Work that was enqueued before the error may run. The end waits for it.
  if (!status.ok()) {
    gpu.Enter().IgnoreError();
    driver.StreamSynchronize.address(stream);
  }
  return status;
}

/// When it began and ended, by the host's clock. Between the two nothing is corrected.
std::pair<int64_t, int64_t> GpuStream::Place(const float (&milliseconds)[2], int64_t seen_ns) {
  auto after = [&](float ms) { return last_end_ns + int64_t(double(ms) * 1e6); };
  const int64_t begin = after(milliseconds[0]), end = after(milliseconds[1]);
  const int64_t lag = seen_ns - end;
  least_lag_ns = lags == 0 ? lag : std::min(least_lag_ns, lag);
  // Also, the two clocks drift apart by some parts in a million.
  constexpr int64_t kLags = 64;
  int64_t shift = 0;
  if (lag < 0 || ++lags == kLags) {
    shift = least_lag_ns;
    lags = 0;
  }
  last_end_ns = end + shift;
  return {begin + shift, last_end_ns};
}

void GpuStream::Finish(const Enqueued &work) {
  float milliseconds[2] = {};
  absl::Status status = Await(work, milliseconds);
  int64_t begin = Host::Now(), end = begin;
  if (status.ok()) {
    std::tie(begin, end) = Place(milliseconds, begin);
    last_end = work.end;
    if (finish)
      status = finish(*work.work);
  } else if (const std::string what = name(*work.work); !what.empty()) {
    status = absl::Status(status.code(), absl::StrCat(what, ": ", status.message()));
  }
  // The listener hears of the fills before it first.
  order.AwaitRemoved(*work.work);
  const int64_t sequence = work.work->sequence;
  listener->Done(*work.work, begin, end, std::move(status));
  order.Remove(sequence);
  // Its events may be used again.
  MutexLock lock(mutex);
  ++finished;
  finished_one.NotifyOne();
}

} // namespace boa::cuda
