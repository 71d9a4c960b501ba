//===- state_test.cpp - Tests of the state directory ------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/state/state.h"

#include "test/runtime/trainer/scratch.h"

#include "gtest/gtest.h"

#include <cmath>
#include <csignal>
#include <cstring>
#include <random>
#include <set>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace boa {
namespace {

constexpr int64_t kPage = 4096;
namespace fs = std::filesystem;

Storage MakeStorage(const char *name, const char *tier, bool persistent,
                    std::vector<int64_t> entries, int32_t chunks) {
  Storage storage;
  storage.name = name;
  storage.role = "weights";
  storage.tier = tier;
  storage.entries = std::move(entries);
  storage.chunks = chunks;
  storage.bytes = chunks * 2 * kPage;
  storage.persistent = persistent;
  return storage;
}

enum StorageId { kWeights, kHostMomentum, kCheckpoints, kLoss };

Program MakeProgram() {
  Program program;
  program.name = "test";
  program.storages = {MakeStorage("weights.block", "ssd", true, {3}, 4),
                      MakeStorage("momentum.block", "host", true, {3}, 4),
                      MakeStorage("checkpoints", "ssd", false, {2, 2}, 1),
                      MakeStorage("loss", "host", false, {1}, 1)};
  return program;
}

std::unique_ptr<StateStore> MustCreate(const Program &program,
                                       std::vector<std::string> directories) {
  auto store = StateStore::Create(program, directories);
  EXPECT_TRUE(store.ok()) << store.status();
  return store.ok() ? *std::move(store) : nullptr;
}

std::unique_ptr<StateStore> MustOpen(const Program &program, std::vector<std::string> directories) {
  auto store = StateStore::Open(program, directories);
  EXPECT_TRUE(store.ok()) << store.status();
  return store.ok() ? *std::move(store) : nullptr;
}

bool operator==(const Extent &a, const Extent &b) {
  return a.file == b.file && a.offset == b.offset;
}

void ExpectMessage(const absl::Status &status, const char *part) {
  EXPECT_FALSE(status.ok());
  EXPECT_NE(std::string(status.message()).find(part), std::string::npos) << status;
}

class StateTest : public testing::Test {
protected:
  std::string Path() const { return scratch.path("state"); }
  std::string Manifest() const { return Path() + "/manifest.json"; }

  /// A state directory with one commit.
  void MakeCommitted(const CommitRecord &record = {}) {
    auto store = MustCreate(program, {Path()});
    ASSERT_EQ(store->Commit(record), absl::OkStatus());
  }
  absl::Status OpenStatus(const Program &other) {
    return StateStore::Open(other, {Path()}).status();
  }

