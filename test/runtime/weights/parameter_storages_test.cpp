//===- parameter_storages_test.cpp - Parameters and storages --------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/weights/parameter_storages.h"

#include "test/runtime/trainer/linear.h"

#include "gtest/gtest.h"

#include <atomic>
#include <chrono>
#include <memory>
#include <new>
#include <thread>
#include <vector>

namespace boa {
namespace {

/// Each work is over after some time, and touches its memory only then.
class LateDevice : public Device {
public:
  ~LateDevice() override {
    for (std::thread &thread : threads)
      thread.join();
  }
  absl::Status Start(const int64_t (&)[2], Location, DeviceListener *new_listener) override {
    listener = new_listener;
    return absl::OkStatus();
  }
  void Submit(Work &work) override {
    ++under_way;
    threads.emplace_back([this, &work] {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      auto *const memory = static_cast<volatile char *>(work.outside);
      memory[0] = memory[work.bytes - 1];
      --under_way;
      listener->Done(work, 0, 0, absl::OkStatus());
    });
  }
  void Cancel() override {}
  int64_t Now() const override { return 0; }
  std::string Describe() const override { return "late"; }

  std::atomic<int> under_way{0};

private:
  DeviceListener *listener = nullptr;
  std::vector<std::thread> threads;
};

class AnywhereExtents : public ChunkExtents {
public:
  Extent Current(int32_t, int64_t, int32_t) override { return {0, 0}; }
  Extent Next(int32_t, int64_t, int32_t) override { return {0, 0}; }
  absl::Status Why() const override { return absl::OkStatus(); }
};

class ParameterStoragesTest : public testing::Test {
protected:
  ParameterStoragesTest() {
    linear::Options options;
    options.chunk_elements = 1 << 19; // two batches
    program = *ParseProgram(linear::Descriptor(options));
    program.groups[0].parameters[0].shape = {1 << 10, 1 << 10}; // the table fills both
    auto owned = std::make_unique<LateDevice>();
    device = owned.get();
    engine = *Engine::Create(program, std::move(owned), &extents, EngineOptions());
  }

  Program program;
  AnywhereExtents extents;
  LateDevice *device = nullptr;
  std::unique_ptr<Engine> engine;
};

// The memory of a batch that the device still has goes only when the device has left it.
TEST_F(ParameterStoragesTest, AFailedAllocationWaitsForTheDevice) {
  int calls = 0;
  EXPECT_THROW(FillParameters(program, *engine,
                              [&](auto...) -> absl::Status {
                                if (++calls == 2)
                                  throw std::bad_alloc();
                                return absl::OkStatus();
                              })
                   .IgnoreError(),
               std::bad_alloc);
  EXPECT_EQ(calls, 2);
  EXPECT_EQ(device->under_way, 0);
  EXPECT_THROW(
      ReadParameters(program, *engine, [](auto...) -> absl::Status { throw std::bad_alloc(); })
          .IgnoreError(),
      std::bad_alloc);
  EXPECT_EQ(device->under_way, 0);
}

} // namespace
} // namespace boa
