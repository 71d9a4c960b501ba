//===- order.cpp - What waits for what between streams --------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/device/cuda/order.h"

namespace boa::cuda {

void Order::Add(const Work &work, Stream stream) {
  MutexLock lock(mutex);
  under_way[work.sequence].stream = stream;
}

void Order::Enqueued(const Work &work, Event end) {
  MutexLock lock(mutex);
  UnderWay &of = under_way[work.sequence];
  of.end = end;
  of.enqueued = true;
  of.failed = end == nullptr;
  changed.NotifyAll();
}

absl::Status Order::Await(const Driver &driver, const Work &work, Stream stream) {
  MutexLock lock(mutex);
  for (int64_t before : work.after) {
    auto found = under_way.find(before);
    for (; !cancelled && found != under_way.end() && !found->second.enqueued;
         found = under_way.find(before))
      changed.Wait(mutex);
    if (cancelled || (found != under_way.end() && found->second.failed))
      return absl::CancelledError("not begun");
    if (found != under_way.end() && found->second.stream != stream)
      if (absl::Status status = AwaitEnd(driver, found->second, stream); !status.ok())
        return status;
  }
  return absl::OkStatus();
}

/// Nobody waits for the driver's call but who would remove the work, after which its event is
/// used again.
absl::Status Order::AwaitEnd(const Driver &driver, UnderWay &before, Stream stream) {
  const Event end = before.end;
  ++before.in_use;
  absl::Status status;
  {
    MutexUnlock unlocked(mutex);
    status = driver.Call("waiting for another stream", driver.StreamWaitEvent, stream, end, 0u);
  }
  if (--before.in_use == 0)
    changed.NotifyAll();
  return status;
}

void Order::AwaitRemoved(const Work &work) {
  MutexLock lock(mutex);
  for (int64_t before : work.after)
    while (under_way.count(before) > 0)
      changed.Wait(mutex);
}

void Order::Remove(int64_t sequence) {
  MutexLock lock(mutex);
  const UnderWay &over = under_way[sequence];
  while (over.in_use != 0)
    changed.Wait(mutex);
  under_way.erase(sequence);
  changed.NotifyAll();
}

void Order::Cancel() {
  MutexLock lock(mutex);
  cancelled = true;
  changed.NotifyAll();
}

} // namespace boa::cuda
