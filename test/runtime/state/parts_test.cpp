//===- parts_test.cpp - The classes of a state, each alone ----------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/state/commits.h"
#include "runtime/state/extents.h"
#include "runtime/state/manifest_files.h"
#include "runtime/state/paths.h"
#include "test/runtime/state/state_fixture.h"

namespace boa {
namespace {

//===----------------------------------------------------------------------===//
// Extents
//===----------------------------------------------------------------------===//

/// Extents of the fixture's program in one file without a disk.
class ExtentsTest : public testing::Test {
protected:
  ExtentsTest()
      : extents(program, 1, [this](int32_t, int64_t bytes) {
          grown = bytes;
          return growth;
        }) {}

  void Begin(int64_t keep) {
    ASSERT_EQ(extents.Claim({}, {{"data", 0}}), absl::OkStatus());
    ASSERT_EQ(extents.Begin(extents.BytesNeeded(keep)), absl::OkStatus());
  }
  /// Writes the momentum of an entry.
  absl::Status WriteEntry(int64_t entry) {
    for (int32_t chunk = 0; chunk < 4; ++chunk) {
      absl::StatusOr<Extent> next = extents.Next(kMomentum, entry, chunk);
      if (!next.ok())
        return next.status();
      extents.SetChecksum(*next, uint64_t(100 + chunk));
    }
    return absl::OkStatus();
  }
  void WriteAll() {
    for (int32_t storage : {kWeights, kMomentum})
      for (int64_t entry = 0; entry < 3; ++entry)
        for (int32_t chunk = 0; chunk < 4; ++chunk)
          extents.SetChecksum(*extents.Next(storage, entry, chunk), 7);
  }

