//===- commit_files_test.cpp - Files that commits share -------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/state/commit_files.h"
#include "runtime/state/commit_name.h"
#include "runtime/state/extents.h"
#include "runtime/state/inspect.h"
#include "runtime/state/manifest_files.h"
#include "runtime/state/saved_commit.h"
#include "runtime/state/undo.h"
#include "test/runtime/state/state_fixture.h"

#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"

#include <map>
#include <set>

namespace boa {
namespace {

namespace fs = std::filesystem;

class CommitFilesTest : public StateTest {
protected:
  CommitFilesTest() : StateTest(FastDirectory()) { disk.through_cache = true; }

  void Put(const std::string &path, const std::string &text) {
    std::ofstream(path, std::ios::binary) << text;
  }
  /// The names of sealed files of that kind; of all kinds if it is empty.
  std::set<std::string> Names(const std::string &kind = "") {
    std::set<std::string> names;
    for (const fs::directory_entry &entry : fs::directory_iterator(Path()))
      if (const std::string name = entry.path().filename().string();
          IsSealedName(name) && absl::StartsWith(name, kind))
        names.insert(name);
    return names;
  }
  static std::string SumOf(const std::string &name) { return name.substr(name.find('.') + 1, 32); }
  /// Replaces a text in the only file of a kind, and names it in the files above it.
  void Edit(const std::string &kind, const std::string &from, const std::string &to) {
    const std::string name = *Names(kind).begin();
    std::string line = ReadWhole(Path() + "/" + name);
    line.resize(line.find('\n'));
    const size_t at = line.find(from);
    ASSERT_NE(at, std::string::npos) << from << " in " << line;
    line.replace(at, from.size(), to);
    line += "\n";
    line += absl::StrFormat("xxh3 %016x\n", Checksum(line.data(), int64_t(line.size())));
    const std::string sum = NameOfContents(line);
    fs::remove(Path() + "/" + name);
    Put(Path() + "/" + SealedName(kind, sum), line);
    if (kind != "commit")
      return Edit("commit", SumOf(name), sum);
    for (const std::string &manifest : {Manifest(), Copy()}) {
      std::string text = ReadWhole(manifest);
      text = absl::StrReplaceAll(text.substr(0, text.find('\n') + 1), {{SumOf(name), sum}});
      Put(manifest,
          text + absl::StrFormat("xxh3 %016x\n", Checksum(text.data(), int64_t(text.size()))));
    }
  }
};

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

// A million frozen chunks: the first commit writes 28 MB, and the next ones next to nothing.
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
        written += sizes[name] = int64_t(fs::file_size(Path() + "/" + name));
    if (step == 1)
      EXPECT_GT(written, 28'000'000);
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
      EXPECT_EQ(fs::status(Path() + "/" + name).permissions(), permissions) << name;
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
    Put(Path() + "/" + name, "another");
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
        fs::remove(Path() + "/" + name);
        if (damaged)
          Put(Path() + "/" + name, "{\"format\":\"boa-part\"");
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

//===----------------------------------------------------------------------===//
// Damage
//===----------------------------------------------------------------------===//

// Every byte of every file: told, with the file and what to do, and nothing changes. Commits that
// do not need the file can be gone on from.
TEST_F(CommitFilesTest, ALostFileIsTold) {
  Make({Path()}, {1, 2}, 2);
  fs::rename(Path(), Path("whole"));
  std::map<std::string, int64_t> lost; // how many commits, by kind of file
  for (const fs::directory_entry &entry : fs::directory_iterator(Path("whole"))) {
    const std::string name = entry.path().filename().string(),
                      kind = name.substr(0, name.find('.'));
    for (int64_t at = -1; IsSealedName(name) && at < int64_t(entry.file_size()); at += 13)
      for (int64_t step : {1, 2}) {
        SCOPED_TRACE(absl::StrCat(name, " at ", at, ", step ", step));
        fs::remove_all(Path());
        fs::copy(Path("whole"), Path());
        std::string text = ReadWhole(Path() + "/" + name);
        if (at >= 0) {
          text[size_t(at)] = char(text[size_t(at)] ^ 1 << at % 8);
          Put(Path() + "/" + name, text);
        } else {
          fs::remove(Path() + "/" + name);
        }
        const std::string before = Snapshot(Path());
        auto store = StateStore::Open(disk, program, {Path()}, 2, step);
        if (store.ok()) {
          ExpectHolds(**store, step);
          EXPECT_TRUE(absl::StrContains(Notes(**store), name)) << Notes(**store);
          continue;
        }
        lost[kind] += at < 0;
        EXPECT_EQ(store.status().code(), absl::StatusCode::kDataLoss);
        ExpectMessage(store.status(), absl::StrCat("the commit of step ", step, " is lost: "));
        ExpectMessage(store.status(), name);
        ExpectMessage(store.status(), "go on from another commit with --at");
        EXPECT_EQ(Snapshot(Path()), before);
      }
  }
  // Each commit has a part, and both have the model.
  EXPECT_EQ(lost, (std::map<std::string, int64_t>{{"commit", 2}, {"model", 2}, {"part", 2}}));
}

// The last one is not left out in silence, and the next commit goes on beside the other.
TEST_F(CommitFilesTest, AnEarlierCommitIsChosenAndALostOneGoes) {
  Make({Path()}, {1, 2, 3}, 3);
  const boa::Manifest whole = ReadManifest(disk, Path())->manifest;
  fs::remove(Path() + "/" + SealedName(kCommitFile, whole.commits[2].sum));
  ExpectMessage(OpenStatus({Path()}), "the commit of step 3 is lost: cannot open");
  std::FILE *out = std::tmpfile();
  ExpectMessage(DescribeState(disk, Path(), /*check=*/false, out), "the commit of step 3 is lost");
  std::fclose(out);
  ExpectMessage(FindCommit(disk, Path() + "@best").status(), "the commit of step 3 is lost");
  Store store = Open({Path()}, 3, 2);
  EXPECT_TRUE(absl::StrContains(Notes(*store), "the commit of step 3 is lost: ")) << Notes(*store);
  EXPECT_TRUE(absl::StrContains(Notes(*store), ": it is dropped"));
  Commit(*store, 4);
  store.reset();
  EXPECT_EQ(ReadManifest(disk, Path())->manifest.commits.size(), 3u);
  ExpectHolds(*Open({Path()}, 3, 1), 1);
  ExpectWhole({Path()}, 4);
}

// A trainer commits and ends between the reading of the tables and that of the chunks.
TEST_F(CommitFilesTest, ACheckReadsWhatItHasLocked) {
  Make({Path()});
  disk.on_line_of = "Lock " + Path() + "/lock";
  disk.on_line = [&] {
    Store store = Open({Path()});
    for (int64_t step : {2, 3})
      Commit(*store, step);
  };
  std::FILE *out = std::tmpfile();
  EXPECT_EQ(DescribeState(disk, Path(), /*check=*/true, out), absl::OkStatus());
  EXPECT_FALSE(disk.on_line);
  std::fclose(out);
}

TEST_F(CommitFilesTest, EachLostCommitIsTold) {
  Make({Path()}, {1, 2, 3}, 3);
  const boa::Manifest whole = ReadManifest(disk, Path())->manifest;
  std::FILE *out = std::fopen(Path("out").c_str(), "w");
  for (size_t i : {0, 1}) {
    fs::remove(Path() + "/" + SealedName(kCommitFile, whole.commits[i].sum));
    ExpectMessage(DescribeState(disk, Path(), /*check=*/false, out),
                  i == 0 ? "the commit of step 1 is lost" : "2 commits in ");
  }
  std::fclose(out);
  const std::string text = ReadWhole(Path("out"));
  for (const char *told : {"the commit of step 1 is lost", "the commit of step 2 is lost"})
    EXPECT_EQ(text.find(told), text.rfind(told)) << text;
  EXPECT_TRUE(absl::StrContains(text, "the commit of step 2 is lost")) << text;
}

// However many files lack, the manifests are read again once: they are large then.
TEST_F(CommitFilesTest, LostCommitsAreComparedOnce) {
  Make({Path()}, {1, 2, 3, 4, 5, 6}, 6);
  for (const std::string &name : Names("commit"))
    fs::remove(Path() + "/" + name);
  disk.calls.clear();
  absl::StatusOr<ReadManifests> read = ReadManifest(disk, Path());
  ASSERT_TRUE(read.ok()) << read.status();
  for (const SavedCommit &commit : read->manifest.commits)
    ExpectMessage(commit.fault, "is lost");
  EXPECT_EQ(std::count(disk.calls.begin(), disk.calls.end(), "Read " + Manifest()), 2);
}

// An error of the disk says nothing about the commit. Others can be gone on from, and it stays as
// it is, with all that it may name.
TEST_F(CommitFilesTest, WhatTheDiskCannotReadIsNoDamage) {
  Make({Path()}, {1, 2}, 3);
  fs::rename(Path(), Path("whole"));
  int opened = 0;
  for (const fs::directory_entry &entry : fs::directory_iterator(Path("whole")))
    for (int64_t step : {1, 2}) {
      const std::string name = entry.path().filename().string();
      SCOPED_TRACE(absl::StrCat(name, ", step ", step));
      if (!IsSealedName(name))
        continue;
      fs::remove_all(Path());
      fs::copy(Path("whole"), Path());
      const std::string before = Snapshot(Path());
      disk.fail_at_line = "Read " + Path() + "/" + name;
      auto store = StateStore::Open(disk, program, {Path()}, 4, step);
      if (!store.ok()) {
        ExpectMessage(store.status(), "made to fail: " + disk.fail_at_line);
        ExpectMessage(store.status(), "If the file stays unreadable, remove it");
        EXPECT_EQ(store.status().code(), absl::StatusCode::kUnknown);
        EXPECT_EQ(Snapshot(Path()), before);
      } else {
        ++opened;
        EXPECT_TRUE(absl::StrContains(Notes(**store), "made to fail")) << Notes(**store);
        // If it is the later one, the next commit drops it.
        for (int64_t next : {3, 4})
          if (step == 2)
            Commit(**store, next);
      }
      disk.fail_at_line = "";
      store = absl::NotFoundError("closed");
      if (step == 2)
        ExpectHolds(*Open({Path()}, 4, 1), 1);
      ExpectHolds(*Open({Path()}, 4, step), step);
    }
  EXPECT_EQ(opened, 4); // with the other's commit file and part
}

// Sums that fit over contents that do not.
TEST_F(CommitFilesTest, EntriesOutOfRangeAreRefused) {
  Make({Path()});
  const std::string part = ReadWhole(Path() + "/" + *Names("part").begin());
  const size_t place = part.find("\"chunks\":\"") + 10;
  const std::string first = part.substr(place, 12), second = part.substr(place + 28, 12);
  const std::string id = ReadManifest(disk, Path())->manifest.paths[0].id;
  const std::string kOut = "an entry is missing or out of range",
                    kTiles = "its parts do not have each chunk of ";
  struct Case {
    std::string kind, from, to, message;
  };
  for (const Case &c : std::vector<Case>{
           {"commit", "\"step\":1", "\"step\":-1", kOut},
           {"commit", "\"step\":1", absl::StrCat("\"step\":", kMostStep + 1), kOut},
           {"commit", "\"step\":1", "\"step\":2", "its step is not that of the manifest"},
           {"commit", "\"entries\":3", "\"entries\":4", kTiles + "weights.block once"},
           {"commit", "\"chunks\":4,\"entries\":3", "\"chunks\":2147483647,\"entries\":2147483648",
            kTiles},
           {"commit", "[[0,0]]", "[[0,0],[0,0]]", kTiles},
           {"commit", "[[0,0]]", "[[0,1]]", kTiles},
           {"commit", "[[0,0]]", "[[0,2]]", kTiles},
           {"commit", "[[0,0]]", "[[1,0]]", kOut},
           {"commit", "[[0,0]]", "[[0,0,0]]", kOut},
           {"commit", "\"bytes\":4096", "\"bytes\":4097", kOut},
           {"commit", "\"bytes\":4096", "\"bytes\":8192", kTiles},
           {"commit", "\"bytes\":4096", absl::StrCat("\"bytes\":", kMostChunkBytes + kPage), kOut},
           {"commit", "\"name\":\"weights.block\"", "\"name\":\"momentum.block\"", kOut},
           {"commit", "\"plan\":", "\"plan\":\"\",\"planet\":", kOut},
           {"commit", "\"plan\":\"\"", "\"plan\":\"" + std::string(kMostPlan + 1, 'a') + "\"",
            kOut},
           {"commit", "\"samples\":{", "\"samples\":{\"text\":-1", kOut},
           {"commit", "\"samples\":{", "\"validation_loss\":\"1\",\"samples\":{", kOut},
           {"commit", "\"environment\":{", "\"environment\":{\"driver\":1", kOut},
           {"commit", "\"extra\":{", R"("extra":{"\\x76ersion":"1",)", kOut},
           {"commit", "\"shards\":1", "\"shards\":0", kOut},
           {"commit", "\"shards\":1", "\"shards\":2",
            "was made by a newer Boa: it has sums of 2 shards"},
           {"commit", "\"paths\":[", "\"paths\":[\"unknown\",", kOut},
           {"commit", absl::StrCat("\"paths\":[\"", id, "\"]"), "\"paths\":[]",
            "it does not list a path of "},
           {"commit", "\"model\":\"", "\"model\":\"0", kOut},
           {"model", "\"hash\":\"\"", "\"hash\":\"half\"", kOut},
           {"model", "\"shape\":[64,128]", "\"shape\":[4294967296,4294967296]", kOut},
           {"model", "\"parameters\":[",
            R"("parameters":[{"name":"block.qkv","offset":0,"shape":[1]},)", kOut},
           {"part", "\"step\":1", "\"step\":0", kOut},
           {"part", "\"step\":1", "\"step\":2", kTiles},
           {"part", "\"first\":0", "\"first\":1", kTiles},
           {"part", "\"paths\":[", "\"paths\":[\"unknown\",", kTiles},
           {"part", "\"chunks\":\"", "\"chunks\":\"0", kOut},
           {"part", first, "01" + first.substr(2), kOut},
           {"part", first, "000000000000", kOut},
           {"part", first, "00" + std::string(7, '0') + "fff", "is truncated"},
           {"part", first, second, "have one place"}}) {
    SCOPED_TRACE(c.kind + ": " + c.from + " -> " + c.to.substr(0, 80));
    fs::copy(Path(), Path("kept"));
    Edit(c.kind, c.from, c.to);
    const std::string before = Snapshot(Path());
    ExpectMessage(OpenStatus({Path()}), c.message);
    EXPECT_EQ(Snapshot(Path()), before);
    fs::remove_all(Path());
    fs::rename(Path("kept"), Path());
  }
}

// Sums of elements are made before the tables are read.
TEST_F(CommitFilesTest, MoreElementsThanFilesHoldAreRefused) {
  Make({Path()});
  Edit("model", "\"shape\":[64,128]", "\"shape\":[68719476736],\"split\":0");
  Edit("commit", "\"entries\":3,\"name\":\"weights", "\"entries\":2147483648,\"name\":\"weights");
  ExpectMessage(OpenStatus({Path()}), "it has more elements than files hold");
}

// The sizes of two files do not multiply: a set of half a terabyte would be needed.
TEST_F(CommitFilesTest, ATableThatIsListedOftenIsNotCountedOften) {
  auto one = std::make_shared<ChunkTable>();
  one->chunk_bytes = kPage;
  one->chunks.resize(1 << 20);
  SavedTable table;
  table.tables.assign(1 << 22, one);
  table.storage = {"", "", 1 << 22, 1 << 20, kPage};
  EXPECT_FALSE(IsTiled(table));
}

// Tables of several owners, as ranks write them: each has every so many chunks.
TEST_F(CommitFilesTest, TablesOfRanksAreRead) {
  Make({Path()});
  std::string part = ReadWhole(Path() + "/" + *Names("part").begin());
  const size_t begin = part.find("\"chunks\":\"") + 10, end = part.find('"', begin);
  const std::string chunks = part.substr(begin, end - begin);
  ASSERT_EQ(chunks.size(), 12u * 28);
  std::string even, odd;
  for (size_t i = 0; i < 12; ++i)
    (i % 2 ? odd : even) += chunks.substr(i * 28, 28);
  const size_t table = part.rfind('{', begin);
  std::string frame = part.substr(table, begin - table);
  ASSERT_TRUE(absl::StrContains(frame, "\"first\":0,\"step\":1"));
  auto of = [&](const std::string &first, const std::string &places) {
    return absl::StrReplaceAll(frame, {{"\"first\":0,\"step\":1", first}}) + places + "\"}";
  };
  const bool weights_first = absl::StrContains(frame, "weights.block");
  Edit("part", part.substr(table, end + 2 - table),
       of("\"first\":0,\"step\":2", even) + "," + of("\"first\":1,\"step\":2", odd));
  ASSERT_TRUE(weights_first);
  Edit("commit", "[[0,1]]", "[[0,2]]");
  Edit("commit", "[[0,0]]", "[[0,1],[0,0]]");
  Store store = Open({Path()}, 2);
  ASSERT_TRUE(store);
  ExpectHolds(*store, 1);
  Commit(*store, 2);
  ExpectHolds(*store, 2);
  store.reset();
  ExpectHolds(*Open({Path()}, 2, 1), 1);
}

TEST_F(CommitFilesTest, AllFieldsComeBack) {
  const std::vector<SavedPath> paths = {{"a", "", "/a"}, {"b", "", "/b"}};
  SavedModel model = {{{"block.w", 4, {8, 2}, 1}}, {2, "block: gelu\n\xff", "c0ffee"}, ""};
  model.sum = NameOfContents(FormatModel(model));
  absl::StatusOr<SavedModel> of = ParseModel(FormatModel(model), "model");
  ASSERT_TRUE(of.ok()) << of.status();
  EXPECT_EQ(of->parameters, model.parameters);
  EXPECT_EQ(of->computation.text, model.computation.text);
  EXPECT_EQ(FormatModel(*of), FormatModel(model));
  SavedCommit one;
  one.record.step = 9;
  one.record.time = 10;
  one.record.extra = {{"data", "\xff"}};
  one.record.plan = "vertical\n";
  one.record.environment = {{"driver", "1"}};
  one.record.samples = {{"text \xff", 11}};
  one.record.validation_loss = 0.1;
  one.record.validated_on = "data";
  one.shards = 12;
  one.model = std::make_shared<const SavedModel>(model);
  one.paths = {1};
  one.parts = {{0, std::string(32, 'a')}, {1, std::string(32, 'b')}};
  one.tables = {{{"weights.block", "weights", 3, 4, kPage}, {}, {{1, 7}, {0, 8}}}};
  one.absent = {{"momentum", "momentum", 3, 4, kPage}};
  std::string sum;
  absl::StatusOr<SavedCommit> other = ParseCommit(FormatCommit(one, paths), "commit", paths, sum);
  ASSERT_TRUE(other.ok()) << other.status();
  EXPECT_EQ(sum, model.sum);
  EXPECT_EQ(other->record.extra, one.record.extra);
  EXPECT_EQ(other->record.plan, "vertical\n");
  EXPECT_EQ(other->record.environment, one.record.environment);
  EXPECT_EQ(other->record.samples, one.record.samples);
  EXPECT_EQ(other->record.validation_loss, 0.1);
  EXPECT_EQ(other->record.validated_on, "data");
  ASSERT_EQ(other->absent.size(), 1u);
  EXPECT_EQ(other->absent[0].name, "momentum");
  other->model = one.model;
  EXPECT_EQ(FormatCommit(*other, paths), FormatCommit(one, paths));
}

} // namespace
} // namespace boa
