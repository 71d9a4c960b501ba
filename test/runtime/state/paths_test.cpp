//===- paths_test.cpp - Whose a directory is ------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What belongs to somebody else is refused by name and stays as it is, to the
// byte and to the time of its last change. What belongs to the state is found,
// wherever it stands now.
//
//===----------------------------------------------------------------------===//
#include "test/runtime/state/state_fixture.h"

#include <csignal>
#include <sys/wait.h>

namespace boa {
namespace {

namespace fs = std::filesystem;

class PathsTest : public StateTest {
protected:
  /// A whole copy of a directory, as `cp -r` makes it.
  void CopyAll(const char *from, const char *to) {
    fs::copy(Path(from), Path(to), fs::copy_options::recursive);
  }
  void Move(const char *from, const char *to) { fs::rename(Path(from), Path(to)); }
  /// The next commit, of all that the last one holds.
  void Continue(const Paths &paths, int64_t step) {
    Store store = Open(paths);
    ASSERT_TRUE(store);
    ExpectHolds(*store, store->Committed().step);
    Commit(*store, step);
  }
  /// Neither creating nor resuming there does anything but say why.
  void ExpectRefused(const Paths &paths, const std::string &message, bool resumes = true) {
    const std::string before = Snapshot(scratch.path());
    ExpectMessage(CreateStatus(paths), message);
    if (resumes)
      ExpectMessage(OpenStatus(paths), message);
    // Where a directory had to be made, that of all of them was touched.
    EXPECT_EQ(WithoutRoot(Snapshot(scratch.path())), WithoutRoot(before));
  }
  std::string WithoutRoot(const std::string &snapshot) const {
    return snapshot.substr(snapshot.find('\n'));
  }
};

//===----------------------------------------------------------------------===//
// What belongs to others
//===----------------------------------------------------------------------===//

TEST_F(PathsTest, AnExistingStateIsNotBegunAnew) {
  Make({Path()});
  const std::string before = Snapshot(Path());
  ExpectMessage(CreateStatus({Path()}), "holds a training state already");
  EXPECT_EQ(WithoutRoot(Snapshot(Path())), WithoutRoot(before));
  ExpectWhole({Path()}, 1);
}

// The second training's machine names the same second path as the first one's.
TEST_F(PathsTest, ThePathOfAnotherTrainingIsRefused) {
  Make(Named({"a", "shared"}));
  const std::string message =
      Path("shared") + " belongs to another training, which was begun in " + Path("a");
  ExpectRefused(Named({"b", "shared"}), message, false);
  EXPECT_FALSE(fs::exists(Path("b")));
  Make({Path("b")});
  ExpectMessage(OpenStatus(Named({"b", "shared"})), message);
  ExpectRefused(Named({"c", "shared"}), message, false);
  // Its home is nobody else's second path, and its second path nobody's home.
  ExpectMessage(CreateStatus(Named({"c", "a"})), "belongs to another training");
  ExpectRefused(Named({"shared", "c"}), message, false);
  ExpectWhole(Named({"a", "shared"}), 1);
  ExpectWhole({Path("b")}, 1);
}

// It is not even looked into which files are missing there.
TEST_F(PathsTest, ThePathOfAnotherTrainingStaysAsItIs) {
  Make(Named({"a", "shared"}));
  Make({Path("b")});
  fs::remove(Path("shared") + "/lock");
  for (const char *home : {"b", "c"}) {
    const std::string before = Snapshot(Path("shared")), first = Snapshot(Path("a"));
    ExpectMessage(OpenStatus(Named({home, "shared"})), home[0] == 'b' ? "belongs to" : "holds no");
    ExpectMessage(CreateStatus(Named({home, "shared"})), "");
    EXPECT_EQ(Snapshot(Path("shared")), before);
    EXPECT_EQ(Snapshot(Path("a")), first);
  }
}

TEST_F(PathsTest, APathInUseIsRefused) {
  Store store = Create(Named({"a", "shared"}));
  Commit(*store, 1);
  const std::string process = absl::StrCat("in use by process ", getpid(), ":");
  ExpectMessage(OpenStatus(Named({"a", "shared"})), process);
  ExpectMessage(CreateStatus(Named({"a", "shared"})), "holds a training state already");
  ExpectMessage(CreateStatus(Named({"b", "shared"})), Path("shared"));
  EXPECT_FALSE(fs::exists(Path("b")));
  Commit(*store, 2);
  store.reset();
  ExpectWhole(Named({"a", "shared"}), 2);
}

// Of no training yet: only its lock tells that it is taken.
TEST_F(PathsTest, ALockWithoutDataIsRefused) {
  fs::create_directory(Path("shared"));
  auto lock = SystemFiles().Lock(Path("shared") + "/lock");
  ASSERT_TRUE(lock.ok());
  ExpectMessage(CreateStatus(Named({"b", "shared"})), "is in use by another process");
  EXPECT_FALSE(fs::exists(Path("b")));
}

TEST_F(PathsTest, TheLockOfAnotherProcessNamesIt) {
  Make({Path()});
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    auto store = StateStore::Open(disk, program, {Path()});
    if (!store.ok() || write(ready[1], "x", 1) != 1)
      _exit(1);
    while (true)
      pause();
  }
  char byte;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  ExpectMessage(OpenStatus({Path()}), absl::StrCat("in use by process ", child, ":"));
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  ExpectWhole({Path()}, 1);
  close(ready[0]);
  close(ready[1]);
}

// A rank of a job that has lost its others.
TEST_F(StateTest, ARankThatIsLeftKeepsANewJobOut) {
  Make({Path()});
  auto rank = SystemFiles().Open(Path() + "/lock", {/*write=*/true});
  ASSERT_TRUE(rank.ok());
  ASSERT_TRUE((*rank)->LockBytes(/*offset=*/1 + 3, 1, /*shared=*/false).ok());
  const std::string before = Snapshot(Path());
  ExpectMessage(OpenStatus({Path()}), "is in use by");
  ExpectMessage(StateStore::CheckFree(disk, {Path()}), "is in use by");
  EXPECT_EQ(Snapshot(Path()), before);
  rank->reset();
  ExpectWhole({Path()}, 1);
}

// One that has ended holds no lock: somebody else does.
TEST_F(PathsTest, ALockOfAnEndedProcessNamesNone) {
  Make({Path()});
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0)
    _exit(Open({Path()}) ? 0 : 1);
  waitpid(child, nullptr, 0);
  auto lock = SystemFiles().Lock(Path() + "/lock"); // as `flock -x` does
  ASSERT_TRUE(lock.ok());
  ExpectMessage(OpenStatus({Path()}),
                "is in use by another process (`fuser " + Path() + "/lock` names it)");
}

