//===- system_files.cpp - The file system of the operating system ---------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// FileSystem by POSIX calls. Nothing here keeps anything beside descriptors, so
// every call may come from any thread.
//
//===----------------------------------------------------------------------===//
#include "runtime/io/file_system.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "runtime/abi/abi.h"
#include "runtime/io/hint.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

namespace boa {
namespace {

constexpr int64_t kDirectAlignment = BOA_BLOCK_BYTES; // of offsets and sizes under O_DIRECT
constexpr int kMostInterruptions = 10000;             // of one call
constexpr int kMostDirectFractions = 8;               // of a block, in a row

/// The status of errno: "cannot WHAT PATH: ...". Callers decide by the code, so some errnos have no
/// code of absl. NotFound means that nothing is there, Unavailable that another process has the
/// lock, and FailedPrecondition that what is there is no file for Boa.
absl::Status Error(absl::string_view what, const std::string &path) {
  const int error = errno;
  absl::Status status = absl::ErrnoToStatus(error, absl::StrCat("cannot ", what, " ", path));
  const bool passes = (absl::IsNotFound(status) && error != ENOENT) ||
                      (absl::IsUnavailable(status) && error != EWOULDBLOCK) ||
                      absl::IsFailedPrecondition(status);
  return absl::Status(passes ? absl::StatusCode::kUnknown : status.code(),
                      absl::StrCat(status.message(), HintOf(error)));
}

/// A call again when a signal interrupts it. No program has so many signals in a row: then
/// EINTR is an error.
template <typename Call> auto Retrying(Call call) {
  auto result = call();
  for (int again = 0; result < 0 && errno == EINTR && again < kMostInterruptions; ++again)
    result = call();
  return result;
}

absl::StatusOr<DeviceSpace> SpaceOf(const std::string &directory) {
  struct stat info;
  struct statvfs space;
  if (stat(directory.c_str(), &info) != 0 || statvfs(directory.c_str(), &space) != 0)
    return Error("query the free space of", directory);
  return DeviceSpace{uint64_t(info.st_dev), int64_t(space.f_bavail) * int64_t(space.f_frsize)};
}

class SystemFile : public OpenFile {
public:
  SystemFile(int fd, std::string path, std::string degraded)
      : fd(fd), name(std::move(path)), degraded(std::move(degraded)) {}
  ~SystemFile() override { close(fd); }
  SystemFile(const SystemFile &) = delete;
  SystemFile &operator=(const SystemFile &) = delete;

  int descriptor() const override { return fd; }
  const std::string &path() const override { return name; }
  std::string Degraded() const override { return degraded; }

  absl::StatusOr<int64_t> Size() const override {
    struct stat info;
    if (fstat(fd, &info) != 0)
      return Error("query", name);
    return int64_t(info.st_size);
  }
  absl::StatusOr<int> Permissions() const override {
    struct stat info;
    if (fstat(fd, &info) != 0)
      return Error("query", name);
    return int(info.st_mode & 0777);
  }
  absl::Status Read(int64_t offset, void *data, int64_t bytes) const override;
  absl::Status Write(int64_t offset, const void *data, int64_t bytes) override;
  absl::Status Reserve(int64_t bytes) override;
  absl::Status Sync() override {
    return Retrying([&] { return fsync(fd); }) == 0 ? absl::OkStatus() : Error("sync", name);
  }
  absl::Status Lock() override {
    return Retrying([&] { return flock(fd, LOCK_EX | LOCK_NB); }) == 0 ? absl::OkStatus()
                                                                       : Error("lock", name);
  }
  absl::Status LockBytes(int64_t offset, int64_t bytes, bool shared) override {
    struct flock range = {};
    range.l_type = shared ? F_RDLCK : F_WRLCK;
    range.l_whence = SEEK_SET;
    range.l_start = offset;
    range.l_len = bytes;
    return Retrying([&] { return fcntl(fd, F_OFD_SETLK, &range); }) == 0 ? absl::OkStatus()
                                                                         : Error("lock", name);
  }

private:
  bool Direct() const {
    int flags = fcntl(fd, F_GETFL);
    return flags >= 0 && (flags & O_DIRECT) != 0;
  }
  /// How many of `moved` bytes count: O_DIRECT continues at aligned offsets only.
  static int64_t Moved(ssize_t moved, bool direct) {
    return direct ? moved / kDirectAlignment * kDirectAlignment : moved;
  }
  /// Part of a block was moved: it is tried again, but not for ever.
  static bool Fraction(ssize_t moved, bool direct, int &fractions) {
    fractions = direct && moved > 0 && moved < kDirectAlignment ? fractions + 1 : 0;
    return fractions > 0 && fractions <= kMostDirectFractions;
  }
  /// Of a transfer that moved less than a block, for the last time.
  absl::Status ShortError(const char *verb, int64_t offset, int64_t bytes, ssize_t moved) const {
    return absl::DataLossError(absl::StrFormat(
        "%s %s only %d of %d bytes at offset %d: it is truncated, or its disk fails", name, verb,
        moved, bytes, offset));
  }
  absl::Status WriteZeros(int64_t begin, int64_t end);

