//===- reading_test.cpp - A commit that is read while a trainer runs ------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/state/commit_reader.h"
#include "runtime/state/manifest_files.h"
#include "test/runtime/state/state_fixture.h"

namespace boa {
namespace {

class ReadingTest : public StateTest {
protected:
  void SetUp() override {
    program.storages[kCheckpoints] =
        MakeStorage("checkpoints", "checkpoints", Home::host, false, {2, 2}, 1, 2 * kPage);
  }
  Store OpenToRead(std::optional<int64_t> at = std::nullopt) {
    auto store = StateStore::OpenToRead(disk, program, Path(), at);
    EXPECT_TRUE(store.ok()) << store.status();
    return store.ok() ? *std::move(store) : nullptr;
  }
  std::vector<int64_t> Steps() {
    std::vector<int64_t> steps;
    absl::StatusOr<ReadManifests> read = ReadManifest(disk, Path());
    EXPECT_TRUE(read.ok()) << read.status();
    for (const SavedCommit &commit : read->manifest.commits)
      steps.push_back(commit.record.step);
    return steps;
  }
  using Ints = std::vector<int64_t>;
};

TEST_F(ReadingTest, TheCommitStaysUntilItsReaderEnds) {
  Store store = Create({Path()});
  Commit(*store, 1);
  const int64_t bytes = store->BytesByPath()[0];
  const std::string before = Snapshot(Path());
  Store reader = OpenToRead(), second = OpenToRead(1);
  EXPECT_EQ(Snapshot(Path()), before);
  EXPECT_EQ(reader->Committed().step, 1);

  Commit(*store, 2);
  EXPECT_EQ(Steps(), Ints({1, 2}));
  Store later = OpenToRead();
  Commit(*store, 3);
  EXPECT_EQ(Steps(), Ints({1, 2, 3}));
  ExpectHolds(*later, 2);
  later.reset();
  for (int64_t step = 4; step < 8; ++step)
    Commit(*store, step);
  EXPECT_EQ(Steps(), Ints({1, 7}));
  EXPECT_EQ(store->BytesByPath()[0], bytes + 2 * kStateBytes);
  reader.reset();
  Commit(*store, 8);
  EXPECT_EQ(Steps(), Ints({1, 8}));
  ExpectHolds(*second, 1);
  EXPECT_TRUE(second->CheckKept().ok());
  second.reset();
  Commit(*store, 9);
  EXPECT_EQ(Steps(), Ints({9}));
  store.reset();
  ExpectWhole({Path()}, 9);
}

TEST_F(ReadingTest, AnotherCommitGoesFirst) {
  Store store = Create({Path()}, 2);
  Commit(*store, 1);
  Commit(*store, 2);
  const int64_t bytes = store->BytesByPath()[0];
  Store reader = OpenToRead();
  for (int64_t step = 3; step < 6; ++step)
    Commit(*store, step);
  EXPECT_EQ(Steps(), Ints({2, 5}));
  EXPECT_EQ(store->BytesByPath()[0], bytes);
  ExpectHolds(*reader, 2);
  // The reader of a state that nobody trains keeps trainers away.
  store.reset();
  reader = OpenToRead(2);
  ExpectMessage(OpenStatus({Path()}), "is in use by ");
  ExpectHolds(*reader, 2);
}

TEST_F(ReadingTest, ATrainingOnAFullDiskGoesFirst) {
  Store store = Create({Path()});
  Commit(*store, 1);
  Store reader = OpenToRead();
  disk.full = true;
  Commit(*store, 2);
  EXPECT_EQ(Steps(), Ints({2}));
  Commit(*store, 3);
  ExpectHolds(*store, 3);
  EXPECT_EQ(reader->CheckKept().code(), absl::StatusCode::kAborted);
  ExpectMessage(reader->CheckKept(), "has dropped the commit of step 1, which was being read");
}

TEST_F(ReadingTest, WritesNothing) {
  Make({Path()});
  Store reader = OpenToRead();
  EXPECT_FALSE(WriteChunk(*reader, 2, kWeights, 0, 0));
  ExpectMessage(reader->Commit(Record(2)), "is open to read only");
  ExpectHolds(*reader, 1);
  reader.reset();
  ExpectWhole({Path()}, 1);

  // A program with other chunks would write them first, and one with scratch on SSD its scratch.
  program.storages[kWeights] =
      MakeStorage("weights.block", "weights", Home::ssd, true, {3}, 8, kPage);
  program.groups[0].chunks = 8;
  program.groups[0].chunk_elements /= 2;
  ExpectMessage(StateStore::OpenToRead(disk, program, Path()).status(), "would be written");
  program = MakeProgram();
  ExpectMessage(StateStore::OpenToRead(disk, program, Path()).status(), "checkpoints");
}

// A commit that is being dropped is not read: there is a later one by then.
TEST_F(ReadingTest, WaitsForADropThatIsUnderWay) {
  Store store = Create({Path()});
  Commit(*store, 1);
  StatePath home(Path());
  ASSERT_TRUE(home.Open(disk).ok());
  auto drop = home.LockCommit(1, /*shared=*/false);
  ASSERT_TRUE(drop.ok()) << drop.status();
  int waits = 0;
  disk.on_wait = [&] {
    ++waits;
    drop->reset();
    if (waits == 1)
      Commit(*store, 2);
  };
  Store reader = OpenToRead();
  EXPECT_EQ(waits, 1);
  EXPECT_EQ(reader->Committed().step, 2);
  ExpectHolds(*reader, 2);
}

} // namespace
} // namespace boa