  Scratch scratch;
  Program program = MakeProgram();
};

TEST_F(StateTest, NothingIsThereBeforeTheFirstCommit) {
  EXPECT_FALSE(StateStore::Exists(Path()));
  {
    auto store = MustCreate(program, {Path()});
    EXPECT_EQ(store->Committed().step, 0);
    EXPECT_EQ(store->Directory(), Path());
    EXPECT_FALSE(StateStore::Exists(Path()));
  }
  ExpectMessage(OpenStatus(program), "no training state");
  MakeCommitted(); // what the first one left is no obstacle
  EXPECT_TRUE(StateStore::Exists(Path()));
}

TEST_F(StateTest, RecordSurvivesReopening) {
  CommitRecord record;
  record.step = 7;
  record.pending = 6;
  record.clip_factors = {{6, 0.1}, {7, 1.0 / 3}, {8, INFINITY}};
  record.extra = {{"data", "42"}, {"odd \"key\"\n", std::string("\0\xff\n\"", 4)}};
  MakeCommitted(record);
  auto store = MustOpen(program, {Path()});
  EXPECT_EQ(store->Committed().step, 7);
  EXPECT_EQ(store->Committed().pending, 6);
  EXPECT_EQ(store->Committed().clip_factors, record.clip_factors);
  EXPECT_EQ(store->Committed().extra, record.extra);
}

TEST_F(StateTest, ExtentsAlternateBetweenCommits) {
  auto store = MustCreate(program, {Path()});
  for (int32_t storage : {kWeights, kHostMomentum}) {
    Extent committed = store->Current(storage, 1, 2);
    Extent next = store->Next(storage, 1, 2);
    EXPECT_FALSE(next == committed);
    EXPECT_TRUE(store->Current(storage, 1, 2) == next);
    EXPECT_TRUE(store->Next(storage, 1, 2) == next); // the committed one is safe
    ASSERT_EQ(store->Commit({}), absl::OkStatus());
    EXPECT_TRUE(store->Current(storage, 1, 2) == next);
    EXPECT_TRUE(store->Next(storage, 1, 2) == committed);
    ASSERT_EQ(store->Commit({}), absl::OkStatus());
  }
}

TEST_F(StateTest, UncommittedWritesAreForgotten) {
  Extent committed;
  {
    auto store = MustCreate(program, {Path()});
    committed = store->Next(kWeights, 0, 0);
    store->SetChecksum(kWeights, 0, 0, 0x1234);
    ASSERT_EQ(store->Commit({}), absl::OkStatus());
    store->Next(kWeights, 0, 0);
    store->SetChecksum(kWeights, 0, 0, 0x5678);
  }
  auto store = MustOpen(program, {Path()});
  EXPECT_TRUE(store->Current(kWeights, 0, 0) == committed);
  EXPECT_EQ(store->Checksum(kWeights, 0, 0), 0x1234u);
}

TEST_F(StateTest, ScratchChunksHaveOneExtent) {
  auto store = MustCreate(program, {Path()});
  Extent extent = store->Current(kCheckpoints, 3, 0);
  EXPECT_TRUE(store->Next(kCheckpoints, 3, 0) == extent);
  EXPECT_NE(store->Files()[extent.file].path.find("scratch.0"), std::string::npos);
}

/// Every extent of the program, both of each persistent chunk.
void ExpectDisjoint(StateStore &store, const Program &program) {
  std::set<std::pair<int32_t, int64_t>> seen;
  auto add = [&](Extent extent) {
    EXPECT_EQ(extent.offset % kPage, 0);
    EXPECT_TRUE(seen.insert({extent.file, extent.offset}).second);
    struct stat info;
    ASSERT_EQ(fstat(store.Files()[extent.file].fd, &info), 0);
    EXPECT_LE(extent.offset + 2 * kPage, info.st_size);
  };
  for (int32_t id : {kWeights, kHostMomentum, kCheckpoints}) {
    const Storage &storage = program.storages[id];
    for (int64_t entry = 0; entry < storage.entry_count(); ++entry)
      for (int32_t chunk = 0; chunk < storage.chunks; ++chunk) {
        add(store.Current(id, entry, chunk));
        if (storage.persistent)
          add(store.Next(id, entry, chunk));
      }
  }
}

TEST_F(StateTest, ExtentsAreDisjointAndWithinTheFiles) {
  auto store = MustCreate(program, {Path()});
  ExpectDisjoint(*store, program);
  // 24 persistent chunks twice, 4 of scratch.
  EXPECT_EQ(store->BytesByPath(), std::vector<int64_t>{(48 + 4) * 2 * kPage});
}

TEST_F(StateTest, PathsShareInProportionToTheirBandwidth) {
  program.machine.ssd = {{"a", 300, 300}, {"b", 100, 100}};
  std::vector<std::string> paths = {scratch.path("a"), scratch.path("b/c")};
  {
    auto store = MustCreate(program, paths);
    ExpectDisjoint(*store, program);
    EXPECT_EQ(store->BytesByPath(),
              (std::vector<int64_t>{(36 + 3) * 2 * kPage, (12 + 1) * 2 * kPage}));
    ASSERT_EQ(store->Links().size(), 2u);
    EXPECT_EQ(store->Links()[0].read, 300);
    EXPECT_EQ(store->Links()[1].write, 100);
    ASSERT_EQ(store->Commit({}), absl::OkStatus());
  }
  // The layout is the state's, whatever the machine's limits are now.
  program.machine.ssd = {{"a", 0, 0}, {"b", 0, 0}};
  {
    auto store = MustOpen(program, paths);
    EXPECT_EQ(store->BytesByPath()[0], (36 + 3) * 2 * kPage);
  }
  ExpectMessage(StateStore::Open(program, {paths[0]}).status(), "2 ssd paths");
  std::swap(paths[0], paths[1]);
  EXPECT_FALSE(StateStore::Open(program, paths).ok());
}

TEST_F(StateTest, PathsWithoutLimitsShareEqually) {
  auto store = MustCreate(program, {scratch.path("a"), scratch.path("b")});
  EXPECT_EQ(store->BytesByPath()[0], store->BytesByPath()[1]);
}

TEST_F(StateTest, ChecksumsComeBack) {
  {
    auto store = MustCreate(program, {Path()});
    EXPECT_EQ(store->Checksum(kWeights, 0, 0), std::nullopt);
    for (int64_t entry = 0; entry < 3; ++entry)
      for (int32_t chunk = 0; chunk < 4; ++chunk) {
        store->Next(kWeights, entry, chunk);
        store->SetChecksum(kWeights, entry, chunk, 0xffffffffu - uint32_t(entry * 4 + chunk));
      }
    store->SetChecksum(kCheckpoints, 0, 0, 1); // of no use, and no harm
    EXPECT_EQ(store->Checksum(kCheckpoints, 0, 0), std::nullopt);
    ASSERT_EQ(store->Commit({}), absl::OkStatus());
  }
  auto store = MustOpen(program, {Path()});
  for (int64_t entry = 0; entry < 3; ++entry)
    for (int32_t chunk = 0; chunk < 4; ++chunk)
      EXPECT_EQ(store->Checksum(kWeights, entry, chunk), 0xffffffffu - uint32_t(entry * 4 + chunk));
  EXPECT_EQ(store->Checksum(kHostMomentum, 0, 0), std::nullopt);
  store->Next(kWeights, 0, 0);
  EXPECT_EQ(store->Checksum(kWeights, 0, 0), std::nullopt);
}

TEST_F(StateTest, CreateRefusesAnExistingState) {
  MakeCommitted();
  std::string before = ReadWhole(Manifest());
  ExpectMessage(StateStore::Create(program, {Path()}).status(), "already");
  EXPECT_EQ(ReadWhole(Manifest()), before);
  MustOpen(program, {Path()});
}

TEST_F(StateTest, CreateSparesForeignFiles) {
  fs::create_directory(Path());
  scratch.Write("state/data.0", "thesis");
  ExpectMessage(StateStore::Create(program, {Path()}).status(), "move it away");
  EXPECT_EQ(ReadWhole(Path() + "/data.0"), "thesis");
  EXPECT_FALSE(fs::exists(Path() + "/lock"));
  fs::remove(Path() + "/data.0");
  scratch.Write("state/lock", "of another program");
  ExpectMessage(StateStore::Create(program, {Path()}).status(), "not the lock");
  EXPECT_EQ(ReadWhole(Path() + "/lock"), "of another program");
}

TEST_F(StateTest, CreateOnAFullDiskLeavesNothing) {
  program.storages[kWeights].bytes = int64_t(1) << 50;
  std::string path = Path() + "/deep/er";
  absl::Status status = StateStore::Create(program, {path}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
  ExpectMessage(status, "are free");
  EXPECT_FALSE(fs::exists(Path()));
}

TEST_F(StateTest, TruncatedManifest) {
  MakeCommitted();
  std::string whole = ReadWhole(Manifest());
  for (size_t size : {size_t(0), size_t(1), whole.size() / 2, whole.size() - 1}) {
    scratch.Write("state/manifest.json", whole.substr(0, size));
    ExpectMessage(OpenStatus(program), "damaged");
  }
  scratch.Write("state/manifest.json", whole);
  EXPECT_EQ(OpenStatus(program), absl::OkStatus());
}

TEST_F(StateTest, CorruptManifest) {
  MakeCommitted();
  std::string whole = ReadWhole(Manifest());
  std::mt19937 random(1);
  for (int i = 0; i < 200; ++i) {
    std::string corrupt = whole;
    corrupt[random() % corrupt.size()] ^= char(1 << random() % 7);
    scratch.Write("state/manifest.json", corrupt);
    EXPECT_FALSE(OpenStatus(program).ok()) << corrupt;
  }
}

TEST_F(StateTest, ForeignManifest) {
  MakeCommitted();
  for (const char *text : {"{}", "[1, 2]\n", "{\"format\": \"else\"}\n"}) {
    scratch.Write("state/manifest.json", text);
    ExpectMessage(OpenStatus(program), "not of a training state");
  }
}

TEST_F(StateTest, AnotherVersion) {
  MakeCommitted();
  std::string json = ReadWhole(Manifest());
  json.resize(json.find('\n') + 1);
  json.replace(json.find("\"version\":1"), 11, "\"version\":2");
  char crc[32];
  std::snprintf(crc, sizeof(crc), "crc32c %08x\n", Crc32c(json.data(), json.size()));
  scratch.Write("state/manifest.json", json + crc);
  ExpectMessage(OpenStatus(program), "version 2");
}

TEST_F(StateTest, AnotherProgramSaysWhatDiffers) {
  MakeCommitted();
  Program other = program;
  other.storages[kWeights].chunks = 8;
  ExpectMessage(OpenStatus(other), "\"weights.block\": chunks is 8");
  other = program;
  other.storages[kHostMomentum].entries = {4};
  ExpectMessage(OpenStatus(other), "entries is [4] in the program and [3]");
  other = program;
  other.storages.pop_back();
  ExpectMessage(OpenStatus(other), "the program has no storage \"loss\"");
  other = program;
  other.storages.push_back(MakeStorage("new", "host", false, {1}, 1));
  ExpectMessage(OpenStatus(other), "the state has no storage \"new\"");
  other = program;
  other.delay = 0.5;
  ExpectMessage(OpenStatus(other), "delay");
  // Where a storage lives during a run is not part of it.
  other = program;
  other.storages[kHostMomentum].tier = "ssd";
  EXPECT_EQ(OpenStatus(other), absl::OkStatus());
}

TEST_F(StateTest, MissingAndTruncatedDataFiles) {
  MakeCommitted();
  std::string data = Path() + "/data.0";
  int64_t bytes = int64_t(fs::file_size(data));
  fs::resize_file(data, bytes - kPage);
  ExpectMessage(OpenStatus(program), "truncated");
  fs::remove(data);
  ExpectMessage(OpenStatus(program), "data.0 is missing");
  EXPECT_FALSE(fs::exists(data));
}

TEST_F(StateTest, MissingScratchIsMadeAnew) {
  MakeCommitted();
  fs::remove(Path() + "/scratch.0");
  EXPECT_EQ(OpenStatus(program), absl::OkStatus());
  EXPECT_TRUE(fs::exists(Path() + "/scratch.0"));
}

TEST_F(StateTest, LockedWithinTheProcess) {
  auto store = MustCreate(program, {Path()});
  ASSERT_EQ(store->Commit({}), absl::OkStatus());
  ExpectMessage(OpenStatus(program), "in use");
  store.reset();
  EXPECT_EQ(OpenStatus(program), absl::OkStatus());
}

TEST_F(StateTest, EachPathIsLocked) {
  auto store = MustCreate(program, {scratch.path("a"), scratch.path("shared")});
  auto other = StateStore::Create(program, {scratch.path("b"), scratch.path("shared")});
  ExpectMessage(other.status(), "in use");
  EXPECT_FALSE(fs::exists(scratch.path("b")));
}

/// Waits for one byte.
void Await(int fd) {
  char byte;
  ASSERT_EQ(read(fd, &byte, 1), 1);
}

TEST_F(StateTest, LockHeldByAnotherProcessNamesIt) {
  MakeCommitted();
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    auto store = StateStore::Open(program, {Path()});
    if (!store.ok() || write(ready[1], "x", 1) != 1)
      _exit(1);
    while (true)
      pause();
  }
  Await(ready[0]);
  std::string holder = "process " + std::to_string(child) + ":";
  ExpectMessage(OpenStatus(program), holder.c_str());
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  EXPECT_EQ(OpenStatus(program), absl::OkStatus());
  close(ready[0]);
  close(ready[1]);
}

//===----------------------------------------------------------------------===//
// Death at random instants
//===----------------------------------------------------------------------===//

constexpr int kChunks = 12; // of kWeights: 3 entries of 4

/// Which chunks a step writes.
bool Writes(int64_t step, int index) { return (step + index) % 2 == 0; }

/// The step whose contents a chunk holds after `step`; 0: never written.
int64_t WriterOf(int64_t step, int index) {
  while (step > 0 && !Writes(step, index))
    --step;
  return step;
}

void FillChunk(char *data, int64_t step, int index) {
  std::minstd_rand random(unsigned(step * kChunks + index + 1));
  for (int64_t i = 0; i < 2 * kPage; i += 4) {
    uint32_t word = uint32_t(random());
    std::memcpy(data + i, &word, 4);
  }
}

char *PageBuffer() {
  static char *buffer = static_cast<char *>(std::aligned_alloc(kPage, 2 * kPage));
  return buffer;
}

/// Trains forever: writes chunks, commits, and says so by one byte.
[[noreturn]] void Train(const Program &program, const std::string &path, int ready) {
  auto store = StateStore::Exists(path) ? StateStore::Open(program, {path})
                                        : StateStore::Create(program, {path});
  if (!store.ok() || write(ready, "x", 1) != 1)
    _exit(1);
  for (int64_t step = (*store)->Committed().step + 1;; ++step) {
    for (int index = 0; index < kChunks; ++index) {
      if (!Writes(step, index))
        continue;
      char *data = PageBuffer();
      FillChunk(data, step, index);
      Extent extent = (*store)->Next(kWeights, index / 4, index % 4);
      if (pwrite((*store)->Files()[extent.file].fd, data, 2 * kPage, extent.offset) != 2 * kPage)
        _exit(2);
      (*store)->SetChecksum(kWeights, index / 4, index % 4, Crc32c(data, 2 * kPage));
    }
    CommitRecord record;
    record.step = step;
    record.extra = {{"step", std::to_string(step)}};
    if (!(*store)->Commit(record).ok() || write(ready, "x", 1) != 1)
      _exit(3);
  }
}

/// Checks that the last commit is whole; its step.
int64_t CheckWhole(const Program &program, const std::string &path) {
  if (!StateStore::Exists(path))
    return 0;
  auto store = MustOpen(program, {path});
  if (!store)
    return -1;
  int64_t step = store->Committed().step;
  EXPECT_EQ(store->Committed().extra.at("step"), std::to_string(step));
  std::vector<char> expected(2 * kPage);
  for (int index = 0; index < kChunks; ++index) {
    int64_t writer = WriterOf(step, index);
    if (writer == 0)
      continue;
    Extent extent = store->Current(kWeights, index / 4, index % 4);
    EXPECT_EQ(pread(store->Files()[extent.file].fd, PageBuffer(), 2 * kPage, extent.offset),
              2 * kPage);
    FillChunk(expected.data(), writer, index);
    EXPECT_EQ(std::memcmp(PageBuffer(), expected.data(), 2 * kPage), 0)
        << "chunk " << index << " after step " << step;
    EXPECT_EQ(store->Checksum(kWeights, index / 4, index % 4), Crc32c(PageBuffer(), 2 * kPage));
  }
  return step;
}

TEST_F(StateTest, KilledAtAnyInstantTheLastCommitIsWhole) {
  std::mt19937 random(11);
  int64_t step = 0;
  for (int round = 0; round < 40 && !HasFailure(); ++round) {
    int ready[2];
    ASSERT_EQ(pipe(ready), 0);
    pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0)
      Train(program, Path(), ready[1]);
    close(ready[1]); // so that a child that fails ends the wait
    // The start and up to five commits, then somewhere within the next.
    for (unsigned left = 1 + random() % 6; left > 0; --left)
      Await(ready[0]);
    usleep(random() % 4000);
    kill(child, SIGKILL);
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_TRUE(WIFSIGNALED(status)) << "the child failed: " << status;
    close(ready[0]);
    int64_t now = CheckWhole(program, Path());
    EXPECT_GE(now, step);
    step = now;
  }
  EXPECT_GT(step, 20);
}

