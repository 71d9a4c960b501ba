//===- read_ahead.cpp - Batches of the next steps -------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/trainer/read_ahead.h"

#include "runtime/support/interrupt.h"
#include "runtime/support/memory_errors.h"
#include "runtime/support/threads.h"

#include <chrono>
#include <utility>

namespace boa {

/// How often a wait looks for a signal.
constexpr std::chrono::milliseconds kLook(100);

ReadAhead::~ReadAhead() {
  if (!thread.joinable())
    return;
  {
    MutexLock lock(mutex);
    stopping = true;
  }
  changed.NotifyAll();
  thread.join();
}

ReadAhead::Batches ReadAhead::Take(int64_t step) {
  MutexLock lock(mutex);
  if (!thread.joinable()) {
    next = step;
    if (absl::Status status = StartThread("the thread that reads data", thread, [this] { Run(); });
        !status.ok())
      return status;
  }
  while (ready.empty()) {
    if (Interrupted())
      return Interruption();
    changed.WaitUntil(mutex, std::chrono::steady_clock::now() + kLook);
  }
  Batches taken = std::move(ready.front());
  ready.pop_front();
  changed.NotifyAll();
  return taken;
}

ReadAhead::Batches ReadAhead::Read(int64_t step) const {
  auto batches = std::make_unique<MicroBatches>(program);
  for (size_t m = 0; m < batches->losses.size(); ++m) {
    if (Interrupted()) // nobody takes it
      return Interruption();
    if (absl::Status status =
            data.FillTraining(step, int64_t(m), batches->tokens[m].data(),
                              batches->targets[m].data(), batches->StartsOf(int64_t(m)));
        !status.ok())
      return status;
  }
  batches->SetDropoutKeys(program, step);
  batches->CountTargets();
  return batches;
}

/// Stops behind the last step and behind an error: nothing is taken after them.
void ReadAhead::Run() {
  MutexLock lock(mutex);
  while (next <= program.train.steps) {
    while (!stopping && ready.size() >= kReadAhead)
      changed.Wait(mutex);
    if (stopping)
      return;
    const int64_t step = next++;
    Batches read;
    {
      MutexUnlock unlocked(mutex);
      read = WithinMemory(program.train.data, [&] { return Read(step); });
    }
    const bool failed = !read.ok();
    ready.push_back(std::move(read));
    changed.NotifyAll();
    if (failed)
      return;
  }
}

} // namespace boa
