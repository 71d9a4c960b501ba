//===- lane.h - A thread that does one thing after another ------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_DEVICE_LANE_H
#define BOA_RUNTIME_DEVICE_LANE_H

#include "absl/status/status.h"

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace boa {

/// Runs `start`, which begins threads. Returns an error if the system allows no more.
absl::Status StartThreads(const std::function<void()> &start);

/// A queue of items, and a thread that runs them in order. Any thread may call its functions.
template <typename Item> class Lane {
public:
  explicit Lane(std::function<void(Item)> run) : run(std::move(run)) {}
  ~Lane() { Stop(); }

  /// Without Start, only Run runs items.
  void Start() {
    thread = std::thread([this] { Loop(); });
  }
  /// Ends the thread after the item that it is running.
  void Stop() {
    {
      std::lock_guard lock(mutex);
      stopping = true;
      added.notify_all();
    }
    if (thread.joinable())
      thread.join();
  }

  void Add(Item item) {
    std::lock_guard lock(mutex);
    items.push_back(std::move(item));
    added.notify_one();
  }
  size_t Size() const {
    std::lock_guard lock(mutex);
    return items.size();
  }
  /// Runs item `which` on the caller's thread. False: there is no such item.
  bool Run(size_t which) {
    std::unique_lock lock(mutex);
    if (which >= items.size())
      return false;
    Item item = std::move(items[which]);
    items.erase(items.begin() + which);
    lock.unlock();
    run(std::move(item));
    return true;
  }
  /// Takes out the items that have not begun.
  std::deque<Item> Clear() {
    std::lock_guard lock(mutex);
    return std::exchange(items, {});
  }

private:
  void Loop() {
    std::unique_lock lock(mutex);
    while (true) {
      added.wait(lock, [&] { return stopping || !items.empty(); });
      if (stopping)
        return;
      Item item = std::move(items.front());
      items.pop_front();
      lock.unlock();
      run(std::move(item));
      lock.lock();
    }
  }

  const std::function<void(Item)> run;
  mutable std::mutex mutex;
  std::condition_variable added;
  std::deque<Item> items;
  bool stopping = false;
  std::thread thread;
};

} // namespace boa

#endif // BOA_RUNTIME_DEVICE_LANE_H
