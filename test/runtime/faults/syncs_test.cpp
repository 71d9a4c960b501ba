//===- syncs_test.cpp - The order of syncs that the kernel sees -----------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The simulated disk shows that a state needs its syncs. Here the real file system is seen to
// make them: on the right descriptors, in order, and with their errors.
//
//===----------------------------------------------------------------------===//
#include "runtime/io/file_system.h"
#include "runtime/io/new_file.h"
#include "runtime/state/manifest_files.h"
#include "test/runtime/faults/calls.h"
#include "test/runtime/state/state_fixture.h"

#include "absl/strings/match.h"

#include <algorithm>
#include <cerrno>
#include <regex>

namespace boa {
namespace {

using Lines = std::vector<std::string>;

class SyncTest : public StateTest {
protected:
  void TearDown() override { calls::Clear(); }

  /// The writes, syncs, renames and links of `run`.
  Lines Record(const std::function<void()> &run) {
    calls::Record();
    run();
    Lines lines = calls::Recorded();
    lines.erase(
        std::remove_if(lines.begin(), lines.end(),
                       [](const std::string &line) { return absl::StartsWith(line, "pread "); }),
        lines.end());
    for (std::string &line : lines) // names by hashes
      line = std::regex_replace(line, std::regex("[0-9a-f]{32}"), "SUM");
    return lines;
  }
};

const Lines kCommit = {"pwrite data",
                       "fsync data",
                       "pwrite part.SUM.json.tmp",
                       "fsync part.SUM.json.tmp",
                       "rename part.SUM.json.tmp part.SUM.json",
                       "pwrite part.SUM.copy.json.tmp",
                       "fsync part.SUM.copy.json.tmp",
                       "rename part.SUM.copy.json.tmp part.SUM.copy.json",
                       "pwrite commit.SUM.json.tmp",
                       "fsync commit.SUM.json.tmp",
                       "rename commit.SUM.json.tmp commit.SUM.json",
                       "pwrite commit.SUM.copy.json.tmp",
                       "fsync commit.SUM.copy.json.tmp",
                       "rename commit.SUM.copy.json.tmp commit.SUM.copy.json",
                       "fsync state",
                       "pwrite manifest.json.tmp",
                       "fsync manifest.json.tmp",
                       "rename manifest.json.tmp manifest.json",
                       "fsync state",
                       "pwrite manifest.copy.json.tmp",
                       "fsync manifest.copy.json.tmp",
                       "rename manifest.copy.json.tmp manifest.copy.json",
                       "fsync state"};

// Data before the files of the commit, these before the manifest that names them, each file before
// its rename, then the directory.
TEST_F(SyncTest, ACommitSyncsInOrder) {
  Store store = Create({Path()});
  Lines first = kCommit;
  first.insert(first.begin() + 8,
               {"pwrite model.SUM.json.tmp", "fsync model.SUM.json.tmp",
                "rename model.SUM.json.tmp model.SUM.json", "pwrite model.SUM.copy.json.tmp",
                "fsync model.SUM.copy.json.tmp",
                "rename model.SUM.copy.json.tmp model.SUM.copy.json"});
  EXPECT_EQ(Record([&] { Commit(*store, 1); }), first);
  for (int64_t step : {2, 3})
    EXPECT_EQ(Record([&] { Commit(*store, step); }), kCommit);
}

// A server that is away from some call on has lost nothing. Else the commit would be dropped, and
// its files removed.
TEST_F(SyncTest, NoErrorOfTheSystemIsALoss) {
  Make({Path()}, {1, 2}, 2);
  const auto read = [&] { return ReadManifest(SystemFiles(), Path(), /*tables=*/true); };
  for (const char *call : {"open", "pread"})
    for (int error = 1; error <= 133; ++error) {
      // With these errors there is no file: nothing stands there, or a link, or a directory.
      if (error == ENOENT || error == ENOTDIR || error == ELOOP || error == EISDIR ||
          error == EINTR)
        continue;
      for (int64_t at = 0;; ++at) {
        SCOPED_TRACE(absl::StrCat(call, " ", at, ": errno ", error));
        calls::Inject({call, at, /*times=*/1000, error});
        const absl::StatusOr<ReadManifests> found = read();
        calls::Clear();
        if (!found.ok()) {
          ASSERT_FALSE(absl::IsNotFound(found.status())) << found.status();
          continue;
        }
        ASSERT_EQ(found->note, "");
        ASSERT_EQ(found->manifest.commits.size(), 2u);
        bool is_past = true; // it had fewer calls
        for (const SavedCommit &commit : found->manifest.commits) {
          ASSERT_FALSE(absl::IsDataLoss(commit.fault)) << commit.fault;
          is_past &= commit.fault.ok();
        }
        if (is_past)
          break;
      }
    }
}

TEST_F(SyncTest, EachPathIsSynced) {
  Store store = Create(Named({"a", "b"}));
  const Lines lines = Record([&] { Commit(*store, 1); });
  const auto rename =
      std::find(lines.begin(), lines.end(), "rename manifest.json.tmp manifest.json");
  ASSERT_NE(rename, lines.end());
  EXPECT_EQ(std::count(lines.begin(), rename, "fsync data"), 2);
  EXPECT_EQ(std::count(rename, lines.end(), "fsync data"), 0);
  EXPECT_EQ(std::count(rename, lines.end(), "fsync a"), 2);
}

TEST_F(SyncTest, ANewDirectorySyncsItsParent) {
  const Lines lines = Record([&] { Create({Path("new/state")}); });
  for (const std::string &parent :
       {scratch.path().substr(scratch.path().rfind('/') + 1), std::string("new")})
    EXPECT_GE(std::count(lines.begin(), lines.end(), "fsync " + parent), 1) << parent;
}

// The exported weights.
TEST_F(SyncTest, AnExportIsSyncedInOrder) {
  EXPECT_EQ(Record([&] {
              absl::StatusOr<NewFile> file = NewFile::Create(Path("state"));
              ASSERT_TRUE(file.ok()) << file.status();
              EXPECT_EQ(file->Append("text", 4), absl::OkStatus());
              EXPECT_EQ(file->Publish(), absl::OkStatus());
            }),
            (Lines{"pwrite state.tmp", "fsync state.tmp", "rename state.tmp state",
                   "fsync " + scratch.path().substr(scratch.path().rfind('/') + 1)}));
}

// After a failure at any of these calls the commit is refused, so is the next one, and the
// state is whole. A signal is no failure of fsync.
TEST_F(SyncTest, EachFailureOfACommitIsTold) {
  int64_t counts[2] = {0, 0};
  for (const std::string &line : kCommit) {
    const std::string call = line.substr(0, line.find(' '));
    if (call == "pwrite")
      continue;
    const int64_t at = counts[call == "rename"]++;
    for (int error : {EIO, ENOSPC, EDQUOT, EINTR}) {
      SCOPED_TRACE(testing::Message() << call << " " << at << ": " << std::strerror(error));
      const std::string name = absl::StrCat(call, at, "-", error);
      Store store = Create({Path(name)});
      Commit(*store, 1);
      Write(*store, 2);
      calls::Inject({call, at, 1, error});
      const absl::Status status = store->Commit(StateTest::Record(2));
      calls::Clear();
      if (call == "fsync" && error == EINTR) {
        EXPECT_EQ(status, absl::OkStatus());
        store.reset();
        ExpectWhole({Path(name)}, 2);
        continue;
      }
      ExpectMessage(status, std::strerror(error));
      EXPECT_FALSE(store->Commit(StateTest::Record(3)).ok());
      store.reset();
      // Before the rename of the manifest nothing names the new commit.
      const bool renamed = call == "fsync" ? at >= 7 : at >= 5;
      ExpectWhole({Path(name)}, renamed ? 2 : 1);
    }
  }
}

// Every errno ends in an error that names it.
TEST_F(SyncTest, EachErrnoIsTold) {
  FileSystem &files = SystemFiles();
  const std::string path = scratch.path("file");
  auto file = files.Open(path, {/*write=*/true, /*create=*/true});
  ASSERT_TRUE(file.ok()) << file.status();
  for (int error = 1; error <= 133; ++error)
    for (bool once : {true, false}) {
      SCOPED_TRACE(std::strerror(error));
      const int64_t times = once ? 1 : INT64_MAX;
      auto expect = [&](const absl::Status &status, bool retried) {
        if (once && retried && error == EINTR)
          EXPECT_EQ(status, absl::OkStatus());
        else
          ExpectMessage(status, std::strerror(error));
      };
      calls::Inject({"fsync", 0, times, error});
      expect((*file)->Sync(), true);
      calls::Inject({"fsync", 0, times, error});
      expect(files.SyncDirectory(scratch.path()), true);
      calls::Inject({"rename", 0, times, error});
      expect(files.Rename(path, path), false);
      calls::Inject({"rename", 0, times, error});
      expect(ReplaceFile(files, scratch.path(), "replaced", "text"), false);
      calls::Clear();
      EXPECT_NE(access(scratch.path("replaced.tmp").c_str(), F_OK), 0);
    }
}

// Callers take NotFound for "nothing is there" and Unavailable for "another process has it".
TEST_F(SyncTest, NoOtherErrnoIsTakenForAnAnswer) {
  FileSystem &files = SystemFiles();
  const std::string path = scratch.Write("file", "text");
  auto file = files.Open(path, {});
  ASSERT_TRUE(file.ok()) << file.status();
  for (int error = 1; error <= 133; ++error) {
    SCOPED_TRACE(std::strerror(error));
    calls::Inject({"open", 0, INT64_MAX, error});
    const absl::Status opened[] = {files.Open(path, {}).status(),
                                   files.OpenDirectory(scratch.path()).status()};
    calls::Inject({"pread", 0, INT64_MAX, error});
    const absl::Status read = ReadSmallFile(files, path).status();
    ExpectMessage(read, std::strerror(error));
    EXPECT_FALSE(absl::IsNotFound(read)) << read;
    calls::Inject({"flock", 0, INT64_MAX, error});
    const absl::Status locked = (*file)->Lock();
    calls::Clear();
    for (const absl::Status &status : opened) {
      EXPECT_FALSE(status.ok());
      EXPECT_EQ(absl::IsNotFound(status), error == ENOENT || error == ENOTDIR) << status;
    }
    ExpectMessage(locked, std::strerror(error));
    EXPECT_EQ(absl::IsUnavailable(locked), error == EWOULDBLOCK) << locked;
  }
}

} // namespace
} // namespace boa
