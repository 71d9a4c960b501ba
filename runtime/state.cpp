//===- state.cpp - The state directory --------------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Layout. Chunks are dealt to the ssd paths in proportion to their bandwidth;
// the deal depends only on the program and on the weights that the manifest
// keeps. A data file is two halves: extent 0 of its chunks, then extent 1. A
// persistent chunk has both extents wherever it lives during a run; any other
// has one, in the scratch file, if its home is ssd.
//
// Commit: fdatasync of the data files; a new manifest beside the old, synced;
// rename; sync of the directory. The manifest is one line of JSON and one line
// with its CRC-32C. A data directory without a manifest is what a run left that
// died before its first commit, and is made anew.
//
// Locks are flock on DIR/lock, in the directory of every path; the kernel drops
// them with the process. The file stays: its contents mark the directory as
// ours.
//
//===----------------------------------------------------------------------===//
#include "runtime/state.h"

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "nlohmann/json.hpp"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <map>
#include <mutex>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>
#include <utility>

namespace boa {

using Json = nlohmann::json;

//===----------------------------------------------------------------------===//
// Files
//===----------------------------------------------------------------------===//

namespace {

constexpr int kVersion = 1;
constexpr char kFormat[] = "boa-state";
constexpr char kLockMark[] = "boa trainer, process ";

/// A descriptor that is closed with its owner.
class Descriptor {
public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd(fd) {}
  Descriptor(Descriptor &&other) noexcept : fd(std::exchange(other.fd, -1)) {}
  Descriptor &operator=(Descriptor &&other) noexcept {
    std::swap(fd, other.fd);
    return *this;
  }
  ~Descriptor() {
    if (fd >= 0)
      close(fd);
  }
  int get() const { return fd; }

private:
  int fd = -1;
};

absl::Status ErrnoError(absl::string_view what, const std::string &path) {
  return absl::ErrnoToStatus(errno, absl::StrCat("cannot ", what, " ", path));
}

int OpenRetrying(const std::string &path, int flags) {
  int fd;
  do
    fd = open(path.c_str(), flags | O_CLOEXEC, 0644);
  while (fd < 0 && errno == EINTR);
  return fd;
}

/// With O_DIRECT where the file system has it.
int OpenDirect(const std::string &path, int flags) {
  int fd = OpenRetrying(path, flags | O_DIRECT);
  return fd < 0 && errno == EINVAL ? OpenRetrying(path, flags) : fd;
}

bool PathExists(const std::string &path) {
  struct stat info;
  return lstat(path.c_str(), &info) == 0;
}

std::string ManifestPath(const std::string &directory) {
  return directory + "/manifest.json";
}

absl::StatusOr<std::string> ReadSmallFile(const std::string &path) {
  Descriptor file(OpenRetrying(path, O_RDONLY));
  if (file.get() < 0)
    return ErrnoError("open", path);
  std::string text;
  char buffer[65536];
  while (true) {
    ssize_t count = read(file.get(), buffer, sizeof(buffer));
    if (count < 0 && errno == EINTR)
      continue;
    if (count < 0)
      return ErrnoError("read", path);
    if (count == 0)
      return text;
    text.append(buffer, size_t(count));
  }
}

absl::Status WriteAll(int fd, absl::string_view text, const std::string &path) {
  while (!text.empty()) {
    ssize_t count = write(fd, text.data(), text.size());
    if (count < 0 && errno == EINTR)
      continue;
    if (count < 0)
      return ErrnoError("write", path);
    text.remove_prefix(size_t(count));
  }
  return absl::OkStatus();
}

absl::Status SyncDirectory(const std::string &directory) {
  Descriptor file(OpenRetrying(directory, O_RDONLY | O_DIRECTORY));
  if (file.get() < 0)
    return ErrnoError("open", directory);
  if (fsync(file.get()) != 0)
    return ErrnoError("sync", directory);
  return absl::OkStatus();
}

/// Replaces a file so that after a crash either the old or the new one is
/// there.
absl::Status ReplaceFile(const std::string &directory, const std::string &path,
                         absl::string_view text) {
  std::string next = path + ".tmp";
  Descriptor file(OpenRetrying(next, O_WRONLY | O_CREAT | O_TRUNC));
  if (file.get() < 0)
    return ErrnoError("create", next);
  if (absl::Status status = WriteAll(file.get(), text, next); !status.ok())
    return status;
  if (fsync(file.get()) != 0)
    return ErrnoError("sync", next);
  if (rename(next.c_str(), path.c_str()) != 0)
    return ErrnoError("rename to", path);
  return SyncDirectory(directory);
}

/// What Create made so far; removed again unless it succeeds.
class Undo {
public:
  ~Undo() {
    for (auto path = files.rbegin(); path != files.rend(); ++path)
      unlink(path->c_str());
    for (auto path = directories.rbegin(); path != directories.rend(); ++path)
      rmdir(path->c_str());
  }
  void AddFile(std::string path) { files.push_back(std::move(path)); }
  void AddDirectory(std::string path) {
    directories.push_back(std::move(path));
  }
  void Commit() {
    files.clear();
    directories.clear();
  }

private:
  std::vector<std::string> files, directories;
};

std::string ParentOf(const std::string &path) {
  size_t slash = path.find_last_of('/');
  if (slash == std::string::npos)
    return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

absl::Status MakeDirectories(const std::string &path, Undo &undo) {
  for (size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
    std::string part = path.substr(0, end);
    if (mkdir(part.c_str(), 0755) == 0) {
      undo.AddDirectory(part);
      if (absl::Status status = SyncDirectory(ParentOf(part)); !status.ok())
        return status;
    } else if (errno != EEXIST) {
      return ErrnoError("make directory", part);
    }
    if (end == std::string::npos)
      return absl::OkStatus();
  }
}

//===----------------------------------------------------------------------===//
// Locks
//===----------------------------------------------------------------------===//

struct Lock {
  Descriptor file;
  bool was_ours = false; // the directory held a lock file of a trainer before
};

absl::Status InUseError(const std::string &directory) {
  auto text = ReadSmallFile(directory + "/lock");
  std::string holder = "another process";
  if (text.ok() && text->rfind(kLockMark, 0) == 0)
    holder =
        "process " + text->substr(std::strlen(kLockMark),
                                  text->find('\n') - std::strlen(kLockMark));
  return absl::UnavailableError(absl::StrFormat(
      "%s is in use by %s: wait until it ends, or stop it", directory, holder));
}

/// The lock file, held. A Create that fails removes its lock file, so what was
/// locked may have lost its name in between: then another try.
absl::StatusOr<Descriptor> HoldLockFile(const std::string &directory) {
  std::string path = directory + "/lock";
  while (true) {
    Descriptor file(OpenRetrying(path, O_RDWR | O_CREAT));
    if (file.get() < 0)
      return ErrnoError("open", path);
    if (flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
      if (errno == EWOULDBLOCK)
        return InUseError(directory);
      return ErrnoError("lock", path);
    }
    struct stat held, named;
    if (fstat(file.get(), &held) != 0)
      return ErrnoError("query", path);
    if (stat(path.c_str(), &named) == 0 && held.st_ino == named.st_ino)
      return file;
  }
}

absl::StatusOr<Lock> LockDirectory(const std::string &directory) {
  std::string path = directory + "/lock";
  absl::StatusOr<Descriptor> file = HoldLockFile(directory);
  if (!file.ok())
    return file.status();
  Lock lock;
  lock.file = *std::move(file);
  int fd = lock.file.get();
  char mark[sizeof(kLockMark)] = {};
  ssize_t count = pread(fd, mark, sizeof(mark) - 1, 0);
  if (count != 0 && std::strcmp(mark, kLockMark) != 0)
    return absl::AlreadyExistsError(absl::StrCat(
        path, " is not the lock of a trainer: choose another directory"));
  lock.was_ours = count > 0;
  if (ftruncate(fd, 0) != 0)
    return ErrnoError("write", path);
  if (absl::Status status =
          WriteAll(fd, absl::StrCat(kLockMark, getpid(), "\n"), path);
      !status.ok())
    return status;
  return lock;
}

//===----------------------------------------------------------------------===//
// Layout
//===----------------------------------------------------------------------===//

/// Where the chunks of one storage stand. Empty if it has no place on SSD.
struct StorageLayout {
  std::string name;
  bool persistent = false;
  int32_t chunks = 1;
  int64_t entries = 0, chunk_bytes = 0;
  std::vector<Extent> extents; // extent 0
  std::vector<uint8_t> current, committed;
  std::vector<int64_t> checksums; // of current; -1: unknown

  size_t Index(int64_t entry, int32_t chunk) const {
    return size_t(entry * chunks + chunk);
  }
};

int32_t DataFile(size_t path) { return int32_t(path * 2); }
int32_t ScratchFile(size_t path) { return int32_t(path * 2 + 1); }

/// How many of the bytes each path takes, in parts.
std::vector<double> StripeWeights(const Machine &machine, size_t paths) {
  bool reads = machine.ssd.size() >= paths, writes = reads;
  for (size_t path = 0; path < paths && path < machine.ssd.size(); ++path) {
    reads &= machine.ssd[path].read > 0;
    writes &= machine.ssd[path].write > 0;
  }
  std::vector<double> weights(paths, 1);
  if (!reads && !writes)
    return weights;
  for (size_t path = 0; path < paths; ++path) {
    double time = 0; // to read and write one byte
    if (reads)
      time += 1 / double(machine.ssd[path].read);
    if (writes)
      time += 1 / double(machine.ssd[path].write);
    weights[path] = 1 / time;
  }
  return weights;
}

/// Deals chunks to the paths, so that each storage by itself is in proportion,
/// and all of them together where one is too small for that.
class Dealer {
public:
  explicit Dealer(std::vector<double> the_weights)
      : weights(std::move(the_weights)), total(weights.size()),
        storage(weights.size()) {}
  void NextStorage() { storage.assign(weights.size(), 0); }
  size_t Deal(int64_t bytes) {
    size_t best = 0;
    for (size_t path = 1; path < weights.size(); ++path)
      if (Load(path, bytes) < Load(best, bytes))
        best = path;
    storage[best] += double(bytes);
    total[best] += double(bytes);
    return best;
  }

private:
  std::pair<double, double> Load(size_t path, int64_t bytes) const {
    return {(storage[path] + double(bytes)) / weights[path],
            (total[path] + double(bytes)) / weights[path]};
  }
  std::vector<double> weights, total, storage;
};

Json Fingerprint(const Program &program) {
  Json storages = Json::array();
  for (const Storage &storage : program.storages)
    storages.push_back({{"name", storage.name},
                        {"role", storage.role},
                        {"entries", storage.entries},
                        {"bytes", storage.bytes},
                        {"chunks", storage.chunks},
                        {"persistent", storage.persistent}});
  // Where each parameter stands in its group's entries.
  Json parameters = Json::object();
  for (const Group &group : program.groups)
    for (const Parameter &parameter : group.parameters)
      parameters[group.name + "." + parameter.name] = {
          {"offset", parameter.offset}, {"shape", parameter.shape}};
  return {{"storages", storages},
          {"parameters", parameters},
          {"delay", absl::StrFormat("%a", program.delay)}};
}

} // namespace

//===----------------------------------------------------------------------===//
// StateStore::Impl
//===----------------------------------------------------------------------===//

struct StateStore::Impl {
  std::vector<std::string> directories;
  Json fingerprint;
  std::string program_name;
  std::vector<double> weights;

