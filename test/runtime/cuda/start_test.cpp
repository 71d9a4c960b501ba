//===- start_test.cpp - What is found out before the first step -----------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What a machine, a driver, a library or a program lacks is a status that says so before
// anything runs.
//
//===----------------------------------------------------------------------===//
#include "test/runtime/cuda/fixture.h"

#include "runtime/device/cuda/blas.h"
#include "runtime/device/cuda/gpu.h"
#include "runtime/support/interrupt.h"

#include <csignal>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <thread>

namespace boa::cuda_test {
namespace {

TEST_F(CudaTest, SaysWhichGpuItIs) {
  ASSERT_TRUE(Make().ok());
  EXPECT_THAT(engine->DescribeIo(), testing::EndsWith("; on Fake GPU 0 (sm_90)"));
}

// More shared memory than each function may have is granted before the first step, or not.
TEST_F(CudaTest, SharedMemoryIsAskedFor) {
  shared_bytes = 64 << 10;
  ASSERT_TRUE(Make().ok());
  absl::Status status = Train();
  EXPECT_TRUE(status.ok()) << status;
  shared_bytes = 0;
}

// Two drivers for one version of CUDA are two.
TEST_F(CudaTest, DriversAreToldApart) {
  const std::string file = testing::TempDir() + "driver-release";
  setenv("BOA_CUDA_RELEASE", file.c_str(), 1);
  ASSERT_TRUE(Make().ok());
  EXPECT_EQ(engine->Environment()["driver"], "for CUDA 13.0");
  std::ofstream(file) << "580.65.06\n";
  EXPECT_EQ(engine->Environment()["driver"], "580.65.06 for CUDA 13.0");
  unsetenv("BOA_CUDA_RELEASE");
  std::remove(file.c_str());
}

// What this GPU cannot launch is refused before the first step.
TEST_F(CudaTest, LaunchesAreCheckedBeforeTheyAreMade) {
  shared_bytes = 300 << 10;
  EXPECT_EQ(std::string(Make().message()),
            "function element is launched with 307200 bytes of shared memory beside its own, but "
            "may be with 0 to 232448 on Fake GPU 0 (sm_90): train on another GPU, or write `device "
            "cpu`");
  shared_bytes = 0;
  Fake("block_threads=32");
  EXPECT_THAT(std::string(Make().message()),
              StartsWith("function element is launched with 64 threads in a block, but may be with "
                         "1 to 32 on Fake GPU 0 (sm_90)"));
  Fake("");
  blocks_y = 65536;
  EXPECT_THAT(std::string(Make().message()),
              StartsWith("function element is launched with 65536 blocks along y, but may be with "
                         "1 to 65535"));
  blocks_y = 0;
  EXPECT_THAT(std::string(Make().message()),
              StartsWith("function element is launched with 0 blocks along y"));
  blocks_y = 1;
}

TEST_F(CudaTest, WhatIsMissingIsNamed) {
  setenv("BOA_CUDA_DRIVER", "/nowhere/libcuda.so", 1);
  EXPECT_THAT(std::string(Make().message()),
              StartsWith("BOA_CUDA_DRIVER=/nowhere/libcuda.so: /nowhere/libcuda.so: cannot open"));
  setenv("BOA_CUDA_DRIVER", BOA_FAKE_DRIVER, 1);
  Fake("driver=11040");
  EXPECT_EQ(std::string(Make().message()),
            "the NVIDIA driver of this machine is for CUDA 11.4: install one for "
            "CUDA 12.0 or newer");
  Fake("devices=0");
  EXPECT_EQ(std::string(Make().message()),
            "starting the driver: cuInit: CUDA_ERROR_NO_DEVICE (no CUDA-capable device is "
            "detected): nvidia-smi shows which GPUs there are, and CUDA_VISIBLE_DEVICES must not "
            "hide them all; or write `device cpu`");
  Fake("memory=64KiB");
  EXPECT_EQ(
      std::string(Make().message()),
      "the program takes 244 KiB of device memory, but of the 64.0 KiB of Fake GPU 0 (sm_90) "
      "64.0 KiB are free: CUDA itself and other processes have 0 B, the program's code and its "
      "libraries 0 B; end what else uses the GPU (nvidia-smi lists it), or compile the "
      "program with less in `device cuda { memory = ... }`");
  Fake("");
  const char text[] = ".version 8.0";
  const boa_device_image ptx = {text, sizeof(text), kNames, 1};
  EXPECT_EQ(
      std::string(Make(MakeProgram("cuda"), Kernels(kTable, &ptx, &kReferenceAdamW)).message()),
      "translating the program for Fake GPU 0 (sm_90): cuModuleLoadDataEx: "
      "CUDA_ERROR_INVALID_PTX (an error of the fake driver): compile the program anew for "
      "this GPU, or install a newer driver\n"
      "the fake driver runs emulated kernels alone");
  const char *const other[] = {"other"};
  const boa_device_image without = {&kModule, sizeof(kModule), other, 1};
  EXPECT_THAT(
      std::string(Make(MakeProgram("cuda"), Kernels(kTable, &without, &kReferenceAdamW)).message()),
      StartsWith("other: cuModuleGetFunction: CUDA_ERROR_NOT_FOUND"));
  EXPECT_THAT(std::string(Make(MakeProgram("cuda"), kTable).message()),
              StartsWith("the program is not one for a GPU"));
  EXPECT_TRUE(Make().ok());
}

// Variables that have cuBLASLt multiply f32 in fewer bits are refused where products are planned.
TEST_F(CudaTest, OtherArithmeticIsRefused) {
  Program with = MakeProgram("cuda");
  with.kernels.push_back({"multiply", {{true, true}}});
  wanted = {};
  use_scratch = false;
  for (const char *variable : {"NVIDIA_TF32_OVERRIDE", "CUBLAS_EMULATE_SINGLE_PRECISION"}) {
    setenv(variable, "1", 1);
    EXPECT_THAT(std::string(Make(with).message()),
                HasSubstr(absl::StrCat(variable, "=1 lets cuBLASLt multiply f32 in other "
                                                 "arithmetic than f32: unset it")));
    setenv(variable, "0", 1);
    EXPECT_TRUE(Make(with).ok());
    unsetenv(variable);
  }
}

// The host's memory is registered in parts, and what is copied lies in one at a time.
TEST_F(CudaTest, HostMemoryIsRegisteredInParts) {
  constexpr int64_t kPart = 3 << 12, kBytes = 10 << 12;
  Fake("register_once=12KiB");
  EXPECT_THAT(std::string(Make().message()),
              StartsWith("registering the host's memory with the GPU: cuMemHostRegister_v2: "
                         "CUDA_ERROR_INVALID_VALUE"));
  auto gpu = cuda::Gpu::Open();
  ASSERT_TRUE(gpu.ok()) << gpu.status();
  const cuda::Driver &driver = (*gpu)->driver();
  cuda::Stream stream = nullptr;
  ASSERT_TRUE(driver.Call("", driver.StreamCreate, &stream, cuda::kNonBlocking).ok());
  {
    cuda::GpuMemory memory(**gpu, stream, kPart);
    absl::Status status = memory.Allocate({kBytes, 2 * kBytes});
    ASSERT_TRUE(status.ok()) << status;
    char *const host = memory.HostArena().first;
    for (int64_t i = 0; i < kBytes; ++i)
      host[i] = char(i % 251);
    for (auto [from, bytes] : {std::pair<int64_t, int64_t>{0, kBytes},
                               {kPart - 1, 2},
                               {kPart, kPart},
                               {kPart / 2, 2 * kPart},
                               {1, 1}}) {
      std::memset(host + kBytes, 0, kBytes);
      const Location in{BOA_HOST, from}, device{BOA_DEVICE, kBytes - bytes},
          back{BOA_HOST, kBytes + from};
      status = memory.Copy(in, device, bytes, stream);
      EXPECT_TRUE(status.ok()) << status;
      status = memory.Copy(device, back, bytes, stream);
      EXPECT_TRUE(status.ok()) << status;
      EXPECT_TRUE(driver.Call("", driver.StreamSynchronize, stream).ok());
      EXPECT_EQ(std::memcmp(host + from, host + kBytes + from, size_t(bytes)), 0) << from;
    }
  }
  EXPECT_TRUE(driver.Call("", driver.StreamDestroy, stream).ok());
}

TEST_F(CudaTest, ASignalEndsTheRegistration) {
  constexpr int64_t kPart = 1 << 12, kBytes = 16 << 20;
  Fake("fail=cuMemHostRegister_v2:1000000"); // its calls are counted
  auto gpu = cuda::Gpu::Open();
  ASSERT_TRUE(gpu.ok()) << gpu.status();
  const cuda::Driver &driver = (*gpu)->driver();
  cuda::Stream stream = nullptr;
  ASSERT_TRUE(driver.Call("", driver.StreamCreate, &stream, cuda::kNonBlocking).ok());
  {
    const InterruptGuard guard;
    std::thread sender([] {
      while (boa_fake_cuda_calls("cuMemHostRegister_v2") == 0)
        ;
      raise(SIGTERM);
    });
    cuda::GpuMemory memory(**gpu, stream, kPart);
    const absl::Status status = memory.Allocate({0, kBytes});
    sender.join();
    EXPECT_EQ(SignalOf(status), SIGTERM) << status;
    EXPECT_LT(boa_fake_cuda_calls("cuMemHostRegister_v2"), kBytes / kPart);
  }
  EXPECT_TRUE(driver.Call("", driver.StreamDestroy, stream).ok());
}

// What may not be locked is the host's memory, not the GPU's.
TEST_F(CudaTest, HostMemoryMayNotBeLocked) {
  Fake("registered=4KiB");
  EXPECT_THAT(
      std::string(Make().message()),
      testing::MatchesRegex(
          "registering the host's memory with the GPU: cuMemHostRegister_v2: "
          "CUDA_ERROR_OUT_OF_MEMORY \\(out of memory\\): the system locks no more than 0 B of "
          "[0-9]+ KiB in memory: allow the process, or its container, more \\(ulimit -l, "
          "--ulimit memlock=-1\\), or compile the program with less in `host \\{ memory = "
          "... \\}`"));
}

// The library for products is missed by programs that multiply, before their first step.
TEST_F(CudaTest, ProductsNeedTheirLibrary) {
  setenv("BOA_CUDA_BLAS", "/nowhere/libcublasLt.so", 1);
  EXPECT_TRUE(Make().ok());
  Program with = MakeProgram("cuda");
  with.kernels.push_back({"multiply", {{true, true}}, BOA_CUDA_LIBRARY_WORKSPACE});
  EXPECT_THAT(std::string(Make(with).message()),
              StartsWith("BOA_CUDA_BLAS=/nowhere/libcublasLt.so: "));
}

// What CUDA, code and libraries take of the device's memory is taken before the program's: there is
// enough at the start, which says who has what, or to the end.
TEST_F(CudaTest, LibrariesTakeTheirMemoryFirst) {
  wanted = {};
  for (bool scratch : {false, true}) {
    use_scratch = scratch;
    Program with = MakeProgram("cuda");
    with.kernels.push_back({"multiply", {{true, true}}, scratch ? BOA_CUDA_LIBRARY_WORKSPACE : 0});
    Fake("");
    ASSERT_TRUE(Make(with).ok());
    const int64_t arena = engine->ArenaBytes(BOA_DEVICE);
    body = [](boa_context *context, int64_t) {
      boa_buffer buffer = boa_rt_prefetch(context, kHome, 0, 0, 2, BOA_DEVICE, 0);
      boa_rt_launch(context, kMultiply, 1, &buffer);
      boa_rt_release(context, buffer, 0);
    };
    // A context, two functions, cuBLASLt, a product.
    const int64_t taken = 5 * (64 << 10);
    Fake(absl::StrCat("overhead=64KiB memory=", arena + taken));
    absl::Status status = Make(with);
    ASSERT_TRUE(status.ok()) << status;
    status = engine->Run(Drive, 1, 0);
    EXPECT_TRUE(status.ok()) << status;
    status = Train();
    EXPECT_TRUE(status.ok()) << status;
    Fake(absl::StrCat("overhead=64KiB memory=", arena + taken - 1));
    EXPECT_THAT(std::string(Make(with).message()),
                HasSubstr("are free: CUDA itself and other processes have 64.0 KiB, the program's "
                          "code and its libraries 256 KiB; end what else"));
    // Less still is seen before the libraries are tried, or by them.
    for (int64_t memory : {arena + taken / 2, arena, arena / 2, taken, taken / 2, taken / 8}) {
      Fake(absl::StrCat("overhead=64KiB memory=", memory));
      EXPECT_EQ(Make(with).code(), absl::StatusCode::kResourceExhausted) << memory;
    }
  }
}

// Local memory of functions, too, is taken before the program's, and no more of it than they need.
TEST_F(CudaTest, LocalMemoryIsTakenFirst) {
  Fake("fail=cuCtxSetLimit:1 local=1024");
  ASSERT_TRUE(Make().ok()); // as much is there
  EXPECT_EQ(boa_fake_cuda_calls("cuCtxSetLimit"), 0);
  const int64_t arena = engine->ArenaBytes(BOA_DEVICE), taken = (1536 - 1024) * 8192;
  Fake("fail=cuCtxSetLimit:1 local=1536");
  EXPECT_THAT(std::string(Make().message()),
              StartsWith("reserving local memory for the program's functions: cuCtxSetLimit: "
                         "CUDA_ERROR_UNKNOWN"));
  Fake(absl::StrCat("local=1536 memory=", arena + taken));
  ASSERT_TRUE(Make().ok());
  absl::Status status = Train();
  EXPECT_TRUE(status.ok()) << status;
  Fake(absl::StrCat("local=1536 memory=", arena + taken - 1));
  EXPECT_THAT(std::string(Make().message()),
              HasSubstr("the program's code and its libraries 4.00 MiB; end what else"));
}

// The library of the driver's CUDA is tried first, since a later one does not begin on it; what
// does not begin makes place for the next.
TEST_F(CudaTest, TheLibraryForProductsFitsTheDriver) {
  using testing::ElementsAre;
  EXPECT_THAT(cuda::BlasNames(13010), ElementsAre("libcublasLt.so.13", "libcublasLt.so.12"));
  EXPECT_THAT(cuda::BlasNames(12090), ElementsAre("libcublasLt.so.12", "libcublasLt.so.13"));
  Program with = MakeProgram("cuda");
  with.kernels.push_back({"multiply", {{true, true}}});
  Fake("fail=cublasLtCreate:1");
  EXPECT_EQ(std::string(Make(with).message()),
            absl::StrCat(BOA_FAKE_BLAS,
                         ": cublasLtCreate: CUBLAS_STATUS_NOT_INITIALIZED (an error of the fake "
                         "cuBLASLt): libcublas and the driver do not go together: install the one "
                         "of the CUDA version that nvidia-smi shows"));
  setenv("BOA_CUDA_BLAS", BOA_FAKE_BLAS ":" BOA_FAKE_BLAS, 1);
  absl::Status status = Make(with);
  EXPECT_TRUE(status.ok()) << status;
  // What lacks a function, or is not there, is passed over too.
  setenv("BOA_CUDA_BLAS", BOA_FAKE_DRIVER ":/nowhere/libcublasLt.so:" BOA_FAKE_BLAS, 1);
  Fake("");
  status = Make(with);
  EXPECT_TRUE(status.ok()) << status;
  setenv("BOA_CUDA_BLAS", "/nowhere/libcublasLt.so:" BOA_FAKE_DRIVER, 1);
  EXPECT_EQ(std::string(Make(with).message()),
            absl::StrCat(BOA_FAKE_DRIVER, " has no cublasLtCreate: install CUDA's libcublas in "
                                          "version 12 or 13"));
}

// What may be done about an error is said with it.
TEST_F(CudaTest, ErrorsSayWhatToDo) {
  using Code = absl::StatusCode;
  struct {
    int error;
    Code code;
    const char *advice;
  } const cases[] = {
      {2, Code::kResourceExhausted, "end what else uses the GPU"},
      {34, Code::kFailedPrecondition, "the toolkit's stub"},
      {46, Code::kUnavailable, "nvidia-smi -c DEFAULT"},
      {214, Code::kDataLoss, "the GPU's memory is damaged"},
      {218, Code::kFailedPrecondition, "compile the program anew"},
      {220, Code::kDataLoss, "nvidia-smi nvlink -e"},
      {221, Code::kFailedPrecondition, "NVIDIA_DRIVER_CAPABILITIES"},
      {223, Code::kFailedPrecondition, "CUDA_DISABLE_PTX_JIT"},
      {700, Code::kInternal, "compute-sanitizer"},
      {702, Code::kUnavailable, "without a screen"},
      {714, Code::kInternal, "compute-sanitizer"},
      {715, Code::kInternal, "compute-sanitizer"},
      {716, Code::kInternal, "compute-sanitizer"},
      {717, Code::kInternal, "compute-sanitizer"},
      {718, Code::kInternal, "compute-sanitizer"},
      {802, Code::kUnavailable, "nvidia-fabricmanager"},
      {803, Code::kFailedPrecondition, "restart the machine"},
      {804, Code::kFailedPrecondition, "cuda-compat"},
      {999, Code::kInternal, "dmesg"},
  };
  for (const auto &[error, code, advice] : cases) {
    Fake(absl::StrCat("fail=cuModuleLoadDataEx:1 error=", error));
    const absl::Status status = Make();
    EXPECT_EQ(status.code(), code) << error;
    EXPECT_THAT(std::string(status.message()), HasSubstr(advice)) << error;
  }
}

// A driver that lacks a function is too old, and the function is named.
TEST_F(CudaTest, OldDriversAreTold) {
  std::ifstream library(BOA_FAKE_DRIVER, std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(library), {}};
  const std::string name("\0cuEventElapsedTime\0", 20);
  const size_t at = bytes.find(name);
  ASSERT_NE(at, std::string::npos);
  bytes[at + 1] = 'x';
  std::ofstream(scratch.path("old.so"), std::ios::binary) << bytes;
  setenv("BOA_CUDA_DRIVER", scratch.path("old.so").c_str(), 1);
  EXPECT_EQ(std::string(Make().message()),
            absl::StrCat("the NVIDIA driver of this machine has no cuEventElapsedTime (",
                         scratch.path("old.so"), "): install one for CUDA 12.0 or newer"));
}

} // namespace
} // namespace boa::cuda_test
