//===- late_writes_test.cpp - Writes that outlive their process -----------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A trainer is killed while writes of its data file are under way. The next process
// must not begin before these have landed, since it writes to the same extents.
//
//===----------------------------------------------------------------------===//
#include "test/runtime/state/state_fixture.h"
#include "test/simulation/simulated_disk.h"

namespace boa {
namespace {

TEST(LateWritesTest, TheNextProcessBeginsAfterThem) {
  const Program program = MakeProgram();
  auto page = [](char byte) { return std::vector<char>(2 * kPage, byte); };
  int late = 0; // kills whose write landed after them
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    SimulatedDisk disk(seed);
    auto store = StateStore::Create(disk, program, {"/state"});
    ASSERT_TRUE(store.ok()) << store.status();
    for (int64_t entry = 0; entry < 3; ++entry)
      for (int32_t chunk = 0; chunk < 4; ++chunk) {
        (*store)->SetChecksum((*store)->Next(kWeights, entry, chunk), 1);
        (*store)->SetChecksum((*store)->Next(kMomentum, entry, chunk), 1);
      }
    CommitRecord record;
    record.step = 1;
    ASSERT_TRUE((*store)->Commit(record).ok());
    // The second of two writes is under way when the first one completes.
    auto io = disk.CreateIo((*store)->Files(), (*store)->Links(), nullptr, 0, {});
    ASSERT_TRUE(io.ok()) << io.status();
    alignas(kPage) static char memory[2 * kPage];
    std::memset(memory, 'o', sizeof(memory));
    std::vector<Extent> extents;
    for (int32_t chunk : {0, 1}) {
      extents.push_back((*store)->Next(kWeights, 0, chunk));
      IoRequest request;
      request.write = true;
      request.file = extents.back().file;
      request.offset = extents.back().offset;
      request.data = memory;
      request.bytes = 2 * kPage;
      request.done = [](const absl::Status &) {};
      (*io)->Submit(std::move(request));
    }
    (*io)->Advance();
    disk.Kill();
    io->reset();
    store->reset();
    disk.Restart();

    const std::chrono::nanoseconds before = disk.Now();
    store = StateStore::Open(disk, program, {"/state"});
    ASSERT_TRUE(store.ok()) << store.status();
    late += disk.Now() - before > std::chrono::milliseconds(10);
    auto data = disk.Open("/state/data", {/*write=*/true});
    ASSERT_TRUE(data.ok()) << data.status();
    const std::vector<char> now = page('n');
    for (const Extent &extent : extents)
      ASSERT_TRUE((*data)->Write(extent.offset, now.data(), 2 * kPage).ok());
    disk.Wait(std::chrono::seconds(1));
    for (const Extent &extent : extents) {
      std::vector<char> held = page('?');
      ASSERT_TRUE((*data)->Read(extent.offset, held.data(), 2 * kPage).ok());
      EXPECT_EQ(held, now);
    }
  }
  EXPECT_GT(late, 20);
}

} // namespace
} // namespace boa