// Who may open a file may lock it, and so keep commits or a trainer out.
TEST_F(PathsTest, FilesAreForTheOwnerAlone) {
  const Paths paths = Named({"a", "b"});
  const std::vector<std::string> files = {
      "a/lock", "a/data", "a/manifest.json", "a/manifest.copy.json", "b/lock", "b/data"};
  const auto permissions = [&](const std::string &file) {
    return int(fs::status(Path(file)).permissions());
  };
  Make(paths);
  for (const std::string &file : files)
    EXPECT_EQ(permissions(file), 0600) << file;
  // Those that a user shares, or an older version made, stay as they are, and it is said.
  for (const std::string &file : files)
    fs::permissions(Path(file), fs::perms(0664));
  Store store = Open(paths);
  EXPECT_TRUE(absl::StrContains(Notes(*store),
                                Path("a") + ": other users may open lock, data, manifest.json, "
                                            "manifest.copy.json, and can then hold its commits"));
  EXPECT_TRUE(absl::StrContains(Notes(*store), Path("b") + ": other users may open lock, data, "));
  Commit(*store, 2);
  for (const std::string &file : files)
    EXPECT_EQ(permissions(file), 0664) << file;
}

TEST_F(PathsTest, ForeignFilesAreSpared) {
  fs::create_directory(Path());
  for (const std::string &text : {std::string("thesis"), std::string(10000, 'x'),
                                  "{\"format\": \"else\"}" + std::string(9000, '\0')}) {
    scratch.Write("state/data", text);
    ExpectRefused({Path()}, Path() + "/data is not of a training state", false);
    ExpectRefused(Named({"home", "state"}), Path() + "/data is not of a training state", false);
  }
  fs::remove(Path() + "/data");
  scratch.Write("state/lock", "of another program, and its own business");
  ExpectRefused({Path()}, "is not the lock of a trainer", false);
}

