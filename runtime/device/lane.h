//===- lane.h - A thread that does one thing after another ------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_DEVICE_LANE_H
#define BOA_RUNTIME_DEVICE_LANE_H

#include "runtime/support/mutex.h"
#include "runtime/support/threads.h"

#include "absl/status/status.h"

#include <deque>
#include <functional>
#include <thread>
#include <utility>
#include <vector>

namespace boa {

/// Of a device's threads, for errors.
inline constexpr char kEngineThreads[] = "the engine's threads";

/// A queue of items, and a thread that runs them in order. Any thread may call its functions.
template <typename Item> class Lane {
public:
  explicit Lane(std::function<void(Item)> run) : run(std::move(run)) {}
  ~Lane() { Stop(); }

  /// Without Start, only Run runs items.
  absl::Status Start() {
    return StartThread(kEngineThreads, thread, [this] { Loop(); });
  }
  /// Ends the thread after the item that it is running.
  void Stop() {
    {
      MutexLock lock(mutex);
      stopping = true;
      added.NotifyAll();
    }
    if (thread.joinable())
      thread.join();
  }

  void Add(Item item) {
    MutexLock lock(mutex);
    items.push_back(std::move(item));
    added.NotifyOne();
  }
  size_t Size() const {
    MutexLock lock(mutex);
    return items.size();
  }
  /// Runs item `which` on the caller's thread. False: there is no such item.
  bool Run(size_t which) {
    MutexLock lock(mutex);
    if (which >= items.size())
      return false;
    Item item = std::move(items[which]);
    items.erase(items.begin() + which);
    MutexUnlock unlocked(mutex);
    run(std::move(item));
    return true;
  }
  /// Takes out the items that have not begun.
  std::deque<Item> Clear() {
    MutexLock lock(mutex);
    return std::exchange(items, {});
  }

private:
  void Loop() {
    MutexLock lock(mutex);
    while (true) {
      while (!stopping && items.empty())
        added.Wait(mutex);
      if (stopping)
        return;
      Item item = std::move(items.front());
      items.pop_front();
      MutexUnlock unlocked(mutex);
      run(std::move(item));
    }
  }

  const std::function<void(Item)> run;
  mutable Mutex mutex;
  CondVar added;
  std::deque<Item> items ABSL_GUARDED_BY(mutex);
  bool stopping ABSL_GUARDED_BY(mutex) = false;
  std::thread thread;
};

} // namespace boa

#endif // BOA_RUNTIME_DEVICE_LANE_H
