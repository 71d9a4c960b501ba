//===- space_test.cpp - Free space: the pool, and full disks --------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/state/pool.h"
#include "test/runtime/state/state_fixture.h"

#include <random>

namespace boa {
namespace {

//===----------------------------------------------------------------------===//
// The pool
//===----------------------------------------------------------------------===//

TEST(Pool, NeighboursAreOneRange) {
  Pool pool;
  pool.Give(10, 10);
  pool.Give(30, 10);
  EXPECT_EQ(pool.Take(11), std::nullopt);
  pool.Give(20, 10);
  EXPECT_EQ(pool.Take(30), 10);
  EXPECT_EQ(pool.Take(1), std::nullopt);
  pool.Give(0, 0); // nothing
  EXPECT_EQ(pool.Take(1), std::nullopt);
}

TEST(Pool, TakesTheLowestAndTheHighestPlaceWhereItFits) {
  Pool pool;
  pool.Give(0, 4);
  pool.Give(10, 8);
  pool.Give(30, 8);
  pool.Give(50, 2);
  EXPECT_EQ(pool.Take(6), 10);
  EXPECT_EQ(pool.Take(4), 0);
  EXPECT_EQ(pool.TakeLast(3), 35);
  EXPECT_EQ(pool.TakeLast(2), 50);
  EXPECT_EQ(pool.Take(2), 16);
  EXPECT_EQ(pool.Take(5), 30);
  EXPECT_EQ(pool.Take(1), std::nullopt);
  EXPECT_EQ(pool.TakeLast(1), std::nullopt);
}

/// Against a map of single cells.
TEST(Pool, AgreesWithCells) {
  constexpr int64_t kCells = 60;
  std::mt19937 random(3);
  std::vector<bool> free(kCells);
  Pool pool;
  auto fits = [&](int64_t at, int64_t cells) {
    for (int64_t i = at; i < at + cells; ++i)
      if (i >= kCells || !free[i])
        return false;
    return true;
  };
  for (int round = 0; round < 20000; ++round) {
    const int64_t cells = 1 + int64_t(random() % 6), begin = int64_t(random() % kCells);
    if (random() % 2) {
      int64_t end = begin;
      while (end < std::min(begin + cells, kCells) && !free[end])
        free[end++] = true;
      pool.Give(begin, end - begin);
      continue;
    }
    const bool last = random() % 2;
    std::optional<int64_t> expected;
    for (int64_t at = 0; at < kCells; ++at)
      if (fits(at, cells) && (last || !expected))
        expected = at;
    ASSERT_EQ(last ? pool.TakeLast(cells) : pool.Take(cells), expected) << round;
    for (int64_t i = 0; expected && i < cells; ++i)
      free[*expected + i] = false;
  }
}

/// Quadratic it would take minutes.
TEST(Pool, ManyRangesTakeNoTime) {
  constexpr int64_t kRanges = 200000;
  Pool pool;
  for (int64_t i = 0; i < kRanges; ++i)
    pool.Give(4 * i, i % 2 ? 1 : 2);
  pool.Give(4 * kRanges, 3 * kRanges);
  EXPECT_EQ(pool.Take(3), 4 * kRanges);
  for (int64_t i = 1; i < kRanges; ++i)
    ASSERT_TRUE(pool.Take(3).has_value());
  for (int64_t i = 0; i < kRanges / 2; ++i)
    ASSERT_TRUE(pool.Take(2).has_value());
  EXPECT_EQ(pool.Take(2), std::nullopt);
  EXPECT_TRUE(pool.Take(1).has_value());
}

//===----------------------------------------------------------------------===//
// Full disks
//===----------------------------------------------------------------------===//

TEST_F(StateTest, AFullDiskIsToldBeforeAnythingIsMade) {
  program.storages[kWeights].bytes = 4 * (int64_t(8) << 20);
  disk.free_bytes = int64_t(1) << 20;
  absl::Status status = CreateStatus({Path() + "/deep/er"});
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
  ExpectMessage(status, "MiB are free");
  EXPECT_FALSE(std::filesystem::exists(Path()));
}

// Each fits by itself, both together do not.
TEST_F(StateTest, PathsOnOneDiskShareItsSpace) {
  disk.free_bytes = 2 * kPage + 2 * kStateBytes + kScratchBytes;
  EXPECT_EQ(CreateStatus({Path("a"), Path("b")}), absl::OkStatus());
  std::filesystem::remove_all(Path("a"));
  std::filesystem::remove_all(Path("b"));
  disk.free_bytes = *disk.free_bytes - 1;
  ExpectMessage(CreateStatus({Path("a"), Path("b")}), "too full");
  EXPECT_FALSE(std::filesystem::exists(Path("a")));
}

// Only parts of the state are written between commits, until no place is large
// enough. The file grows, or the disk is full and says so.
TEST_F(StateTest, WhereNothingFitsTheFileGrowsOrTheDiskIsFull) {
  for (bool full : {false, true}) {
    const std::string path = Path(full ? "full" : "grows");
    Store store = Create({path});
    Commit(*store, 1);
    const int64_t bytes = store->BytesByPath()[0];
    disk.full = full;
    std::mt19937 random(1);
    bool stopped = false;
    int64_t step = 2;
    for (; step < 300 && !stopped && store->BytesByPath()[0] == bytes; ++step) {
      ForEach([&](int32_t storage, int64_t entry, int32_t chunk) {
        if (!stopped && random() % 2)
          stopped = !WriteChunk(*store, step, storage, entry, chunk);
      });
      if (!stopped)
        ASSERT_EQ(store->Commit(Record(step)), absl::OkStatus());
    }
    EXPECT_EQ(stopped, full);
    if (full) {
      EXPECT_EQ(store->status().code(), absl::StatusCode::kResourceExhausted) << store->status();
      EXPECT_EQ(store->Commit(Record(step)), store->status());
      disk.full = false;
    } else {
      EXPECT_GT(store->BytesByPath()[0], bytes);
    }
    store.reset();
    EXPECT_EQ(Open({path})->Committed().step, full ? step - 2 : step - 1);
  }
}

// A copy of a state has holes where nothing stands: their space is asked for again.
TEST_F(StateTest, HolesOfACopyAreFilled) {
  Make({Path()}, {1});
  const std::string data = Path() + "/data";
  struct stat before, after;
  ASSERT_EQ(stat(data.c_str(), &before), 0);
  ASSERT_EQ(truncate(data.c_str(), before.st_size - kScratchBytes), 0);
  ASSERT_EQ(truncate(data.c_str(), before.st_size), 0);
  ExpectWhole({Path()}, 1);
  ASSERT_EQ(stat(data.c_str(), &after), 0);
  EXPECT_GE(after.st_blocks * 512, after.st_size);
}

} // namespace
} // namespace boa
