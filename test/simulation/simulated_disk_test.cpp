//===- simulated_disk_test.cpp - What the simulated disk takes away -------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "test/simulation/simulated_disk.h"

#include "gtest/gtest.h"

#include <cstring>

namespace boa {
namespace {

constexpr OpenMode kCreate{/*write=*/true, /*create=*/true};
constexpr int kSeeds = 200;

std::unique_ptr<OpenFile> Make(SimulatedDisk &disk, const std::string &path,
                               const std::string &contents, bool sync) {
  std::unique_ptr<OpenFile> file = *disk.Open(path, kCreate);
  EXPECT_TRUE(file->Write(0, contents.data(), int64_t(contents.size())).ok());
  if (sync)
    EXPECT_TRUE(file->Sync().ok());
  return file;
}

void LosePower(SimulatedDisk &disk) {
  disk.PowerLoss();
  EXPECT_TRUE(disk.Dead());
  disk.Restart();
}

/// The contents, or the name of the error.
std::string Read(SimulatedDisk &disk, const std::string &path) {
  absl::StatusOr<std::string> text = ReadSmallFile(disk, path);
  return text.ok() ? *text : absl::StatusCodeToString(text.status().code());
}

/// What may come of something, over many seeds.
template <typename Run> std::map<std::string, int> Outcomes(Run run) {
  std::map<std::string, int> outcomes;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    SimulatedDisk disk(seed);
    disk.AddDevice("/d");
    ++outcomes[run(disk)];
  }
  return outcomes;
}

TEST(SimulatedDisk, SyncedFilesWithSyncedNamesSurvive) {
  auto outcomes = Outcomes([](SimulatedDisk &disk) {
    Make(disk, "/d/a", "text", true);
    EXPECT_TRUE(disk.SyncDirectory("/d").ok());
    LosePower(disk);
    return Read(disk, "/d/a");
  });
  EXPECT_EQ(outcomes, (std::map<std::string, int>{{"text", kSeeds}}));
}

TEST(SimulatedDisk, ANameWithoutASyncMaySurvive) {
  auto outcomes = Outcomes([](SimulatedDisk &disk) {
    Make(disk, "/d/a", "text", true);
    LosePower(disk);
    return Read(disk, "/d/a");
  });
  EXPECT_EQ(outcomes.size(), 2u);
  EXPECT_GT(outcomes["text"], kSeeds / 4);
  EXPECT_GT(outcomes["NOT_FOUND"], kSeeds / 4);
}

TEST(SimulatedDisk, BytesAndSizesWithoutASyncMaySurvive) {
  auto outcomes = Outcomes([](SimulatedDisk &disk) {
    Make(disk, "/d/a", "text", false);
    EXPECT_TRUE(disk.SyncDirectory("/d").ok());
    LosePower(disk);
    return Read(disk, "/d/a");
  });
  EXPECT_GT(outcomes["text"], 10);
  EXPECT_GT(outcomes[""], 10);
  EXPECT_GT(outcomes[std::string(4, '\0')], 10);
}

// The mistake that this disk is there to find: a new file over an old one, whose
// bytes were never synced.
TEST(SimulatedDisk, ARenameDoesNotSyncTheFile) {
  auto outcomes = Outcomes([](SimulatedDisk &disk) {
    Make(disk, "/d/a", "old", true);
    EXPECT_TRUE(disk.SyncDirectory("/d").ok());
    Make(disk, "/d/a.tmp", "new", false);
    EXPECT_TRUE(disk.Rename("/d/a.tmp", "/d/a").ok());
    EXPECT_TRUE(disk.SyncDirectory("/d").ok());
    LosePower(disk);
    return Read(disk, "/d/a");
  });
  EXPECT_EQ(outcomes.count("old"), 0u);
  EXPECT_GT(outcomes[""], 10);
  EXPECT_GT(outcomes["new"], 10);
}

TEST(SimulatedDisk, ReplacedFilesAreOldOrNewAtAnyInstant) {
  std::map<std::string, int> outcomes;
  for (int64_t at = 1; at < 12; ++at)
    for (auto [outcome, count] : Outcomes([at](SimulatedDisk &disk) {
           EXPECT_TRUE(ReplaceFile(disk, "/d", "a", "old").ok());
           disk.DieAt(at, at % 2 ? Fault::power_loss : Fault::kill);
           bool done = ReplaceFile(disk, "/d", "a", "new").ok();
           disk.DieAt(0, Fault::kill);
           disk.Restart();
           std::string text = Read(disk, "/d/a");
           return done ? text + ", done" : text;
         }))
      outcomes[outcome] += count;
  EXPECT_EQ(outcomes.size(), 3u);
  EXPECT_GT(outcomes["old"], 0);
  EXPECT_GT(outcomes["new"], 0);
  EXPECT_GT(outcomes["new, done"], 0);
}

TEST(SimulatedDisk, WritesSurviveInAnyOrderAndInPart) {
  auto outcomes = Outcomes([](SimulatedDisk &disk) {
    std::unique_ptr<OpenFile> file = Make(disk, "/d/a", std::string(8192, '0'), true);
    EXPECT_TRUE(disk.SyncDirectory("/d").ok());
    EXPECT_TRUE(file->Write(0, std::string(4096, '1').data(), 4096).ok());
    EXPECT_TRUE(file->Write(4096, std::string(4096, '2').data(), 4096).ok());
    LosePower(disk);
    std::string text = Read(disk, "/d/a"), sectors;
    for (int i = 0; i < 16; ++i) {
      EXPECT_EQ(text.substr(size_t(i) * 512, 512), std::string(512, text[size_t(i) * 512]));
      sectors += text[size_t(i) * 512];
    }
    return sectors;
  });
  EXPECT_GT(outcomes["0000000000000000"], 0);
  EXPECT_GT(outcomes["1111111122222222"], 0);
  EXPECT_GT(outcomes["0000000022222222"], 0);
  EXPECT_GT(outcomes["1111111100000000"], 0);
  EXPECT_GT(outcomes.size(), 20u);
}

TEST(SimulatedDisk, AKilledProcessLosesNoBytes) {
  auto outcomes = Outcomes([](SimulatedDisk &disk) {
    std::unique_ptr<OpenFile> file = Make(disk, "/d/a", "text", false);
    absl::StatusOr<std::unique_ptr<OpenFile>> lock = disk.Lock("/d/lock");
    EXPECT_TRUE(lock.ok());
    disk.Kill();
    EXPECT_FALSE(file->Write(0, "x", 1).ok());
    EXPECT_FALSE(disk.Open("/d/a", {}).ok());
    disk.Restart();
    EXPECT_FALSE(file->Write(0, "x", 1).ok());
    EXPECT_TRUE(disk.Lock("/d/lock").ok());
    return Read(disk, "/d/a");
  });
  EXPECT_EQ(outcomes, (std::map<std::string, int>{{"text", kSeeds}}));
}

// As of Linux: the error is told once, and a sync after it proves nothing.
TEST(SimulatedDisk, AFailedSyncIsNotMendedByAnother) {
  auto outcomes = Outcomes([](SimulatedDisk &disk) {
    std::unique_ptr<OpenFile> file = Make(disk, "/d/a", "old!", true);
    EXPECT_TRUE(disk.SyncDirectory("/d").ok());
    EXPECT_TRUE(file->Write(0, "new!", 4).ok());
    FaultRates rates;
    rates[Fault::failed_sync] = 1;
    disk.SetRates(rates);
    EXPECT_FALSE(file->Sync().ok());
    disk.SetRates({});
    EXPECT_TRUE(file->Sync().ok());
    LosePower(disk);
    return Read(disk, "/d/a");
  });
  EXPECT_GT(outcomes["old!"], 10);
  EXPECT_GT(outcomes["new!"], 10);
}

TEST(SimulatedDisk, SpaceIsOfTheDevice) {
  SimulatedDisk disk(1);
  disk.AddDevice("/a", 10 * 4096);
  disk.AddDevice("/b", 10 * 4096);
  std::unique_ptr<OpenFile> file = *disk.Open("/a/f", kCreate);
  ASSERT_TRUE(file->Reserve(8 * 4096).ok());
  EXPECT_EQ(disk.Space("/a")->free_bytes, 2 * 4096);
  EXPECT_EQ(disk.Space("/b")->free_bytes, 10 * 4096);
  EXPECT_NE(disk.Space("/a")->device, disk.Space("/b")->device);
  EXPECT_EQ(file->Reserve(11 * 4096).code(), absl::StatusCode::kResourceExhausted);
  std::string page(4096, 'x');
  EXPECT_TRUE(file->Write(0, page.data(), 4096).ok());
  EXPECT_EQ(disk.Space("/a")->free_bytes, 2 * 4096);
  EXPECT_TRUE(file->Write(9 * 4096, page.data(), 4096).ok());
  EXPECT_TRUE(file->Write(8 * 4096, page.data(), 4096).ok());
  absl::Status full = file->Write(10 * 4096, page.data(), 4096);
  EXPECT_EQ(full.code(), absl::StatusCode::kResourceExhausted) << full;
  EXPECT_FALSE(disk.Rename("/a/f", "/b/f").ok());
  file.reset();
  ASSERT_TRUE(disk.Unlink("/a/f").ok());
  EXPECT_EQ(disk.Space("/a")->free_bytes, 10 * 4096);
}

/// With one fault that always strikes, what comes of a write and of a read.
TEST(SimulatedDisk, FaultsDoWhatTheyAreNamedFor) {
  struct Case {
    Fault fault;
    bool write_fails, read_fails, differs, damaged;
  };
  for (const Case &c : {Case{Fault::io_error, true, true, false, false},
                        {Fault::lasting_error, true, true, false, false},
                        {Fault::no_space, true, false, true, false},
                        {Fault::flipped_read, false, false, true, false},
                        {Fault::misdirected_read, false, false, true, false},
                        {Fault::rot, false, false, true, true},
                        {Fault::lost_write, false, false, true, true},
                        {Fault::misdirected_write, false, false, true, true}}) {
    SCOPED_TRACE(FaultName(c.fault));
    SimulatedDisk disk(5);
    disk.AddDevice("/d");
    std::string old, next(4096, 'n'), read(4096, '\0');
    for (int page = 0; page < 8; ++page)
      old += std::string(4096, char('0' + page));
    std::unique_ptr<OpenFile> file = Make(disk, "/d/a", old, true);
    FaultRates rates;
    rates[c.fault] = 1;
    disk.SetRates("/d", rates);
    absl::Status status = file->Write(0, next.data(), 4096);
    EXPECT_EQ(!status.ok(), c.write_fails) << status;
    status = file->Read(0, read.data(), 4096);
    EXPECT_EQ(!status.ok(), c.read_fails) << status;
    // Rot is somewhere in the file.
    for (int i = 0; c.fault == Fault::rot && i < 100 && read == next; ++i)
      EXPECT_TRUE(file->Read(0, read.data(), 4096).ok());
    if (!c.read_fails)
      EXPECT_EQ(read != next, c.differs);
    EXPECT_GT(disk.Counts()[c.fault], 0);
    disk.SetRates({});
    EXPECT_EQ(disk.Damaged().count("/d/a"), size_t(c.damaged));
    EXPECT_TRUE(file->Read(0, read.data(), 4096).ok());
    // What was written over is whole again.
    for (int page = 0; page < 8; ++page)
      EXPECT_TRUE(file->Write(page * 4096, next.data(), 4096).ok());
    EXPECT_TRUE(disk.Damaged().empty());
  }
}

// A seed is a run.
TEST(SimulatedDisk, ASeedIsReplayed) {
  auto run = [](uint64_t seed) {
    SimulatedDisk disk(seed);
    disk.AddDevice("/d");
    FaultRates rates;
    for (size_t i = 0; i < kFaults; ++i)
      rates.rates[i] = i < size_t(Fault::power_loss) ? 0.1 : 0;
    disk.SetRates(rates);
    std::string log;
    disk.SetLog([&](const std::string &line) { log += line + "\n"; });
    for (int i = 0; i < 20; ++i)
      if (auto file = disk.Open("/d/a", kCreate); file.ok()) {
        (*file)->Write(i * 100, "0123456789", 10).IgnoreError();
        (*file)->Sync().IgnoreError();
      }
    LosePower(disk);
    return log + Read(disk, "/d/a");
  };
  EXPECT_EQ(run(1), run(1));
  EXPECT_NE(run(1), run(2));
}

/// Of two transfers that are under way any may be first, and memory is used at any
/// time in between.
TEST(SimulatedDisk, TransfersCompleteInAnyOrder) {
  alignas(4096) static char memory[4][4096];
  auto outcomes = Outcomes([](SimulatedDisk &disk) {
    std::unique_ptr<OpenFile> file = Make(disk, "/d/a", std::string(4 * 4096, '0'), true);
    auto io = *disk.CreateIo({{file->descriptor(), "/d/a", 0}}, {}, nullptr, 0, {});
    std::string order;
    for (int i = 0; i < 4; ++i)
      io->Submit({true, 0, i * 4096, 4096, memory[i],
                  [&order, i](absl::Status status) { order += char('0' + i); }});
    while (io->Pending())
      io->Advance();
    return order;
  });
  EXPECT_GT(outcomes.size(), 20u);
}

TEST(SimulatedDisk, TransfersUnderWayAtTheEndLandOrDoNot) {
  alignas(4096) static char memory[8192];
  std::memset(memory, 'n', sizeof(memory));
  for (Fault how : {Fault::power_loss, Fault::kill}) {
    auto outcomes = Outcomes([how](SimulatedDisk &disk) {
      std::unique_ptr<OpenFile> file = Make(disk, "/d/a", std::string(8192, 'o'), true);
      EXPECT_TRUE(disk.SyncDirectory("/d").ok());
      auto io = *disk.CreateIo({{file->descriptor(), "/d/a", 0}}, {}, nullptr, 0, {});
      int failed = 0;
      disk.DieAt(1, how);
      for (int i = 0; i < 2; ++i)
        io->Submit({true, 0, i * 4096, 4096, memory + i * 4096,
                    [&](absl::Status status) { failed += !status.ok(); }});
      io.reset();
      EXPECT_EQ(failed, 2);
      disk.Restart();
      std::string text = Read(disk, "/d/a");
      return std::string(1, text[0]) + text[4095] + text[4096] + text[8191];
    });
    EXPECT_GT(outcomes["oooo"], 0);
    EXPECT_GT(outcomes["nnnn"], 0);
    EXPECT_GT(outcomes.size(), 4u);
  }
}

// A link's limit is kept on the disk's own clock.
TEST(SimulatedDisk, LimitsAreInVirtualTime) {
  alignas(4096) static char memory[1 << 20];
  SimulatedDisk disk(3);
  disk.AddDevice("/d");
  std::unique_ptr<OpenFile> file = *disk.Open("/d/a", kCreate);
  ASSERT_TRUE(file->Reserve(sizeof(memory)).ok());
  auto io = *disk.CreateIo({{file->descriptor(), "/d/a", 0}}, {{0, 1 << 16}}, nullptr, 0, {});
  auto begin = disk.Now();
  for (int i = 0; i < 16; ++i)
    io->Submit({true, 0, i << 16, 1 << 16, memory + (i << 16), {}});
  while (io->Pending())
    io->Advance();
  EXPECT_NEAR(std::chrono::duration<double>(disk.Now() - begin).count(), 16, 2);
}

} // namespace
} // namespace boa
