//===- stream.cpp - One of the GPU's queues -------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// How long work took is the time between its two events, by the GPU's clock; when it ended
// is when that was seen, by the host's.
//
//===----------------------------------------------------------------------===//
#include "runtime/device/cuda/stream.h"

#include "runtime/device/host.h"

#include "absl/strings/str_cat.h"

#include <algorithm>

namespace boa::cuda {

absl::Status GpuStream::Create(DeviceListener *told) {
  listener = told;
  const Driver &driver = gpu.driver();
  absl::Status status = driver.Call("making a stream", driver.StreamCreate, &stream, kNonBlocking);
  for (auto &pair : events)
    for (Event &event : pair)
      if (status.ok())
        status = driver.Call("making an event", driver.EventCreate, &event, kBlockingSync);
  return status;
}

void GpuStream::Start() {
  enqueuing.Start();
  finishing.Start();
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
    std::unique_lock lock(mutex);
    finished_one.wait(lock, [&] { return enqueued - finished < kDepth; });
  }
  const auto [begin, end] = events[enqueued++ % kDepth];
  const Driver &driver = gpu.driver();
  absl::Status status = gpu.Enter();
  if (status.ok())
    status = driver.Call("noting the beginning", driver.EventRecord, begin, stream);
  if (status.ok())
    status = enqueue(work);
  if (status.ok())
    status = driver.Call("noting the end", driver.EventRecord, end, stream);
  finishing.Add({&work, begin, end, std::move(status)});
}

absl::Status GpuStream::Await(const Enqueued &work, float &milliseconds) {
  const Driver &driver = gpu.driver();
  absl::Status status = gpu.Enter();
  if (status.ok())
    status = work.status;
  if (status.ok())
    status = driver.Call("waiting for the GPU", driver.EventSynchronize, work.end);
  if (status.ok())
    status = driver.Call("asking how long it took", driver.EventElapsedTime, &milliseconds,
                         work.begin, work.end);
  // What was enqueued before the error may run: it is not over before that is.
  if (!status.ok()) {
    gpu.Enter().IgnoreError();
    driver.StreamSynchronize.address(stream);
  }
  return status;
}

void GpuStream::Finish(const Enqueued &work) {
  float milliseconds = 0;
  absl::Status status = Await(work, milliseconds);
  const int64_t end = Host::Now();
  const int64_t begin =
      std::min(end, std::max(last_end_ns, end - int64_t(double(milliseconds) * 1e6)));
  last_end_ns = end;
  {
    std::lock_guard lock(mutex);
    ++finished;
    finished_one.notify_one();
  }
  if (!status.ok())
    status = absl::Status(status.code(), absl::StrCat(name(*work.work), ": ", status.message()));
  listener->Done(*work.work, begin, end, std::move(status));
}

} // namespace boa::cuda
