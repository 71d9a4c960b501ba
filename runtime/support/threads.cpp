//===- threads.cpp - Threads that may not start ----------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/support/threads.h"

#include "runtime/support/mutex.h"

#include "absl/strings/str_cat.h"

#include <system_error>
#include <utility>
#include <vector>

namespace boa {

absl::Status StartThread(absl::string_view what, std::thread &thread, std::function<void()> run) {
  try {
    thread = std::thread(std::move(run));
  } catch (const std::system_error &error) {
    return absl::ResourceExhaustedError(
        absl::StrCat("cannot start ", what, ": ", error.code().message(),
                     ": allow the process more threads (ulimit -u) or more memory"));
  }
  return absl::OkStatus();
}

absl::Status CheckThreads(absl::string_view what, int64_t count) {
  // Each waits until all have started.
  Mutex all_started;
  std::vector<std::thread> threads;
  absl::Status status;
  {
    MutexLock lock(all_started);
    for (int64_t i = 0; i < count && status.ok(); ++i) {
      std::thread thread;
      status = StartThread(what, thread, [&] { MutexLock wait(all_started); });
      if (status.ok())
        threads.push_back(std::move(thread));
    }
  }
  for (std::thread &thread : threads)
    thread.join();
  return status;
}

} // namespace boa