  const Program program = MakeProgram();
  int64_t grown = 0;
  absl::Status growth;
  Extents extents;
};

TEST_F(ExtentsTest, ADroppedCommitFreesOnlyItsOwnExtents) {
  Begin(/*keep=*/1);
  WriteAll();
  std::vector<SavedCommit> first(1), second(1);
  first[0] = *extents.Contents();
  extents.Committed(first, {});
  const Extent shared = extents.Current(kMomentum, 1, 0), old = extents.Current(kMomentum, 0, 0);
  ASSERT_EQ(WriteEntry(0), absl::OkStatus());
  second[0] = *extents.Contents();
  extents.Committed(second, first);
  EXPECT_EQ(extents.Checksum(shared), 7u);
  EXPECT_EQ(extents.Checksum(old), std::nullopt);
  // The range that became free is the lowest one.
  ASSERT_EQ(WriteEntry(2), absl::OkStatus());
  EXPECT_EQ(extents.Current(kMomentum, 2, 0), old);
  EXPECT_EQ(grown, 0);
}

TEST_F(ExtentsTest, AFullFileGrowsOrFails) {
  Begin(/*keep=*/1);
  const int64_t bytes = extents.Bytes()[0];
  // Two commits take all of the space.
  std::vector<SavedCommit> commits;
  for (int i = 0; i < 2; ++i) {
    WriteAll();
    commits.push_back(*extents.Contents());
    extents.Committed(commits, {});
  }
  growth = absl::ResourceExhaustedError("full");
  EXPECT_EQ(WriteEntry(0), growth);
  EXPECT_EQ(grown, bytes + kPage);
  EXPECT_EQ(extents.Bytes()[0], bytes);
  growth = absl::OkStatus();
  EXPECT_EQ(WriteEntry(0), absl::OkStatus());
  EXPECT_EQ(extents.Bytes()[0], bytes + 4 * kPage);
}

TEST_F(ExtentsTest, TwoChunksInOnePlaceAreDamage) {
  std::vector<SavedCommit> commits(1);
  SavedTable &table = commits[0].tables.emplace_back();
  table.storage = SavedStorageOf(program.storages[kMomentum]);
  ChunkTable &chunks = *table.tables.emplace_back(std::make_shared<ChunkTable>());
  chunks.storage = table.storage.name;
  chunks.chunk_bytes = kPage;
  chunks.chunks = {{{0, kPage}, 1}, {{0, kPage}, 2}};
  ExpectMessage(extents.Claim(commits, {{"data", 1 << 20}}), "at offset 4096 of data");
  ExpectMessage(extents.Claim(commits, {{"data", kPage}}), "data is truncated");
}

// Frozen weights stay on the paths where they are, and those that move are there twice.
TEST(ExtentsOfLoraTest, SpaceIsCountedWhereFrozenWeightsAre) {
  Program program;
  program.storages = {
      MakeStorage("weights.frozen.block", "weights", Home::ssd, true, {1}, 8, kPage),
      MakeStorage("weights.block", "weights", Home::ssd, true, {1}, 2, kPage)};
  auto grow = [](int32_t, int64_t) { return absl::OkStatus(); };
  Extents before(program, 1, grow);
  ASSERT_EQ(before.Claim({}, {{"data", kPage}}), absl::OkStatus());
  ASSERT_EQ(before.Begin(before.BytesNeeded(1)), absl::OkStatus());
  EXPECT_EQ(before.Bytes()[0], kPage * (1 + 8 + 2 * 2));
  for (int32_t storage : {0, 1})
    for (int32_t chunk = 0; chunk < program.storages[size_t(storage)].chunks; ++chunk)
      before.SetChecksum(*before.Next(storage, 0, chunk), 7);
  const std::vector<SavedCommit> commits = {*before.Contents()};
  const std::vector<Extents::File> files = {{"a", kPage * 100}, {"b", 0}};
  Extents more(program, 2, grow);
  ASSERT_EQ(more.Claim(commits, files), absl::OkStatus());
  EXPECT_EQ(more.BytesNeeded(1, {true, true}),
            (std::vector<int64_t>{kPage * (1 + 8 + 2 + 1), kPage * (1 + 2)}));
  EXPECT_EQ(more.BytesNeeded(1, {false, true}),
            (std::vector<int64_t>{kPage * (1 + 8 + 4 + 2 + 1), kPage * (1 + 4 + 2)}));
  // Four smaller commits come beside the large one before it goes.
  program.storages[1] = MakeStorage("weights.block", "weights", Home::ssd, true, {1}, 1, kPage);
  Extents less(program, 1, grow);
  ASSERT_EQ(less.Claim(commits, files), absl::OkStatus());
  EXPECT_EQ(less.BytesNeeded(5, {true, false})[0], kPage * (1 + 8 + 2 + 4 + 1));
}

//===----------------------------------------------------------------------===//
// Commits
//===----------------------------------------------------------------------===//

std::vector<int64_t> Steps(const std::vector<SavedCommit> &commits) {
  std::vector<int64_t> steps;
  for (const SavedCommit &commit : commits)
    steps.push_back(commit.record.step);
  return steps;
}

std::vector<int64_t> Add(Commits &commits, int64_t step) {
  SavedCommit made;
  made.record.step = step;
  const std::vector<SavedCommit> dropped = commits.Add(std::move(made), /*given=*/1);
  EXPECT_NE(commits.record().step, step); // only once it is on disk
  commits.GoToLast();
  EXPECT_EQ(commits.record().step, step);
  return Steps(dropped);
}

TEST(Commits, KeepsTheLastOnes) {
  Commits commits(2);
  EXPECT_EQ(commits.Present(), nullptr);
  EXPECT_EQ(commits.record().step, 0);
  EXPECT_EQ(Add(commits, 1), std::vector<int64_t>());
  EXPECT_EQ(Add(commits, 2), std::vector<int64_t>());
  EXPECT_EQ(Add(commits, 3), std::vector<int64_t>{1});
  EXPECT_EQ(Steps(commits.manifest().commits), (std::vector<int64_t>{2, 3}));
}

TEST(Commits, AReturnDropsTheLaterOnes) {
  Commits commits(3);
  for (int64_t step : {1, 2, 3})
    Add(commits, step);
  std::vector<std::string> notes;
  ExpectMessage(commits.GoTo(7, "home", notes).status(), "it keeps those of 1, 2, 3");
  EXPECT_EQ(commits.record().step, 3);
  ASSERT_TRUE(commits.GoTo(1, "home", notes).ok());
  EXPECT_EQ(notes.size(), 2u);
  EXPECT_EQ(commits.Present(), &commits.manifest().commits[0]);
  EXPECT_EQ(Add(commits, 5), (std::vector<int64_t>{2, 3}));
}

//===----------------------------------------------------------------------===//
// Files
//===----------------------------------------------------------------------===//

TEST_F(StateTest, AWriterMendsItsManifestsAndKeepsThoseOfOthers) {
  Make({Path()});
  auto home = disk.OpenDirectory(Path());
  ASSERT_TRUE(home.ok());
  auto read = ReadManifest(disk, **home);
  ASSERT_TRUE(read.ok());
  ManifestWriter writer, other;
  ASSERT_EQ(writer.Write(**home, read->manifest), absl::OkStatus());
  std::filesystem::remove(Manifest());
  ASSERT_EQ(writer.Write(**home, read->manifest), absl::OkStatus());
  EXPECT_EQ(CheckUnchanged(**home, read->manifest), absl::OkStatus());
  boa::Manifest theirs = read->manifest;
  ASSERT_EQ(other.Write(**home, theirs), absl::OkStatus());
  ExpectMessage(CheckUnchanged(**home, read->manifest), "was changed by another process");
  ExpectMessage(writer.Write(**home, read->manifest), "was replaced while this process");
}

TEST_F(StateTest, AFailedOpeningLeavesNoDirectory) {
  auto paths = StatePaths::Make(disk, {Path("a/b/"), Path("c")});
  ASSERT_TRUE(paths.ok());
  EXPECT_EQ((*paths)[0].directory(), Path("a/b"));
  {
    Undo undo(disk);
    ASSERT_EQ(paths->Take("", undo), absl::OkStatus());
    EXPECT_TRUE(std::filesystem::exists(Path("a/b/lock")));
  }
  EXPECT_FALSE(std::filesystem::exists(Path("a")));
  EXPECT_FALSE(std::filesystem::exists(Path("c")));
}

} // namespace
} // namespace boa
