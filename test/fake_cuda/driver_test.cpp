//===- driver_test.cpp - Tests of the fake driver ------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "test/fake_cuda/fixture.h"

#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <dlfcn.h>
#include <fcntl.h>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

namespace boa::fake {
namespace {

using testing::HasSubstr;

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

// Fresh memory is NaN; what was copied to it comes back; what was freed may be had again.
TEST_F(FakeCudaTest, MemoryHoldsWhatWasCopied) {
  Session session("memory=1MiB");
  CUstream stream = NewStream();
  size_t free = 0, total = 0;
  EXPECT_EQ(cuMemGetInfo_v2(&free, &total), CUDA_SUCCESS);
  EXPECT_EQ(free, size_t(1) << 20);
  EXPECT_EQ(total, size_t(1) << 20);
  CUdeviceptr memory = NewMemory<float>(100);
  EXPECT_EQ(memory % 256, 0u);
  EXPECT_NE(memory % 512, 0u);
  for (float value : Download<float>(memory, 100, stream))
    EXPECT_TRUE(std::isnan(value));
  std::vector<float> values(100, 3);
  Upload(memory, values, stream);
  EXPECT_EQ(Download<float>(memory, 100, stream), values);
  EXPECT_EQ(cuMemsetD8Async(memory + 4, 0, 8, stream), CUDA_SUCCESS);
  values[1] = values[2] = 0;
  EXPECT_EQ(Download<float>(memory, 100, stream), values);
  CUdeviceptr other = NewMemory<float>(100);
  EXPECT_EQ(cuMemcpyDtoDAsync_v2(other, memory, 400, stream), CUDA_SUCCESS);
  EXPECT_EQ(Download<float>(other, 100, stream), values);
  CUdeviceptr large = 0;
  EXPECT_EQ(cuMemAlloc_v2(&large, (1 << 20) - 799), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(cuMemAlloc_v2(&large, (1 << 20) - 800), CUDA_SUCCESS);
  EXPECT_EQ(cuMemGetInfo_v2(&free, &total), CUDA_SUCCESS);
  EXPECT_EQ(free, 0u);
  for (CUdeviceptr address : {memory, other, large})
    EXPECT_EQ(cuMemFree_v2(address), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamDestroy_v2(stream), CUDA_SUCCESS);
}

// By the host it cannot be read: the kernel of the system says so.
TEST_F(FakeCudaTest, TheHostMayNotTouchDeviceMemory) {
  Session session("");
  CUdeviceptr memory = NewMemory<char>(100);
  int file = open("/dev/null", O_WRONLY), ends[2];
  ASSERT_EQ(pipe(ends), 0);
  EXPECT_EQ(write(ends[1], reinterpret_cast<void *>(memory), 1), -1);
  EXPECT_EQ(errno, EFAULT);
  for (int one : {file, ends[0], ends[1]})
    close(one);
  EXPECT_EQ(cuMemFree_v2(memory), CUDA_SUCCESS);
}

TEST_F(FakeCudaTest, CopiesOutOfBoundsAreRefused) {
  Session session("");
  CUstream stream = NewStream();
  CUdeviceptr memory = NewMemory<char>(100);
  char host[200] = {};
  EXPECT_EQ(cuMemcpyHtoDAsync_v2(memory + 50, host, 51, stream), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(Reports(),
            "cuMemcpyHtoDAsync_v2: where to: 51 bytes from byte 50 of an allocation of 100\n");
  EXPECT_EQ(cuMemcpyDtoHAsync_v2(host, memory + 100, 1, stream), CUDA_ERROR_INVALID_VALUE);
  EXPECT_THAT(Reports(), HasSubstr("is in no allocation"));
  EXPECT_EQ(cuMemsetD8Async(reinterpret_cast<CUdeviceptr>(host), 0, 1, stream),
            CUDA_ERROR_INVALID_VALUE);
  EXPECT_THAT(Reports(), HasSubstr("is no address of device memory"));
  EXPECT_EQ(cuMemcpyHtoDAsync_v2(memory, reinterpret_cast<void *>(memory), 1, stream),
            CUDA_ERROR_INVALID_VALUE);
  EXPECT_THAT(Reports(), HasSubstr("an address of device memory for the host's"));
  EXPECT_EQ(cuMemcpyDtoDAsync_v2(memory, memory + 10, 11, stream), CUDA_ERROR_INVALID_VALUE);
  EXPECT_THAT(Reports(), HasSubstr("overlap"));
  EXPECT_EQ(cuMemFree_v2(memory), CUDA_SUCCESS);
  EXPECT_EQ(cuMemFree_v2(memory), CUDA_ERROR_INVALID_VALUE);
  EXPECT_THAT(Reports(), HasSubstr("no allocation begins there"));
  EXPECT_EQ(cuStreamDestroy_v2(stream), CUDA_SUCCESS);
}

TEST_F(FakeCudaTest, PinnedMemoryIsPinnedOnce) {
  Session session("");
  CUstream stream = NewStream();
  CUdeviceptr memory = NewMemory<char>(100);
  std::vector<char> host(100);
  EXPECT_EQ(cuMemHostRegister_v2(host.data(), 50, 0), CUDA_SUCCESS);
  EXPECT_EQ(cuMemHostRegister_v2(host.data() + 49, 10, 0),
            CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
  EXPECT_EQ(Reports(), "cuMemHostRegister_v2: some of it is pinned already\n");
  EXPECT_EQ(cuMemcpyHtoDAsync_v2(memory, host.data(), 51, stream), CUDA_ERROR_INVALID_VALUE);
  EXPECT_THAT(Reports(), HasSubstr("some are pinned and some are not"));
  EXPECT_EQ(cuMemHostUnregister(host.data()), CUDA_SUCCESS);
  EXPECT_EQ(cuMemHostUnregister(host.data()), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
  EXPECT_THAT(Reports(), HasSubstr("cuMemHostUnregister"));
  void *allocated = nullptr;
  EXPECT_EQ(cuMemHostAlloc(&allocated, 100, 0), CUDA_SUCCESS);
  EXPECT_EQ(cuMemHostUnregister(allocated), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
  EXPECT_THAT(Reports(), HasSubstr("cuMemHostUnregister"));
  EXPECT_EQ(cuMemFreeHost(allocated), CUDA_SUCCESS);
  EXPECT_EQ(cuMemFree_v2(memory), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamDestroy_v2(stream), CUDA_SUCCESS);
}

//===----------------------------------------------------------------------===//
// Misuse
//===----------------------------------------------------------------------===//

TEST_F(FakeCudaTest, WhatWasDestroyedIsRefused) {
  Session session("");
  CUstream stream = NewStream(), gone = NewStream();
  CUevent event = NewEvent();
  EXPECT_EQ(cuStreamDestroy_v2(gone), CUDA_SUCCESS);
  EXPECT_EQ(cuEventRecord(event, gone), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(Reports(), "cuEventRecord: of a stream that was destroyed\n");
  EXPECT_EQ(cuEventDestroy_v2(event), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamWaitEvent(stream, event, 0), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(Reports(), "cuStreamWaitEvent: of an event that was destroyed\n");
  EXPECT_EQ(cuEventQuery(reinterpret_cast<CUevent>(&event)), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(Reports(), "cuEventQuery: of what is no event\n");
  EXPECT_EQ(cuStreamSynchronize(nullptr), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(Reports(), "cuStreamSynchronize: on a default stream, which waits for all others\n");
  EXPECT_EQ(cuStreamDestroy_v2(stream), CUDA_SUCCESS);
}

// A stream that is destroyed ends its work.
TEST_F(FakeCudaTest, DestroyedStreamsEndTheirWork) {
  std::atomic<bool> done{false};
  {
    Session session("delay_us=2000");
    CUstream stream = NewStream();
    auto finish = [](void *flag) { *static_cast<std::atomic<bool> *>(flag) = true; };
    EXPECT_EQ(cuLaunchHostFunc(stream, finish, &done), CUDA_SUCCESS);
    EXPECT_EQ(cuStreamDestroy_v2(stream), CUDA_SUCCESS);
  }
  EXPECT_TRUE(done);
}

TEST_F(FakeCudaTest, AContextIsCurrentOnOneThread) {
  Session session("");
  std::thread other([&] {
    CUstream stream = nullptr;
    EXPECT_EQ(cuStreamCreate(&stream, 0), CUDA_ERROR_INVALID_CONTEXT);
    EXPECT_EQ(Reports(), "cuStreamCreate: no context is current on this thread\n");
    EXPECT_EQ(cuCtxSetCurrent(session.context), CUDA_SUCCESS);
    EXPECT_EQ(cuStreamCreate(&stream, 0), CUDA_SUCCESS);
    EXPECT_EQ(cuStreamDestroy_v2(stream), CUDA_SUCCESS);
  });
  other.join();
}

TEST_F(FakeCudaTest, HostFunctionsMayNotCallCuda) {
  Session session("");
  CUstream stream = NewStream();
  CUresult result = CUDA_SUCCESS;
  auto call = [](void *result) {
    size_t free, total;
    *static_cast<CUresult *>(result) = cuMemGetInfo_v2(&free, &total);
  };
  EXPECT_EQ(cuLaunchHostFunc(stream, call, &result), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamSynchronize(stream), CUDA_SUCCESS);
  EXPECT_EQ(result, CUDA_ERROR_NOT_PERMITTED);
  EXPECT_EQ(Reports(), "cuMemGetInfo_v2: a host function may not call CUDA\n");
  EXPECT_EQ(cuStreamDestroy_v2(stream), CUDA_SUCCESS);
}

// What was forgotten is counted, goes with the context, and is not there in the next.
TEST_F(FakeCudaTest, WhatIsLeftIsReported) {
  static char host[100];
  {
    Session session("");
    NewStream();
    NewEvent();
    NewEvent();
    NewMemory<char>(100);
    EXPECT_EQ(cuMemHostRegister_v2(host, 100, 0), CUDA_SUCCESS);
  }
  EXPECT_EQ(Reports(), "left when the context was released: 1 of cuMemAlloc, 1 of cuStreamCreate, "
                       "2 of cuEventCreate, 1 ranges of pinned memory\n");
  Session session("");
  Pinned<char> again(1);
}

// A process that forgets something does not end as if it had not.
TEST(FakeCudaDeathTest, WhatIsLeftAtExitIsAnError) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  auto forget = [] {
    new Session("");
    NewMemory<char>(100);
    exit(0);
  };
  EXPECT_EXIT(forget(), testing::ExitedWithCode(86), "left at exit: 1 of cuMemAlloc");
}

//===----------------------------------------------------------------------===//
// Settings
//===----------------------------------------------------------------------===//

TEST_F(FakeCudaTest, CallsFailAsTold) {
  {
    Session session("fail=cuMemAlloc_v2:3 error=2 fail=cuEventCreate");
    CUdeviceptr first = NewMemory<char>(1), second = NewMemory<char>(1), third = 0;
    EXPECT_EQ(cuMemAlloc_v2(&third, 1), CUDA_ERROR_OUT_OF_MEMORY);
    EXPECT_EQ(cuMemAlloc_v2(&third, 1), CUDA_SUCCESS);
    CUevent event = nullptr;
    EXPECT_EQ(cuEventCreate(&event, 0), CUDA_ERROR_OUT_OF_MEMORY);
    for (CUdeviceptr address : {first, second, third})
      EXPECT_EQ(cuMemFree_v2(address), CUDA_SUCCESS);
  }
  {
    // Before cuInit, by what is said then.
    int version = 0;
    setenv("BOA_FAKE_CUDA", "fail=cuDriverGetVersion:1", 1);
    EXPECT_EQ(cuDriverGetVersion(&version), CUDA_ERROR_UNKNOWN);
    setenv("BOA_FAKE_CUDA", "fail=cuDriverGetVersion:2", 1);
    EXPECT_EQ(cuDriverGetVersion(&version), CUDA_SUCCESS);
    Session session("fail=cuDriverGetVersion:2");
    EXPECT_EQ(boa_fake_cuda_calls("cuDriverGetVersion"), 1);
  }
  Session session("late=cuMemsetD8Async:2");
  CUstream stream = NewStream();
  CUdeviceptr memory = NewMemory<char>(1);
  EXPECT_EQ(cuMemsetD8Async(memory, 0, 1, stream), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamSynchronize(stream), CUDA_SUCCESS);
  EXPECT_EQ(cuMemsetD8Async(memory, 0, 1, stream), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamSynchronize(stream), CUDA_ERROR_LAUNCH_FAILED);
  EXPECT_EQ(cuMemFree_v2(memory), CUDA_ERROR_LAUNCH_FAILED);
  EXPECT_EQ(cuStreamDestroy_v2(stream), CUDA_ERROR_LAUNCH_FAILED);
}

TEST_F(FakeCudaTest, SettingsAreAsTheyAreWritten) {
  setenv("BOA_FAKE_CUDA", "devices=0", 1);
  EXPECT_EQ(cuInit(0), CUDA_ERROR_NO_DEVICE);
  int value = 0;
  EXPECT_EQ(cuDeviceGetCount(&value), CUDA_ERROR_NOT_INITIALIZED);
  EXPECT_EQ(Reports(), "cuDeviceGetCount: before cuInit\n");
  setenv("BOA_FAKE_CUDA", "driver=11080 capability=120 devices=2", 1);
  EXPECT_EQ(cuDriverGetVersion(&value), CUDA_SUCCESS);
  EXPECT_EQ(value, 11080);
  EXPECT_EQ(cuInit(0), CUDA_SUCCESS);
  EXPECT_EQ(cuDeviceGetAttribute(&value, 75, 1), CUDA_SUCCESS);
  EXPECT_EQ(value, 12);
  CUdevice device;
  EXPECT_EQ(cuDeviceGet(&device, 2), CUDA_ERROR_INVALID_DEVICE);
  for (auto [text, words] :
       {std::pair{"sed=1", "there is no 'sed=1'"},
        std::pair{"algorithm_us=1,y", "expected microseconds or 'x', but found 'y'"},
        std::pair{"dnn_best=rx", "expected letters of 'nuar', or 'e', but found 'dnn_best=rx'"},
        std::pair{"seed=one", "expected NAME=NUMBER, but found 'seed=one'"},
        std::pair{"memory=1GB", "expected NAME=NUMBER, but found 'memory=1GB'"},
        std::pair{"fail=cuInit:0", "expected fail=FUNCTION:CALL, but found "
                                   "'fail=cuInit:0'"},
        std::pair{"fail=cuMemAlloc:1", "no call of 'cuMemAlloc' is made to fail"},
        std::pair{"late=cuMemAlloc_v2:1", "no call of 'cuMemAlloc_v2' is made to fail late"}}) {
    setenv("BOA_FAKE_CUDA", text, 1);
    EXPECT_EQ(cuInit(0), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(Reports(), std::string("BOA_FAKE_CUDA: ") + words + "\n");
  }
}

// README.md: a library in which a name is another has no such function.
TEST_F(FakeCudaTest, AFunctionCanBeMissing) {
  Dl_info info;
  ASSERT_NE(dladdr(reinterpret_cast<void *>(&cuInit), &info), 0);
  std::ifstream in(info.dli_fname, std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(in)), {});
  const std::string name("\0cuEventQuery\0", 14);
  size_t at = bytes.find(name);
  ASSERT_NE(at, std::string::npos);
  bytes[at + 1] = 'x';
  std::string path = testing::TempDir() + "/older" + std::to_string(getpid()) + ".so";
  std::ofstream(path, std::ios::binary) << bytes;
  void *library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  unlink(path.c_str());
  ASSERT_NE(library, nullptr) << dlerror();
  EXPECT_NE(dlsym(library, "cuEventRecord"), nullptr);
  EXPECT_EQ(dlsym(library, "cuEventQuery"), nullptr);
  dlclose(library);
}

} // namespace
} // namespace boa::fake
