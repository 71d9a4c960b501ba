//===- slow_device.h - Work that takes a while ------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_TEST_RUNTIME_ENGINE_SLOW_DEVICE_H
#define BOA_TEST_RUNTIME_ENGINE_SLOW_DEVICE_H

#include "runtime/device/device.h"

#include "gtest/gtest.h"

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace boa {

/// Each piece of work takes a while on a thread of its own, and touches the caller's memory in the
/// end. `kept`: the thread that gives this transfer, counted from 1, stays in Submit until the
/// transfer is over and the engine has had the time to end. In the end no work and no caller is
/// left.
class SlowDevice : public Device {
public:
  explicit SlowDevice(std::chrono::milliseconds each, int kept = 0) : each(each), kept(kept) {}
  ~SlowDevice() override {
    {
      std::lock_guard lock(mutex);
      EXPECT_EQ(under_way, 0) << "the device goes before what it was given is done";
      EXPECT_FALSE(inside) << "the device goes while somebody gives it work";
      gone = true;
      changed.notify_all();
    }
    for (std::thread &thread : threads)
      thread.join();
  }
  absl::Status Start(const int64_t (&)[2], Location, DeviceListener *new_listener) override {
    listener = new_listener;
    return absl::OkStatus();
  }
  void Submit(Work &work) override {
    std::unique_lock lock(mutex);
    const bool keeps = work.IsTransfer() && ++transfers == kept;
    const auto over = std::make_shared<bool>(false);
    inside |= keeps;
    ++under_way;
    threads.emplace_back([this, &work, over] {
      std::this_thread::sleep_for(each);
      if (auto *const memory = static_cast<volatile char *>(work.outside))
        memory[0] = memory[work.bytes - 1];
      {
        std::lock_guard lock(mutex);
        --under_way;
      }
      listener->Done(work, 0, 1, absl::OkStatus());
      std::lock_guard lock(mutex);
      *over = true;
      changed.notify_all();
    });
    if (!keeps)
      return;
    changed.wait(lock, [&] { return *over; });
    // An engine that does not wait for this thread is gone before long.
    changed.wait_for(lock, std::chrono::milliseconds(200), [&] { return gone; });
    inside = false;
  }
  void Cancel() override {}
  int64_t Now() const override { return 0; }
  std::string Describe() const override { return "slow"; }

  /// Pieces of work that are not over.
  int UnderWay() {
    std::lock_guard lock(mutex);
    return under_way;
  }

private:
  const std::chrono::milliseconds each;
  const int kept;
  DeviceListener *listener = nullptr;
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::thread> threads;
  int transfers = 0, under_way = 0;
  bool inside = false, gone = false;
};

} // namespace boa

#endif // BOA_TEST_RUNTIME_ENGINE_SLOW_DEVICE_H
