//===- extents_test.cpp - Where chunks stand, and what commits keep -------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "test/runtime/state/state_fixture.h"

#include "runtime/state/commits.h"

#include <deque>
#include <map>
#include <random>
#include <set>
#include <tuple>

namespace boa {
namespace {

//===----------------------------------------------------------------------===//
// A new state
//===----------------------------------------------------------------------===//

TEST_F(StateTest, NothingIsThereBeforeTheFirstCommit) {
  EXPECT_FALSE(Exists(Path()));
  {
    Store store = Create({Path()});
    EXPECT_EQ(store->Committed().step, 0);
    EXPECT_EQ(store->Directory(), Path());
    EXPECT_EQ(store->Current(kWeights, 0, 0).file, -1);
    EXPECT_FALSE(Exists(Path()));
  }
  ExpectMessage(OpenStatus({Path()}), "holds no training state");
  Make({Path()}); // what the first one left is no obstacle
  EXPECT_TRUE(Exists(Path()));
  ExpectWhole({Path()}, 1);
}

TEST_F(StateTest, TheRecordSurvives) {
  CommitRecord record;
  record.step = 7;
  record.time = 1234567890123;
  record.extra = {{"data", "42"}, {"odd \"key\"\n", std::string("\0\xff\n\"", 4)}};
  {
    Store store = Create({Path()});
    Write(*store, 1);
    ASSERT_EQ(store->Commit(record), absl::OkStatus());
    EXPECT_EQ(store->Committed().step, 7);
  }
  Store store = Open({Path()});
  EXPECT_EQ(store->Committed().step, 7);
  EXPECT_EQ(store->Committed().time, record.time);
  EXPECT_EQ(store->Committed().extra, record.extra);
}

TEST_F(StateTest, ACommitNeedsEveryChunk) {
  Store store = Create({Path()});
  ForEach([&](int32_t storage, int64_t entry, int32_t chunk) {
    if (storage != kMomentum || entry != 2 || chunk != 3)
      WriteChunk(*store, 1, storage, entry, chunk);
  });
  ExpectMessage(store->Commit(Record(1)), "entry 2 chunk 3 of momentum.block was never written");
  EXPECT_FALSE(Exists(Path()));
  // Nothing has gone wrong on disk: it may go on.
  EXPECT_TRUE(WriteChunk(*store, 1, kMomentum, 2, 3));
  EXPECT_EQ(store->Commit(Record(1)), absl::OkStatus());
}

// What such a commit writes down could not be read again.
TEST_F(StateTest, ACommitBeforeTheFirstStepIsRefused) {
  Store store = Create({Path()});
  Write(*store, 1);
  ExpectMessage(store->Commit(Record(-1)), "step -1");
  EXPECT_EQ(store->Commit(Record(0)), absl::OkStatus());
  store.reset();
  EXPECT_EQ(Open({Path()})->Committed().step, 0);
}

TEST_F(StateTest, ProgramsThatNoManifestCanHoldAreRefused) {
  program.storages[kMomentum].name = program.storages[kWeights].name;
  ExpectMessage(CreateStatus({Path()}), "two storages `weights.block`");
  program = MakeProgram();
  program.storages[kMomentum].bytes += 4;
  ExpectMessage(CreateStatus({Path()}), "momentum.block");
  EXPECT_FALSE(std::filesystem::exists(Path()));
}

//===----------------------------------------------------------------------===//
// Shadow paging
//===----------------------------------------------------------------------===//

TEST_F(StateTest, UncommittedWritesAreForgotten) {
  Make({Path()}, {1});
  {
    Store store = Open({Path()});
    Write(*store, 2);
  }
  ExpectWhole({Path()}, 1);
}

TEST_F(StateTest, NextIsWrittenOverUntilACommitNamesIt) {
  Store store = Create({Path()});
  const Extent first = store->Next(kWeights, 1, 2);
  EXPECT_EQ(store->Next(kWeights, 1, 2), first);
  EXPECT_EQ(store->Current(kWeights, 1, 2), first);
  Commit(*store, 1);
  EXPECT_EQ(store->Current(kWeights, 1, 2), first);
  const Extent second = store->Next(kWeights, 1, 2);
  EXPECT_FALSE(second == first);
  EXPECT_EQ(store->Next(kWeights, 1, 2), second);
  EXPECT_EQ(store->Current(kWeights, 1, 2), second);
}

/// A range of a data file.
struct Range {
  int32_t file;
  int64_t begin, end;
  bool Meets(const Range &other) const {
    return file == other.file && begin < other.end && other.begin < end;
  }
};

// Random parts of the state are rewritten between commits: whatever is given must
// be free of what the kept commits and all other chunks hold.
TEST_F(StateTest, NothingThatIsNamedIsGivenAgain) {
  for (int64_t kept : {1, 2, 3, 0}) // 0: now as many, now less
    for (bool two : {false, true}) {
      SCOPED_TRACE(absl::StrCat("keep ", kept, two ? ", two paths" : ""));
      const std::string name = absl::StrCat("state", kept, two);
      int64_t keep = kept ? kept : 4;
      const Paths paths = two ? Paths{Path(name), Path(name + "b")} : Paths{Path(name)};
      std::mt19937 random(static_cast<unsigned>(kept));
      std::deque<std::vector<Range>> commits;
      std::map<std::tuple<int32_t, int64_t, int32_t>, Range> current;
      Store store = Create(paths, keep);
      for (int64_t step = 1; step <= 25; ++step) {
        ForEach([&](int32_t storage, int64_t entry, int32_t chunk) {
          if (step > 1 && random() % 3 == 0)
            return;
          ASSERT_TRUE(WriteChunk(*store, step, storage, entry, chunk));
          const Extent extent = store->Current(storage, entry, chunk);
          const Range range{extent.file, extent.offset, extent.offset + Bytes(storage)};
          EXPECT_GE(range.begin, kPage);
          EXPECT_LE(range.end, store->BytesByPath()[size_t(range.file)]);
          for (const std::vector<Range> &commit : commits)
            for (const Range &other : commit)
              ASSERT_FALSE(range.Meets(other)) << "step " << step << " at " << range.begin;
          current.erase({storage, entry, chunk});
          for (const auto &[unused, other] : current)
            ASSERT_FALSE(range.Meets(other)) << "step " << step << " at " << range.begin;
          current[{storage, entry, chunk}] = range;
        });
        ASSERT_EQ(store->Commit(Record(step)), absl::OkStatus());
        commits.emplace_back();
        for (const auto &[unused, range] : current)
          commits.back().push_back(range);
        while (int64_t(commits.size()) > keep)
          commits.pop_front();
        // The pool is rebuilt from the manifest.
        if (step % 7 == 0) {
          store.reset();
          if (kept == 0)
            keep = keep == 4 ? 1 : 4;
          store = Open(paths, keep);
          ASSERT_TRUE(store);
        }
      }
    }
}

// The one with the least validation loss stays beside the last ones, where several are kept.
TEST(CommitsTest, TheBestOfSeveralStays) {
  const std::vector<std::optional<double>> losses = {3, 1, 2, std::nullopt, 1.5};
  const std::vector<std::vector<int64_t>> steps = {{5}, {2, 5}, {2, 4, 5}};
  for (int64_t most = 1; most <= 3; ++most) {
    Commits commits(most);
    for (size_t i = 0; i < losses.size(); ++i) {
      SavedCommit made;
      made.record.step = int64_t(i) + 1;
      made.record.validation_loss = losses[i];
      const size_t before = commits.manifest().commits.size();
      EXPECT_EQ(commits.Add(std::move(made), /*given=*/1).size(), before == size_t(most));
      commits.GoToLast();
    }
    std::vector<int64_t> kept;
    for (const SavedCommit &commit : commits.manifest().commits)
      kept.push_back(commit.record.step);
    EXPECT_EQ(kept, steps[size_t(most) - 1]);
  }
}

// But not if it was evaluated otherwise, or stands in a path that the machine has no longer.
TEST(CommitsTest, WhatCannotBeComparedGoes) {
  for (bool elsewhere : {false, true}) {
    Commits commits(2);
    for (int64_t step = 1; step <= 3; ++step) {
      SavedCommit made;
      made.record.step = step;
      made.record.validation_loss = double(step);
      made.record.validated_on = !elsewhere && step == 1 ? "other" : "data";
      if (elsewhere)
        made.paths = {step == 1 ? 1 : 0};
      commits.Add(std::move(made), /*given=*/1);
      commits.GoToLast();
    }
    EXPECT_EQ(commits.manifest().commits.front().record.step, 2);
  }
}

// A training writes everything between two commits, in one order each time, which
// is not the order of its beginning.
TEST_F(StateTest, NothingIsScatteredAndNothingGrows) {
  disk.through_cache = true;
  for (int64_t keep : {1, 2, 3}) {
    SCOPED_TRACE(keep);
    const Paths paths = {Path(absl::StrCat("a", keep)), Path(absl::StrCat("b", keep))};
    Store store = Create(paths, keep);
    Commit(*store, 1);
    const std::vector<int64_t> bytes = store->BytesByPath();
    EXPECT_EQ(bytes[0] + bytes[1], 2 * kPage + (keep + 1) * kStateBytes + kScratchBytes);
    for (int64_t step = 2; step <= 100; ++step) {
      for (int64_t entry = 2; entry >= 0; --entry)
        for (int32_t storage : {kMomentum, kWeights})
          for (int32_t chunk = 0; chunk < 4; ++chunk)
            ASSERT_TRUE(WriteChunk(*store, step, storage, entry, chunk));
      for (int32_t storage : {kMomentum, kWeights})
        for (int64_t entry = 0; entry < 3; ++entry) {
          std::map<int32_t, int64_t> end; // by path
          for (int32_t chunk = 0; chunk < 4; ++chunk) {
            const Extent extent = store->Current(storage, entry, chunk);
            if (end.count(extent.file))
              EXPECT_EQ(extent.offset, end[extent.file]) << "step " << step;
            end[extent.file] = extent.offset + Bytes(storage);
          }
          EXPECT_EQ(end.size(), 2u);
        }
      ASSERT_EQ(store->Commit(Record(step)), absl::OkStatus());
      EXPECT_EQ(store->BytesByPath(), bytes);
      if (step % 30 == 0) {
        store.reset();
        store = Open(paths, keep);
      }
    }
    for (size_t i = 0; i < paths.size(); ++i)
      EXPECT_EQ(int64_t(std::filesystem::file_size(paths[i] + "/data")), bytes[i]);
  }
}

TEST_F(StateTest, ScratchHasOnePlaceAtTheEnd) {
  Store store = Create({Path()});
  std::set<int64_t> places;
  for (int64_t entry = 0; entry < 4; ++entry) {
    const Extent extent = store->Current(kCheckpoints, entry, 0);
    EXPECT_EQ(store->Next(kCheckpoints, entry, 0), extent);
    EXPECT_GE(extent.offset, store->BytesByPath()[0] - kScratchBytes);
    places.insert(extent.offset);
  }
  EXPECT_EQ(places.size(), 4u);
  const Extent before = store->Current(kCheckpoints, 3, 0);
  Commit(*store, 1);
  EXPECT_EQ(store->Next(kCheckpoints, 3, 0), before);
}

TEST_F(StateTest, PathsShareInProportionToTheirBandwidth) {
  program.machine.ssd = {{"a", 300, 300}, {"b", 100, 100}};
  const Paths paths = {Path("a"), Path("b/c")};
  {
    Store store = Create(paths);
    EXPECT_EQ(store->BytesByPath(),
              (std::vector<int64_t>{kPage + (2 * kStateBytes + kScratchBytes) * 3 / 4,
                                    kPage + (2 * kStateBytes + kScratchBytes) / 4}));
    ASSERT_EQ(store->Links().size(), 2u);
    EXPECT_EQ(store->Links()[0].read, 300);
    EXPECT_EQ(store->Links()[1].write, 100);
    EXPECT_EQ(store->Files()[1].link, 1);
    Commit(*store, 1);
  }
  // Another machine: what is written from now on is dealt as it says.
  program.machine.ssd = {{"a", 100, 100}, {"b", 300, 300}};
  Store store = Open(paths);
  ExpectHolds(*store, 1);
  Commit(*store, 2);
  int chunks = 0;
  ForEach([&](int32_t storage, int64_t entry, int32_t chunk) {
    chunks += store->Current(storage, entry, chunk).file == 1;
  });
  EXPECT_EQ(chunks, 18);
}

TEST_F(StateTest, PathsWithoutLimitsShareEqually) {
  Store store = Create({Path("a"), Path("b")});
  EXPECT_EQ(store->BytesByPath()[0], store->BytesByPath()[1]);
}

//===----------------------------------------------------------------------===//
// Checksums
//===----------------------------------------------------------------------===//

// A read that was asked for before the chunk was written anew is still checked.
TEST_F(StateTest, AChecksumIsKnownUntilItsExtentIsOverwritten) {
  Make({Path()}, {1});
  Store store = Open({Path()});
  const Extent old = store->Current(kWeights, 0, 0);
  const std::optional<uint64_t> sum = store->Checksum(old);
  ASSERT_TRUE(sum.has_value());
  const Extent next = store->Next(kWeights, 0, 0);
  EXPECT_EQ(store->Checksum(old), sum);
  EXPECT_EQ(store->Checksum(next), std::nullopt);
  store->SetChecksum(next, 77);
  EXPECT_EQ(store->Next(kWeights, 0, 0), next);
  EXPECT_EQ(store->Checksum(next), 77u);
  Commit(*store, 2);
  // Nobody names it any more: what stands there is of no account.
  EXPECT_EQ(store->Checksum(old), std::nullopt);
  EXPECT_TRUE(store->Checksum(next).has_value());
}

TEST_F(StateTest, ScratchHasChecksumsToo) {
  Store store = Create({Path()});
  const Extent extent = store->Current(kCheckpoints, 1, 0);
  EXPECT_EQ(store->Checksum(extent), std::nullopt);
  store->SetChecksum(extent, 5);
  EXPECT_EQ(store->Checksum(extent), 5u);
  Commit(*store, 1);
  EXPECT_EQ(store->Checksum(extent), 5u);
  store.reset();
  store = Open({Path()});
  EXPECT_EQ(store->Checksum(store->Current(kCheckpoints, 1, 0)), std::nullopt);
}

//===----------------------------------------------------------------------===//
// Which commits are kept
//===----------------------------------------------------------------------===//

TEST_F(StateTest, EveryCommitThatIsKeptIsWhole) {
  Make({Path()}, {1, 2, 3, 4, 5}, /*keep=*/3);
  for (int64_t step : {5, 4, 3}) {
    Store store = Open({Path()}, 3, step);
    ASSERT_TRUE(store);
    EXPECT_EQ(store->Committed().step, step);
    ExpectHolds(*store, step);
  }
  ExpectMessage(StateStore::Open(disk, program, {Path()}, 3, 2).status(),
                "no commit of step 2: it keeps those of 3, 4, 5");
  ExpectWhole({Path()}, 5);
}

// Until the next commit all is as it was, so that one may come back from there.
TEST_F(StateTest, AReturnToAnEarlierCommitDropsTheLaterOnesAtTheNext) {
  Make({Path()}, {1, 2, 3, 4}, /*keep=*/4);
  {
    Store store = Open({Path()}, 4, 2);
    EXPECT_EQ(Notes(*store), "the commit of step 3 goes when the next is made\n"
                             "the commit of step 4 goes when the next is made");
    Write(*store, 33);
  }
  ExpectWhole({Path()}, 4);
  {
    Store store = Open({Path()}, 4, 2);
    ExpectHolds(*store, 2);
    Commit(*store, 30);
    Commit(*store, 31);
  }
  ExpectMessage(StateStore::Open(disk, program, {Path()}, 4, 3).status(),
                "keeps those of 1, 2, 30, 31");
  for (int64_t step : {1, 2, 30, 31})
    ExpectHolds(*Open({Path()}, 4, step), step);
}

TEST_F(StateTest, ACommitOfTheSameStepReplacesIt) {
  Make({Path()}, {1, 2}, /*keep=*/3);
  {
    Store store = Open({Path()}, 3);
    EXPECT_EQ(store->Commit(Record(2)), absl::OkStatus()); // nothing was written
    ExpectHolds(*store, 2);
    Commit(*store, 2);
    Write(*store, 9);
  }
  ExpectWhole({Path()}, 2);
  ExpectHolds(*Open({Path()}, 3, 1), 1);
}

TEST_F(StateTest, TheNumberOfCommitsMayChange) {
  Make({Path()}, {1, 2}, /*keep=*/1);
  {
    Store store = Open({Path()}, /*keep=*/3);
    EXPECT_EQ(store->BytesByPath()[0], kPage + 4 * kStateBytes + kScratchBytes);
    Commit(*store, 3);
    Commit(*store, 4);
  }
  for (int64_t step : {2, 3, 4})
    ExpectHolds(*Open({Path()}, 3, step), step);
  {
    Store store = Open({Path()}, /*keep=*/1);
    ExpectHolds(*store, 4);
    Commit(*store, 5);
    Commit(*store, 6);
  }
  ExpectMessage(StateStore::Open(disk, program, {Path()}, 1, 5).status(), "keeps those of 6");
  ExpectWhole({Path()}, 6);
}

TEST_F(StateTest, MoreCommitsThanAnyDiskHoldsAreRefused) {
  disk.free_bytes = int64_t(1) << 60; // so that it is not the disk that is too small
  for (int64_t keep : {int64_t(1) << 40, int64_t(1) << 50, INT64_MAX}) {
    absl::Status status = StateStore::Create(disk, program, {Path()}, keep).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
    ExpectMessage(status, "keep fewer commits");
    EXPECT_FALSE(std::filesystem::exists(Path()));
  }
}

} // namespace
} // namespace boa
