//===- lost_files_test.cpp - Files of commits that lack or are damaged ----===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/state/commit_name.h"
#include "runtime/state/inspect.h"
#include "test/runtime/state/commit_files_fixture.h"

#include <map>

namespace boa {
namespace {

using LostFilesTest = CommitFilesTest;

// Every byte of every file: told, with the file and what to do, and nothing changes. Commits that
// do not need the file can be gone on from.
TEST_F(LostFilesTest, ALostFileIsTold) {
  Make({Path()}, {1, 2}, 2);
  fs::rename(Path(), Path("whole"));
  std::map<std::string, int64_t> lost; // how many commits, by kind of file
  for (const fs::directory_entry &entry : fs::directory_iterator(Path("whole"))) {
    const std::string name = entry.path().filename().string(),
                      kind = name.substr(0, name.find('.'));
    if (!IsSealedName(name) || absl::StrContains(name, ".copy"))
      continue;
    for (int64_t at = -1; at < int64_t(entry.file_size()); at += 13)
      for (int64_t step : {1, 2}) {
        SCOPED_TRACE(absl::StrCat(name, " at ", at, ", step ", step));
        fs::remove_all(Path());
        fs::copy(Path("whole"), Path());
        std::string text = ReadWhole(Path() + "/" + name);
        if (at >= 0) {
          text[size_t(at)] = char(text[size_t(at)] ^ 1 << at % 8);
          PutBoth(name, text);
        } else {
          Remove(name);
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
        ExpectMessage(store.status(), "go on from another commit (--at, or DIR@STEP)");
        EXPECT_EQ(Snapshot(Path()), before);
      }
  }
  // Each commit has a part, and both have the model.
  EXPECT_EQ(lost, (std::map<std::string, int64_t>{{"commit", 2}, {"model", 2}, {"part", 2}}));
}

// The last one is not left out in silence, and the next commit goes on beside the other.
TEST_F(LostFilesTest, AnEarlierCommitIsChosenAndALostOneGoes) {
  Make({Path()}, {1, 2, 3}, 3);
  const boa::Manifest whole = ReadManifest(disk, Path())->manifest;
  Remove(SealedName(kCommitFile, whole.commits[2].sum));
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
TEST_F(LostFilesTest, ACheckReadsWhatItHasLocked) {
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

TEST_F(LostFilesTest, EachLostCommitIsTold) {
  Make({Path()}, {1, 2, 3}, 3);
  const boa::Manifest whole = ReadManifest(disk, Path())->manifest;
  std::FILE *out = std::fopen(Path("out").c_str(), "w");
  for (size_t i : {0, 1}) {
    Remove(SealedName(kCommitFile, whole.commits[i].sum));
    ExpectMessage(DescribeState(disk, Path(), /*check=*/false, out),
                  i == 0 ? "the commit of step 1 is lost" : "2 commits in ");
  }
  std::fclose(out);
  const std::string text = ReadWhole(Path("out"));
  for (const char *told : {"the commit of step 1 is lost", "the commit of step 2 is lost"})
    EXPECT_EQ(text.find(told), text.rfind(told)) << text;
  EXPECT_TRUE(absl::StrContains(text, "the commit of step 2 is lost")) << text;
}

// Either copy serves, whatever happened to the other one. It is told, and the next commit has both.
TEST_F(LostFilesTest, OneCopyIsEnough) {
  Make({Path()}, {1, 2}, 2);
  fs::rename(Path(), Path("whole"));
  int copies = 0;
  for (const fs::directory_entry &entry : fs::directory_iterator(Path("whole"))) {
    const std::string name = entry.path().filename().string();
    if (!IsSealedName(name))
      continue;
    ++copies;
    for (const char *fault : {"missing", "damaged", "unreadable"}) {
      SCOPED_TRACE(absl::StrCat(name, " is ", fault));
      fs::remove_all(Path());
      fs::copy(Path("whole"), Path());
      if (*fault == 'm')
        fs::remove(Path() + "/" + name);
      else if (*fault == 'd')
        fs::resize_file(Path() + "/" + name, fs::file_size(Path() + "/" + name) - 1);
      else
        disk.fail_at_line = "Read " + Path() + "/" + name;
      Store store = Open({Path()}, 2);
      disk.fail_at_line = "";
      ASSERT_TRUE(store);
      const bool first = !absl::StrContains(name, ".copy"); // of the two, which is read first
      for (const std::string &told : {name, std::string("its copy is taken")})
        EXPECT_EQ(absl::StrContains(Notes(*store), told), first) << Notes(*store);
      ExpectHolds(*store, 2);
      for (int64_t step : {3, 4})
        Commit(*store, step);
      store.reset();
      for (const std::string &one : Names()) {
        const std::string text = ReadWhole(Path() + "/" + one);
        EXPECT_EQ(NameOfContents(text), SumOf(one));
        EXPECT_EQ(text, ReadWhole(Path() + "/" + CopyOf(one)));
      }
      ExpectHolds(*Open({Path()}, 2, 3), 3);
    }
  }
  EXPECT_EQ(copies, 10); // two commits, two parts, a model
}

// What cannot be read may be whole, also if the copy is lost.
TEST_F(LostFilesTest, AnUnreadableCopyIsNoLoss) {
  Make({Path()}, {1, 2}, 2);
  for (bool copy : {false, true}) {
    const std::string name = *Names("model").begin(), other = CopyOf(name);
    fs::copy(Path(), Path("kept"));
    fs::remove(Path() + "/" + (copy ? name : other));
    disk.fail_at_line = "Read " + Path() + "/" + (copy ? other : name);
    EXPECT_EQ(OpenStatus({Path()}).code(), absl::StatusCode::kUnknown);
    disk.fail_at_line = "";
    fs::remove_all(Path());
    fs::rename(Path("kept"), Path());
  }
}

// However many files lack, the manifests are read again once: they are large then.
TEST_F(LostFilesTest, LostCommitsAreComparedOnce) {
  Make({Path()}, {1, 2, 3, 4, 5, 6}, 6);
  for (const std::string &name : Names("commit"))
    Remove(name);
  disk.calls.clear();
  absl::StatusOr<ReadManifests> read = ReadManifest(disk, Path());
  ASSERT_TRUE(read.ok()) << read.status();
  for (const SavedCommit &commit : read->manifest.commits)
    ExpectMessage(commit.fault, "is lost");
  EXPECT_EQ(std::count(disk.calls.begin(), disk.calls.end(), "Read " + Manifest()), 2);
}

// An error of the disk says nothing about the commit. Others can be gone on from, and it stays as
// it is, with all that it may name.
TEST_F(LostFilesTest, WhatTheDiskCannotReadIsNoDamage) {
  Make({Path()}, {1, 2}, 3);
  fs::rename(Path(), Path("whole"));
  int opened = 0;
  for (const fs::directory_entry &entry : fs::directory_iterator(Path("whole")))
    for (int64_t step : {1, 2}) {
      const std::string name = entry.path().filename().string();
      SCOPED_TRACE(absl::StrCat(name, ", step ", step));
      if (!IsSealedName(name) || absl::StrContains(name, ".copy"))
        continue;
      fs::remove_all(Path());
      fs::copy(Path("whole"), Path());
      fs::remove(Path() + "/" + CopyOf(name));
      const std::string before = Snapshot(Path());
      disk.fail_at_line = "Read " + Path() + "/" + name;
      auto store = StateStore::Open(disk, program, {Path()}, 4, step);
      if (!store.ok()) {
        ExpectMessage(store.status(), "made to fail: " + disk.fail_at_line);
        ExpectMessage(store.status(), "If the file stays unreadable, remove it and its copy");
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

// It may be the best one. A later commit goes first.
TEST_F(LostFilesTest, ACommitThatCannotBeReadStaysWhileAnotherCanGo) {
  Make({Path()}, {1, 2}, 2);
  const std::string sum = ReadManifest(disk, Path())->manifest.commits[0].sum;
  fs::remove(Path() + "/" + SealedName(kCommitFile, sum, /*copy=*/true));
  disk.fail_at_line = "Read " + Path() + "/" + SealedName(kCommitFile, sum);
  Store store = Open({Path()}, 2);
  Commit(*store, 3);
  disk.fail_at_line = "";
  store.reset();
  EXPECT_EQ(ReadManifest(disk, Path())->manifest.commits.size(), 2u);
  ExpectHolds(*Open({Path()}, 2, 1), 1);
  ExpectHolds(*Open({Path()}, 2, 3), 3);
}

// Sums that fit over contents that do not.
TEST_F(LostFilesTest, EntriesOutOfRangeAreRefused) {
  Make({Path()});
  const std::string part = ReadWhole(Path() + "/" + *Names("part").begin());
  const size_t place = part.find("\"chunks\":\"") + 10;
  const std::string first = part.substr(place, 12), second = part.substr(place + 28, 12);
  const std::string id = ReadManifest(disk, Path())->manifest.paths[0].id;
  const std::string kOut = "an entry is missing or out of range",
                    kTiles = "its parts do not have each chunk of ",
                    kOther = "is the state of another model or optimizer";
  struct Case {
    std::string kind, from, to, message;
  };
  for (const Case &c : std::vector<Case>{
           {"commit", "\"step\":1", "\"step\":-1", kOut},
           {"commit", "\"step\":1", absl::StrCat("\"step\":", kMostStep + 1), kOut},
           {"commit", "\"step\":1", "\"step\":2", "its step is not that of the manifest"},
           {"commit", "\"entries\":3", "\"entries\":4", kOther},
           {"commit", "\"chunks\":4,\"entries\":3", "\"chunks\":2147483647,\"entries\":2147483648",
            kOther},
           {"commit", "[[0,0]]", "[[0,0],[0,0]]", kTiles},
           {"commit", "[[0,0]]", "[[0,1]]", kTiles},
           {"commit", "[[0,0]]", "[[0,2]]", kTiles},
           {"commit", "[[0,0]]", "[[1,0]]", kOut},
           {"commit", "[[0,0]]", "[[0,0,0]]", kOut},
           {"commit", "\"bytes\":4096", "\"bytes\":4097", kOut},
           {"commit", "\"bytes\":4096", "\"bytes\":8192", kOther},
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
TEST_F(LostFilesTest, MoreElementsThanFilesHoldAreRefused) {
  Make({Path()});
  Edit("model", "\"shape\":[64,128]", "\"shape\":[68719476736],\"split\":0");
  Edit("commit", "\"entries\":3,\"name\":\"weights", "\"entries\":2147483648,\"name\":\"weights");
  ExpectMessage(OpenStatus({Path()}), "it has more elements than files hold");
}

// The sizes of two files do not multiply: a set of half a terabyte would be needed.
TEST_F(LostFilesTest, ATableThatIsListedOftenIsNotCountedOften) {
  auto one = std::make_shared<ChunkTable>();
  one->chunk_bytes = kPage;
  one->chunks.resize(1 << 20);
  SavedTable table;
  table.tables.assign(1 << 22, one);
  table.storage = {"", "", 1 << 22, 1 << 20, kPage};
  EXPECT_FALSE(IsTiled(table));
}

// Tables of several owners, as ranks write them: each has every so many chunks.
TEST_F(LostFilesTest, TablesOfRanksAreRead) {
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

TEST_F(LostFilesTest, AllFieldsComeBack) {
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
