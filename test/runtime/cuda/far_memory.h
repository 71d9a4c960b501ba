//===- far_memory.h - The fake GPU's memory for tests of I/O ----*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_TEST_RUNTIME_CUDA_FAR_MEMORY_H
#define BOA_TEST_RUNTIME_CUDA_FAR_MEMORY_H

#include "runtime/abi/abi.h"
#include "runtime/device/cuda/files.h"
#include "test/fake_cuda/fake.h"

#include "gtest/gtest.h"

#include <cstdlib>
#include <mutex>

namespace boa::cuda_test {

/// Buffers in the device's memory; a test sees them where the fake has them. Once a process.
class FarBuffers {
public:
  static char *Take(int64_t bytes) {
    FarBuffers &one = Get();
    std::lock_guard<std::mutex> lock(one.mutex);
    char *const taken = one.seen + one.next;
    one.next += bytes;
    ++one.live;
    EXPECT_LE(one.next, kBytes) << "in buffers of one test at once";
    return taken;
  }
  static void Give(char *) {
    FarBuffers &one = Get();
    std::lock_guard<std::mutex> lock(one.mutex);
    if (--one.live == 0)
      one.next = 0;
  }
  /// The device's address of what a test sees there.
  static void *There(char *seen) {
    return seen ? Get().memory->DeviceArena().first + (seen - Get().seen) : nullptr;
  }
  /// Who moves between it and these files, until the next call.
  static FarMemory *Reach(const std::vector<IoFile> &files) {
    FarBuffers &one = Get();
    one.files = nullptr;
    one.files = std::make_unique<cuda::GpuFiles>();
    const auto [arena, bytes] = one.memory->DeviceArena();
    absl::Status status = one.files->Open(*one.gpu, files, arena, bytes);
    EXPECT_TRUE(status.ok()) << status;
    return one.files.get();
  }
  static void Leave() {
    Get().files = nullptr;
    EXPECT_STREQ(boa_fake_cuda_reports(), "");
  }

private:
  static constexpr int64_t kBytes = int64_t(160) << 20;

  FarBuffers() {
    setenv("BOA_CUDA_DRIVER", BOA_FAKE_DRIVER, 1);
    setenv("BOA_CUDA_FILE", BOA_FAKE_FILE, 1);
    setenv("BOA_FAKE_CUFILE", "delay_us=50 short=7", 1);
    auto opened = cuda::Gpu::Open();
    EXPECT_TRUE(opened.ok()) << opened.status();
    gpu = *std::move(opened);
    const cuda::Driver &driver = gpu->driver();
    EXPECT_TRUE(driver.Call("", driver.StreamCreate, &stream, cuda::kNonBlocking).ok());
    memory =
        std::make_unique<cuda::GpuMemory>(*gpu, stream, cuda::GpuMemory::kPart, BOA_BLOCK_BYTES);
    EXPECT_TRUE(memory->Allocate({kBytes, 0}).ok());
    const auto address = CUdeviceptr(reinterpret_cast<uintptr_t>(memory->DeviceArena().first));
    EXPECT_EQ(fake::Reach("the test", {address, size_t(kBytes), "buffers"}, seen), CUDA_SUCCESS);
  }
  ~FarBuffers() {
    files = nullptr;
    memory = nullptr;
    gpu->driver().StreamDestroy.address(stream);
  }
  static FarBuffers &Get() {
    static FarBuffers one;
    return one;
  }

  std::unique_ptr<cuda::Gpu> gpu;
  cuda::Stream stream = nullptr;
  std::unique_ptr<cuda::GpuMemory> memory;
  std::unique_ptr<cuda::GpuFiles> files;
  std::mutex mutex; // of the rest
  char *seen = nullptr;
  int64_t next = 0;
  int live = 0;
};

} // namespace boa::cuda_test

#endif // BOA_TEST_RUNTIME_CUDA_FAR_MEMORY_H
