//===- read_ahead.cpp - Batches of the next steps -------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/trainer/read_ahead.h"

#include <utility>

namespace boa {

ReadAhead::~ReadAhead() {
  if (!thread.joinable())
    return;
  {
    std::lock_guard<std::mutex> lock(mutex);
    stopping = true;
  }
  changed.notify_all();
  thread.join();
}

ReadAhead::Batches ReadAhead::Take(int64_t step) {
  std::unique_lock<std::mutex> lock(mutex);
  if (!thread.joinable()) {
    next = step;
    thread = std::thread([this] { Run(); });
  }
  changed.wait(lock, [&] { return !ready.empty(); });
  Batches taken = std::move(ready.front());
  ready.pop_front();
  lock.unlock();
  changed.notify_all();
  return taken;
}

ReadAhead::Batches ReadAhead::Read(int64_t step) const {
  auto batches = std::make_unique<MicroBatches>(program);
  for (size_t m = 0; m < batches->losses.size(); ++m)
    if (absl::Status status =
            data.FillTraining(step, int64_t(m), batches->tokens[m].data(),
                              batches->targets[m].data(), batches->StartsOf(int64_t(m)));
        !status.ok())
      return status;
  batches->CountTargets();
  return batches;
}

/// Stops behind the last step and behind an error: nothing is taken after them.
void ReadAhead::Run() {
  std::unique_lock<std::mutex> lock(mutex);
  while (next <= program.train.steps) {
    changed.wait(lock, [&] { return stopping || ready.size() < kReadAhead; });
    if (stopping)
      return;
    const int64_t step = next++;
    lock.unlock();
    Batches read = Read(step);
    const bool failed = !read.ok();
    lock.lock();
    ready.push_back(std::move(read));
    changed.notify_all();
    if (failed)
      return;
  }
}

} // namespace boa
