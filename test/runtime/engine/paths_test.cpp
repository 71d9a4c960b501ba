//===- paths_test.cpp - Several SSD paths at once -------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Measured by the clock, on the real file system.
//
//===----------------------------------------------------------------------===//
#include "runtime/engine/engine.h"
#include "test/runtime/trainer/scratch.h"
#include "test/runtime/chunks.h"

#include "gtest/gtest.h"

#include <iostream>

namespace boa {
namespace {

constexpr int64_t kChunk = 1 << 18, kEntries = 240;

void Stream(boa_context *context, int64_t, int64_t) {
  for (int64_t entry = 0; entry < kEntries; ++entry)
    boa_rt_release(context, boa_rt_prefetch(context, 0, entry, 0, 1, BOA_DEVICE, 0), 0);
}

// Paths of unequal speed deliver what they have together: each has its own limit, its
// own depth and its share of the chunks, and none waits for another.
TEST(Paths, OfUnequalSpeedDeliverTheirSum) {
  Scratch scratch(FastDirectory());
  Program program;
  program.name = "paths";
  Storage &storage = program.storages.emplace_back();
  storage.name = storage.role = "weights";
  storage.entries = {kEntries};
  storage.chunks = 1;
  storage.bytes = kChunk;
  storage.persistent = true;
  storage.homes = {{Home::ssd, 1}};
  storage.pools = {{BOA_DEVICE, 1, 64}};
  std::vector<std::string> directories;
  int64_t sum = 0;
  for (int64_t speed : {16, 12, 8, 4}) {
    directories.push_back(scratch.path("ssd" + std::to_string(speed)));
    program.machine.ssd.push_back({directories.back(), speed << 20, speed << 20});
    sum += speed << 20;
  }
  auto state = StateStore::Create(SystemFiles(), program, directories);
  ASSERT_TRUE(state.ok()) << state.status();
  auto engine = Engine::Create(program, nullptr, state->get(), {});
  ASSERT_TRUE(engine.ok()) << engine.status();
  const std::vector<char> zeros(kChunk);
  for (int64_t entry = 0; entry < kEntries; ++entry)
    ASSERT_TRUE(WriteChunk(**engine, 0, entry, 0, zeros.data(), kChunk).ok());
  const int64_t begin = (*engine)->Now();
  ASSERT_TRUE((*engine)->Run(Stream, 1, 0).ok());
  ASSERT_TRUE((*engine)->Drain().ok());
  const double seconds = double((*engine)->Now() - begin) * 1e-9;
  const double share = double(kEntries * kChunk) / seconds / double(sum);
  std::cout << "paths deliver " << share << " of their sum" << std::endl;
  EXPECT_GT(share, 0.95);
}

} // namespace
} // namespace boa
