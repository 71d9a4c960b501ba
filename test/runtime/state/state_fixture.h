//===- state_fixture.h - A small state for tests ----------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A program of two persistent storages and one of scratch, and what a trainer
// does with its state: every chunk is written with bytes that tell its place and
// its version, so that a chunk of another place or another commit is noticed.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_TEST_RUNTIME_STATE_STATE_FIXTURE_H
#define BOA_TEST_RUNTIME_STATE_STATE_FIXTURE_H

#include "runtime/state/checksum.h"
#include "runtime/state/state.h"
#include "test/runtime/scratch.h"
#include "test/runtime/state/faulty_files.h"

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "gtest/gtest.h"

#include <cstring>
#include <functional>
#include <sys/stat.h>
#include <unistd.h>

namespace boa {

constexpr int64_t kPage = 4096;
enum StorageId { kWeights, kMomentum, kCheckpoints, kLoss };

inline Storage MakeStorage(const char *name, const char *role, Home::Tier tier, bool persistent,
                           std::vector<int64_t> entries, int32_t chunks, int64_t chunk_bytes) {
  Storage storage;
  storage.name = name;
  storage.role = role;
  storage.entries = std::move(entries);
  storage.chunks = chunks;
  storage.homes = {{storage.entry_count(), {{tier, chunks}}}};
  storage.bytes = chunks * chunk_bytes;
  storage.persistent = persistent;
  return storage;
}

/// 12 chunks of two pages, 12 of one page, 4 of scratch.
inline Program MakeProgram() {
  Program program;
  program.model.name = "test";
  program.storages = {
      MakeStorage("weights.block", "weights", Home::ssd, true, {3}, 4, 2 * kPage),
      MakeStorage("momentum.block", "momentum", Home::host, true, {3}, 4, kPage),
      MakeStorage("checkpoints", "checkpoints", Home::ssd, false, {2, 2}, 1, 2 * kPage),
      MakeStorage("loss", "loss", Home::host, false, {1}, 1, kPage)};
  Group group;
  group.name = "block";
  group.count = 3;
  group.parameters.resize(1);
  group.parameters[0].name = "qkv";
  group.parameters[0].shape = {64, 128};
  group.weights = 0;
  group.weight_type = "f32";
  group.chunks = 4;
  group.chunk_elements = 2 * kPage / 4;
  program.groups = {group};
  return program;
}
constexpr int64_t kStateBytes = 12 * 2 * kPage + 12 * kPage, kScratchBytes = 4 * 2 * kPage;

inline void ExpectMessage(const absl::Status &status, const std::string &part) {
  EXPECT_FALSE(status.ok()) << "expected: " << part;
  EXPECT_TRUE(absl::StrContains(status.message(), part)) << status << "\nexpected: " << part;
}

/// All that a directory holds, with times: to tell whether anything touched it.
inline std::string Snapshot(const std::string &directory) {
  namespace fs = std::filesystem;
  std::vector<std::string> lines;
  auto add = [&](const std::string &path) {
    struct stat info;
    EXPECT_EQ(lstat(path.c_str(), &info), 0) << path;
    const bool file = S_ISREG(info.st_mode);
    const std::string bytes = file ? ReadWhole(path) : "";
    lines.push_back(absl::StrCat(path, " ", info.st_ino, " ", info.st_mode, " ", info.st_size, " ",
                                 info.st_mtim.tv_sec, ".", info.st_mtim.tv_nsec, " ",
                                 Checksum(bytes.data(), int64_t(bytes.size()))));
  };
  add(directory);
  for (const fs::directory_entry &entry : fs::recursive_directory_iterator(directory))
    add(entry.path().string());
  std::sort(lines.begin(), lines.end());
  return absl::StrJoin(lines, "\n");
}

class StateTest : public testing::Test {
protected:
  explicit StateTest(const std::string &parent = std::filesystem::temp_directory_path().string())
      : scratch(parent) {}

  using Store = std::unique_ptr<StateStore>;
  using Paths = std::vector<std::string>;

  std::string Path(const std::string &name = "state") const { return scratch.path(name); }
  std::string Manifest(const std::string &name = "state") const {
    return Path(name) + "/manifest.json";
  }
  std::string Copy(const std::string &name = "state") const {
    return Path(name) + "/manifest.copy.json";
  }
  Paths Named(std::initializer_list<const char *> names) const {
    Paths paths;
    for (const char *name : names)
      paths.push_back(Path(name));
    return paths;
  }

