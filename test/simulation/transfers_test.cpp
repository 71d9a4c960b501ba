//===- transfers_test.cpp - Transfers of the simulated disk ---------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The contracts of io.h for the simulated backend. test/runtime/io_test.cpp checks the same for
// the real ones.
//
//===----------------------------------------------------------------------===//
#include "test/simulation/simulated_disk.h"

#include "gtest/gtest.h"

#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <mutex>

namespace boa {
namespace {

constexpr int64_t kPage = 4096, kMiB = 1 << 20;

class Memory {
public:
  explicit Memory(int64_t bytes)
      : bytes(bytes), memory(static_cast<char *>(std::aligned_alloc(kPage, size_t(bytes)))) {}
  ~Memory() { std::free(memory); }
  Memory(const Memory &) = delete;
  Memory &operator=(const Memory &) = delete;
  char *data() { return memory; }
  void Fill(uint32_t seed) {
    for (int64_t i = 0; i < bytes; ++i)
      memory[i] = char((seed = seed * 1664525 + 1013904223) >> 24);
  }
  bool Equals(const Memory &other) const {
    return std::memcmp(memory, other.memory, size_t(bytes)) == 0;
  }

private:
  int64_t bytes;
  char *memory;
};

/// Collects completions, from threads or from Advance.
class Waiter {
public:
  std::function<void(absl::Status)> Done() {
    std::lock_guard<std::mutex> lock(mutex);
    ++expected;
    return [this](absl::Status status) {
      std::lock_guard<std::mutex> lock(mutex);
      ++arrived;
      statuses.push_back(std::move(status));
      changed.notify_all();
    };
  }
  absl::Status Wait(IoBackend &backend) {
    while (backend.Pending())
      backend.Advance();
    std::unique_lock<std::mutex> lock(mutex);
    changed.wait(lock, [&] { return arrived >= expected; });
    EXPECT_EQ(arrived, expected);
    for (const absl::Status &status : statuses)
      if (!status.ok())
        return status;
    return absl::OkStatus();
  }
  int expected = 0, arrived = 0;
  std::vector<absl::Status> statuses;

private:
  std::mutex mutex;
  std::condition_variable changed;
};

class TransfersTest : public testing::Test {
protected:
  TransfersTest() { disk.AddDevice("/disk"); }

  /// Files of so many bytes, each on a link of its own.
  void Start(std::vector<int64_t> bytes, std::vector<IoLink> links = {}) {
    backend.reset();
    std::vector<IoFile> list;
    for (size_t i = 0; i < bytes.size(); ++i) {
      const std::string path = "/disk/" + std::to_string(opened.size());
      opened.push_back(*disk.Open(path, {true, true, false, true}));
      ASSERT_TRUE(bytes[i] == 0 || opened.back()->Reserve(bytes[i]).ok());
      list.push_back({opened.back()->descriptor(), path, int32_t(i)});
    }
    auto made = disk.CreateIo(list, std::move(links), nullptr, 0, options);
    ASSERT_TRUE(made.ok()) << made.status();
    backend = *std::move(made);
  }
  absl::Status Move(bool write, int64_t offset, int64_t bytes, void *data, int32_t file = 0) {
    Waiter waiter;
    backend->Submit({write, file, offset, bytes, data, waiter.Done()});
    return waiter.Wait(*backend);
  }
  void RoundTrip(int64_t bytes) {
    Memory written(bytes), read(bytes);
    written.Fill(uint32_t(bytes));
    ASSERT_EQ(Move(true, 0, bytes, written.data()), absl::OkStatus());
    ASSERT_EQ(Move(false, 0, bytes, read.data()), absl::OkStatus());
    EXPECT_TRUE(written.Equals(read)) << bytes;
  }

