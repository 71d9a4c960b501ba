//===- io_test.cpp - Tests of all I/O backends ------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One suite, run on each backend: all contracts hold for all of them. Compiled for
// the fakes of CUDA it is run with buffers in a GPU's memory, which libcufile reaches.
//
//===----------------------------------------------------------------------===//
#include "test/runtime/io_fixture.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <functional>
#include <thread>

namespace boa {
namespace {

#ifdef BOA_FAKE_FILE
const char *const kBackends[] = {"cuFile"};
#else
const char *const kBackends[] = {"io_uring", "threads"};
#endif

double Seconds(const std::function<void()> &run) {
  auto begin = std::chrono::steady_clock::now();
  run();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

class IoTest : public testing::TestWithParam<const char *> {
protected:
  bool uring() const { return GetParam() == std::string("io_uring"); }

  void TearDown() override {
    backend.reset();
    Buffers::Leave();
  }

  void Start(std::vector<IoFile> files, std::vector<IoLink> links = {},
             AlignedBuffer *arena = nullptr) {
    backend.reset();
    options.far = Buffers::Reach(files);
    auto made = uring() ? CreateUringBackend(files, links, arena ? arena->data() : nullptr,
                                             arena ? arena->size() : 0, options)
                        : CreateThreadBackend(files, links, options, options.far ? GetParam() : "");
    if (uring() && !made.ok()) {
      RecordProperty("lacking", GetParam());
      GTEST_SKIP() << made.status();
    }
    ASSERT_TRUE(made.ok()) << made.status();
    backend = *std::move(made);
  }

  void Submit(bool write, int32_t file, int64_t offset, int64_t bytes, char *data, Waiter &waiter,
              int64_t deadline = 0) {
    backend->Submit({write, file, offset, bytes, Buffers::There(data), waiter.Done(), deadline});
  }

  absl::Status Move(bool write, int64_t offset, int64_t bytes, char *data, int32_t file = 0) {
    Waiter waiter;
    Submit(write, file, offset, bytes, data, waiter);
    return waiter.Wait();
  }

  void RoundTrip(int64_t bytes) {
    AlignedBuffer written(bytes), read(bytes);
    written.Fill(uint32_t(bytes));
    ASSERT_EQ(Move(true, 0, bytes, written.data()), absl::OkStatus());
    ASSERT_EQ(Move(false, 0, bytes, read.data()), absl::OkStatus());
    EXPECT_EQ(std::memcmp(written.data(), read.data(), bytes), 0) << bytes;
  }

  IoOptions options;
  std::unique_ptr<IoBackend> backend;
};

#define START(...)                                                                                 \
  Start(__VA_ARGS__);                                                                              \
  if (!backend)                                                                                    \
  return

TEST_P(IoTest, DescribesItself) {
  TestFile file(kMiB);
  START({file.File()});
  const std::string said = backend->Describe();
  EXPECT_EQ(said.rfind(options.far ? "threads (8), cuFile" : GetParam(), 0), 0u) << said;
}

TEST_P(IoTest, RoundTripsOfManySizes) {
  TestFile file(8 * kMiB);
  START({file.File()});
  for (int64_t bytes : {kPage, 2 * kPage, kMiB - kPage, kMiB, kMiB + kPage, 5 * kMiB})
    RoundTrip(bytes);
}

// After an error nobody waits for what a slow disk has not begun.
TEST_P(IoTest, CancelEndsWhatWaits) {
  RecordProperty("depends_on_time", "forty transfers of a second each are submitted within twenty");
  constexpr int64_t kTransfers = 40;
  TestFile file(kMiB);
  START({file.File()}, {{/*read=*/kMiB, /*write=*/kMiB}});
  AlignedBuffer data(kMiB);
  std::vector<Waiter> waiters(kTransfers);
  const double seconds = Seconds([&] {
    for (Waiter &waiter : waiters)
      Submit(true, 0, 0, kMiB, data.data(), waiter);
    backend->Cancel();
    int64_t cancelled = 0;
    for (Waiter &waiter : waiters)
      cancelled += absl::IsCancelled(waiter.Wait());
    EXPECT_GT(cancelled, kTransfers / 2);
  });
  EXPECT_LT(seconds, kTransfers / 2); // at this rate, all take twice as long
  EXPECT_TRUE(absl::IsCancelled(Move(false, 0, kPage, data.data())));
}

TEST_P(IoTest, SegmentsThatDoNotDivideTheTransfer) {
  for (int64_t segment : {int64_t(1), int64_t(5000), 3 * kPage, 100 * kPage + 1}) {
    TestFile file(2 * kMiB);
    options.segment_bytes = segment;
    START({file.File()});
    RoundTrip(255 * kPage);
    RoundTrip(kPage);
  }
}

TEST_P(IoTest, DepthOfOne) {
  TestFile file(2 * kMiB);
  options.depth = 1;
  options.segment_bytes = 16 * kPage;
  START({file.File()});
  RoundTrip(2 * kMiB);
}

TEST_P(IoTest, ArenaAndOtherMemory) {
  TestFile file(4 * kMiB);
  AlignedBuffer arena(2 * kMiB), outside(kMiB);
  START({file.File()}, {}, &arena);
  arena.Fill(5);
  outside.Fill(6);
  ASSERT_EQ(Move(true, 0, kMiB, arena.data() + kMiB), absl::OkStatus());
  ASSERT_EQ(Move(true, kMiB, kMiB, outside.data()), absl::OkStatus());
  ASSERT_EQ(Move(false, kMiB, kMiB, arena.data()), absl::OkStatus());
  EXPECT_EQ(std::memcmp(arena.data(), outside.data(), kMiB), 0);
  ASSERT_EQ(Move(false, 0, kMiB, outside.data()), absl::OkStatus());
  EXPECT_EQ(std::memcmp(arena.data() + kMiB, outside.data(), kMiB), 0);
}

TEST_P(IoTest, WritesExtendFiles) {
  TestFile file(0);
  START({file.File()});
  RoundTrip(3 * kPage);
  EXPECT_EQ(lseek(file.fd, 0, SEEK_END), 3 * kPage);
}

TEST_P(IoTest, ShortTransfersAreContinued) {
  for (int64_t every : {1, 2, 3}) {
    TestFile file(2 * kMiB);
    options.faults.short_every = every;
    options.segment_bytes = 64 * kPage;
    START({file.File()});
    RoundTrip(2 * kMiB);
  }
}

TEST_P(IoTest, EmptyTransferCompletes) {
  TestFile file(kMiB);
  START({file.File()});
  EXPECT_EQ(Move(false, 0, 0, nullptr), absl::OkStatus());
}

TEST_P(IoTest, MisalignedTransfersAreRefused) {
  TestFile file(kMiB);
  AlignedBuffer buffer(2 * kPage);
  START({file.File()});
  using absl::IsInvalidArgument;
  EXPECT_TRUE(IsInvalidArgument(Move(false, 512, kPage, buffer.data())));
  EXPECT_TRUE(IsInvalidArgument(Move(false, 0, 100, buffer.data())));
  EXPECT_TRUE(IsInvalidArgument(Move(false, 0, kPage, buffer.data() + 8)));
  EXPECT_TRUE(IsInvalidArgument(Move(false, 0, kPage, buffer.data(), 7)));
}

TEST_P(IoTest, ReadBeyondTheEndFails) {
  TestFile file(2 * kPage);
  AlignedBuffer buffer(4 * kPage);
  START({file.File()});
  for (int64_t offset : {0, 1, 2, 8}) {
    absl::Status status = Move(false, offset * kPage, 4 * kPage, buffer.data());
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
    EXPECT_NE(status.message().find(file.name), std::string::npos) << status;
  }
}

TEST_P(IoTest, ReadOfAnUnalignedTailFails) {
  TestFile file(5000);
  AlignedBuffer buffer(2 * kPage);
  START({file.File()});
  EXPECT_FALSE(Move(false, 0, 2 * kPage, buffer.data()).ok());
  EXPECT_TRUE(Move(false, 0, kPage, buffer.data()).ok());
}

TEST_P(IoTest, InjectedErrorsNameTheFileAndOffset) {
  for (int error : {EIO, ENOSPC}) {
    TestFile file(kMiB);
    options.faults.fail_at = 3;
    options.faults.error = error;
    options.segment_bytes = 16 * kPage;
    options.depth = 1;
    START({file.File()});
    AlignedBuffer buffer(kMiB);
    buffer.Fill(1);
    absl::Status status = Move(true, 0, kMiB, buffer.data());
    EXPECT_EQ(status.code(), absl::ErrnoToStatusCode(error));
    EXPECT_NE(status.message().find(file.name), std::string::npos) << status;
    EXPECT_NE(status.message().find("offset 196608"), std::string::npos) << status;
    EXPECT_NE(status.message().find(std::strerror(error)), std::string::npos);
    // One transfer failed; the next is none the worse.
    RoundTrip(kMiB);
  }
}

// What a signal or a lack of resources interrupts is done again.
TEST_P(IoTest, InterruptedTransfersAreDoneAgain) {
  for (int error : {EINTR, EAGAIN}) {
    TestFile file(kMiB);
    options.faults.fail_at = 3;
    options.faults.error = error;
    options.faults.short_every = 3;
    options.segment_bytes = 16 * kPage;
    START({file.File()});
    RoundTrip(kMiB);
  }
}

// As often as need be, with pauses that grow.
TEST_P(IoTest, LongShortagesPass) {
  TestFile file(kMiB);
  options.faults.fail_at = 2;
  options.faults.fails = 8;
  options.faults.error = EAGAIN;
  options.depth = 1;
  options.segment_bytes = 64 * kPage;
  START({file.File()});
  double seconds = Seconds([&] { RoundTrip(kMiB); });
  EXPECT_GT(seconds, 100e-6 * (1 + 2 + 4)); // at most four segments share the failures
}

TEST_P(IoTest, AnErrorFailsOneTransferOfMany) {
  TestFile file(16 * kMiB);
  AlignedBuffer buffer(16 * kMiB);
  buffer.Fill(2);
  options.faults.fail_at = 20;
  options.faults.error = EIO;
  options.segment_bytes = 64 * kPage;
  START({file.File()});
  Waiter waiter;
  for (int i = 0; i < 16; ++i)
    Submit(true, 0, i * kMiB, kMiB, buffer.data() + i * kMiB, waiter);
  EXPECT_EQ(waiter.Wait().code(), absl::ErrnoToStatusCode(EIO));
  EXPECT_EQ(waiter.errors.size(), 1u);
}

TEST_P(IoTest, ErrorsOfTheSystemAreReported) {
  TestFile file(kMiB);
  int reader = open(file.name.c_str(), O_RDONLY | O_CLOEXEC);
  START({{reader, file.name, 0}});
  AlignedBuffer buffer(kPage);
  buffer.Fill(1);
  absl::Status status = Move(true, 0, kPage, buffer.data());
  EXPECT_EQ(status.code(), absl::ErrnoToStatusCode(EBADF)) << status;
  backend.reset();
  close(reader);
}

TEST_P(IoTest, ManyConcurrentTransfersFromManyThreads) {
  constexpr int kThreads = 4, kTransfers = 64;
  constexpr int64_t kBytes = 16 * kPage;
  std::vector<std::unique_ptr<TestFile>> files;
  std::vector<IoFile> descriptors;
  for (int i = 0; i < kThreads; ++i) {
    files.push_back(std::make_unique<TestFile>(kTransfers * kBytes));
    descriptors.push_back(files.back()->File(i % 2));
  }
  options.depth = 7;
  options.segment_bytes = 5 * kPage;
  options.faults.short_every = 11;
  START(descriptors, {{}, {}});
  auto work = [&](int thread) {
    AlignedBuffer written(kTransfers * kBytes), read(kTransfers * kBytes);
    written.Fill(uint32_t(thread));
    for (bool write : {true, false}) {
      Waiter waiter;
      char *data = write ? written.data() : read.data();
      for (int i = 0; i < kTransfers; ++i)
        Submit(write, thread, i * kBytes, kBytes, data + i * kBytes, waiter);
      EXPECT_EQ(waiter.Wait(), absl::OkStatus());
    }
    EXPECT_EQ(std::memcmp(written.data(), read.data(), written.size()), 0);
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i)
    threads.emplace_back(work, i);
  for (std::thread &thread : threads)
    thread.join();
}

TEST_P(IoTest, CallbacksMaySubmit) {
  TestFile file(kMiB);
  AlignedBuffer buffer(kPage);
  START({file.File()});
  Waiter waiter;
  auto last = waiter.Done();
  std::atomic<int> left{100};
  std::function<void(absl::Status)> next = [&](absl::Status status) {
    if (!status.ok() || --left == 0)
      return last(status);
    backend->Submit({false, 0, left * kPage, kPage, Buffers::There(buffer.data()), next});
  };
  backend->Submit({false, 0, 0, kPage, Buffers::There(buffer.data()), next});
  EXPECT_EQ(waiter.Wait(), absl::OkStatus());
  EXPECT_EQ(left, 0);
  backend.reset();
}

TEST_P(IoTest, DestructionDrains) {
  for (int64_t limit : {int64_t(0), 64 * kMiB}) {
    TestFile file(16 * kMiB);
    AlignedBuffer written(16 * kMiB), read(16 * kMiB);
    written.Fill(9);
    START({file.File()}, {{0, limit}});
    Waiter waiter;
    for (int i = 0; i < 16; ++i)
      Submit(true, 0, i * kMiB, kMiB, written.data() + i * kMiB, waiter);
    backend.reset();
    EXPECT_EQ(waiter.arrived, 16);
    ASSERT_EQ(waiter.Wait(), absl::OkStatus());
    START({file.File()});
    ASSERT_EQ(Move(false, 0, 16 * kMiB, read.data()), absl::OkStatus());
    EXPECT_EQ(std::memcmp(written.data(), read.data(), 16 * kMiB), 0);
  }
}

// A ring that cannot take more now takes it later; nothing is lost or moved
// twice.
TEST_P(IoTest, ShortagesWhileSubmittingPass) {
  if (!uring())
    return;
  for (int error : {EAGAIN, ENOMEM, EBUSY, EINTR})
    for (int64_t at : {0, 1, 5}) {
      TestFile file(4 * kMiB);
      options.segment_bytes = 16 * kPage;
      options.depth = 4;
      options.faults.submit_error = error;
      options.faults.submit_fail_at = at;
      options.faults.submit_fails = 6;
      START({file.File()});
      RoundTrip(4 * kMiB);
    }
}

// A ring that is lost fails what was asked of it and all that follows, once each.
TEST_P(IoTest, ALostRingFailsAllThatFollows) {
  if (!uring())
    return;
  options.patience = std::chrono::milliseconds(20);
  options.segment_bytes = 16 * kPage;
  // The first one loses the ring at once, the others when the patience ends. With a depth of
  // 32 a whole transfer is in flight.
  for (auto [error, depth] : {std::pair(EBADF, 2), std::pair(EBADF, 32), std::pair(EAGAIN, 2),
                              std::pair(EAGAIN, 32), std::pair(EINTR, 2), std::pair(EINTR, 32)})
    for (int64_t at : {0, 1, 3}) {
      options.depth = depth;
      TestFile file(16 * kMiB);
      AlignedBuffer buffer(16 * kMiB);
      buffer.Fill(4);
      options.faults.submit_error = error;
      options.faults.submit_fail_at = at;
      options.faults.submit_fails = error == EBADF ? 1 : INT32_MAX;
      START({file.File()});
      Waiter waiter;
      for (int i = 0; i < 16; ++i)
        Submit(true, 0, i * kMiB, kMiB, buffer.data() + i * kMiB, waiter);
      absl::Status status = waiter.Wait();
      EXPECT_EQ(status.code(), absl::ErrnoToStatusCode(error)) << status;
      // Long after, too.
      for (int i = 0; i < 3; ++i) {
        status = Move(true, 0, kPage, buffer.data());
        EXPECT_NE(status.message().find("io_uring failed"), std::string::npos) << status;
      }
      backend.reset();
    }
}

#ifndef BOA_FAKE_FILE
// The memory of a transfer in flight belongs to the kernel even when the ring is lost. A pipe
// stands for a slow disk.
TEST_P(IoTest, ALostRingWaitsForTransfersInFlight) {
  if (!uring())
    return;
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  TestFile quick(kPage);
  AlignedBuffer buffer(kPage), sent(kPage), other(kPage);
  sent.Fill(5);
  options.faults.submit_error = EBADF;
  options.faults.submit_fail_at = 3;
  options.faults.submit_fails = 1;
  START({{ends[0], "a slow disk", 0}, quick.File()});
  Waiter slow, more;
  Submit(false, 0, 0, kPage, buffer.data(), slow);
  // Once a later transfer is over, the kernel has this one.
  EXPECT_EQ(Move(false, 0, kPage, other.data(), 1), absl::OkStatus());
  // The ring is lost in this time, or later where the machine is busy.
  for (int i = 0; i < 3; ++i) {
    Submit(false, 1, 0, kPage, other.data(), more);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  {
    std::lock_guard<std::mutex> lock(slow.mutex);
    EXPECT_EQ(slow.arrived, 0);
  }
  ASSERT_EQ(write(ends[1], sent.data(), kPage), kPage);
  EXPECT_EQ(slow.Wait(), absl::OkStatus());
  EXPECT_EQ(std::memcmp(buffer.data(), sent.data(), kPage), 0);
  absl::Status lost = more.Wait();
  for (int i = 0; i < 4 && lost.ok(); ++i)
    lost = Move(false, 0, kPage, other.data(), 1);
  EXPECT_EQ(lost.code(), absl::ErrnoToStatusCode(EBADF)) << lost;
  backend.reset();
  close(ends[0]);
  close(ends[1]);
}
#endif

// A backend starts no segment before its limit allows it. How much later it may be is the load's
// matter: IoLimitTest below has the rates.
TEST_P(IoTest, NoLimitIsExceeded) {
  TestFile file(8 * kMiB);
  AlignedBuffer buffer(8 * kMiB);
  buffer.Fill(3);
  ASSERT_EQ(pwrite(file.fd, buffer.data(), 8 * kMiB, 0), 8 * kMiB);
  options.segment_bytes = kMiB / 4;
  START({file.File()}, {{64 * kMiB, 32 * kMiB}});
  for (bool write : {false, true}) {
    const double seconds = Seconds([&] {
      Waiter waiter;
      for (int i = 0; i < 8; ++i)
        Submit(write, 0, i * kMiB, kMiB, buffer.data() + i * kMiB, waiter);
      ASSERT_EQ(waiter.Wait(), absl::OkStatus());
    });
    // At once goes what accrues in 20 ms.
    EXPECT_GE(seconds, (write ? 0.25 : 0.125) - 0.021) << (write ? "write" : "read");
  }
}

TEST_P(IoTest, TheEarliestDeadlineGoesFirst) {
  TestFile file(16 * kMiB);
  AlignedBuffer buffer(16 * kMiB);
  buffer.Fill(3);
  ASSERT_EQ(pwrite(file.fd, buffer.data(), 16 * kMiB, 0), 16 * kMiB);
  options.segment_bytes = kMiB / 2;
  options.depth = 1;
  START({file.File()}, {{64 * kMiB, 0}});
  // The first begins at once; what is left of it waits for those due before it.
  Waiter waiter;
  std::mutex mutex;
  std::vector<int64_t> order;
  for (int64_t deadline : {9, 7, 8, 2, 8}) {
    int64_t place = deadline * kMiB;
    backend->Submit({false, 0, place, deadline == 9 ? 4 * kMiB : kMiB,
                     Buffers::There(buffer.data() + place),
                     [&, deadline, done = waiter.Done()](absl::Status status) {
                       {
                         std::lock_guard<std::mutex> lock(mutex);
                         order.push_back(deadline);
                       }
                       done(std::move(status));
                     },
                     deadline});
  }
  ASSERT_EQ(waiter.Wait(), absl::OkStatus());
  EXPECT_EQ(order, (std::vector<int64_t>{2, 7, 8, 8, 9}));
}

INSTANTIATE_TEST_SUITE_P(Backends, IoTest, testing::ValuesIn(kBackends),
                         [](const auto &info) { return std::string(info.param); });

} // namespace
} // namespace boa