  Store Create(const Paths &paths, int64_t keep = 1) {
    auto store = StateStore::Create(disk, program, paths, keep);
    EXPECT_TRUE(store.ok()) << store.status();
    return store.ok() ? *std::move(store) : nullptr;
  }
  Store Open(const Paths &paths, int64_t keep = 1, std::optional<int64_t> at = std::nullopt) {
    auto store = StateStore::Open(disk, program, paths, keep, at);
    EXPECT_TRUE(store.ok()) << store.status();
    return store.ok() ? *std::move(store) : nullptr;
  }
  absl::Status CreateStatus(const Paths &paths) {
    return StateStore::Create(disk, program, paths).status();
  }
  absl::Status OpenStatus(const Paths &paths) {
    return StateStore::Open(disk, program, paths).status();
  }
  bool Exists(const std::string &path) {
    auto exists = StateStore::Exists(disk, path);
    EXPECT_TRUE(exists.ok()) << exists.status();
    return exists.ok() && *exists;
  }

  using Visit = std::function<void(int32_t storage, int64_t entry, int32_t chunk)>;
  void ForEach(const Visit &visit) const {
    for (int32_t id = 0; id < int32_t(program.storages.size()); ++id)
      for (int64_t entry = 0; entry < program.storages[id].entry_count(); ++entry)
        for (int32_t chunk = 0; chunk < program.storages[id].chunks; ++chunk)
          if (program.storages[id].persistent)
            visit(id, entry, chunk);
  }
  int64_t Bytes(int32_t storage) const {
    return program.storages[storage].bytes / program.storages[storage].chunks;
  }

  /// What a chunk holds after it was written by `version`.
  const char *Contents(int64_t version, int32_t storage, int64_t entry, int32_t chunk) const {
    static char *buffer = static_cast<char *>(std::aligned_alloc(kPage, 16 * kPage));
    uint64_t word = uint64_t(((version * 8 + storage) * 64 + entry) * 64 + chunk);
    for (int64_t i = 0; i < Bytes(storage); i += 8) {
      word = word * 6364136223846793005 + 1442695040888963407;
      std::memcpy(buffer + i, &word, 8);
    }
    return buffer;
  }

  /// False: there is no place for it.
  bool WriteChunk(StateStore &store, int64_t version, int32_t storage, int64_t entry,
                  int32_t chunk) const {
    const int64_t bytes = Bytes(storage);
    const char *data = Contents(version, storage, entry, chunk);
    const Extent extent = store.Next(storage, entry, chunk);
    if (extent.file < 0)
      return false;
    EXPECT_EQ(pwrite(store.Files()[extent.file].fd, data, bytes, extent.offset), bytes);
    store.SetChecksum(extent, Checksum(data, bytes));
    return true;
  }
  void Write(StateStore &store, int64_t version) const {
    ForEach([&](int32_t storage, int64_t entry, int32_t chunk) {
      EXPECT_TRUE(WriteChunk(store, version, storage, entry, chunk)) << store.status();
    });
  }
  /// Every chunk is as `version` wrote it, and its checksum is known.
  void ExpectHolds(StateStore &store, int64_t version) const {
    static char *buffer = static_cast<char *>(std::aligned_alloc(kPage, 16 * kPage));
    ForEach([&](int32_t storage, int64_t entry, int32_t chunk) {
      const int64_t bytes = Bytes(storage);
      const Extent extent = store.Current(storage, entry, chunk);
      ASSERT_GE(extent.file, 0);
      ASSERT_EQ(pread(store.Files()[extent.file].fd, buffer, bytes, extent.offset), bytes);
      EXPECT_EQ(std::memcmp(buffer, Contents(version, storage, entry, chunk), bytes), 0)
          << "storage " << storage << " entry " << entry << " chunk " << chunk
          << " is not of version " << version;
      EXPECT_EQ(store.Checksum(extent), Checksum(buffer, bytes));
    });
  }
  static CommitRecord Record(int64_t step) {
    CommitRecord record;
    record.step = step;
    record.time = 1000 + step;
    record.extra = {{"version", absl::StrCat(step)}};
    return record;
  }
  void Commit(StateStore &store, int64_t step) const {
    Write(store, step);
    absl::Status status = store.Commit(Record(step));
    EXPECT_TRUE(status.ok()) << status;
  }
  /// A state with commits of these steps.
  void Make(const Paths &paths, std::initializer_list<int64_t> steps = {1}, int64_t keep = 1) {
    Store store = Create(paths, keep);
    for (int64_t step : steps)
      Commit(*store, step);
  }
  /// Opens it, and its last commit is that of `step`, whole.
  void ExpectWhole(const Paths &paths, int64_t step) {
    Store store = Open(paths);
    ASSERT_TRUE(store);
    EXPECT_EQ(store->Committed().step, step);
    EXPECT_EQ(store->Committed().extra, Record(step).extra);
    ExpectHolds(*store, step);
  }
  static std::string Notes(const StateStore &store) { return absl::StrJoin(store.Notes(), "\n"); }

  Scratch scratch;
  FaultyFiles disk;
  Program program = MakeProgram();
};

} // namespace boa

#endif // BOA_TEST_RUNTIME_STATE_STATE_FIXTURE_H