  SimulatedDisk disk{7};
  IoOptions options;
  std::vector<std::unique_ptr<OpenFile>> opened;
  std::unique_ptr<IoBackend> backend;
};

TEST_F(TransfersTest, RoundTripsOfManySizes) {
  for (int64_t segment : {int64_t(1), 3 * kPage, 100 * kPage + 1, kMiB}) {
    options.segment_bytes = segment;
    Start({8 * kMiB});
    for (int64_t bytes : {kPage, 2 * kPage, kMiB - kPage, kMiB + kPage})
      RoundTrip(bytes);
  }
}

TEST_F(TransfersTest, DepthOfOne) {
  options.depth = 1;
  options.segment_bytes = 16 * kPage;
  Start({2 * kMiB});
  RoundTrip(2 * kMiB);
}

TEST_F(TransfersTest, WritesExtendFiles) {
  Start({0});
  RoundTrip(3 * kPage);
  EXPECT_EQ(opened.back()->Size().value(), 3 * kPage);
}

TEST_F(TransfersTest, ShortTransfersAreContinued) {
  options.segment_bytes = 64 * kPage;
  for (int64_t every : {1, 2, 3}) {
    options.faults.short_every = every;
    Start({2 * kMiB});
    RoundTrip(2 * kMiB);
  }
}

TEST_F(TransfersTest, InterruptedTransfersAreDoneAgain) {
  options.segment_bytes = 16 * kPage;
  options.faults.fail_at = 3;
  for (int error : {EINTR, EAGAIN}) {
    options.faults.error = error;
    Start({kMiB});
    RoundTrip(kMiB);
  }
}

TEST_F(TransfersTest, EmptyTransfersComplete) {
  Start({kMiB});
  EXPECT_EQ(Move(false, 0, 0, nullptr), absl::OkStatus());
}

TEST_F(TransfersTest, WrongTransfersAreRefused) {
  Memory buffer(2 * kPage);
  Start({kMiB});
  using absl::IsInvalidArgument;
  EXPECT_TRUE(IsInvalidArgument(Move(false, 512, kPage, buffer.data())));
  EXPECT_TRUE(IsInvalidArgument(Move(false, 0, 100, buffer.data())));
  EXPECT_TRUE(IsInvalidArgument(Move(false, 0, kPage, buffer.data() + 8)));
  EXPECT_TRUE(IsInvalidArgument(Move(false, 0, kPage, buffer.data(), 7)));
}

TEST_F(TransfersTest, ReadsBeyondTheEndFail) {
  Memory buffer(4 * kPage);
  Start({2 * kPage});
  for (int64_t page : {0, 1, 2, 8}) {
    absl::Status status = Move(false, page * kPage, 4 * kPage, buffer.data());
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
    EXPECT_NE(status.message().find(opened.back()->path()), std::string::npos) << status;
  }
}

TEST_F(TransfersTest, ErrorsNameTheFileAndOffset) {
  options.faults.fail_at = 3;
  options.segment_bytes = 16 * kPage;
  options.depth = 1;
  for (int error : {EIO, ENOSPC}) {
    options.faults.error = error;
    Start({kMiB});
    Memory buffer(kMiB);
    buffer.Fill(1);
    absl::Status status = Move(true, 0, kMiB, buffer.data());
    EXPECT_EQ(status.code(), absl::ErrnoToStatusCode(error));
    EXPECT_NE(status.message().find(opened.back()->path()), std::string::npos) << status;
    EXPECT_NE(status.message().find("offset 196608"), std::string::npos) << status;
    RoundTrip(kMiB); // the next is none the worse
  }
}

TEST_F(TransfersTest, AFileThatIsOnlyReadIsNotWritten) {
  Start({kMiB});
  std::unique_ptr<OpenFile> reader = *disk.Open(opened.back()->path(), {false, false, false, true});
  backend = *disk.CreateIo({{reader->descriptor(), reader->path(), 0}}, {}, nullptr, 0, options);
  Memory buffer(kPage);
  buffer.Fill(1);
  EXPECT_EQ(Move(true, 0, kPage, buffer.data()).code(), absl::ErrnoToStatusCode(EBADF));
  EXPECT_EQ(Move(false, 0, kPage, buffer.data()), absl::OkStatus());
  backend.reset();
}

TEST_F(TransfersTest, ManyTransfersOfManyFiles) {
  constexpr int kFiles = 3, kEach = 40;
  options.depth = 7;
  options.segment_bytes = 5 * kPage;
  options.faults.short_every = 11;
  Start({kEach * 16 * kPage, kEach * 16 * kPage, kEach * 16 * kPage});
  Memory written(kFiles * kEach * 16 * kPage), read(kFiles * kEach * 16 * kPage);
  written.Fill(3);
  for (bool write : {true, false}) {
    Waiter waiter;
    for (int i = 0; i < kFiles * kEach; ++i)
      backend->Submit({write, i % kFiles, i / kFiles * 16 * kPage, 16 * kPage,
                       (write ? written : read).data() + i * 16 * kPage, waiter.Done(), i % 5});
    EXPECT_EQ(waiter.Wait(*backend), absl::OkStatus());
  }
  EXPECT_TRUE(written.Equals(read));
}

TEST_F(TransfersTest, CompletionsMaySubmit) {
  Start({kMiB});
  Memory buffer(kPage);
  Waiter waiter;
  auto last = waiter.Done();
  std::atomic<int> left{100};
  std::function<void(absl::Status)> next = [&](absl::Status status) {
    if (!status.ok() || --left == 0)
      return last(status);
    backend->Submit({false, 0, left * kPage, kPage, buffer.data(), next});
  };
  backend->Submit({false, 0, 0, kPage, buffer.data(), next});
  EXPECT_EQ(waiter.Wait(*backend), absl::OkStatus());
  EXPECT_EQ(left, 0);
  backend.reset();
}

TEST_F(TransfersTest, DestructionCompletesWhatIsLeft) {
  Memory written(4 * kMiB), read(4 * kMiB);
  written.Fill(9);
  Start({4 * kMiB}, {{0, 64 * kMiB}});
  Waiter waiter;
  for (int i = 0; i < 4; ++i)
    backend->Submit({true, 0, i * kMiB, kMiB, written.data() + i * kMiB, waiter.Done()});
  backend.reset();
  EXPECT_EQ(waiter.arrived, 4);
  for (int i = 0; i < 4; ++i)
    ASSERT_TRUE(opened.back()->Read(i * kMiB, read.data() + i * kMiB, kMiB).ok());
  EXPECT_TRUE(written.Equals(read));
}

} // namespace
} // namespace boa
