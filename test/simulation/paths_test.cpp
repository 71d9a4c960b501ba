//===- paths_test.cpp - Several SSD paths at once -------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Engine, state and I/O queue as in a training, on a simulated disk. Time is the disk's, so the
// load of this machine changes nothing.
//
//===----------------------------------------------------------------------===//
#include "runtime/device/scheduler.h"
#include "runtime/engine/engine.h"
#include "test/runtime/chunks.h"
#include "test/simulation/simulated_disk.h"

#include "gtest/gtest.h"

namespace boa {
namespace {

constexpr int64_t kChunk = 1 << 18, kEntries = 240;

/// Everything that can go on does so in turn.
struct Turns : Scheduler {
  size_t Choose(size_t count) override { return turn++ % count; }
  size_t turn = 0;
};

void Stream(boa_context *context, int64_t, int64_t) {
  for (int64_t entry = 0; entry < kEntries; ++entry)
    boa_rt_release(context, boa_rt_prefetch(context, 0, entry, 0, 1, BOA_DEVICE, 0), 0);
}

// Paths of unequal speed deliver the sum of their speeds: each has its own limit and its share of
// the chunks, and none waits for another.
TEST(Paths, OfUnequalSpeedDeliverTheirSum) {
  SimulatedDisk disk(1);
  Turns scheduler;
  Program program;
  program.model.name = "paths";
  Storage &storage = program.storages.emplace_back();
  storage.name = storage.role = "weights";
  storage.entries = {kEntries};
  storage.chunks = 1;
  storage.bytes = kChunk;
  storage.persistent = true;
  storage.homes = {{kEntries, {{Home::ssd, 1}}}};
  storage.pools = {{BOA_DEVICE, 1, 64}};
  std::vector<std::string> directories;
  int64_t sum = 0;
  for (int64_t speed : {16, 12, 8, 4}) {
    directories.push_back("/ssd" + std::to_string(speed));
    disk.AddDevice(directories.back(), 1 << 30, std::chrono::microseconds(1));
    program.machine.ssd.push_back({directories.back(), speed << 20, speed << 20});
    sum += speed << 20;
  }
  auto state = StateStore::Create(disk, program, directories);
  ASSERT_TRUE(state.ok()) << state.status();
  EngineOptions options;
  options.scheduler = &scheduler;
  auto engine = Engine::Create(program, Kernels(nullptr), state->get(), options);
  ASSERT_TRUE(engine.ok()) << engine.status();
  const std::vector<char> zeros(kChunk);
  for (int64_t entry = 0; entry < kEntries; ++entry)
    ASSERT_TRUE(WriteChunk(**engine, 0, entry, 0, zeros.data(), kChunk).ok());
  const std::chrono::nanoseconds begin = disk.Now();
  ASSERT_TRUE((*engine)->Run(Stream, 1, 0).ok());
  ASSERT_TRUE((*engine)->Drain().ok());
  const double seconds = std::chrono::duration<double>(disk.Now() - begin).count();
  const double share = double(kEntries * kChunk) / seconds / double(sum);
  EXPECT_GT(share, 0.95);
  // A limit may be ahead by what accrues in 20 ms.
  EXPECT_LT(share, 1.05);
}

} // namespace
} // namespace boa
