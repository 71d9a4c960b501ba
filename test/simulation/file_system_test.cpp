//===- file_system_test.cpp - What holds of any file system ---------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One suite, run on the real file system and on the simulated one: what tests find
// out on the one is of use only if it holds of the other.
//
//===----------------------------------------------------------------------===//
#include "test/runtime/scratch.h"
#include "test/simulation/simulated_disk.h"

#include "gtest/gtest.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace {
bool no_fallocate = false;     // as file systems that do not have it
bool no_space = false;         // of the calls below
int64_t interrupted = 0;       // so many calls return EINTR first
int64_t short_bytes = 0;       // a write moves no more
bool whole_pages = false;      // nothing else is moved: as disks of such blocks
std::string unlinked_at_flock; // the name goes between open and flock
bool made_at_flock = false;    // and another file has it
} // namespace

// The tests' own definitions stand before those of the C library.
extern "C" int fallocate(int fd, int mode, off_t offset, off_t length) {
  if (interrupted > 0 && interrupted-- > 0)
    return errno = EINTR, -1;
  if (no_fallocate || no_space)
    return errno = no_space ? ENOSPC : EOPNOTSUPP, -1;
  return int(syscall(SYS_fallocate, fd, mode, offset, length));
}
extern "C" ssize_t pwrite(int fd, const void *data, size_t bytes, off_t offset) {
  if (interrupted > 0 && interrupted-- > 0)
    return errno = EINTR, -1;
  if (whole_pages && offset % 4096 != 0)
    return errno = EINVAL, -1;
  if (short_bytes > 0)
    bytes = std::min(bytes, size_t(short_bytes));
  return syscall(SYS_pwrite64, fd, data, bytes, offset);
}
extern "C" ssize_t pread(int fd, void *data, size_t bytes, off_t offset) {
  if (interrupted > 0 && interrupted-- > 0)
    return errno = EINTR, -1;
  if (whole_pages && offset % 4096 != 0)
    return errno = EINVAL, -1;
  if (short_bytes > 0)
    bytes = std::min(bytes, size_t(short_bytes));
  return syscall(SYS_pread64, fd, data, bytes, offset);
}
extern "C" int flock(int fd, int operation) {
  if (const std::string path = std::exchange(unlinked_at_flock, ""); !path.empty()) {
    unlink(path.c_str());
    if (made_at_flock)
      close(open(path.c_str(), O_RDWR | O_CREAT, 0644));
  }
  return int(syscall(SYS_flock, fd, operation));
}

namespace boa {
namespace {

constexpr OpenMode kRead{};
constexpr OpenMode kCreate{/*write=*/true, /*create=*/true};
constexpr OpenMode kNew{/*write=*/true, /*create=*/true, /*exclusive=*/true};
constexpr OpenMode kDirect{/*write=*/true, /*create=*/true, /*exclusive=*/false, /*direct=*/true};

class FileSystemTest : public testing::TestWithParam<const char *> {
protected:
  FileSystemTest() : simulated(1) {
    if (GetParam() == std::string("simulated")) {
      files = &simulated;
      directory = "/disk";
      simulated.AddDevice(directory, 64 << 20);
    } else {
      files = &SystemFiles();
      directory = std::filesystem::canonical(scratch.path()).string();
    }
  }
  std::string Path(const std::string &name) const { return directory + "/" + name; }
  std::unique_ptr<OpenFile> Open(const std::string &name, OpenMode mode) {
    absl::StatusOr<std::unique_ptr<OpenFile>> file = files->Open(Path(name), mode);
    EXPECT_TRUE(file.ok()) << file.status();
    return file.ok() ? *std::move(file) : nullptr;
  }
  void Make(const std::string &name, const std::string &contents) {
    std::unique_ptr<OpenFile> file = Open(name, kCreate);
    ASSERT_TRUE(file->Write(0, contents.data(), int64_t(contents.size())).ok());
  }
  std::string Read(const std::string &name) {
    absl::StatusOr<std::string> text = ReadSmallFile(*files, Path(name));
    return text.ok() ? *text : std::string(text.status().message());
  }
  PathKind Kind(const std::string &name) {
    absl::StatusOr<PathKind> kind = files->Kind(Path(name));
    EXPECT_TRUE(kind.ok()) << kind.status();
    return *kind;
  }
  /// An error says on which path.
  template <typename Result>
  absl::StatusCode CodeOf(const Result &result, const std::string &name) {
    absl::Status status;
    if constexpr (std::is_same_v<Result, absl::Status>)
      status = result;
    else
      status = result.status();
    EXPECT_NE(status.message().find(Path(name)), std::string::npos) << status;
    return status.code();
  }