// Beside our own data a lock says nothing that we need.
TEST_F(PathsTest, ADamagedLockStopsNobody) {
  Make({Path()});
  scratch.Write("state/lock", "boa trainer, prXcess 12                ");
  EXPECT_EQ(OpenStatus({Path()}), absl::OkStatus());
  EXPECT_EQ(ReadWhole(Path() + "/lock").find("boa trainer, process "), 0u);
}

TEST_F(PathsTest, PlantedLinksAreNotFollowed) {
  const std::string victim = scratch.Write("victim", std::string(5000, 'v'));
  fs::create_directory(Path());
  auto check = [&] { EXPECT_EQ(ReadWhole(victim), std::string(5000, 'v')); };
  for (const char *name : {"data", "lock", "manifest.json", "manifest.copy.json"}) {
    fs::create_symlink(victim, Path() + "/" + name);
    ExpectMessage(CreateStatus({Path()}), Path() + "/" + name);
    EXPECT_TRUE(fs::is_symlink(Path() + "/" + name));
    check();
    fs::remove(Path() + "/" + name);
  }
  // These are ours by their names; what they point to is not.
  for (const char *name : {"data.tmp", "manifest.json.tmp", "manifest.copy.json.tmp"})
    fs::create_symlink(victim, Path() + "/" + name);
  Make({Path()});
  check();
  for (const char *name : {"manifest.json.tmp", "manifest.copy.json.tmp"})
    fs::create_symlink(victim, Path() + "/" + name);
  Continue({Path()}, 2);
  check();
  // One of the two manifests is as good as missing.
  for (const std::string &path : {Manifest(), Copy()}) {
    fs::remove(path);
    fs::create_symlink(victim, path);
    Continue({Path()}, 3);
    EXPECT_FALSE(fs::is_symlink(path));
    check();
  }
  // The data are gone, and nothing stands in for them.
  fs::rename(Path() + "/data", Path() + "/elsewhere");
  fs::create_symlink(Path() + "/elsewhere", Path() + "/data");
  ExpectMessage(OpenStatus({Path()}), Path() + "/data");
}

TEST_F(PathsTest, OneDirectoryUnderTwoNames) {
  fs::create_directory(Path("a"));
  fs::create_directory_symlink(Path("a"), Path("b"));
  for (const Paths &paths :
       {Named({"a", "a"}), Named({"a", "b"}), Named({"a", "a/."}), Named({"a", "c/../a"})})
    ExpectMessage(CreateStatus(paths), "are one directory");
  EXPECT_TRUE(fs::is_empty(Path("a")));
  Make({Path("b") + "/"}); // by one name it is as good as any
  ExpectWhole({Path("a")}, 1);
}

//===----------------------------------------------------------------------===//
// What belongs to the state
//===----------------------------------------------------------------------===//

TEST_F(PathsTest, PathsMayBeNamedInAnotherOrder) {
  Make(Named({"a", "b", "c"}));
  Continue(Named({"a", "c", "b"}), 2);
  ExpectWhole(Named({"a", "b", "c"}), 2);
}

TEST_F(PathsTest, PathsMayMove) {
  Make(Named({"a", "b"}));
  Move("b", "c");
  Continue(Named({"a", "c"}), 2);
  Move("a", "d");
  Continue(Named({"d", "c"}), 3);
  ExpectWhole(Named({"d", "c"}), 3);
}

TEST_F(PathsTest, SwappedDataFilesAreRecognised) {
  Make(Named({"a", "b"}));
  fs::rename(Path("a") + "/data", Path("x"));
  fs::rename(Path("b") + "/data", Path("a") + "/data");
  fs::rename(Path("x"), Path("b") + "/data");
  Continue(Named({"a", "b"}), 2);
  ExpectWhole(Named({"a", "b"}), 2);
}

// Between two states they are not.
TEST_F(PathsTest, DataFilesSwappedBetweenTwoStatesAreRefused) {
  Make({Path("a")});
  Make({Path("b")});
  fs::rename(Path("a") + "/data", Path("x"));
  fs::rename(Path("b") + "/data", Path("a") + "/data");
  fs::rename(Path("x"), Path("b") + "/data");
  ExpectMessage(OpenStatus({Path("a")}), "belongs to another training");
  ExpectMessage(OpenStatus({Path("b")}), "belongs to another training");
}