TEST_F(StateTest, AnUnfinishedManifestIsNoObstacle) {
  MakeCommitted();
  scratch.Write("state/manifest.json.tmp", std::string(100000, 'x'));
  {
    auto store = MustOpen(program, {Path()});
    CommitRecord record;
    record.step = 5;
    ASSERT_EQ(store->Commit(record), absl::OkStatus());
  }
  EXPECT_EQ(MustOpen(program, {Path()})->Committed().step, 5);
}

TEST_F(StateTest, AFailedCommitIsTheLast) {
  auto store = MustCreate(program, {Path()});
  CommitRecord record;
  record.step = 1;
  ASSERT_EQ(store->Commit(record), absl::OkStatus());
  fs::create_directory(Manifest() + ".tmp"); // in the way
  record.step = 2;
  EXPECT_FALSE(store->Commit(record).ok());
  fs::remove(Manifest() + ".tmp");
  EXPECT_FALSE(store->Commit(record).ok());
  EXPECT_EQ(store->Committed().step, 1);
  store.reset();
  EXPECT_EQ(MustOpen(program, {Path()})->Committed().step, 1);
}

//===----------------------------------------------------------------------===//
// CRC-32C
//===----------------------------------------------------------------------===//

/// Bit by bit, from the definition.
uint32_t SlowCrc(const std::string &data) {
  uint32_t crc = ~0u;
  for (unsigned char byte : data) {
    crc ^= byte;
    for (int bit = 0; bit < 8; ++bit)
      crc = (crc >> 1) ^ (crc & 1 ? 0x82f63b78 : 0);
  }
  return ~crc;
}

TEST(Crc32c, KnownValues) {
  EXPECT_EQ(Crc32c("", 0), 0u);
  EXPECT_EQ(Crc32c("123456789", 9), 0xe3069283u);
  EXPECT_EQ(Crc32c(std::string(32, '\0').data(), 32), 0x8a9136aau);
  EXPECT_EQ(Crc32c(std::string(32, '\xff').data(), 32), 0x62a8ab43u);
}

TEST(Crc32c, AgreesWithTheDefinition) {
  std::mt19937 random(5);
  for (int64_t bytes : {1, 7, 8, 9, 1023, 3071, 3072, 3073, 6144, 10001}) {
    std::string data(bytes, 0);
    for (char &byte : data)
      byte = char(random());
    EXPECT_EQ(Crc32c(data.data(), bytes), SlowCrc(data)) << bytes;
    EXPECT_EQ(Crc32c(data.data() + 1, bytes - 1), SlowCrc(data.substr(1)));
  }
}

} // namespace
} // namespace boa
