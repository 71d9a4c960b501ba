//===- io_fixture.h - Files and buffers of tests of I/O ----------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_TEST_RUNTIME_IO_FIXTURE_H
#define BOA_TEST_RUNTIME_IO_FIXTURE_H

#include "runtime/io/queue.h"

#include "gtest/gtest.h"
#ifdef BOA_FAKE_FILE
#include "test/runtime/cuda/far_memory.h"
#endif

#include <condition_variable>
#include <cstdlib>
#include <fcntl.h>
#include <mutex>
#include <random>
#include <string>
#include <unistd.h>
#include <vector>

namespace boa {

constexpr int64_t kPage = 4096;
constexpr int64_t kMiB = 1 << 20;

#ifdef BOA_FAKE_FILE
using Buffers = cuda_test::FarBuffers;
#else
/// Of the host.
struct Buffers {
  static char *Take(int64_t bytes) { return static_cast<char *>(std::aligned_alloc(kPage, bytes)); }
  static void Give(char *memory) { std::free(memory); }
  static void *There(char *memory) { return memory; }
  static FarMemory *Reach(const std::vector<IoFile> &) { return nullptr; }
  static void Leave() {}
};
#endif

class AlignedBuffer {
public:
  explicit AlignedBuffer(int64_t bytes) : bytes(bytes), memory(Buffers::Take(bytes)) {}
  ~AlignedBuffer() { Buffers::Give(memory); }
  AlignedBuffer(const AlignedBuffer &) = delete;
  AlignedBuffer &operator=(const AlignedBuffer &) = delete;
  char *data() { return memory; }
  int64_t size() const { return bytes; }
  void Fill(uint32_t seed) {
    std::minstd_rand random(seed + 1);
    for (int64_t i = 0; i < bytes; ++i)
      memory[i] = char(random());
  }

private:
  int64_t bytes;
  char *memory;
};

/// A temporary file, with O_DIRECT where the file system has it.
class TestFile {
public:
  explicit TestFile(int64_t bytes) {
    name = testing::TempDir() + "boa_io_XXXXXX";
    close(mkstemp(name.data()));
    fd = open(name.c_str(), O_RDWR | O_DIRECT | O_CLOEXEC);
    if (fd < 0)
      fd = open(name.c_str(), O_RDWR | O_CLOEXEC);
    EXPECT_GE(fd, 0);
    EXPECT_EQ(ftruncate(fd, bytes), 0);
  }
  ~TestFile() {
    close(fd);
    unlink(name.c_str());
  }
  IoFile File(int32_t link = 0) const { return {fd, name, link}; }

  std::string name;
  int fd = -1;
};

/// Counts completions and keeps the statuses that are errors.
class Waiter {
public:
  std::function<void(absl::Status)> Done() {
    std::lock_guard<std::mutex> lock(mutex);
    ++expected;
    return [this](absl::Status status) {
      std::lock_guard<std::mutex> lock(mutex);
      ++arrived;
      if (!status.ok())
        errors.push_back(std::move(status));
      changed.notify_all();
    };
  }
  /// Waits for all; the first error, or OK.
  absl::Status Wait() {
    std::unique_lock<std::mutex> lock(mutex);
    changed.wait(lock, [this] { return arrived >= expected; });
    EXPECT_EQ(arrived, expected);
    return errors.empty() ? absl::OkStatus() : errors.front();
  }
  std::mutex mutex;
  std::condition_variable changed;
  int expected = 0, arrived = 0;
  std::vector<absl::Status> errors;
};

} // namespace boa

#endif // BOA_TEST_RUNTIME_IO_FIXTURE_H