TEST_F(PathsTest, AWholeCopyIsAStateOfItsOwn) {
  Make(Named({"a", "b"}));
  CopyAll("a", "a2");
  CopyAll("b", "b2");
  Continue(Named({"a2", "b2"}), 2);
  Continue(Named({"a", "b"}), 5);
  ExpectWhole(Named({"a2", "b2"}), 2);
  ExpectWhole(Named({"a", "b"}), 5);
}

// It would write to what belongs to the first.
TEST_F(PathsTest, ACopyThatSharesAPathIsRefused) {
  Make(Named({"a", "b"}));
  CopyAll("a", "a2");
  const std::string message = Path("a2") + " is a copy of the state in " + Path("a");
  const std::string before = Snapshot(Path("b"));
  ExpectMessage(OpenStatus(Named({"a2", "b"})), message);
  ExpectMessage(OpenStatus(Named({"a2"})), message);
  EXPECT_EQ(Snapshot(Path("b")), before);
  ExpectWhole(Named({"a", "b"}), 1);
}

// Once each has gone its own way, the paths of the one are none of the other's.
TEST_F(PathsTest, PathsOfACopyAndOfTheFirstAreNotMixed) {
  Make(Named({"a", "b"}));
  CopyAll("a", "a2");
  CopyAll("b", "b2");
  Continue(Named({"a2", "b2"}), 2);
  Continue(Named({"a", "b"}), 5);
  const std::string before = Snapshot(Path("b")), other = Snapshot(Path("b2"));
  ExpectMessage(OpenStatus(Named({"a2", "b"})),
                Path("b") + " and " + Path("b2") + " hold the same part");
  ExpectMessage(OpenStatus(Named({"a", "b2"})),
                Path("b2") + " and " + Path("b") + " hold the same part");
  EXPECT_EQ(Snapshot(Path("b")), before);
  EXPECT_EQ(Snapshot(Path("b2")), other);
  ExpectWhole(Named({"a2", "b2"}), 2);
  ExpectWhole(Named({"a", "b"}), 5);
}

// A path that only the copy has taken into use is the copy's.
TEST_F(PathsTest, ANewPathOfACopyIsNotTheFirstOnes) {
  Make({Path("a")});
  CopyAll("a", "a2");
  Continue(Named({"a2", "n"}), 2);
  const std::string before = Snapshot(Path("n"));
  ExpectMessage(OpenStatus(Named({"a", "n"})), Path("n") + " belongs to another training");
  EXPECT_EQ(Snapshot(Path("n")), before);
  ExpectWhole(Named({"a2", "n"}), 2);
}

// Nor has a copy a claim to what the first one may take into use again.
TEST_F(PathsTest, AFormerPathIsNotTheCopys) {
  Make(Named({"a", "b"}));
  Continue(Named({"a"}), 2);
  Continue(Named({"a"}), 3);
  CopyAll("a", "a2");
  Continue(Named({"a2"}), 4);
  ExpectMessage(OpenStatus(Named({"a2", "b"})), Path("b") + " belongs to another training");
  Continue(Named({"a", "b"}), 5);
  ExpectMessage(OpenStatus(Named({"a2", "b"})), Path("b"));
  ExpectWhole(Named({"a", "b"}), 5);
}

TEST_F(PathsTest, TwoCopiesOfOnePathAreRefused) {
  Make(Named({"a", "b"}));
  CopyAll("b", "c");
  ExpectMessage(OpenStatus(Named({"a", "b", "c"})), "are copies of one path");
  ExpectWhole(Named({"a", "b"}), 1);
}

TEST_F(PathsTest, AMissingPathIsNamed) {
  Make(Named({"a", "b"}));
  Move("b", "away");
  ExpectMessage(OpenStatus(Named({"a", "b"})), Path("b") + "/data is missing");
  ExpectMessage(OpenStatus(Named({"a"})), Path("b") + "/data is missing");
  EXPECT_FALSE(fs::exists(Path("b"))) << "nothing is left of what was tried";
  Move("away", "b");
  ExpectWhole(Named({"a", "b"}), 1);
}

TEST_F(PathsTest, TruncatedDataAreToldAndNotTouched) {
  Make(Named({"a", "b"}));
  for (const char *name : {"a", "b"}) {
    const std::string data = Path(name) + "/data", whole = ReadWhole(data);
    // The first commit stands at the head of the file.
    fs::resize_file(data, uintmax_t(kPage + kStateBytes / 4));
    const std::string before = Snapshot(Path(name));
    ExpectMessage(OpenStatus(Named({"a", "b"})), data + " is truncated");
    EXPECT_EQ(Snapshot(Path(name)), before);
    std::ofstream(data, std::ios::binary) << whole;
  }
  ExpectWhole(Named({"a", "b"}), 1);
}