  std::vector<StorageLayout> storages;
  std::vector<int64_t> half_bytes; // by path: of a data file
  std::vector<int64_t> file_bytes; // by file
  std::vector<IoFile> files;
  std::vector<IoLink> links;
  std::vector<Lock> locks;
  std::vector<Descriptor> descriptors;

  CommitRecord committed;
  absl::Status failed;      // of a commit: the next must not follow
  mutable std::mutex mutex; // guards the checksums

  static absl::StatusOr<std::unique_ptr<Impl>>
  Make(const Program &, const std::vector<std::string> &directories);
  absl::Status TakeLocks(Undo &);
  void LayOut(const Program &);
  void PlaceChunks(const Storage &, StorageLayout &, Dealer &);
  void NameFiles();

  absl::Status CheckUnused() const;
  absl::Status CheckSpace() const;
  absl::Status MakeFile(size_t file);
  absl::Status OpenFile(size_t file);

  absl::Status ReadManifest(const Program &);
  absl::Status ReadWeights(const Json &);
  absl::Status ReadRecord(const Json &);
  absl::Status ReadChunks(const Json &);
  std::string WriteManifest(const CommitRecord &) const;
  Json WriteChunks() const;
  absl::Status Damaged(absl::string_view what) const;
};

absl::StatusOr<std::unique_ptr<StateStore::Impl>>
StateStore::Impl::Make(const Program &program,
                       const std::vector<std::string> &directories) {
  if (directories.empty())
    return absl::InvalidArgumentError("a state needs at least one directory");
  auto impl = std::make_unique<Impl>();
  for (std::string directory : directories) {
    while (directory.size() > 1 && directory.back() == '/')
      directory.pop_back();
    if (directory.empty())
      return absl::InvalidArgumentError("a state directory has an empty name");
    impl->directories.push_back(std::move(directory));
  }
  impl->program_name = program.name;
  impl->fingerprint = Fingerprint(program);
  impl->weights = StripeWeights(program.machine, directories.size());
  return impl;
}

/// Locks each directory once, even if it is given for several paths.
absl::Status StateStore::Impl::TakeLocks(Undo &undo) {
  std::map<std::pair<dev_t, ino_t>, bool> seen;
  for (const std::string &directory : directories) {
    struct stat info;
    if (stat(directory.c_str(), &info) != 0)
      return ErrnoError("find the state directory", directory);
    auto known = seen.find({info.st_dev, info.st_ino});
    if (known != seen.end()) {
      locks.push_back({Descriptor(), known->second});
      continue;
    }
    bool existed = PathExists(directory + "/lock");
    absl::StatusOr<Lock> lock = LockDirectory(directory);
    if (!lock.ok())
      return lock.status();
    if (!existed)
      undo.AddFile(directory + "/lock");
    seen[{info.st_dev, info.st_ino}] = lock->was_ours;
    locks.push_back(*std::move(lock));
  }
  return absl::OkStatus();
}

void StateStore::Impl::PlaceChunks(const Storage &storage,
                                   StorageLayout &layout, Dealer &dealer) {
  dealer.NextStorage();
  int64_t count = layout.entries * layout.chunks;
  for (int64_t chunk = 0; chunk < count; ++chunk) {
    size_t path = dealer.Deal(layout.chunk_bytes);
    int32_t file = storage.persistent ? DataFile(path) : ScratchFile(path);
    int64_t &end = storage.persistent ? half_bytes[path] : file_bytes[file];
    layout.extents.push_back({file, end});
    end += layout.chunk_bytes;
  }
  layout.current.assign(size_t(count), 0);
  layout.committed.assign(size_t(count), 0);
  layout.checksums.assign(storage.persistent ? size_t(count) : 0, -1);
}

void StateStore::Impl::LayOut(const Program &program) {
  half_bytes.assign(directories.size(), 0);
  file_bytes.assign(directories.size() * 2, 0);
  Dealer dealer(weights);
  for (const Storage &storage : program.storages) {
    StorageLayout layout;
    layout.name = storage.name;
    layout.persistent = storage.persistent;
    layout.chunks = std::max(storage.chunks, 1);
    layout.entries = storage.entry_count();
    layout.chunk_bytes = storage.bytes / layout.chunks;
    if (storage.persistent || storage.tier == "ssd")
      PlaceChunks(storage, layout, dealer);
    storages.push_back(std::move(layout));
  }
  for (size_t path = 0; path < directories.size(); ++path)
    file_bytes[DataFile(path)] = 2 * half_bytes[path];
  NameFiles();
  for (size_t path = 0; path < directories.size(); ++path) {
    bool known = path < program.machine.ssd.size();
    links.push_back(known ? IoLink{program.machine.ssd[path].read,
                                   program.machine.ssd[path].write}
                          : IoLink{});
  }
}

void StateStore::Impl::NameFiles() {
  for (size_t path = 0; path < directories.size(); ++path)
    for (const char *kind : {"data", "scratch"}) {
      IoFile file;
      file.path = absl::StrCat(directories[path], "/", kind, ".", path);
      file.link = int32_t(path);
      files.push_back(file);
    }
}

//===----------------------------------------------------------------------===//
// Making files
//===----------------------------------------------------------------------===//

absl::Status StateStore::Impl::CheckUnused() const {
  if (PathExists(ManifestPath(directories[0])))
    return absl::AlreadyExistsError(
        absl::StrFormat("%s holds a training state already: resume it, or "
                        "choose another directory",
                        directories[0]));
  for (size_t file = 0; file < files.size(); ++file)
    if (PathExists(files[file].path) && !locks[file / 2].was_ours)
      return absl::AlreadyExistsError(absl::StrFormat(
          "%s exists and is not of a trainer: move it away, or choose another "
          "directory",
          files[file].path));
  return absl::OkStatus();
}

/// Checks each file system for all the paths that lie on it.
absl::Status StateStore::Impl::CheckSpace() const {
  struct Need {
    int64_t needed = 0, free = 0;
    std::string directory;
  };
  std::map<dev_t, Need> needs;
  for (size_t path = 0; path < directories.size(); ++path) {
    struct stat info;
    struct statvfs space;
    if (stat(directories[path].c_str(), &info) != 0 ||
        statvfs(directories[path].c_str(), &space) != 0)
      return ErrnoError("query the free space of", directories[path]);
    Need &need = needs[info.st_dev];
    if (need.directory.empty())
      need.directory = directories[path];
    need.needed += file_bytes[DataFile(path)] + file_bytes[ScratchFile(path)];
    need.free = int64_t(space.f_bavail) * int64_t(space.f_frsize);
  }
  for (const auto &[device, need] : needs)
    if (need.needed > need.free)
      return absl::ResourceExhaustedError(
          absl::StrFormat("the disk of %s is too full: the state needs %d MiB "
                          "and %d MiB are free; "
                          "free %d MiB or name another directory",
                          need.directory, need.needed >> 20, need.free >> 20,
                          ((need.needed - need.free) >> 20) + 1));
  return absl::OkStatus();
}

/// Makes a file of its full size, with its space reserved, and opens it.
absl::Status StateStore::Impl::MakeFile(size_t index) {
  IoFile &file = files[index];
  int64_t bytes = file_bytes[index];
  Descriptor made(OpenDirect(file.path, O_RDWR | O_CREAT));
  if (made.get() < 0)
    return ErrnoError("create", file.path);
  file.fd = made.get();
  descriptors.push_back(std::move(made));
  int result = 0;
  do
    result = bytes > 0 ? fallocate(file.fd, 0, 0, bytes) : 0;
  while (result != 0 && errno == EINTR);
  if (result != 0 && errno == ENOSPC)
    return absl::ResourceExhaustedError(absl::StrFormat(
        "the disk of %s is too full to reserve %d MiB: free some "
        "space or name another directory",
        file.path, (bytes >> 20) + 1));
  if (result != 0 && errno != EOPNOTSUPP)
    return ErrnoError("reserve the space of", file.path);
  if (ftruncate(file.fd, bytes) != 0)
    return ErrnoError("resize", file.path);
  return absl::OkStatus();
}

absl::Status StateStore::Impl::OpenFile(size_t index) {
  IoFile &file = files[index];
  Descriptor opened(OpenDirect(file.path, O_RDWR));
  if (opened.get() < 0 && errno == ENOENT)
    return absl::NotFoundError(
        absl::StrFormat("%s is missing: the state is incomplete without it; "
                        "restore it, or give "
                        "the paths in the order in which the state was made",
                        file.path));
  if (opened.get() < 0)
    return ErrnoError("open", file.path);
  struct stat info;
  if (fstat(opened.get(), &info) != 0)
    return ErrnoError("query", file.path);
  if (info.st_size < file_bytes[index])
    return absl::DataLossError(absl::StrFormat(
        "%s is truncated: it has %d bytes of %d; restore it from a copy",
        file.path, int64_t(info.st_size), file_bytes[index]));
  file.fd = opened.get();
  descriptors.push_back(std::move(opened));
  return absl::OkStatus();
}

//===----------------------------------------------------------------------===//
// Manifest
//===----------------------------------------------------------------------===//

absl::Status StateStore::Impl::Damaged(absl::string_view what) const {
  return absl::DataLossError(
      absl::StrFormat("%s is damaged (%s): restore it from a copy",
                      ManifestPath(directories[0]), what));
}

namespace {

/// A member of the wanted kind, or null.
const Json *Member(const Json &object, const char *name, Json::value_t kind) {
  if (!object.is_object())
    return nullptr;
  auto found = object.find(name);
  if (found == object.end())
    return nullptr;
  bool integer = kind == Json::value_t::number_integer;
  bool matches = integer ? found->is_number_integer() : found->type() == kind;
  return matches ? &*found : nullptr;
}

/// The first field in which two storages of the same name differ.
std::string DifferenceOf(const Json &ours, const Json &theirs) {
  for (const auto &[field, value] : ours.items()) {
    auto other = theirs.find(field);
    std::string text = other == theirs.end() ? "nothing" : other->dump();
    if (text != value.dump())
      return absl::StrFormat("%s is %s in the program and %s in the state",
                             field, value.dump(), text);
  }
  return "";
}

/// What differs between the program and the one of the state; empty: nothing.
std::string ProgramDifference(const Json &ours, const Json &theirs) {
  const Json *storages = Member(theirs, "storages", Json::value_t::array);
  if (!storages)
    return "the state has no storages";
  const Json &mine = ours["storages"];
  for (size_t i = 0; i < std::max(mine.size(), storages->size()); ++i) {
    if (i >= storages->size())
      return absl::StrCat("the state has no storage ", mine[i]["name"].dump());
    const Json &other = (*storages)[i];
    const Json *name = Member(other, "name", Json::value_t::string);
    if (i >= mine.size())
      return absl::StrCat("the program has no storage ",
                          name ? name->dump() : "without a name");
    if (std::string text = DifferenceOf(mine[i], other); !text.empty())
      return absl::StrCat("storage ", mine[i]["name"].dump(), ": ", text);
  }
  if (std::string text = DifferenceOf(ours["parameters"], theirs.value("parameters", Json()));
      !text.empty())
    return absl::StrCat("parameter ", text);
  return DifferenceOf({{"delay", ours["delay"]}}, theirs);
}

std::optional<int64_t> ParseStep(const std::string &text) {
  char *end = nullptr;
  errno = 0;
  int64_t value = std::strtoll(text.c_str(), &end, 10);
  if (text.empty() || *end != 0 || errno != 0)
    return std::nullopt;
  return value;
}

std::optional<double> ParseDouble(const std::string &text) {
  char *end = nullptr;
  double value = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != 0)
    return std::nullopt;
  return value;
}

/// Eight hexadecimal digits, or eight dashes for an unknown checksum.
std::string ChecksumText(int64_t checksum) {
  return checksum < 0 ? "--------"
                      : absl::StrFormat("%08x", uint32_t(checksum));
}

std::optional<int64_t> ParseChecksum(const std::string &text) {
  if (text == "--------")
    return -1;
  char *end = nullptr;
  int64_t value = std::strtoll(text.c_str(), &end, 16);
  if (text.size() != 8 || *end != 0 || value < 0)
    return std::nullopt;
  return value;
}

} // namespace

Json StateStore::Impl::WriteChunks() const {
  Json chunks = Json::object();
  std::lock_guard<std::mutex> lock(mutex);
  for (const StorageLayout &storage : storages) {
    if (!storage.persistent)
      continue;
    std::string extents, checksums;
    for (uint8_t bit : storage.current)
      extents.push_back(char('0' + bit));
    for (int64_t checksum : storage.checksums)
      checksums += ChecksumText(checksum);
    chunks[storage.name] = {{"extents", extents}, {"checksums", checksums}};
  }
  return chunks;
}

std::string StateStore::Impl::WriteManifest(const CommitRecord &record) const {
  Json factors = Json::object(), extra = Json::object();
  for (const auto &[step, factor] : record.clip_factors)
    factors[absl::StrCat(step)] = absl::StrFormat("%a", factor);
  for (const auto &[key, value] : record.extra)
    extra[absl::CHexEscape(key)] = absl::CHexEscape(value);
  Json stripe = Json::array();
  for (double weight : weights)
    stripe.push_back(absl::StrFormat("%a", weight));
  Json manifest = {{"format", kFormat},
                   {"version", kVersion},
                   {"program_name", absl::CHexEscape(program_name)},
                   {"program", fingerprint},
                   {"stripe", stripe},
                   {"step", record.step},
                   {"pending", record.pending},
                   {"clip_factors", factors},
                   {"extra", extra},
                   {"chunks", WriteChunks()}};
  std::string text =
      manifest.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  return absl::StrFormat("%scrc32c %08x\n", text,
                         Crc32c(text.data(), int64_t(text.size())));
}

absl::Status StateStore::Impl::ReadWeights(const Json &manifest) {
  const Json *stripe = Member(manifest, "stripe", Json::value_t::array);
  if (!stripe)
    return Damaged("no stripe");
  if (stripe->size() != directories.size())
    return absl::FailedPreconditionError(
        absl::StrFormat("the state of %s lies on %d ssd paths, and %d are "
                        "given: give the paths "
                        "with which it was made",
                        directories[0], stripe->size(), directories.size()));
  for (size_t path = 0; path < stripe->size(); ++path) {
    const Json &text = (*stripe)[path];
    std::optional<double> weight;
    if (text.is_string())
      weight = ParseDouble(text.get_ref<const std::string &>());
    if (!weight || !(*weight > 0) || !std::isfinite(*weight))
      return Damaged("bad stripe");
    weights[path] = *weight;
  }
  return absl::OkStatus();
}

absl::Status StateStore::Impl::ReadRecord(const Json &manifest) {
  const Json *step = Member(manifest, "step", Json::value_t::number_integer);
  const Json *pending =
      Member(manifest, "pending", Json::value_t::number_integer);
  const Json *factors = Member(manifest, "clip_factors", Json::value_t::object);
  const Json *extra = Member(manifest, "extra", Json::value_t::object);
  if (!step || !pending || !factors || !extra)
    return Damaged("an entry is missing");
  committed.step = step->get<int64_t>();
  committed.pending = pending->get<int64_t>();
  for (const auto &[key, value] : factors->items()) {
    std::optional<int64_t> at = ParseStep(key);
    std::optional<double> factor;
    if (value.is_string())
      factor = ParseDouble(value.get_ref<const std::string &>());
    if (!at || !factor)
      return Damaged("bad clip factor");
    committed.clip_factors[*at] = *factor;
  }
  for (const auto &[key, value] : extra->items()) {
    std::string name, text;
    if (!value.is_string() || !absl::CUnescape(key, &name) ||
        !absl::CUnescape(value.get_ref<const std::string &>(), &text))
      return Damaged("bad extra entry");
    committed.extra[name] = text;
  }
  return absl::OkStatus();
}

absl::Status StateStore::Impl::ReadChunks(const Json &manifest) {
  const Json *chunks = Member(manifest, "chunks", Json::value_t::object);
  if (!chunks)
    return Damaged("no chunks");
  for (StorageLayout &storage : storages) {
    if (!storage.persistent)
      continue;
    const Json *saved =
        Member(*chunks, storage.name.c_str(), Json::value_t::object);
    const Json *extents =
        saved ? Member(*saved, "extents", Json::value_t::string) : nullptr;
    const Json *checksums =
        saved ? Member(*saved, "checksums", Json::value_t::string) : nullptr;
    if (!extents || !checksums)
      return Damaged(absl::StrCat("no chunks of ", storage.name));
    const auto &bits = extents->get_ref<const std::string &>();
    const auto &sums = checksums->get_ref<const std::string &>();
    if (bits.size() != storage.current.size() ||
        sums.size() != 8 * storage.checksums.size() ||
        bits.find_first_not_of("01") != std::string::npos)
      return Damaged(absl::StrCat("bad chunks of ", storage.name));
    for (size_t i = 0; i < bits.size(); ++i) {
      std::optional<int64_t> checksum = ParseChecksum(sums.substr(8 * i, 8));
      if (!checksum)
        return Damaged(absl::StrCat("bad checksum of ", storage.name));
      storage.current[i] = storage.committed[i] = uint8_t(bits[i] - '0');
      storage.checksums[i] = *checksum;
    }
  }
  return absl::OkStatus();
}

namespace {

/// The JSON line of a manifest whose CRC line matches; empty: it does not.
absl::string_view CheckedJson(absl::string_view text) {
  size_t end = text.find('\n');
  if (end == absl::string_view::npos)
    return {};
  absl::string_view json = text.substr(0, end + 1);
  std::string crc = absl::StrFormat("crc32c %08x\n",
                                    Crc32c(json.data(), int64_t(json.size())));
  return text.substr(end + 1) == crc ? json : absl::string_view();
}

} // namespace

/// Reads what is committed, and lays the chunks out as the state has them.
absl::Status StateStore::Impl::ReadManifest(const Program &program) {
  std::string path = ManifestPath(directories[0]);
  absl::StatusOr<std::string> text = ReadSmallFile(path);
  if (!text.ok())
    return text.status();
  Json manifest =
      Json::parse(text->substr(0, text->find('\n')), nullptr, false);
  const Json *format = Member(manifest, "format", Json::value_t::string);
  if (!manifest.is_discarded() && (!format || *format != kFormat))
    return absl::FailedPreconditionError(absl::StrCat(
        path, " is not of a training state: choose another directory"));
  if (CheckedJson(*text).empty() || manifest.is_discarded())
    return Damaged("truncated, or its CRC does not match");
  const Json *version =
      Member(manifest, "version", Json::value_t::number_integer);
  if (!version || *version != kVersion)
    return absl::FailedPreconditionError(
        absl::StrFormat("%s has version %s and this trainer knows %d: use the "
                        "trainer that made it",
                        path, version ? version->dump() : "none", kVersion));
  const Json *theirs = Member(manifest, "program", Json::value_t::object);
  if (!theirs)
    return Damaged("no program");
  if (std::string difference = ProgramDifference(fingerprint, *theirs);
      !difference.empty())
    return absl::FailedPreconditionError(absl::StrFormat(
        "%s is the state of another program: %s", directories[0], difference));
  if (absl::Status status = ReadWeights(manifest); !status.ok())
    return status;
  LayOut(program);
  if (absl::Status status = ReadRecord(manifest); !status.ok())
    return status;
  return ReadChunks(manifest);
}

//===----------------------------------------------------------------------===//
// StateStore
//===----------------------------------------------------------------------===//

bool StateStore::Exists(const std::string &directory) {
  return PathExists(ManifestPath(directory));
}

absl::StatusOr<std::unique_ptr<StateStore>>
StateStore::Create(const Program &program,
                   const std::vector<std::string> &directories) {
  absl::StatusOr<std::unique_ptr<Impl>> impl = Impl::Make(program, directories);
  if (!impl.ok())
    return impl.status();
  Impl &state = **impl;
  Undo undo;
  for (const std::string &directory : state.directories)
    if (absl::Status status = MakeDirectories(directory, undo); !status.ok())
      return status;
  if (absl::Status status = state.TakeLocks(undo); !status.ok())
    return status;
  state.LayOut(program);
  if (absl::Status status = state.CheckUnused(); !status.ok())
    return status;
  for (const IoFile &file : state.files)
    unlink(file.path.c_str()); // of a run that died before its first commit
  if (absl::Status status = state.CheckSpace(); !status.ok())
    return status;
  for (size_t file = 0; file < state.files.size(); ++file) {
    undo.AddFile(state.files[file].path);
    if (absl::Status status = state.MakeFile(file); !status.ok())
      return status;
  }
  for (const std::string &directory : state.directories)
    if (absl::Status status = SyncDirectory(directory); !status.ok())
      return status;
  undo.Commit();
  return std::unique_ptr<StateStore>(new StateStore(*std::move(impl)));
}

absl::StatusOr<std::unique_ptr<StateStore>>
StateStore::Open(const Program &program,
                 const std::vector<std::string> &directories) {
  absl::StatusOr<std::unique_ptr<Impl>> impl = Impl::Make(program, directories);
  if (!impl.ok())
    return impl.status();
  Impl &state = **impl;
  if (!Exists(state.directories[0]))
    return absl::NotFoundError(absl::StrFormat(
        "%s holds no training state: start one without resuming",
        state.directories[0]));
  Undo undo;
  if (absl::Status status = state.TakeLocks(undo); !status.ok())
    return status;
  undo.Commit(); // a lock that was missing stays
  if (absl::Status status = state.ReadManifest(program); !status.ok())
    return status;
  for (size_t file = 0; file < state.files.size(); ++file) {
    bool scratch = file % 2 == 1;
    absl::Status status = scratch ? state.MakeFile(file) : state.OpenFile(file);
    if (!status.ok())
      return status;
  }
  return std::unique_ptr<StateStore>(new StateStore(*std::move(impl)));
}

StateStore::StateStore(std::unique_ptr<Impl> impl) : impl(std::move(impl)) {}
StateStore::~StateStore() = default;

const std::vector<IoFile> &StateStore::Files() const { return impl->files; }
const std::vector<IoLink> &StateStore::Links() const { return impl->links; }

Extent StateStore::Current(int32_t storage, int64_t entry,
                           int32_t chunk) const {
  const StorageLayout &layout = impl->storages[storage];
  size_t index = layout.Index(entry, chunk);
  Extent extent = layout.extents[index];
  if (layout.current[index])
    extent.offset += impl->half_bytes[impl->files[extent.file].link];
  return extent;
}

Extent StateStore::Next(int32_t storage, int64_t entry, int32_t chunk) {
  StorageLayout &layout = impl->storages[storage];
  size_t index = layout.Index(entry, chunk);
  if (layout.persistent) {
    layout.current[index] = !layout.committed[index];
    std::lock_guard<std::mutex> lock(impl->mutex);
    layout.checksums[index] = -1;
  }
  return Current(storage, entry, chunk);
}

void StateStore::SetChecksum(int32_t storage, int64_t entry, int32_t chunk,
                             uint32_t checksum) {
  StorageLayout &layout = impl->storages[storage];
  if (!layout.persistent)
    return;
  std::lock_guard<std::mutex> lock(impl->mutex);
  layout.checksums[layout.Index(entry, chunk)] = checksum;
}

std::optional<uint32_t> StateStore::Checksum(int32_t storage, int64_t entry,
                                             int32_t chunk) const {
  const StorageLayout &layout = impl->storages[storage];
  if (!layout.persistent)
    return std::nullopt;
  std::lock_guard<std::mutex> lock(impl->mutex);
  int64_t checksum = layout.checksums[layout.Index(entry, chunk)];
  if (checksum < 0)
    return std::nullopt;
  return uint32_t(checksum);
}

absl::Status StateStore::Commit(const CommitRecord &record) {
  // After a failed one it is not known which manifest a crash would leave, so
  // neither extent of a chunk may be named anew.
  if (!impl->failed.ok())
    return impl->failed;
  const std::string &directory = impl->directories[0];
  for (size_t path = 0; path < impl->directories.size(); ++path) {
    const IoFile &file = impl->files[DataFile(path)];
    if (fdatasync(file.fd) != 0)
      return impl->failed = ErrnoError("sync", file.path);
  }
  absl::Status status = ReplaceFile(directory, ManifestPath(directory),
                                    impl->WriteManifest(record));
  if (!status.ok())
    return impl->failed = status;
  for (StorageLayout &storage : impl->storages)
    storage.committed = storage.current;
  impl->committed = record;
  return absl::OkStatus();
}

const CommitRecord &StateStore::Committed() const { return impl->committed; }

std::vector<int64_t> StateStore::BytesByPath() const {
  std::vector<int64_t> bytes;
  for (size_t path = 0; path < impl->directories.size(); ++path)
    bytes.push_back(impl->file_bytes[DataFile(path)] +
                    impl->file_bytes[ScratchFile(path)]);
  return bytes;
}

const std::string &StateStore::Directory() const {
  return impl->directories[0];
}

} // namespace boa
