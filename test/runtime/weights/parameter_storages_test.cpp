//===- parameter_storages_test.cpp - Parameters and storages --------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/weights/parameter_storages.h"

#include "runtime/device/simulated.h"
#include "test/runtime/engine/slow_device.h"
#include "test/runtime/trainer/linear.h"

#include "gtest/gtest.h"

#include <chrono>
#include <memory>
#include <new>
#include <utility>

namespace boa {
namespace {

class ParameterStoragesTest : public testing::Test {
protected:
  ParameterStoragesTest() {
    linear::Options options;
    options.chunk_elements = 1 << 19; // two batches
    program = *ParseProgram(linear::Descriptor(options));
    program.groups[0].parameters[0].shape = {1 << 10, 1 << 10}; // the table fills both
    extents = CreateSimulatedExtents(program);
    auto owned = std::make_unique<SlowDevice>(std::chrono::milliseconds(50));
    device = owned.get();
    engine = *Engine::Create(program, std::move(owned), extents.get(), EngineOptions());
  }

  Program program;
  std::unique_ptr<ChunkExtents> extents;
  SlowDevice *device = nullptr;
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
  EXPECT_EQ(device->UnderWay(), 0);
  EXPECT_THROW(
      ReadParameters(program, *engine, [](auto...) -> absl::Status { throw std::bad_alloc(); })
          .IgnoreError(),
      std::bad_alloc);
  EXPECT_EQ(device->UnderWay(), 0);
}

} // namespace
} // namespace boa
