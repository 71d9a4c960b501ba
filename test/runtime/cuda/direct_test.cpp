//===- direct_test.cpp - SSDs that reach the GPU's memory -----------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// On the fakes of the driver and of libcufile: what is computed is the same, what goes wrong is
// said, and what was damaged is found.
//
//===----------------------------------------------------------------------===//
#include "test/runtime/cuda/fixture.h"

#include <fstream>
#include <iterator>

namespace boa::cuda_test {
namespace {

/// Data goes between SSD and the device alone: there is no slot for it on the host.
Program MakeDirect() {
  Program program = MakeProgram("cuda");
  program.machine.direct = true;
  program.storages[kData].pools = {{BOA_DEVICE, 2, 2}};
  return program;
}

class DirectTest : public CudaTest {
protected:
  static void FakeFiles(const std::string &settings) {
    setenv("BOA_FAKE_CUFILE", settings.c_str(), 1);
  }
  void TearDown() override {
    CudaTest::TearDown();
    unsetenv("BOA_FAKE_CUFILE");
  }
  std::vector<std::vector<float>> Staged() {
    EXPECT_TRUE(Make().ok());
    absl::Status status = Train();
    EXPECT_TRUE(status.ok()) << status;
    return All();
  }
  std::string DataPath() const { return scratch.path("state") + "/data"; }
};

// Late, short or both: the bits are those of the way through the host.
TEST_F(DirectTest, TheWayChangesNoBit) {
  const auto expected = Staged();
  for (const char *files : {"", "delay_us=300", "short=1", "short=3 delay_us=200 seed=7"}) {
    SCOPED_TRACE(files);
    FakeFiles(files);
    Fake(*files ? "delay_us=100" : "");
    absl::Status status = Make(MakeDirect());
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_THAT(engine->DescribeIo(), HasSubstr("the GPU's memory through cuFile; on Fake GPU 0"));
    status = Train();
    ASSERT_TRUE(status.ok()) << status;
    Counters counters = engine->TakeCounters();
    EXPECT_GT(counters.moved.read["data"], 0);
    EXPECT_EQ(counters.moved.to_device.count("data"), 0u);
    EXPECT_EQ(All(), expected);
  }
}

// Each step's data was written from the device, and is read into it again after a commit.
TEST_F(DirectTest, GoesOnAfterACommit) {
  ASSERT_TRUE(Make(MakeDirect()).ok());
  ASSERT_TRUE(Train().ok());
  ASSERT_TRUE(engine->Commit({3, 0, {}}).ok());
  const auto expected = Storages();
  engine.reset();
  state.reset();
  auto opened = StateStore::Open(SystemFiles(), program, {scratch.path("state")});
  ASSERT_TRUE(opened.ok()) << opened.status();
  state = *std::move(opened);
  auto made = Engine::Create(program, kKernels, state.get(), {});
  ASSERT_TRUE(made.ok()) << made.status();
  engine = *std::move(made);
  ASSERT_TRUE(engine->Restore().ok());
  EXPECT_EQ(Storages(), expected);
  absl::Status status = TakeStep(4);
  EXPECT_TRUE(status.ok()) << status;
}

// Whatever byte it is: no kernel sees it.
TEST_F(DirectTest, WhatWasDamagedIsFound) {
  for (int64_t at : {int64_t(0), kChunk - 1, kChunk + 77}) {
    ASSERT_TRUE(Make(MakeDirect()).ok());
    ASSERT_TRUE(Train().ok());
    ASSERT_TRUE(engine->Drain().ok());
    const Extent extent = state->Current(kData, 1, int32_t(at / kChunk));
    {
      std::fstream file(DataPath(), std::ios::in | std::ios::out | std::ios::binary);
      file.seekg(extent.offset + at % kChunk);
      const char byte = char(file.get() ^ 4);
      file.seekp(extent.offset + at % kChunk);
      file.put(byte);
    }
    const std::string message(TakeStep(4).message());
    EXPECT_THAT(message, HasSubstr("data")) << at;
    EXPECT_THAT(message, HasSubstr(absl::StrCat("offset ", extent.offset))) << at;
  }
}

// An error of a transfer says which file and where; the first and later ones.
TEST_F(DirectTest, ErrorsOfTransfersAreSaid) {
  for (const char *function : {"cuFileRead", "cuFileWrite"})
    for (int call : {1, 4, 9}) {
      SCOPED_TRACE(absl::StrCat(function, " ", call));
      FakeFiles(absl::StrCat("fail=", function, ":", call));
      ASSERT_TRUE(Make(MakeDirect()).ok());
      const std::string message(Train().message());
      EXPECT_THAT(message,
                  StartsWith(absl::StrCat("cannot ", function[6] == 'R' ? "read " : "write ",
                                          DataPath(), " at offset ")));
      EXPECT_THAT(message, HasSubstr("Input/output error"));
      FakeFiles(absl::StrCat("error=5008 fail=", function, ":", call));
      ASSERT_TRUE(Make(MakeDirect()).ok());
      EXPECT_THAT(std::string(Train().message()),
                  testing::EndsWith(": cuFile error 5008 (it does not take files of this file "
                                    "system: ext4 and XFS on NVMe it does)"));
    }
}

// An error of a checksum is said, and not what was left out for it: of another transfer, which may
// be over before.
TEST_F(DirectTest, ErrorsOfChecksumsAreSaid) {
  for (int seed = 1; seed <= 24; ++seed) {
    SCOPED_TRACE(seed);
    FakeFiles(absl::StrCat("delay_us=1000 short=2 seed=", seed));
    Fake(absl::StrCat("fail=cuLaunchKernel:", 3 + seed % 6));
    ASSERT_TRUE(Make(MakeDirect()).ok());
    EXPECT_THAT(std::string(Train().message()), HasSubstr(": cuLaunchKernel: CUDA_ERROR_UNKNOWN"));
  }
}

// What passes is tried again.
TEST_F(DirectTest, ShortagesPass) {
  const auto expected = Staged();
  for (int error : {EINTR, EAGAIN, 5043}) {
    FakeFiles(absl::StrCat("fail=cuFileRead:3 error=", error));
    ASSERT_TRUE(Make(MakeDirect()).ok());
    absl::Status status = Train();
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_EQ(All(), expected);
  }
}

TEST_F(DirectTest, WhatIsMissingIsNamed) {
  setenv("BOA_CUDA_FILE", "/nowhere/libcufile.so", 1);
  EXPECT_THAT(
      std::string(Make(MakeDirect()).message()),
      StartsWith("BOA_CUDA_FILE=/nowhere/libcufile.so: /nowhere/libcufile.so: cannot open"));
  // Without `direct` nobody asks for it.
  EXPECT_TRUE(Make().ok());
  setenv("BOA_CUDA_FILE", BOA_FAKE_BLAS, 1);
  EXPECT_THAT(std::string(Make(MakeDirect()).message()),
              StartsWith("libcufile has no cuFileDriverSetMaxPinnedMemSize ("));
  setenv("BOA_CUDA_FILE", BOA_FAKE_FILE, 1);
  FakeFiles("fail=cuFileDriverOpen:1 error=5001");
  EXPECT_EQ(std::string(Make(MakeDirect()).message()),
            "starting GPUDirect Storage: cuFile error 5001 (its kernel module is not loaded: load "
            "it (modprobe nvidia-fs), or allow its compatibility mode (allow_compat_mode in "
            "/etc/cufile.json)); or compile the program without `direct`");
  FakeFiles("fail=cuFileHandleRegister:1 error=5020");
  EXPECT_THAT(std::string(Make(MakeDirect()).message()),
              StartsWith(absl::StrCat("preparing ", DataPath(),
                                      " for GPUDirect Storage: cuFile error 5020")));
  FakeFiles("");
  // What was begun is over before what it works on goes: the keys of checksums are on their way.
  for (int seed = 1; seed <= 8; ++seed) {
    Fake(absl::StrCat("delay_us=2000 fail=cuMemHostRegister_v2:2 seed=", seed));
    EXPECT_THAT(std::string(Make(MakeDirect()).message()),
                HasSubstr("cuMemHostRegister_v2: CUDA_"));
  }
  Fake("delay_us=2000");
  setenv("BOA_IO", "io_uring", 1);
  EXPECT_THAT(std::string(Make(MakeDirect()).message()),
              StartsWith("BOA_IO=io_uring, but the GPU's memory through cuFile"));
  unsetenv("BOA_IO");
  Fake("");
  const boa_device_image without = {&kModule, sizeof(kModule), kNames, 1};
  EXPECT_THAT(
      std::string(Make(MakeDirect(), Kernels(kTable, &without, &kReferenceAdamW)).message()),
      HasSubstr("no function for checksums of data: compile the program anew"));
}

// What may be pinned it is told before it starts; should it not listen, it goes its own way.
TEST_F(DirectTest, ItIsToldHowMuchToPin) {
  FakeFiles("pinned=64");
  ASSERT_TRUE(Make(MakeDirect()).ok());
  EXPECT_THAT(engine->DescribeIo(), HasSubstr("through cuFile; on"));
  FakeFiles("pinned=64 fail=cuFileDriverSetMaxPinnedMemSize:1 error=5022");
  ASSERT_TRUE(Make(MakeDirect()).ok());
  EXPECT_THAT(engine->DescribeIo(), HasSubstr("max_device_pinned_mem_size_kb"));
}

// The library may refuse to pin all of the memory: then it goes its own way, which is said.
TEST_F(DirectTest, MemoryThatIsNotPinnedDoes) {
  const auto expected = Staged();
  FakeFiles("fail=cuFileBufRegister:1 error=5036");
  ASSERT_TRUE(Make(MakeDirect()).ok());
  EXPECT_THAT(engine->DescribeIo(),
              HasSubstr("which does not take it all at once: cuFile error 5036"));
  ASSERT_TRUE(Train().ok());
  EXPECT_EQ(All(), expected);
}

} // namespace
} // namespace boa::cuda_test
