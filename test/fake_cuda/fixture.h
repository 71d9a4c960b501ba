//===- fixture.h - A context of the fake driver, for tests ------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_TEST_FAKE_CUDA_FIXTURE_H
#define BOA_TEST_FAKE_CUDA_FIXTURE_H

#include "test/fake_cuda/fake.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

namespace boa::fake {

/// Whether nothing was reported that no test has asked for.
inline std::string Reports() { return boa_fake_cuda_reports(); }

/// The primary context of device 0, current on this thread while it lives.
class Session {
public:
  explicit Session(const std::string &settings) {
    setenv("BOA_FAKE_CUDA", settings.c_str(), 1);
    EXPECT_EQ(cuInit(0), CUDA_SUCCESS);
    EXPECT_EQ(cuDevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
    EXPECT_EQ(cuCtxSetCurrent(context), CUDA_SUCCESS);
  }
  ~Session() { EXPECT_EQ(cuDevicePrimaryCtxRelease_v2(0), CUDA_SUCCESS); }
  CUcontext context = nullptr;
};

class FakeCudaTest : public testing::Test {
protected:
  void TearDown() override { EXPECT_EQ(Reports(), ""); }
};

inline CUstream NewStream() {
  CUstream stream = nullptr;
  EXPECT_EQ(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  return stream;
}

inline CUevent NewEvent(unsigned flags = CU_EVENT_DISABLE_TIMING) {
  CUevent event = nullptr;
  EXPECT_EQ(cuEventCreate(&event, flags), CUDA_SUCCESS);
  return event;
}

template <typename T> CUdeviceptr NewMemory(size_t count) {
  CUdeviceptr address = 0;
  EXPECT_EQ(cuMemAlloc_v2(&address, count * sizeof(T)), CUDA_SUCCESS);
  return address;
}

template <typename T> void Upload(CUdeviceptr to, const std::vector<T> &from, CUstream stream) {
  EXPECT_EQ(cuMemcpyHtoDAsync_v2(to, from.data(), from.size() * sizeof(T), stream), CUDA_SUCCESS);
}

/// Waits for the stream.
template <typename T> std::vector<T> Download(CUdeviceptr from, size_t count, CUstream stream) {
  std::vector<T> to(count);
  EXPECT_EQ(cuMemcpyDtoHAsync_v2(to.data(), from, count * sizeof(T), stream), CUDA_SUCCESS);
  return to;
}

/// Memory that is registered while it lives.
template <typename T> struct Pinned {
  explicit Pinned(size_t count, T value = {}) : values(count, value) {
    EXPECT_EQ(cuMemHostRegister_v2(values.data(), values.size() * sizeof(T), 0), CUDA_SUCCESS);
  }
  ~Pinned() { EXPECT_EQ(cuMemHostUnregister(values.data()), CUDA_SUCCESS); }
  std::vector<T> values;
};

/// Holds a stream until it is told to go on.
class Gate {
public:
  explicit Gate(CUstream stream) {
    auto wait = [](void *flag) {
      while (!*static_cast<std::atomic<bool> *>(flag))
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    };
    EXPECT_EQ(cuLaunchHostFunc(stream, wait, &open), CUDA_SUCCESS);
  }
  void Open() { open = true; }

private:
  std::atomic<bool> open{false};
};

} // namespace boa::fake

#endif // BOA_TEST_FAKE_CUDA_FIXTURE_H