  const int fd;
  const std::string name, degraded;
};

absl::Status SystemFile::Read(int64_t offset, void *data, int64_t bytes) const {
  const bool direct = Direct();
  int fractions = 0;
  for (int64_t done = 0; done < bytes;) {
    ssize_t count = Retrying([&] {
      return pread(fd, static_cast<char *>(data) + done, size_t(bytes - done), offset + done);
    });
    if (count < 0)
      return Error(absl::StrFormat("read %d bytes at offset %d of", bytes, offset), name);
    if (Fraction(count, direct, fractions))
      continue;
    if (Moved(count, direct) == 0)
      return ShortError("gives", offset + done, bytes - done, count);
    done += Moved(count, direct);
  }
  return absl::OkStatus();
}

absl::Status SystemFile::Write(int64_t offset, const void *data, int64_t bytes) {
  const bool direct = Direct();
  int fractions = 0;
  for (int64_t done = 0; done < bytes;) {
    ssize_t count = Retrying([&] {
      return pwrite(fd, static_cast<const char *>(data) + done, size_t(bytes - done),
                    offset + done);
    });
    if (count < 0)
      return Error(absl::StrFormat("write %d bytes at offset %d of", bytes, offset), name);
    if (Fraction(count, direct, fractions))
      continue;
    if (Moved(count, direct) == 0)
      return ShortError("takes", offset + done, bytes - done, count);
    done += Moved(count, direct);
  }
  return absl::OkStatus();
}

/// Through the page cache, since the end of a file need not be aligned.
absl::Status SystemFile::WriteZeros(int64_t begin, int64_t end) {
  const int flags = fcntl(fd, F_GETFL);
  if (flags < 0 || fcntl(fd, F_SETFL, flags & ~O_DIRECT) != 0)
    return Error("query", name);
  const std::string zeros(size_t(std::min<int64_t>(end - begin, 1 << 20)), '\0');
  absl::Status status;
  for (int64_t at = begin; at < end && status.ok(); at += int64_t(zeros.size()))
    status = Write(at, zeros.data(), std::min<int64_t>(int64_t(zeros.size()), end - at));
  if (fcntl(fd, F_SETFL, flags) != 0 && status.ok())
    status = Error("query", name);
  return status;
}

absl::Status SystemFile::Reserve(int64_t bytes) {
  absl::StatusOr<int64_t> size = Size();
  if (!size.ok())
    return size.status();
  if (Retrying([&] { return fallocate(fd, 0, 0, bytes); }) == 0)
    return absl::OkStatus();
  const bool unsupported = errno == EOPNOTSUPP || errno == ENOSYS;
  absl::Status status = Error("reserve", name);
  // Without fallocate only bytes that were written have their space.
  if (unsupported)
    status = *size < bytes ? WriteZeros(*size, bytes) : absl::OkStatus();
  if (status.ok())
    return status;
  // Part of it may have been reserved. After a failure none of it is needed.
  const bool undone = Retrying([&] { return ftruncate(fd, *size); }) == 0;
  absl::StatusOr<DeviceSpace> space = SpaceOf(ParentOf(name));
  std::string detail = absl::StrFormat(" (to reserve %d bytes more", bytes - *size);
  if (space.ok())
    absl::StrAppend(&detail, ", where ", space->free_bytes, " are free");
  if (!undone)
    absl::StrAppend(&detail, "; what was reserved of them could not be given back");
  return absl::Status(status.code(), absl::StrCat(status.message(), detail, ")"));
}

/// Why the file takes no direct transfers in multiples of BOA_BLOCK_BYTES; empty: it does, or
/// the kernel does not say.
std::string DirectObstacle(int fd) {
#ifdef STATX_DIOALIGN
  struct statx info;
  if (statx(fd, "", AT_EMPTY_PATH, STATX_DIOALIGN, &info) != 0 ||
      (info.stx_mask & STATX_DIOALIGN) == 0)
    return "";
  if (info.stx_dio_offset_align == 0)
    return "the file system has none for this file";
  const int64_t needed = std::max(info.stx_dio_offset_align, info.stx_dio_mem_align);
  if (needed > kDirectAlignment)
    return absl::StrFormat("the device asks for blocks of %d bytes, and Boa has blocks of %d",
                           needed, kDirectAlignment);
#endif
  return "";
}

/// Sets what `open` did not: O_DIRECT last, since an open that is refused for it
/// has made the file already; O_NONBLOCK was only against a pipe of that name.
/// Returns why there is no O_DIRECT.
absl::StatusOr<std::string> SettleFlags(int fd, const std::string &path, bool direct) {
  struct stat info;
  if (fstat(fd, &info) != 0)
    return Error("query", path);
  if (!S_ISREG(info.st_mode))
    return absl::FailedPreconditionError(
        absl::StrCat("cannot open ", path, ": it is not a regular file"));
  int flags = fcntl(fd, F_GETFL);
  if (flags < 0)
    return Error("query", path);
  flags &= ~O_NONBLOCK;
  std::string why = direct ? DirectObstacle(fd) : "";
  if (direct && why.empty()) {
    if (fcntl(fd, F_SETFL, flags | O_DIRECT) == 0)
      return "";
    why = std::strerror(errno);
  }
  if (fcntl(fd, F_SETFL, flags) != 0)
    return Error("query", path);
  return direct ? absl::StrCat("no direct I/O: ", why) : "";
}

/// A name below the directory `base`, or AT_FDCWD and the path
/// itself. `path` is for errors.
struct Place {
  int base;
  const std::string &name, path;
};

bool Same(const struct stat &a, const struct stat &b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

absl::StatusOr<std::unique_ptr<OpenFile>> OpenAt(const Place &place, const OpenMode &mode) {
  int flags = O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | (mode.write ? O_RDWR : O_RDONLY);
  flags |= mode.create ? O_CREAT : 0;
  flags |= mode.create && mode.exclusive ? O_EXCL : 0;
  int fd =
      Retrying([&] { return openat(place.base, place.name.c_str(), flags, mode.permissions); });
  if (fd < 0 && errno == ELOOP)
    return absl::FailedPreconditionError(
        absl::StrCat("cannot open ", place.path, ": it is a symbolic link"));
  if (fd < 0 && errno == EISDIR) // to write
    return absl::FailedPreconditionError(
        absl::StrCat("cannot open ", place.path, ": Is a directory"));
  if (fd < 0 && errno == ENOTDIR) // nor can there be anything of that name
    return absl::NotFoundError(absl::StrCat("cannot open ", place.path, ": Not a directory"));
  if (fd < 0)
    return Error(mode.create ? "create" : "open", place.path);
  // Where the file system has any.
  if (mode.exclusive && mode.exact)
    (void)fchmod(fd, mode_t(mode.permissions));
  absl::StatusOr<std::string> degraded = SettleFlags(fd, place.path, mode.direct);
  auto file = std::make_unique<SystemFile>(fd, place.path, degraded.ok() ? *degraded : "");
  if (!degraded.ok())
    return degraded.status();
  return file;
}

/// Whether the name stands for the open file.
absl::StatusOr<bool> NamesAt(const Place &place, int fd) {
  struct stat held, named;
  if (fstat(fd, &held) != 0)
    return Error("query", place.path);
  if (fstatat(place.base, place.name.c_str(), &named, AT_SYMLINK_NOFOLLOW) == 0)
    return Same(held, named);
  if (errno == ENOENT)
    return false;
  return Error("query", place.path);
}

/// The last holder of the lock may have removed the file, and another process made
/// one of that name. Then the locked file is no lock, and the name is tried again.
absl::StatusOr<std::unique_ptr<OpenFile>> LockAt(const Place &place) {
  while (true) {
    absl::StatusOr<std::unique_ptr<OpenFile>> file =
        OpenAt(place, {/*write=*/true, /*create=*/true, /*exclusive=*/false, /*direct=*/false,
                       kOwnerOnly});
    if (!file.ok())
      return file;
    if (absl::Status status = (*file)->Lock(); !status.ok())
      return status;
    absl::StatusOr<bool> named = NamesAt(place, (*file)->descriptor());
    if (!named.ok())
      return named.status();
    if (*named)
      return file;
  }
}

absl::StatusOr<PathKind> KindAt(const Place &place) {
  struct stat info;
  if (fstatat(place.base, place.name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) {
    if (errno == ENOENT || errno == ENOTDIR)
      return PathKind::nothing;
    return Error("query", place.path);
  }
  return S_ISREG(info.st_mode)   ? PathKind::file
         : S_ISDIR(info.st_mode) ? PathKind::directory
                                 : PathKind::other;
}

absl::Status RenameAt(const Place &from, const Place &to) {
  return renameat(from.base, from.name.c_str(), to.base, to.name.c_str()) == 0
             ? absl::OkStatus()
             : Error(absl::StrCat("rename ", from.path, " to"), to.path);
}

absl::Status UnlinkAt(const Place &place) {
  return unlinkat(place.base, place.name.c_str(), 0) == 0 ? absl::OkStatus()
                                                          : Error("remove", place.path);
}

class SystemDirectory : public Directory {
public:
  SystemDirectory(int fd, std::string path) : fd(fd), name(std::move(path)) {}
  ~SystemDirectory() override { close(fd); }
  SystemDirectory(const SystemDirectory &) = delete;
  SystemDirectory &operator=(const SystemDirectory &) = delete;

  const std::string &path() const override { return name; }
  absl::StatusOr<bool> IsCurrent() const override {
    struct stat held, named;
    if (fstat(fd, &held) != 0)
      return Error("query", name);
    if (stat(name.c_str(), &named) == 0)
      return Same(held, named);
    if (errno == ENOENT || errno == ENOTDIR || errno == ELOOP)
      return false;
    return Error("query", name);
  }
  absl::StatusOr<bool> Names(const std::string &entry, const OpenFile &file) const override {
    return NamesAt(At(entry), file.descriptor());
  }
  absl::StatusOr<std::unique_ptr<OpenFile>> Open(const std::string &entry, OpenMode mode) override {
    return OpenAt(At(entry), mode);
  }
  absl::StatusOr<std::unique_ptr<OpenFile>> Lock(const std::string &entry) override {
    return LockAt(At(entry));
  }
  absl::StatusOr<PathKind> Kind(const std::string &entry) override { return KindAt(At(entry)); }
  absl::Status Rename(const std::string &from, const std::string &to) override {
    return RenameAt(At(from), At(to));
  }
  absl::Status Unlink(const std::string &entry) override { return UnlinkAt(At(entry)); }
  absl::Status Sync() override {
    return Retrying([&] { return fsync(fd); }) == 0 ? absl::OkStatus()
                                                    : Error("sync directory", name);
  }
  absl::StatusOr<std::vector<std::string>> List() override {
    // A descriptor of its own has its own position.
    const int own = Retrying([&] { return openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC); });
    DIR *stream = own < 0 ? nullptr : fdopendir(own);
    if (!stream) {
      absl::Status status = Error("list directory", name);
      if (own >= 0)
        close(own);
      return status;
    }
    std::vector<std::string> names;
    errno = 0;
    while (const dirent *entry = readdir(stream))
      names.push_back(entry->d_name);
    absl::Status status = errno == 0 ? absl::OkStatus() : Error("list directory", name);
    closedir(stream);
    if (!status.ok())
      return status;
    return names;
  }

private:
  Place At(const std::string &entry) const { return {fd, entry, absl::StrCat(name, "/", entry)}; }

  const int fd;
  const std::string name;
};

class System : public FileSystem {
public:
  absl::StatusOr<std::shared_ptr<Directory>> OpenDirectory(const std::string &path) override {
    int fd = Retrying([&] { return open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); });
    if (fd < 0 && errno == ENOTDIR)
      return absl::NotFoundError(absl::StrCat("cannot open directory ", path, ": Not a directory"));
    if (fd < 0)
      return Error("open directory", path);
    return std::make_shared<SystemDirectory>(fd, path);
  }
  absl::StatusOr<std::unique_ptr<OpenFile>> Open(const std::string &path, OpenMode mode) override {
    return OpenAt(At(path), mode);
  }
  absl::StatusOr<std::unique_ptr<OpenFile>> Lock(const std::string &path) override {
    return LockAt(At(path));
  }
  absl::StatusOr<PathKind> Kind(const std::string &path) override { return KindAt(At(path)); }

  absl::StatusOr<std::string> RealPath(const std::string &path) override {
    char *real = realpath(path.c_str(), nullptr);
    if (!real)
      return Error("find", path);
    std::string result = real;
    std::free(real);
    return result;
  }

  absl::Status MakeDirectory(const std::string &path) override {
    return mkdir(path.c_str(), 0755) == 0 ? absl::OkStatus() : Error("make directory", path);
  }
  absl::Status RemoveDirectory(const std::string &path) override {
    return rmdir(path.c_str()) == 0 ? absl::OkStatus() : Error("remove directory", path);
  }
  absl::Status Rename(const std::string &from, const std::string &to) override {
    return RenameAt(At(from), At(to));
  }
  absl::Status Unlink(const std::string &path) override { return UnlinkAt(At(path)); }
  absl::Status SyncDirectory(const std::string &path) override {
    absl::StatusOr<std::shared_ptr<Directory>> directory = OpenDirectory(path);
    return directory.ok() ? (*directory)->Sync() : directory.status();
  }

  absl::StatusOr<DeviceSpace> Space(const std::string &directory) override {
    return SpaceOf(directory);
  }

  absl::StatusOr<std::unique_ptr<IoBackend>> CreateIo(std::vector<IoFile> files,
                                                      std::vector<IoLink> links, void *arena,
                                                      int64_t arena_bytes,
                                                      const IoOptions &options) override {
    return CreateIoBackend(std::move(files), std::move(links), arena, arena_bytes, options);
  }

private:
  static Place At(const std::string &path) { return {AT_FDCWD, path, path}; }
};

} // namespace

FileSystem &SystemFiles() {
  static System *system = new System; // destructors at exit may close files
  return *system;
}

} // namespace boa