  Scratch scratch;
  SimulatedDisk simulated;
  FileSystem *files;
  std::string directory;
};
using Code = absl::StatusCode;

TEST_P(FileSystemTest, FilesAreMadeAndFound) {
  EXPECT_EQ(CodeOf(files->Open(Path("a"), kRead), "a"), Code::kNotFound);
  EXPECT_EQ(CodeOf(files->Open(Path("no/a"), kCreate), "no/a"), Code::kNotFound);
  EXPECT_EQ(Kind("a"), PathKind::nothing);
  EXPECT_EQ(Kind("no/a"), PathKind::nothing);
  Make("a", "text");
  EXPECT_EQ(Kind("a"), PathKind::file);
  EXPECT_EQ(Kind("a/b"), PathKind::nothing);
  EXPECT_EQ(Read("a"), "text");
  EXPECT_EQ(CodeOf(files->Open(Path("a"), kNew), "a"), Code::kAlreadyExists);
  EXPECT_NE(Open("b", kNew), nullptr);
  std::unique_ptr<OpenFile> again = Open("a", kCreate);
  EXPECT_EQ(again->Size().value(), 4);
  EXPECT_EQ(again->path(), Path("a"));
}

TEST_P(FileSystemTest, ReadsAreWholeOrErrors) {
  Make("a", "0123456789");
  std::unique_ptr<OpenFile> file = Open("a", kRead);
  char buffer[16] = {};
  ASSERT_TRUE(file->Read(3, buffer, 4).ok());
  EXPECT_STREQ(buffer, "3456");
  EXPECT_TRUE(file->Read(10, buffer, 0).ok());
  EXPECT_EQ(CodeOf(file->Read(8, buffer, 4), "a"), Code::kDataLoss);
  EXPECT_EQ(CodeOf(file->Read(20, buffer, 1), "a"), Code::kDataLoss);
  EXPECT_FALSE(file->Write(0, "x", 1).ok());
  EXPECT_EQ(Read("a"), "0123456789");
}

TEST_P(FileSystemTest, WritesBeyondTheEndLeaveZeros) {
  Make("a", "ab");
  std::unique_ptr<OpenFile> file = Open("a", kCreate);
  ASSERT_TRUE(file->Write(5000, "c", 1).ok());
  ASSERT_TRUE(file->Write(1, "B", 1).ok());
  EXPECT_EQ(Read("a"), "aB" + std::string(4998, '\0') + "c");
}

TEST_P(FileSystemTest, DirectFilesTakePages) {
  std::unique_ptr<OpenFile> file = Open("a", kDirect);
  if (!file->Degraded().empty()) {
    RecordProperty("lacking", "O_DIRECT");
    GTEST_SKIP() << file->Degraded();
  }
  alignas(4096) static char written[3 * 4096], read[3 * 4096];
  for (size_t i = 0; i < sizeof(written); ++i)
    written[i] = char(i * 7 + i / 4096);
  ASSERT_TRUE(file->Write(4096, written, sizeof(written)).ok());
  EXPECT_EQ(file->Size().value(), 4 * 4096);
  ASSERT_TRUE(file->Read(4096, read, sizeof(read)).ok());
  EXPECT_EQ(std::memcmp(written, read, sizeof(read)), 0);
  EXPECT_FALSE(file->Write(4096, written + 8, 4096).ok());
  EXPECT_FALSE(file->Read(100, read, 4096).ok());
  EXPECT_EQ(CodeOf(file->Read(2 * 4096, read, sizeof(read)), "a"), Code::kDataLoss);
}

TEST_P(FileSystemTest, ReservingOnlyEverGrows) {
  std::unique_ptr<OpenFile> file = Open("a", kDirect);
  ASSERT_TRUE(file->Reserve(1 << 20).ok());
  EXPECT_EQ(file->Size().value(), 1 << 20);
  ASSERT_TRUE(file->Reserve(4096).ok());
  EXPECT_EQ(file->Size().value(), 1 << 20);
  EXPECT_EQ(Read("a"), std::string(1 << 20, '\0'));
}

TEST_P(FileSystemTest, ReservedSpaceIsTaken) {
  int64_t before = files->Space(directory)->free_bytes;
  std::unique_ptr<OpenFile> file = Open("a", kDirect);
  ASSERT_TRUE(file->Reserve(32 << 20).ok());
  ASSERT_TRUE(file->Sync().ok());
  EXPECT_LE(files->Space(directory)->free_bytes, before - (24 << 20));
}

TEST_P(FileSystemTest, AFullDiskSaysHowMuchWasWanted) {
  const int64_t enough = int64_t(1) << 55; // more than any
  Make("a", "text");
  std::unique_ptr<OpenFile> file = Open("a", kCreate);
  if (GetParam() == std::string("system"))
    no_space = true;
  absl::Status status = file->Reserve(enough);
  no_space = false;
  EXPECT_EQ(CodeOf(status, "a"), Code::kResourceExhausted);
  EXPECT_NE(status.message().find("bytes"), std::string::npos) << status;
  EXPECT_NE(status.message().find("free"), std::string::npos) << status;
  EXPECT_EQ(file->Size().value(), 4);
  EXPECT_EQ(Read("a"), "text");
}

TEST_P(FileSystemTest, OneHoldsALock) {
  absl::StatusOr<std::unique_ptr<OpenFile>> lock = files->Lock(Path("lock"));
  ASSERT_TRUE(lock.ok()) << lock.status();
  EXPECT_EQ(CodeOf(files->Lock(Path("lock")), "lock"), Code::kUnavailable);
  ASSERT_TRUE((*lock)->Write(0, "me", 2).ok());
  EXPECT_EQ(Read("lock"), "me");
  EXPECT_EQ(CodeOf(files->Lock(Path("lock")), "lock"), Code::kUnavailable);
  lock->reset();
  absl::StatusOr<std::unique_ptr<OpenFile>> next = files->Lock(Path("lock"));
  ASSERT_TRUE(next.ok()) << next.status();
  EXPECT_EQ(Read("lock"), "me");
  // A name that went is another lock.
  ASSERT_TRUE(files->Unlink(Path("lock")).ok());
  EXPECT_TRUE(files->Lock(Path("lock")).ok());
}

TEST_P(FileSystemTest, LocksOfBytesStandAgainstLocksOfThatByte) {
  absl::StatusOr<std::unique_ptr<OpenFile>> lock = files->Lock(Path("lock"));
  ASSERT_TRUE(lock.ok()) << lock.status();
  const int64_t far = int64_t(1) << 40;
  auto reader = files->Open(Path("lock"), {}), other = files->Open(Path("lock"), {}),
       writer = files->Open(Path("lock"), {/*write=*/true});
  ASSERT_TRUE(reader.ok() && other.ok() && writer.ok());
  EXPECT_TRUE((*reader)->LockBytes(far, 1, /*shared=*/true).ok());
  EXPECT_TRUE((*other)->LockBytes(far, 1, /*shared=*/true).ok());
  EXPECT_EQ(CodeOf((*writer)->LockBytes(far, 1, /*shared=*/false), "lock"), Code::kUnavailable);
  EXPECT_TRUE((*writer)->LockBytes(far + 1, 1, /*shared=*/false).ok());
  EXPECT_EQ(CodeOf((*reader)->LockBytes(far + 1, 1, /*shared=*/true), "lock"), Code::kUnavailable);
  reader->reset();
  other->reset();
  EXPECT_TRUE((*writer)->LockBytes(far, 1, /*shared=*/false).ok());
  auto all = files->Open(Path("lock"), {/*write=*/true});
  ASSERT_TRUE(all.ok());
  EXPECT_EQ(CodeOf((*all)->LockBytes(0, far + 1, /*shared=*/false), "lock"), Code::kUnavailable);
  EXPECT_TRUE((*all)->LockBytes(0, far, /*shared=*/false).ok());
}

TEST_P(FileSystemTest, RenameReplaces) {
  Make("a", "new");
  Make("b", "old");
  std::unique_ptr<OpenFile> old = Open("b", kRead);
  ASSERT_TRUE(files->Rename(Path("a"), Path("b")).ok());
  EXPECT_EQ(Kind("a"), PathKind::nothing);
  EXPECT_EQ(Read("b"), "new");
  char buffer[4] = {};
  ASSERT_TRUE(old->Read(0, buffer, 3).ok());
  EXPECT_STREQ(buffer, "old");
  EXPECT_EQ(CodeOf(files->Rename(Path("a"), Path("b")), "b"), Code::kNotFound);
  ASSERT_TRUE(files->MakeDirectory(Path("d")).ok());
  EXPECT_FALSE(files->Rename(Path("b"), Path("d")).ok());
  EXPECT_TRUE(files->Rename(Path("b"), Path("d/b")).ok());
  EXPECT_EQ(Read("d/b"), "new");
}

TEST_P(FileSystemTest, Directories) {
  ASSERT_TRUE(files->MakeDirectory(Path("d")).ok());
  EXPECT_EQ(Kind("d"), PathKind::directory);
  EXPECT_EQ(CodeOf(files->MakeDirectory(Path("d")), "d"), Code::kAlreadyExists);
  EXPECT_EQ(CodeOf(files->MakeDirectory(Path("no/d")), "no/d"), Code::kNotFound);
  EXPECT_EQ(CodeOf(files->Open(Path("d"), kRead), "d"), Code::kFailedPrecondition);
  EXPECT_EQ(CodeOf(files->Open(Path("d"), kCreate), "d"), Code::kFailedPrecondition);
  Make("d/a", "text");
  EXPECT_TRUE(files->SyncDirectory(Path("d")).ok());
  EXPECT_EQ(CodeOf(files->SyncDirectory(Path("no")), "no"), Code::kNotFound);
  EXPECT_FALSE(files->SyncDirectory(Path("d/a")).ok());
  EXPECT_FALSE(files->Unlink(Path("d")).ok());
  EXPECT_FALSE(files->RemoveDirectory(Path("d")).ok());
  EXPECT_FALSE(files->RemoveDirectory(Path("d/a")).ok());
  EXPECT_TRUE(files->Unlink(Path("d/a")).ok());
  EXPECT_EQ(CodeOf(files->Unlink(Path("d/a")), "d/a"), Code::kNotFound);
  EXPECT_TRUE(files->RemoveDirectory(Path("d")).ok());
  EXPECT_EQ(CodeOf(files->RemoveDirectory(Path("d")), "d"), Code::kNotFound);
}

TEST_P(FileSystemTest, AnOpenDirectoryIsNotItsName) {
  ASSERT_TRUE(files->MakeDirectory(Path("d")).ok());
  std::shared_ptr<Directory> directory = *files->OpenDirectory(Path("d"));
  EXPECT_EQ(directory->path(), Path("d"));
  ASSERT_TRUE(ReplaceFile(*directory, "a", "first").ok());
  EXPECT_EQ(Read("d/a"), "first");
  std::unique_ptr<OpenFile> file = *directory->Open("a", kRead);
  EXPECT_TRUE(directory->IsCurrent().value());
  EXPECT_TRUE(directory->Names("a", *file).value());
  // Another file of the name, then another directory of the name.
  ASSERT_TRUE(ReplaceFile(*directory, "a", "second").ok());
  EXPECT_FALSE(directory->Names("a", *file).value());
  ASSERT_TRUE(files->Rename(Path("d"), Path("e")).ok());
  EXPECT_FALSE(directory->IsCurrent().value());
  ASSERT_TRUE(files->MakeDirectory(Path("d")).ok());
  EXPECT_FALSE(directory->IsCurrent().value());
  ASSERT_TRUE(ReplaceFile(*directory, "a", "third").ok());
  EXPECT_TRUE(directory->Lock("lock").ok());
  EXPECT_EQ(Kind("d/a"), PathKind::nothing);
  EXPECT_EQ(Read("e/a"), "third");
  EXPECT_EQ(Kind("e/lock"), PathKind::file);
  ASSERT_TRUE(directory->Unlink("a").ok());
  EXPECT_EQ(directory->Kind("a").value(), PathKind::nothing);
  EXPECT_FALSE(directory->Names("a", *file).value());
  EXPECT_EQ(CodeOf(directory->Open("a", kRead), "d/a"), Code::kNotFound);
  EXPECT_EQ(CodeOf(directory->Rename("a", "b"), "d/b"), Code::kNotFound);
  EXPECT_EQ(CodeOf(files->OpenDirectory(Path("no")), "no"), Code::kNotFound);
  EXPECT_EQ(CodeOf(files->OpenDirectory(Path("e/lock")), "e/lock"), Code::kNotFound);
}

TEST_P(FileSystemTest, RealPathsAreTheSameForAllNames) {
  ASSERT_TRUE(files->MakeDirectory(Path("d")).ok());
  for (const char *name : {"d", "d/", "./d", "d/../d", "d/."})
    EXPECT_EQ(files->RealPath(Path(name)).value(), Path("d"));
  EXPECT_EQ(CodeOf(files->RealPath(Path("no")), "no"), Code::kNotFound);
}

TEST_P(FileSystemTest, AnOpenFileOutlivesItsName) {
  Make("a", "text");
  std::unique_ptr<OpenFile> file = Open("a", kCreate);
  ASSERT_TRUE(files->Unlink(Path("a")).ok());
  ASSERT_TRUE(file->Write(4, "!", 1).ok());
  char buffer[6] = {};
  ASSERT_TRUE(file->Read(0, buffer, 5).ok());
  EXPECT_STREQ(buffer, "text!");
  EXPECT_TRUE(file->Sync().ok());
  EXPECT_EQ(Kind("a"), PathKind::nothing);
}

TEST_P(FileSystemTest, FilesAreReplaced) {
  for (const std::string &contents :
       {std::string("first"), std::string(100000, 'x'), std::string()}) {
    ASSERT_TRUE(ReplaceFile(*files, directory, "a", contents).ok());
    EXPECT_EQ(Read("a"), contents);
    EXPECT_EQ(Kind("a.tmp"), PathKind::nothing);
  }
  Make("a.tmp", "left by a crash, and longer than what follows");
  ASSERT_TRUE(ReplaceFile(*files, directory, "a", "next").ok());
  EXPECT_EQ(Read("a"), "next");
  // What cannot be replaced is as it was, and nothing is left.
  ASSERT_TRUE(files->MakeDirectory(Path("d")).ok());
  EXPECT_FALSE(ReplaceFile(*files, directory, "d", "next").ok());
  EXPECT_EQ(Kind("d.tmp"), PathKind::nothing);
  EXPECT_FALSE(ReplaceFile(*files, Path("no"), "a", "next").ok());
}

INSTANTIATE_TEST_SUITE_P(Kinds, FileSystemTest, testing::Values("system", "simulated"),
                         [](const auto &info) { return std::string(info.param); });

//===----------------------------------------------------------------------===//
// What only the real one can be asked
//===----------------------------------------------------------------------===//

class SystemFilesTest : public testing::Test {
protected:
  ~SystemFilesTest() override {
    no_fallocate = no_space = made_at_flock = whole_pages = false;
    interrupted = short_bytes = 0;
  }
  std::unique_ptr<OpenFile> Open(const std::string &name, OpenMode mode) {
    return *files.Open(scratch.path(name), mode);
  }
  Scratch scratch;
  FileSystem &files = SystemFiles();
};

TEST_F(SystemFilesTest, LinksAreNotFollowed) {
  const std::string victim = scratch.Write("victim", "precious");
  for (const char *link : {"link", "a.tmp", "lock"})
    ASSERT_EQ(symlink(victim.c_str(), scratch.path(link).c_str()), 0);
  absl::Status status = files.Open(scratch.path("link"), kCreate).status();
  EXPECT_NE(status.message().find("symbolic link"), std::string::npos) << status;
  EXPECT_FALSE(files.Open(scratch.path("link"), kRead).ok());
  EXPECT_FALSE(files.Lock(scratch.path("lock")).ok());
  EXPECT_EQ(*files.Kind(scratch.path("link")), PathKind::other);
  ASSERT_TRUE(ReplaceFile(files, scratch.path(), "a", "new").ok());
  EXPECT_EQ(ReadWhole(victim), "precious");
  EXPECT_EQ(ReadWhole(scratch.path("a")), "new");
  ASSERT_EQ(symlink("nowhere", scratch.path("dangling").c_str()), 0);
  EXPECT_FALSE(files.Open(scratch.path("dangling"), kCreate).ok());
  EXPECT_FALSE(std::filesystem::exists(scratch.path("nowhere")));
}

TEST_F(SystemFilesTest, APipeIsRefusedAtOnce) {
  ASSERT_EQ(mkfifo(scratch.path("pipe").c_str(), 0644), 0);
  for (OpenMode mode : {kRead, kCreate}) {
    absl::Status status = files.Open(scratch.path("pipe"), mode).status();
    EXPECT_EQ(status.code(), Code::kFailedPrecondition) << status;
  }
}

TEST_F(SystemFilesTest, DescriptorsDoNotReachOtherProgramsNorBlock) {
  for (OpenMode mode : {kCreate, kDirect}) {
    std::unique_ptr<OpenFile> file = Open("a", mode);
    EXPECT_EQ(fcntl(file->descriptor(), F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    EXPECT_EQ(fcntl(file->descriptor(), F_GETFL) & O_NONBLOCK, 0);
    EXPECT_EQ((fcntl(file->descriptor(), F_GETFL) & O_DIRECT) != 0,
              mode.direct && file->Degraded().empty());
  }
}

// The lock's name may go between its being opened and its being locked.
TEST_F(SystemFilesTest, ALockIsOfTheNameAndNotOfWhatHadItBefore) {
  for (bool made : {false, true}) {
    unlinked_at_flock = scratch.path("lock");
    made_at_flock = made;
    absl::StatusOr<std::unique_ptr<OpenFile>> lock = files.Lock(scratch.path("lock"));
    ASSERT_TRUE(lock.ok()) << lock.status();
    EXPECT_EQ(files.Lock(scratch.path("lock")).status().code(), Code::kUnavailable);
  }
}

TEST_F(SystemFilesTest, SpaceIsReservedWithoutFallocateToo) {
  scratch.Write("a", std::string(5000, 'x'));
  std::unique_ptr<OpenFile> file = Open("a", kDirect);
  no_fallocate = true;
  ASSERT_TRUE(file->Reserve(4 << 20).ok());
  ASSERT_TRUE(file->Reserve(4096).ok());
  EXPECT_EQ(file->Size().value(), 4 << 20);
  EXPECT_EQ(ReadWhole(scratch.path("a")),
            std::string(5000, 'x') + std::string((4 << 20) - 5000, '\0'));
  ASSERT_TRUE(file->Sync().ok());
  struct stat info;
  ASSERT_EQ(fstat(file->descriptor(), &info), 0);
  EXPECT_GE(info.st_blocks * 512, 4 << 20);
  EXPECT_EQ((fcntl(file->descriptor(), F_GETFL) & O_DIRECT) != 0, file->Degraded().empty());
}

TEST_F(SystemFilesTest, InterruptedAndShortCallsAreContinued) {
  std::unique_ptr<OpenFile> file = Open("a", kCreate);
  std::string text;
  for (int i = 0; i < 20000; ++i)
    text += char('a' + i % 23);
  interrupted = 3;
  ASSERT_TRUE(file->Reserve(4096).ok());
  short_bytes = 777;
  interrupted = 3;
  ASSERT_TRUE(file->Write(0, text.data(), int64_t(text.size())).ok());
  std::string read(text.size(), '\0');
  interrupted = 3;
  ASSERT_TRUE(file->Read(0, read.data(), int64_t(read.size())).ok());
  EXPECT_EQ(read, text);
}

// Where O_DIRECT moves a part, the rest begins at a page.
TEST_F(SystemFilesTest, ShortDirectTransfersContinueAtPages) {
  std::unique_ptr<OpenFile> file = Open("a", kDirect);
  if (!file->Degraded().empty()) {
    RecordProperty("lacking", "O_DIRECT");
    GTEST_SKIP() << file->Degraded();
  }
  alignas(4096) static char written[8 * 4096], read[8 * 4096];
  for (size_t i = 0; i < sizeof(written); ++i)
    written[i] = char(i * 7 + i / 4096);
  short_bytes = 4096 + 512;
  whole_pages = true;
  ASSERT_TRUE(file->Write(0, written, sizeof(written)).ok());
  ASSERT_TRUE(file->Read(0, read, sizeof(read)).ok());
  EXPECT_EQ(std::memcmp(written, read, sizeof(read)), 0);
}

} // namespace
} // namespace boa
