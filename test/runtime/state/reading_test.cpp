//===- reading_test.cpp - A commit that is read while a trainer runs ------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/state/commit_reader.h"
#include "runtime/state/manifest_files.h"
#include "runtime/state/saved_commit.h"
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
  // A trainer may begin while a commit is read.
  store.reset();
  reader = OpenToRead(2);
  store = Open({Path()}, 2);
  Commit(*store, 6);
  Commit(*store, 7);
  EXPECT_EQ(Steps(), Ints({2, 7}));
  ExpectHolds(*reader, 2);
}

// The oldest goes first, and its reader gets an error.
TEST_F(ReadingTest, ATrainingOnAFullDiskGoesFirst) {
  Store store = Create({Path()});
  Commit(*store, 1);
  Store first = OpenToRead();
  Commit(*store, 2);
  Store second = OpenToRead();
  disk.full = true;
  for (int64_t step = 3; step < 6; ++step) {
    Commit(*store, step);
    EXPECT_EQ(Steps(), Ints({2, step}));
  }
  ExpectHolds(*store, 5);
  ExpectHolds(*second, 2);
  EXPECT_TRUE(second->CheckKept().ok());
  const absl::Status kept = first->CheckKept();
  EXPECT_EQ(kept.code(), absl::StatusCode::kAborted);
  ExpectMessage(kept, "has dropped the commit of step 1, which was being read");
  // So do reads that find other data.
  alignas(kPage) char data[2 * kPage];
  absl::Status read;
  for (const SavedTable &table : first->Opened()->tables)
    for (size_t i = 0; i < 12 && read.ok(); ++i)
      read = first->ReadOpened(table, i, data);
  EXPECT_EQ(read, kept);
}

// A state grows for readers only where the trained weights still fit.
TEST_F(ReadingTest, LeavesSpaceFree) {
  OpenOptions options;
  options.spare_bytes = 10 * kPage;
  for (int64_t more : {-1, 0}) {
    const std::string path = Path(absl::StrCat("spare", more));
    auto store = StateStore::Create(disk, program, {path}, 1, options);
    ASSERT_TRUE(store.ok()) << store.status();
    Commit(**store, 1);
    auto reader = StateStore::OpenToRead(disk, program, path);
    ASSERT_TRUE(reader.ok()) << reader.status();
    disk.free_bytes = kStateBytes + options.spare_bytes + more;
    Commit(**store, 2);
    EXPECT_EQ((*reader)->CheckKept().ok(), more == 0);
    disk.free_bytes = 0; // it has grown
    Commit(**store, 3);
    EXPECT_EQ((*reader)->CheckKept().ok(), more == 0);
    disk.free_bytes.reset();
  }
}

// There a lock of a byte is one of the file, which the trainer has. Every commit would seem to be
// read, and the state would grow until the disk is full.
TEST_F(ReadingTest, WithoutLocksOfBytesNothingSeemsToBeRead) {
  disk.bytes_conflict = true;
  Store store = Create({Path()});
  for (int64_t step = 1; step < 4; ++step)
    Commit(*store, step);
  EXPECT_EQ(Steps(), Ints({3}));
  disk.on_wait = [] {};
  ExpectMessage(StateStore::OpenToRead(disk, program, Path()).status(), "is in use by process ");
}

// A file system without locks of bytes has the lock of the file, which keeps others out. A process
// that has too many open files does not take those of others for none.
TEST_F(ReadingTest, WithoutLocksOfBytesAStateIsTrained) {
  disk.fail_at_line = "LockBytes " + Path() + "/lock";
  Store store = Create({Path()});
  ASSERT_TRUE(store);
  EXPECT_TRUE(absl::StrContains(Notes(*store), "no process can read a commit while"))
      << Notes(*store);
  for (int64_t step : {1, 2})
    Commit(*store, step);
  EXPECT_EQ(Steps(), Ints({2}));
  ExpectMessage(OpenStatus({Path()}), "is in use by process ");
  ExpectMessage(StateStore::OpenToRead(disk, program, Path()).status(), "is in use by process ");
  store.reset();
  ExpectHolds(*OpenToRead(), 2);
}

TEST_F(ReadingTest, ReadsSeveralPathsWithoutLocks) {
  Make(Named({"a", "b"}), {1, 2});
  for (const char *path : {"a", "b"})
    unlink((Path(path) + "/lock").c_str());
  auto reader = StateStore::OpenToRead(disk, program, Path("a"));
  ASSERT_TRUE(reader.ok()) << reader.status();
  ASSERT_TRUE(*reader);
  ExpectHolds(**reader, 2);
  EXPECT_TRUE((*reader)->CheckKept().ok());
  // Of a copy, the manifest does not tell where the other path is.
  std::filesystem::copy(Path("a"), Path("copy"));
  reader = StateStore::OpenToRead(disk, program, Path("copy"));
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_FALSE(*reader);
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
  EXPECT_FALSE(OpenToRead());
  program = MakeProgram();
  EXPECT_FALSE(OpenToRead());
}

// A trainer that goes on from an earlier commit drops the one that a reader has just chosen.
TEST_F(ReadingTest, ADroppedCommitIsNotToldAsLost) {
  Make({Path()}, {1, 2}, 3);
  Store store = Open({Path()}, 3, 1);
  disk.on_line_of =
      absl::StrCat("Open ", Path(), "/",
                   SealedName(kCommitFile, ReadManifest(disk, Path())->manifest.commits[1].sum));
  disk.on_line = [&] { Commit(*store, 3); };
  const absl::Status status = StateStore::OpenToRead(disk, program, Path()).status();
  EXPECT_FALSE(disk.on_line);
  EXPECT_EQ(status.code(), absl::StatusCode::kAborted);
  ExpectMessage(status, "has dropped the commit of step 2");
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
