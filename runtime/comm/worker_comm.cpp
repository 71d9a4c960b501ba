//===- worker_comm.cpp - An engine with a thread of its own ---------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/comm/worker_comm.h"

#include "runtime/support/threads.h"

#include "absl/strings/str_cat.h"

#include <cerrno>
#include <cstring>
#include <sys/eventfd.h>
#include <unistd.h>

namespace boa {

absl::Status WorkerComm::Start() {
  wake = Socket(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  if (wake.fd() < 0)
    return absl::ResourceExhaustedError(
        absl::StrCat("cannot make an eventfd: ", std::strerror(errno)));
  return StartThread("the thread between ranks", thread, [this] { Run(); });
}

void WorkerComm::Stop() {
  if (!thread.joinable())
    return;
  {
    MutexLock lock(mutex);
    stop = true;
  }
  Wake();
  thread.join();
}

void WorkerComm::Submit(Exchange exchange) {
  {
    MutexLock lock(mutex);
    submitted.push_back(std::move(exchange));
  }
  Wake();
}

void WorkerComm::Abort(absl::Status status) {
  {
    MutexLock lock(mutex);
    aborted.Update(std::move(status));
  }
  Wake();
}

void WorkerComm::Wake() {
  // Fails only where it is readable already.
  [[maybe_unused]] const ssize_t written = eventfd_write(wake.fd(), 1);
}

bool WorkerComm::Take() {
  eventfd_t count = 0;
  [[maybe_unused]] const int read = eventfd_read(wake.fd(), &count);
  while (true) {
    std::vector<Exchange> added;
    absl::Status error;
    bool ends = false;
    {
      MutexLock lock(mutex);
      added.swap(submitted);
      error = aborted;
      ends = stop;
    }
    for (Exchange &exchange : added)
      streams.Add(std::move(exchange));
    if (!error.ok())
      streams.Fail(error);
    if (ends && !streams.Idle())
      streams.Fail(absl::CancelledError(absl::StrCat("rank ", rank(), " ends")));
    if (!streams.HasDone())
      return !ends;
    CompleteExchanges(streams.TakeDone()); // they may submit
  }
}

} // namespace boa
