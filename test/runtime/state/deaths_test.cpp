//===- deaths_test.cpp - A state whose maker dies or whose disk fails -----===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each call of the file system is made to fail once, alone and with all that
// follow. What opens afterwards is whole. The order of syncs is what a simulated
// disk tests: a process that dies loses no page cache.
//
//===----------------------------------------------------------------------===//
#include "test/runtime/state/state_fixture.h"

#include <csignal>
#include <random>
#include <regex>
#include <sys/wait.h>

namespace boa {
namespace {

namespace fs = std::filesystem;
using Mode = FaultyFiles::Mode;

class DeathTest : public StateTest {
protected:
  DeathTest() : StateTest(FastDirectory()) { disk.through_cache = true; }
  void RemoveAll() {
    for (const fs::directory_entry &entry : fs::directory_iterator(scratch.path()))
      fs::remove_all(entry.path());
  }
  bool Empty() const { return fs::is_empty(scratch.path()); }
};

constexpr Mode kModes[] = {FaultyFiles::kOnce, FaultyFiles::kDead};

TEST_F(DeathTest, ACreationCutShortAnywhereIsBegunAnew) {
  const Paths paths = Named({"deep/a", "b", "deep/c"});
  for (Mode mode : kModes) {
    int64_t call = 1;
    for (bool done = false; !done && !HasFailure(); ++call) {
      SCOPED_TRACE(absl::StrCat(mode == FaultyFiles::kOnce ? "once" : "dead", " at call ", call));
      RemoveAll();
      disk.calls.clear();
      disk.FailAt(call, mode);
      auto store = StateStore::Create(disk, program, paths);
      done = !disk.hit;
      if (!done)
        SCOPED_TRACE(disk.calls[size_t(call) - 1]);
      if (done)
        EXPECT_TRUE(store.ok()) << store.status();
      // One fault is survived as such: nothing is left of what was begun.
      if (mode == FaultyFiles::kOnce && !store.ok())
        EXPECT_TRUE(Empty()) << disk.calls[size_t(call) - 1] << "\n" << Snapshot(scratch.path());
      if (store.ok())
        store->reset();
      disk.Heal();
      // Nothing that was begun is a state.
      EXPECT_FALSE(Exists(paths[0])) << disk.calls[size_t(call) - 1];
      Make(paths, {1});
      ExpectWhole(paths, 1);
    }
    EXPECT_GT(call, 60);
  }
}

// The removal of what was begun may fail as well.
TEST_F(DeathTest, ACreationThatFailsTwiceIsBegunAnew) {
  const Paths paths = Named({"a", "b"});
  disk.calls.clear();
  disk.free_bytes = int64_t(1) << 40;
  ASSERT_TRUE(CreateStatus(paths).ok());
  const int64_t all = int64_t(disk.calls.size());
  for (int64_t call = all / 2; call <= all + 30 && !HasFailure(); ++call) {
    SCOPED_TRACE(call);
    RemoveAll();
    disk.full = true; // the reservation of the first path fails
    disk.FailAt(call, FaultyFiles::kOnce);
    EXPECT_FALSE(CreateStatus(paths).ok());
    disk.Heal();
    disk.full = false;
    Make(paths, {1});
    ExpectWhole(paths, 1);
  }
}

TEST_F(DeathTest, AnOpeningCutShortAnywhereChangesNothing) {
  for (Mode mode : kModes)
    for (const char *added : {"a", "c"}) {
      const Paths paths = Named({"a", "b"}), now = added[0] == 'a' ? paths : Named({"a", "c/d"});
      int64_t call = 1;
      for (bool done = false; !done && !HasFailure(); ++call) {
        SCOPED_TRACE(absl::StrCat(mode == FaultyFiles::kOnce ? "once" : "dead", " at call ", call));
        RemoveAll();
        Make(paths, {1, 2}, /*keep=*/2);
        disk.calls.clear();
        disk.FailAt(call, mode);
        auto store = StateStore::Open(disk, program, now, 2);
        done = !disk.hit;
        if (store.ok())
          store->reset();
        if (!store.ok() && mode == FaultyFiles::kOnce)
          EXPECT_FALSE(fs::exists(Path("c"))) << disk.calls[size_t(call) - 1];
        disk.Heal();
        ExpectHolds(*Open(paths, 2, 1), 1);
        Store again = Open(now, 2);
        ExpectHolds(*again, 2);
        Commit(*again, 3);
      }
      EXPECT_GT(call, 30);
    }
}

// After it either the old commit is whole or the new one, and the same process
// writes nothing more: it cannot know which of the two it would write over.
TEST_F(DeathTest, ACommitThatFailsAnywhereIsTheLastOfItsProcess) {
  for (Mode mode : kModes)
    for (int64_t keep : {1, 2}) {
      const Paths paths = Named({"a", "b"});
      int64_t call = 1;
      int news = 0, olds = 0;
      for (bool done = false; !done && !HasFailure(); ++call) {
        RemoveAll();
        Make(paths, {1, 2}, keep);
        Store store = Open(paths, keep);
        Write(*store, 3);
        disk.calls.clear();
        disk.FailAt(call, mode);
        const absl::Status status = store->Commit(Record(3));
        done = !disk.hit;
        SCOPED_TRACE(absl::StrCat(mode == FaultyFiles::kOnce ? "once" : "dead", " at call ", call,
                                  " with ", keep, ": ", status.ToString()));
        disk.Heal();
        if (!status.ok()) {
          EXPECT_EQ(store->status(), status);
          EXPECT_EQ(store->Commit(Record(3)), status);
          EXPECT_EQ(store->Committed().step, 2);
          for (int32_t storage : {kWeights, kMomentum, kCheckpoints})
            EXPECT_EQ(store->Next(storage, 0, 0).file, -1);
          ForEach([&](int32_t storage, int64_t entry, int32_t chunk) {
            EXPECT_FALSE(WriteChunk(*store, 4, storage, entry, chunk));
          });
        } else if (!done) {
          // What failed did not matter: it had nothing to do, or was done anyway.
          EXPECT_EQ(store->Committed().step, 3) << disk.calls[size_t(call) - 1];
        }
        store.reset();
        store = Open(paths, keep);
        ASSERT_TRUE(store);
        const int64_t step = store->Committed().step;
        EXPECT_TRUE(step == 3 || (step == 2 && !status.ok())) << step;
        ++(step == 3 ? news : olds);
        ExpectHolds(*store, step);
        store.reset();
        if (keep == 2)
          ExpectHolds(*Open(paths, keep, step - 1), step - 1);
        store = Open(paths, keep);
        Commit(*store, 7);
        store.reset();
        ExpectWhole(paths, 7);
      }
      EXPECT_GE(news, 2);
      EXPECT_GE(olds, 6);
    }
}

// The order on which a loss of power depends.
TEST_F(DeathTest, ACommitSyncsBeforeItNames) {
  const Paths paths = Named({"a", "b"});
  Make(paths);
  Store store = Open(paths);
  Write(*store, 2);
  disk.calls.clear();
  ASSERT_EQ(store->Commit(Record(2)), absl::OkStatus());
  const std::string a = Path("a") + "/", b = Path("b") + "/";
  std::vector<std::string> expected = {"Sync " + a + "data", "Sync " + b + "data"};
  auto expect = [&](std::initializer_list<std::string> calls) {
    expected.insert(expected.end(), calls);
  };
  auto paths_are_compared = [&] {
    expect({"IsCurrent " + Path("a"), "Names " + a + "data", //
            "IsCurrent " + Path("b"), "Names " + b + "data"});
  };
  expect({"Open " + a + "manifest.json"}); // for its permissions
  for (const char *kind : {"part", "model", "commit"})
    for (const char *copy : {".SUM.json", ".SUM.copy.json"}) {
      const std::string name = a + kind + copy;
      expect({"Open " + name}); // is it there, and with which permissions?
      if (*kind == 'm')
        expect({"Open " + name, "Size " + name, "Read " + name}); // that of commit 1
      else
        expect({"Unlink " + name + ".tmp", "Open " + name + ".tmp", "Write " + name + ".tmp",
                "Sync " + name + ".tmp", "Rename " + name});
    }
  expect({"SyncDirectory " + Path("a")});
  expect({"Open " + a + "lock", "LockBytes " + a + "lock"}); // does a process read commit 1?
  paths_are_compared();
  for (const std::string &name : {a + "manifest.json", a + "manifest.copy.json"})
    expect({"Open " + name, "Size " + name, "Read " + name});
  for (const std::string &name : {a + "manifest.json", a + "manifest.copy.json"})
    expect({"Open " + name, // for its permissions
            "Unlink " + name + ".tmp", "Open " + name + ".tmp", "Write " + name + ".tmp",
            "Sync " + name + ".tmp", "Rename " + name, "SyncDirectory " + Path("a")});
  paths_are_compared();
  expect({"List " + Path("a")});
  const auto list = std::find(disk.calls.begin(), disk.calls.end(), expected.back());
  ASSERT_NE(list, disk.calls.end());
  const auto unlinks = [](const std::string &call) { return absl::StartsWith(call, "Unlink "); };
  EXPECT_EQ(std::count_if(list, disk.calls.end(), unlinks), 4); // of commit 1
  disk.calls.erase(list + 1, disk.calls.end());
  for (std::string &call : disk.calls)
    call = std::regex_replace(call, std::regex("[0-9a-f]{32}"), "SUM");
  EXPECT_EQ(disk.calls, expected);
}

// Whoever made a directory or a file may have died before its name was durable.
TEST_F(DeathTest, NamesAreDurableBeforeACommitRestsOnThem) {
  fs::create_directories(Path("deep/a"));
  fs::create_directories(Path("b"));
  auto synced = [&](const std::string &directory) {
    return std::count(disk.calls.begin(), disk.calls.end(), "SyncDirectory " + directory) > 0;
  };
  const Paths paths = Named({"deep/a", "b"});
  Make(paths);
  for (const std::string &path : {scratch.path(), Path("deep"), Path("deep/a"), Path("b")})
    EXPECT_TRUE(synced(path)) << path;
  disk.calls.clear();
  ExpectWhole(paths, 1);
  for (const std::string &path : {scratch.path(), Path("deep"), Path("deep/a"), Path("b")})
    EXPECT_TRUE(synced(path)) << path;
}

//===----------------------------------------------------------------------===//
// Real processes
//===----------------------------------------------------------------------===//

/// Waits for one byte.
bool Await(int fd) {
  char byte;
  return read(fd, &byte, 1) == 1;
}

TEST_F(StateTest, KilledAtAnyInstantTheLastCommitIsWhole) {
  for (const Paths &paths : {Named({"one"}), Named({"a", "b"})}) {
    std::mt19937 random(11);
    int64_t step = 0;
    for (int round = 0; round < 25 && !HasFailure(); ++round) {
      int ready[2];
      ASSERT_EQ(pipe(ready), 0);
      const pid_t child = fork();
      ASSERT_GE(child, 0);
      if (child == 0) {
        auto exists = StateStore::Exists(disk, paths[0]);
        auto store = !exists.ok() ? exists.status()
                     : *exists    ? StateStore::Open(disk, program, paths, 2)
                                  : StateStore::Create(disk, program, paths, 2);
        if (!store.ok() || write(ready[1], "x", 1) != 1)
          _exit(1);
        for (int64_t next = (*store)->Committed().step + 1;; ++next) {
          Write(**store, next);
          if (!(*store)->Commit(Record(next)).ok() || write(ready[1], "x", 1) != 1)
            _exit(2);
        }
      }
      close(ready[1]); // so that a child that fails ends the wait
      // The start and up to five commits, then somewhere within the next.
      bool alive = true;
      for (unsigned left = 1 + random() % 6; left > 0 && alive; --left)
        alive = Await(ready[0]);
      usleep(random() % 6000);
      kill(child, SIGKILL);
      int status = 0;
      waitpid(child, &status, 0);
      EXPECT_TRUE(WIFSIGNALED(status)) << "the child failed: " << status;
      close(ready[0]);
      if (!Exists(paths[0]))
        continue;
      Store store = Open(paths, 2);
      ASSERT_TRUE(store);
      EXPECT_GE(store->Committed().step, step);
      step = store->Committed().step;
      ExpectHolds(*store, step);
      store.reset();
      if (step > 1)
        ExpectHolds(*Open(paths, 2, step - 1), step - 1);
    }
    EXPECT_GT(step, 15);
  }
}

} // namespace
} // namespace boa
