//===- order.cpp - What waits for what between streams --------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/device/cuda/order.h"

#include <algorithm>

namespace boa::cuda {

void Order::Add(const Work &work, Stream stream) {
  std::lock_guard lock(mutex);
  under_way[work.sequence].stream = stream;
}

void Order::Enqueued(const Work &work, Event end) {
  std::lock_guard lock(mutex);
  UnderWay &of = under_way[work.sequence];
  of.end = end;
  of.enqueued = true;
  of.failed = end == nullptr;
  changed.notify_all();
}

absl::Status Order::Await(const Driver &driver, const Work &work, Stream stream) {
  std::unique_lock lock(mutex);
  for (int64_t before : work.after) {
    auto found = under_way.end();
    changed.wait(lock, [&] {
      found = under_way.find(before);
      return cancelled || found == under_way.end() || found->second.enqueued;
    });
    if (cancelled || (found != under_way.end() && found->second.failed))
      return absl::CancelledError("not begun");
    if (found != under_way.end() && found->second.stream != stream)
      if (absl::Status status = AwaitEnd(driver, found->second, stream, lock); !status.ok())
        return status;
  }
  return absl::OkStatus();
}

/// Nobody waits for the driver's call but who would remove the work, after which its event is
/// used again.
absl::Status Order::AwaitEnd(const Driver &driver, UnderWay &before, Stream stream,
                             std::unique_lock<std::mutex> &lock) {
  const Event end = before.end;
  ++before.in_use;
  lock.unlock();
  absl::Status status =
      driver.Call("waiting for another stream", driver.StreamWaitEvent, stream, end, 0u);
  lock.lock();
  if (--before.in_use == 0)
    changed.notify_all();
  return status;
}

void Order::AwaitRemoved(const Work &work) {
  std::unique_lock lock(mutex);
  changed.wait(lock, [&] {
    return std::none_of(work.after.begin(), work.after.end(),
                        [&](int64_t before) { return under_way.count(before) > 0; });
  });
}

void Order::Remove(int64_t sequence) {
  std::unique_lock lock(mutex);
  const UnderWay &over = under_way[sequence];
  changed.wait(lock, [&] { return over.in_use == 0; });
  under_way.erase(sequence);
  changed.notify_all();
}

void Order::Cancel() {
  std::lock_guard lock(mutex);
  cancelled = true;
  changed.notify_all();
}

} // namespace boa::cuda