TEST_F(PathsTest, ARottenHeadIsTold) {
  disk.through_cache = true;
  Make({Path()});
  const std::string data = Path() + "/data", whole = ReadWhole(data);
  for (size_t at = 0; at < size_t(kPage); at += at < 400 ? 1 : 37) {
    std::string rotten = whole;
    rotten[at] = char(rotten[at] ^ 1 << at % 8);
    std::ofstream(data, std::ios::binary) << rotten;
    const absl::Status status = OpenStatus({Path()});
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << at << ": " << status;
    ExpectMessage(status, data + " is damaged");
  }
}

// It is read where it is; what is written goes to the others. Then it may go.
TEST_F(PathsTest, APathThatIsNoLongerGivenIsEmptied) {
  Make(Named({"a", "b", "c"}));
  {
    Store store = Open(Named({"a", "c"}));
    ExpectHolds(*store, 1);
    EXPECT_TRUE(absl::StrContains(Notes(*store), Path("b") + " is no longer among the ssd paths"));
    EXPECT_EQ(store->BytesByPath().size(), 3u);
    // Nobody else may take it meanwhile.
    ExpectMessage(CreateStatus({Path("b")}), Path("b"));
  }
  ExpectWhole(Named({"a", "c"}), 1);
  const std::string before = ReadWhole(Path("b") + "/data");
  {
    Store store = Open(Named({"a", "c"}));
    Commit(*store, 2);
  }
  EXPECT_EQ(ReadWhole(Path("b") + "/data"), before);
  fs::remove_all(Path("b"));
  Store store = Open(Named({"a", "c"}));
  EXPECT_EQ(Notes(*store), "");
  ExpectHolds(*store, 2);
}

// While a commit that is kept names it, it is needed.
TEST_F(PathsTest, APathIsNeededAsLongAsACommitIs) {
  Make(Named({"a", "b"}), {1, 2}, /*keep=*/2);
  {
    Store store = Open(Named({"a"}), 2);
    Commit(*store, 3);
  }
  Move("b", "away");
  ExpectMessage(StateStore::Open(disk, program, Named({"a"}), 2).status(), "is missing");
  Move("away", "b");
  {
    Store store = Open(Named({"a"}), 2);
    Commit(*store, 4);
  }
  fs::remove_all(Path("b"));
  ExpectHolds(*Open(Named({"a"}), 2, 3), 3);
}

TEST_F(PathsTest, APathMayComeBack) {
  Make(Named({"a", "b"}));
  Continue(Named({"a"}), 2);
  Continue(Named({"a"}), 3); // from here on nothing of it is needed
  Continue(Named({"a", "b"}), 4);
  ExpectWhole(Named({"a", "b"}), 4);
}

TEST_F(PathsTest, APathIsTakenIntoUse) {
  Make({Path("a")});
  {
    Store store = Open(Named({"a", "b/deep"}));
    ExpectHolds(*store, 1);
    EXPECT_EQ(Notes(*store), Path("b/deep") + " is taken into use");
    Commit(*store, 2);
    int there = 0;
    ForEach([&](int32_t storage, int64_t entry, int32_t chunk) {
      there += store->Current(storage, entry, chunk).file == 1;
    });
    EXPECT_EQ(there, 12);
  }
  ExpectWhole(Named({"a", "b/deep"}), 2);
  ExpectMessage(CreateStatus({Path("b/deep")}), "belongs to another training");
}

TEST_F(PathsTest, MorePathsThanAManifestCanNameAreRefused) {
  Paths paths;
  for (int i = 0; i < 300; ++i)
    paths.push_back(Path(absl::StrCat("p", i)));
  ExpectMessage(CreateStatus(paths), "256");
  EXPECT_FALSE(fs::exists(paths[0]));
}

TEST_F(PathsTest, NamesThatAreNone) {
  ExpectMessage(CreateStatus({}), "at least one directory");
  ExpectMessage(CreateStatus({""}), "empty name");
  scratch.Write("file", "x");
  ExpectMessage(CreateStatus({Path("file")}), Path("file"));
  EXPECT_EQ(ReadWhole(Path("file")), "x");
}

} // namespace
} // namespace boa
