//===- replaced_test.cpp - State directories that lose their names --------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A directory or a file of an open state is renamed, replaced or relinked. The next
// commit must fail, write nothing under the name, and leave the last commit whole.
//
//===----------------------------------------------------------------------===//
#include "test/runtime/state/state_fixture.h"

#include <fcntl.h>
#include <sys/file.h>

namespace boa {
namespace {

namespace fs = std::filesystem;

class ReplacedTest : public StateTest {
protected:
  /// `replace` happens after the commit of step 1 and before that of step 2, whose
  /// chunks are written before or after it.
  void ExpectRefused(const Paths &paths, bool written, const std::string &message,
                     const std::function<void()> &replace) {
    Store store = Create(paths);
    Commit(*store, 1);
    if (written)
      Write(*store, 2);
    replace();
    if (!written)
      Write(*store, 2);
    const absl::Status status = store->Commit(Record(2));
    ExpectMessage(status, message);
    // Nothing that the last commit names may be written over.
    EXPECT_EQ(store->status(), status);
    EXPECT_EQ(store->Next(kWeights, 0, 0).file, -1);
  }
};

TEST_F(ReplacedTest, ADirectoryThatWasRenamedKeepsItsCommit) {
  for (bool written : {false, true})
    for (const char *name : {"a", "b"})
      for (bool another : {false, true}) {
        SCOPED_TRACE(absl::StrCat(name, written, another));
        const std::string old = Path("old");
        ExpectRefused(Named({"a", "b"}), written,
                      absl::StrCat(Path(name), " was moved or replaced"), [&] {
                        fs::rename(Path(name), old);
                        if (another)
                          fs::create_directory(Path(name));
                      });
        if (another)
          EXPECT_TRUE(fs::is_empty(Path(name)));
        Paths moved = Named({"a", "b"});
        moved[name[0] == 'a' ? 0 : 1] = old;
        ExpectWhole(moved, 1);
        for (const char *path : {"a", "b", "old"})
          fs::remove_all(Path(path));
      }
}

TEST_F(ReplacedTest, ADirectoryThatNothingNamesMayGo) {
  Make(Named({"a", "b"}), {1});
  Store store = Open({Path("a")});
  Commit(*store, 2); // to the first one, all of it
  fs::remove_all(Path("b"));
  Commit(*store, 3);
  store.reset();
  ExpectWhole({Path("a")}, 3);
}

TEST_F(ReplacedTest, AnotherStateUnderTheNameIsLeftAsItIs) {
  Make({Path("other")}, {7});
  std::string before;
  ExpectRefused({Path()}, true, "was moved or replaced", [&] {
    fs::rename(Path(), Path("old"));
    fs::rename(Path("other"), Path());
    before = Snapshot(Path());
  });
  EXPECT_EQ(Snapshot(Path()), before);
  ExpectWhole({Path("old")}, 1);
  ExpectWhole({Path()}, 7);
}

TEST_F(ReplacedTest, ALinkThatLeadsElsewhereIsNotFollowed) {
  for (const char *name : {"one", "two"})
    fs::create_directory(Path(name));
  fs::create_directory_symlink(Path("one"), Path("link"));
  ExpectRefused({Path("link")}, true, "link was moved or replaced", [&] {
    fs::remove(Path("link"));
    fs::create_directory_symlink(Path("two"), Path("link"));
  });
  EXPECT_TRUE(fs::is_empty(Path("two")));
  ExpectWhole({Path("one")}, 1);
}

TEST_F(ReplacedTest, AReplacedDataFileIsNoticed) {
  ExpectRefused({Path()}, true, "was moved or replaced", [&] {
    fs::rename(Path() + "/data", Path("data"));
    fs::copy_file(Path("data"), Path() + "/data");
  });
  fs::rename(Path("data"), Path() + "/data");
  ExpectWhole({Path()}, 1);
}

// As a trainer does that could not see the lock.
TEST_F(ReplacedTest, ACommitOfAnotherProcessIsNotWrittenOver) {
  Make({Path()}, {1});
  fs::copy(Path(), Path("saved"), fs::copy_options::recursive);
  Store store = Open({Path()});
  Write(*store, 2);
  for (const char *name : {"/manifest.json", "/manifest.copy.json"})
    fs::copy_file(Path("saved") + name, Path() + name, fs::copy_options::overwrite_existing);
  ExpectMessage(store->Commit(Record(2)), "manifest.json was replaced while");
  store.reset();
  ExpectWhole({Path()}, 1);
}

// Rot of one manifest is mended by the next commit; without both there is no state.
TEST_F(ReplacedTest, OneManifestMayBeDamaged) {
  Store store = Create({Path()});
  Commit(*store, 1);
  std::ofstream(Manifest()) << "rot";
  Commit(*store, 2);
  fs::remove(Copy());
  Commit(*store, 3);
  fs::remove(Copy());
  fs::remove(Manifest());
  Write(*store, 4);
  ExpectMessage(store->Commit(Record(4)), "were removed or damaged");
}

// The descriptor that transfers use is locked: the kernel keeps it until the last has ended.
TEST_F(ReplacedTest, TheDataFileIsLocked) {
  Make({Path()}, {1});
  const int other = open((Path() + "/data").c_str(), O_RDONLY | O_CLOEXEC);
  ASSERT_GE(other, 0);
  {
    Store store = Open({Path()});
    fs::remove(Path() + "/lock"); // does not let a second process in
    EXPECT_NE(flock(other, LOCK_EX | LOCK_NB), 0);
  }
  ASSERT_EQ(flock(other, LOCK_EX | LOCK_NB), 0);
  const std::string before = ReadWhole(Manifest());
  int waits = 0;
  disk.on_wait = [&] { ++waits; };
  ExpectMessage(OpenStatus({Path()}), "data is in use by another process, or writes of an ended");
  EXPECT_EQ(ReadWhole(Manifest()), before);
  EXPECT_GT(waits, 1000);
  disk.on_wait = [&] {
    if (--waits == 0)
      close(other);
  };
  waits = 200;
  Store store = Open({Path()});
  ASSERT_TRUE(store);
  EXPECT_TRUE(absl::StrContains(Notes(*store), "waited 2 s")) << Notes(*store);
  ExpectHolds(*store, 1);
}

// A process that does not see the lock waits for the data file, and its manifest grows old.
TEST_F(ReplacedTest, ACommitDuringTheWaitIsNotLost) {
  Make({Path()}, {1});
  Store other = Open({Path()});
  fs::remove(Path() + "/lock");
  disk.on_wait = [&] {
    Commit(*other, 2);
    other.reset();
  };
  ExpectMessage(OpenStatus({Path()}), "was changed by another process");
  ExpectWhole({Path()}, 2);
}

} // namespace
} // namespace boa
