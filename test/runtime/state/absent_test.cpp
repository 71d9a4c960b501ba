//===- absent_test.cpp - Storages that nobody has written yet -------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A state of the optimizer is zero before its first update. Until then it has no extents, and
// commits list it as absent. Its space is reserved all the same.
//
//===----------------------------------------------------------------------===//
#include "runtime/state/commit_files.h"
#include "runtime/state/commit_reader.h"
#include "runtime/state/inspect.h"
#include "runtime/state/manifest.h"
#include "runtime/state/manifest_files.h"
#include "runtime/support/printable.h"
#include "test/runtime/state/state_fixture.h"

namespace boa {
namespace {

class AbsentTest : public StateTest {
protected:
  AbsentTest() {
    disk.through_cache = true;
    program.groups[0].states = {kMomentum};
    program.optimizer.states = {{"momentum", "bf16"}};
  }

  void WriteWeights(StateStore &store, int64_t version) const {
    ForEach([&](int32_t storage, int64_t entry, int32_t chunk) {
      if (storage == kWeights)
        ASSERT_TRUE(WriteChunk(store, version, storage, entry, chunk));
    });
  }
  /// A commit of weights alone.
  void CommitWeights(StateStore &store, int64_t step) const {
    WriteWeights(store, step);
    ASSERT_EQ(store.Commit(Record(step)), absl::OkStatus());
  }
  /// As ExpectHolds, of the weights alone. The momentum has no extents.
  void ExpectLacks(StateStore &store, int64_t version) const {
    ForEach([&](int32_t storage, int64_t entry, int32_t chunk) {
      const Extent extent = store.Current(storage, entry, chunk);
      if (storage == kMomentum) {
        EXPECT_EQ(extent.file, -1);
        return;
      }
      std::string bytes(size_t(Bytes(storage)), '\0');
      ASSERT_EQ(pread(store.Files()[extent.file].fd, bytes.data(), bytes.size(), extent.offset),
                ssize_t(bytes.size()));
      EXPECT_EQ(std::memcmp(bytes.data(), Contents(version, storage, entry, chunk), bytes.size()),
                0);
    });
  }
  SavedCommit Last() const { return ReadManifest(SystemFiles(), Path())->manifest.commits.back(); }
  absl::Status OpenStatus(const Program &other) {
    return StateStore::Open(disk, other, {Path()}).status();
  }
};

TEST_F(AbsentTest, ANewStateLacksWhatIsZero) {
  {
    Store store = Create({Path()}, /*keep=*/2);
    // Later steps need the space.
    EXPECT_EQ(store->BytesByPath()[0], kPage + 3 * kStateBytes + kScratchBytes);
    CommitWeights(*store, 0);
    EXPECT_EQ(Last().tables.size(), 1u);
    ASSERT_EQ(Last().absent.size(), 1u);
    EXPECT_EQ(Last().absent[0].name, "momentum.block");
    EXPECT_EQ(Last().absent[0].chunks, 4);
  }
  {
    Store store = Open({Path()}, 2);
    ASSERT_TRUE(store);
    ExpectLacks(*store, 0);
    // What a killed process wrote, nobody finds.
    Write(*store, 7);
  }
  {
    Store store = Open({Path()}, 2);
    ExpectLacks(*store, 0);
    Commit(*store, 1);
    EXPECT_EQ(Last().tables.size(), 2u);
    EXPECT_EQ(Last().absent.size(), 0u);
  }
  ExpectHolds(*Open({Path()}, 2), 1);
  // The commit before still lacks it, whatever came after.
  Store store = Open({Path()}, 2, 0);
  ExpectLacks(*store, 0);
  CommitWeights(*store, 2);
  EXPECT_EQ(Last().absent.size(), 1u);
}

// The momentum is not in a commit by halves.
TEST_F(AbsentTest, AStorageIsAbsentAsAWhole) {
  Store store = Create({Path()});
  WriteWeights(*store, 1);
  EXPECT_TRUE(WriteChunk(*store, 1, kMomentum, 2, 3));
  ExpectMessage(store->Commit(Record(1)), "entry 0 chunk 0 of momentum.block was never written");
}

// Of everything else, absence would be a loss.
TEST_F(AbsentTest, NothingButStatesOfTheOptimizerIsAbsent) {
  {
    Store store = Create({Path()});
    ForEach([&](int32_t storage, int64_t entry, int32_t chunk) {
      if (storage == kMomentum)
        ASSERT_TRUE(WriteChunk(*store, 1, storage, entry, chunk));
    });
    ExpectMessage(store->Commit(Record(1)), "of weights.block was never written");
  }
  program.groups[0].states = {};
  Store store = Create({Path()});
  WriteWeights(*store, 1);
  ExpectMessage(store->Commit(Record(1)), "of momentum.block was never written");
}

// Before the first step no optimizer has a state.
TEST_F(AbsentTest, ZerosFitAnyChunksAndAnyOptimizer) {
  {
    Store store = Create({Path()});
    CommitWeights(*store, 0);
  }
  Program chunks = program, none = program, more = program;
  chunks.storages[kMomentum].chunks = 2;
  none.storages.erase(none.storages.begin() + kMomentum);
  none.groups[0].states = {};
  none.optimizer.states = {};
  more.storages.push_back(
      MakeStorage("variance.block", "variance", Home::ssd, true, {3}, 4, kPage));
  more.groups[0].states.push_back(4);
  more.optimizer.states.push_back({"variance", "bf16"});
  for (const Program &other : {chunks, none, more})
    EXPECT_EQ(OpenStatus(other), absl::OkStatus());
  {
    Store store = Open({Path()});
    CommitWeights(*store, 3);
  }
  EXPECT_EQ(OpenStatus(chunks), absl::OkStatus());
  EXPECT_EQ(OpenStatus(none), absl::OkStatus());
  ExpectMessage(OpenStatus(more), "variance.block has 3 entries of 4 chunks of 4096 bytes in the "
                                  "program and nothing in the state");
}

// Anybody may have written a manifest, and a terminal obeys what it prints.
TEST_F(AbsentTest, BoaStateShowsNamesWithoutControlCharacters) {
  program.model.name = "a\x1b[31m\nb";
  {
    Store store = Create({Path()});
    CommitWeights(*store, 0);
  }
  boa::Manifest manifest = ReadManifest(disk, Path(), /*tables=*/true)->manifest;
  manifest.paths.push_back({"id", "h\x1b", "/nowhere/\x1b[2J\xc3\xa4"});
  SavedCommit commit = manifest.commits[0];
  CommitRecord &record = commit.record;
  record.extra = {{"k\x1b]0;x\a", "v\xc2\x9b"}};
  record.environment = {{"e\r", "\x9b"}};
  record.samples = {{"s\x1b", 1}};
  record.plan = "p\x1b";
  SavedTable &table = commit.tables[0];
  table.storage.name += "\x1b[2J";
  table.tables[0]->storage = table.storage.name;
  table.tables[0]->part = {};
  table.tables[0]->chunks[0].extent.file = 1;
  commit.absent[0].name += "\x1b[2J";
  ASSERT_EQ(WriteCommit(**disk.OpenDirectory(Path()), manifest, commit), absl::OkStatus());
  manifest.commits = {commit};
  for (const char *name : {kManifest, kManifestCopy})
    std::ofstream(Path() + "/" + name, std::ios::binary) << FormatManifest(manifest);
  char *text = nullptr;
  size_t bytes = 0;
  std::FILE *out = open_memstream(&text, &bytes);
  EXPECT_EQ(DescribeState(disk, Path(), /*check=*/false, out), absl::OkStatus());
  std::fclose(out);
  const std::string said(text, bytes);
  std::free(text);
  EXPECT_EQ(said, Printable(said));
  EXPECT_TRUE(absl::StrContains(said, "of a\\x1b[31m\\x0ab, ")) << said;
  EXPECT_TRUE(absl::StrContains(said, "/nowhere/\\x1b[2J\xc3\xa4: ")) << said;
}

TEST_F(AbsentTest, BoaStateAndFromReadWhatIsThere) {
  {
    Store store = Create({Path()});
    CommitWeights(*store, 0);
  }
  char *text = nullptr;
  size_t bytes = 0;
  std::FILE *out = open_memstream(&text, &bytes);
  const absl::Status status = DescribeState(disk, Path(), /*check=*/true, out);
  std::fclose(out);
  const std::string said(text, bytes);
  std::free(text);
  EXPECT_EQ(status, absl::OkStatus());
  EXPECT_TRUE(absl::StrContains(said, "momentum.block           absent: reads as zero")) << said;
  EXPECT_TRUE(absl::StrContains(said, "all 12 chunks of the commits (96.0 KiB) are as")) << said;
  auto reader = CommitReader::Open(disk, Path(), std::nullopt);
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_EQ((*reader)->saved().tables.size(), 1u);
}

} // namespace
} // namespace boa
