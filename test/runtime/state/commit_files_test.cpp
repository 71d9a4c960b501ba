//===- commit_files_test.cpp - Files that commits share -------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/state/extents.h"
#include "runtime/state/undo.h"
#include "test/runtime/state/commit_files_fixture.h"

#include <map>

namespace boa {
namespace {

//===----------------------------------------------------------------------===//
// Sharing
//===----------------------------------------------------------------------===//

TEST_F(CommitFilesTest, ACommitWritesWhatChanged) {
  Store store = Create({Path()}, /*keep=*/3);
  Commit(*store, 1);
  const std::set<std::string> first = Names("part");
  EXPECT_EQ(first.size(), 1u);
  EXPECT_EQ(Names("model").size(), 1u);
  // Nothing changed: the same part.
  ASSERT_EQ(store->Commit(Record(2)), absl::OkStatus());
  EXPECT_EQ(Names("part"), first);
  EXPECT_EQ(Names("commit").size(), 2u);
  // One chunk of one storage did: its table is new, that of the other storage is not.
  ASSERT_TRUE(WriteChunk(*store, 3, kMomentum, 1, 1));
  ASSERT_EQ(store->Commit(Record(3)), absl::OkStatus());
  std::set<std::string> parts = Names("part");
  ASSERT_EQ(parts.size(), 2u);
  parts.erase(*first.begin());
  const std::string text = ReadWhole(Path() + "/" + *parts.begin());
  EXPECT_TRUE(absl::StrContains(text, "momentum.block"));
  EXPECT_FALSE(absl::StrContains(text, "weights.block"));
  store.reset();
  for (int64_t step : {1, 2})
    ExpectHolds(*Open({Path()}, 3, step), 1);
  store = Open({Path()}, 3);
  EXPECT_EQ(Names("part").size(), 2u);
  // Of the next process, too.
  ASSERT_EQ(store->Commit(Record(4)), absl::OkStatus());
  EXPECT_EQ(Names("part").size(), 2u);
  EXPECT_EQ(Names("commit").size(), 3u); // that of step 1 went
  EXPECT_EQ(Names("model").size(), 1u);
}

/// The program of LoRA: frozen weights and trained ones.
Program MakeLora(int64_t entries, int32_t chunks) {
  Program program;
  program.storages = {
      MakeStorage("weights.frozen.block", "weights", Home::ssd, true, {entries}, chunks, kPage),
      MakeStorage("weights.block", "weights", Home::ssd, true, {entries}, 1, kPage)};
  return program;
}

// A million frozen chunks: the first commit writes 56 MB, and the next ones next to nothing.
TEST_F(CommitFilesTest, ACommitOfLoraIsSmall) {
  fs::create_directory(Path());
  const Program lora = MakeLora(1000, 1000);
  const std::shared_ptr<Directory> home = *SystemFiles().OpenDirectory(Path());
  boa::Manifest manifest;
  manifest.paths = {{"id", "", Path()}};
  Extents extents(lora, 1, [](int32_t, int64_t) { return absl::OkStatus(); });
  ASSERT_EQ(extents.Claim({}, {{"data", kPage}}), absl::OkStatus());
  ASSERT_EQ(extents.Begin(extents.BytesNeeded(2)), absl::OkStatus());
  std::map<std::string, int64_t> sizes;
  for (int64_t step : {1, 2, 3}) {
    for (int32_t storage = step == 1 ? 0 : 1; storage < 2; ++storage)
      for (int64_t entry = 0; entry < 1000; ++entry)
        for (int32_t chunk = 0; chunk < lora.storages[size_t(storage)].chunks; ++chunk) {
          absl::StatusOr<Extent> next = extents.Next(storage, entry, chunk);
          ASSERT_TRUE(next.ok());
          extents.SetChecksum(*next, uint64_t(step));
        }
    absl::StatusOr<SavedCommit> commit = extents.Contents();
    ASSERT_TRUE(commit.ok()) << commit.status();
    commit->record = Record(step);
    commit->model = ModelOf(lora);
    ASSERT_EQ(WriteCommit(*home, manifest, *commit), absl::OkStatus());
    manifest.commits.push_back(*commit);
    extents.Committed(manifest.commits, {});
    int64_t written = 0;
    for (const std::string &name : Names())
      if (sizes.insert({name, 0}).second)
        written += sizes[name] = 2 * int64_t(fs::file_size(Path() + "/" + name)); // with its copy
    if (step == 1)
      EXPECT_GT(written, 56'000'000);
    else
      EXPECT_LT(written, 100'000);
  }
}

// A commit reads neither the files of others nor their names from the disk, however many it keeps.
TEST_F(CommitFilesTest, ACommitOfManyReadsNoOthers) {
  Store store = Create({Path()}, /*keep=*/40);
  std::vector<std::string> before;
  for (int64_t step = 1; step <= 40; ++step) {
    disk.calls.clear();
    Commit(*store, step);
    std::vector<std::string> reads;
    for (const std::string &call : disk.calls)
      if (absl::StartsWith(call, "Read "))
        reads.push_back(call);
    if (step > 2)
      EXPECT_EQ(reads, before);
    before = reads;
  }
  store.reset();
  // An opening reads each file once.
  disk.calls.clear();
  store = Open({Path()}, 40);
  for (const std::string &name : Names())
    EXPECT_LE(std::count(disk.calls.begin(), disk.calls.end(), "Read " + Path() + "/" + name), 2)
        << name; // before it has the locks, and then
  ExpectHolds(*store, 40);
}

//===----------------------------------------------------------------------===//
// What goes and what stays
//===----------------------------------------------------------------------===//

TEST_F(CommitFilesTest, OnlyUnnamedFilesOfThisFormGo) {
  Make({Path()}, {1, 2}, 2);
  const std::string sum(32, 'a');
  std::set<std::string> kept = Names();
  EXPECT_EQ(kept.size(), 5u); // two commits, two parts, a model
  std::vector<std::string> foreign = {"part." + sum + ".parquet",
                                      "part." + sum + ".json.bak",
                                      "part." + sum + "a.json",
                                      "part." + std::string(32, 'A') + ".json",
                                      "model.json",
                                      "commit." + sum,
                                      "parts." + sum + ".json",
                                      "part." + sum + ".json.tmp.tmp"};
  for (const std::string &name : foreign)
    Put(Path() + "/" + name, "mine");
  // Other programs also have names with hashes.
  const std::string other(32, 'b');
  for (const std::string &name : {"model." + other + ".json", "part." + other + ".json.tmp"}) {
    foreign.push_back(name);
    Put(Path() + "/" + name, "mine");
  }
  const std::map<std::string, std::string> left = {
      {"part." + sum + ".json", "{\"format\":\"boa-part\",\"version\":4,"},
      {"commit." + sum + ".json", "{\"format\":\"boa-commit\","},
      {"model." + sum + ".json", "{\"format\":\"boa-model\","},
      {"part." + sum + ".copy.json", "{\"format\":\"boa-part\",\"version\":4,"},
      {"part." + sum + ".json.tmp", "{\"form"},
      {"commit." + sum + ".json.tmp", ""},
      {"model." + sum + ".json.tmp", std::string(100, '\0')}};
  for (bool opens : {true, false}) {
    Store store = Open({Path()}, 2);
    if (opens)
      store.reset();
    for (const auto &[name, text] : left)
      Put(Path() + "/" + name, text);
    if (opens)
      store = Open({Path()}, 2);
    else
      Commit(*store, 3);
    for (const auto &[name, text] : left)
      EXPECT_FALSE(fs::exists(Path() + "/" + name)) << name;
  }
  for (const std::string &name : foreign)
    EXPECT_EQ(ReadWhole(Path() + "/" + name), "mine") << name;
  EXPECT_EQ(Names().size(), 7u);
  ExpectHolds(*Open({Path()}, 2, 2), 2);
  ExpectHolds(*Open({Path()}, 2), 3);
}

// Where the folder is shared with a group, its members read commits. Files that commits share
// follow the manifest, too.
TEST_F(CommitFilesTest, NewCommitsHaveThePermissionsOfTheManifest) {
  Store store = Create({Path()});
  auto expect = [&](fs::perms permissions) {
    for (const std::string &name : Names())
      for (const std::string &one : {name, CopyOf(name)})
        EXPECT_EQ(fs::status(Path() + "/" + one).permissions(), permissions) << one;
  };
  Commit(*store, 1);
  expect(fs::perms(0600));
  int64_t step = 1;
  for (int mode : {0660, 0600}) {
    fs::permissions(Manifest(), fs::perms(mode));
    ASSERT_EQ(store->Commit(Record(++step)), absl::OkStatus());
    expect(fs::perms(mode));
  }
}

// A file that was left by anybody is not taken for that of its name.
TEST_F(CommitFilesTest, AnotherFileOfTheNameIsReplaced) {
  Make({Path()});
  Store store = Open({Path()}, 2);
  const std::set<std::string> before = Names();
  fs::copy(Path(), Path("copy"));
  Commit(*store, 2);
  std::set<std::string> made = Names();
  for (const std::string &name : before)
    made.erase(name);
  ASSERT_EQ(made.size(), 2u);
  store.reset();
  for (const std::string &name : made) {
    fs::remove_all(Path());
    fs::copy(Path("copy"), Path());
    store = Open({Path()}, 2);
    PutBoth(name, "another");
    Commit(*store, 2);
    store.reset();
    ExpectWhole({Path()}, 2);
  }
}

// Commits share a part and the model. One that is made after a file of them went is whole.
TEST_F(CommitFilesTest, ACommitWritesAgainWhatItSharesAndWent) {
  Store store = Create({Path()}, 3);
  Commit(*store, 1);
  int64_t step = 1;
  for (bool damaged : {false, true})
    for (const char *kind : {"part", "model"}) {
      ASSERT_TRUE(WriteChunk(*store, 1, kMomentum, 1, 1));
      ASSERT_EQ(store->Commit(Record(++step)), absl::OkStatus());
      for (const std::string &name : Names(kind)) {
        Remove(name);
        if (damaged)
          PutBoth(name, "{\"format\":\"boa-part\"");
      }
      ASSERT_EQ(store->Commit(Record(++step)), absl::OkStatus());
      store.reset();
      store = Open({Path()}, 3);
      ASSERT_TRUE(store);
      ExpectHolds(*store, 1);
    }
}

// A process that dies while it removes what it made leaves a whole state, or no manifest.
TEST_F(CommitFilesTest, UndoLeavesNoManifestWithoutItsFiles) {
  bool hit = true;
  for (int64_t call = 1; hit; ++call) {
    SCOPED_TRACE(call);
    fs::remove_all(Path());
    Make({Path()});
    {
      Undo undo(disk);
      const std::shared_ptr<Directory> folder = *disk.OpenDirectory(Path());
      for (const char *name : {"lock", kManifest, kManifestCopy, "data"})
        undo.AddFile(folder, name);
      undo.AddCommits(folder);
      disk.FailAt(call, FaultyFiles::kDead);
    }
    hit = disk.hit;
    disk.Heal();
    if (Exists(Path()))
      ExpectWhole({Path()}, 1);
  }
  EXPECT_TRUE(fs::is_empty(Path()));
}

} // namespace
} // namespace boa
