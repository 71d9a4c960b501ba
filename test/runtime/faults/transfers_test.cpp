//===- transfers_test.cpp - Every errno at the calls that move bytes ------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Whatever a system call answers, a transfer ends: with all of its bytes, or with an error
// that has the words of the errno. None of them hangs, and none is silent.
//
//===----------------------------------------------------------------------===//
#include "runtime/io/file_system.h"
#include "test/runtime/faults/calls.h"
#include "test/runtime/scratch.h"

#include "absl/strings/match.h"
#include "gtest/gtest.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <future>
#include <thread>

namespace boa {
namespace {

constexpr int64_t kPage = 4096;
constexpr int kErrors = 133; // errno 1 to 133 are Linux's
constexpr int64_t kForEver = INT64_MAX;

class TransferFaults : public testing::Test {
protected:
  void SetUp() override {
    auto opened = SystemFiles().Open(scratch.path("data"),
                                     {/*write=*/true, /*create=*/true, /*exclusive=*/true,
                                      /*direct=*/true});
    ASSERT_TRUE(opened.ok()) << opened.status();
    file = *std::move(opened);
    memory = static_cast<char *>(std::aligned_alloc(kPage, 4 * kPage));
    std::memset(memory, 7, 4 * kPage);
    ASSERT_EQ(file->Write(0, memory, 4 * kPage), absl::OkStatus());
    options.patience = std::chrono::milliseconds(2);
  }
  void TearDown() override {
    calls::Clear();
    std::free(memory);
  }

  /// One transfer of four pages through a backend of its own.
  absl::Status Move(bool threads, bool write) {
    const std::vector<IoFile> files = {{file->descriptor(), "data"}};
    auto backend = threads ? CreateThreadBackend(files, {}, options)
                           : CreateUringBackend(files, {}, nullptr, 0, options);
    if (!backend.ok())
      return backend.status();
    std::promise<absl::Status> done;
    (*backend)->Submit({write, 0, 0, 4 * kPage, memory,
                        [&](absl::Status status) { done.set_value(std::move(status)); }});
    return done.get_future().get();
  }

  /// The same through a ring that has worked when the fault begins; `twice`: how another transfer
  /// ends after it. An error: no ring can be intercepted here.
  absl::StatusOr<absl::Status> MoveThrough(const calls::RingFault &fault, bool write,
                                           bool twice = false) {
    auto backend = CreateUringBackend({{file->descriptor(), "data"}}, {}, nullptr, 0, options);
    if (!backend.ok())
      return backend.status();
    std::promise<bool> intercepted;
    std::promise<absl::Status> done[2];
    auto submit = [&](std::promise<absl::Status> &promise) {
      (*backend)->Submit({write, 0, 0, 4 * kPage, memory,
                          [&](absl::Status status) { promise.set_value(std::move(status)); }});
    };
    (*backend)->Submit({false, 0, 0, kPage, memory, [&](const absl::Status &) { // on its thread
                          std::memset(memory, write ? ++written : 0, 4 * kPage);
                          const bool begun = calls::InterceptRingOnThisThread(fault);
                          if (begun)
                            submit(done[0]);
                          intercepted.set_value(begun);
                        }});
    if (!intercepted.get_future().get())
      return absl::UnimplementedError("no seccomp, or no x86-64");
    absl::Status status = done[0].get_future().get();
    if (!twice)
      return status;
    submit(done[1]);
    return done[1].get_future().get();
  }
  /// Expects that MoveThrough succeeded, and that memory and file are equal.
  void ExpectMoved(const absl::Status &status) {
    ASSERT_EQ(status, absl::OkStatus());
    const std::string moved(memory, 4 * kPage);
    ASSERT_EQ(file->Read(0, memory, 4 * kPage), absl::OkStatus());
    EXPECT_TRUE(moved == std::string(memory, 4 * kPage) && moved[0] != 0);
  }

  char written = 7; // what each byte of the memory was last
  Scratch scratch;
  std::unique_ptr<OpenFile> file;
  char *memory = nullptr;
  IoOptions options;
};

void ExpectError(const absl::Status &status, int error) {
  EXPECT_EQ(status.code(), absl::ErrnoToStatusCode(error)) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), std::strerror(error))) << status;
}

/// Callers decide by these codes, so no errno has them by chance (file_system.h).
void ExpectErrorOfFile(const absl::Status &status, int error) {
  using Code = absl::StatusCode;
  const Code code = absl::ErrnoToStatusCode(error);
  const bool decides = (code == Code::kNotFound && error != ENOENT) ||
                       (code == Code::kUnavailable && error != EWOULDBLOCK) ||
                       code == Code::kFailedPrecondition || code == Code::kDataLoss;
  EXPECT_EQ(status.code(), decides ? Code::kUnknown : code) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), std::strerror(error))) << status;
}

TEST_F(TransferFaults, OfARingThatIsRefused) {
  if (absl::Status status = Move(/*threads=*/false, /*write=*/false); !status.ok())
    GTEST_SKIP() << status;
  for (int error = 1; error <= kErrors; ++error) {
    SCOPED_TRACE(std::strerror(error));
    absl::Status status;
    bool refused = false;
    std::thread([&] {
      refused = calls::RefuseRingOnThisThread(error);
      if (refused)
        status = Move(/*threads=*/false, /*write=*/error % 2 == 0);
    }).join();
    if (!refused)
      GTEST_SKIP() << "no seccomp";
    ExpectError(status, error);
  }
}

// The ring has the read that wakes it when the kernel begins to refuse it.
TEST_F(TransferFaults, OfARingThatIsRefusedLater) {
  for (int error = 1; error <= kErrors; ++error) {
    SCOPED_TRACE(std::strerror(error));
    auto backend = CreateUringBackend({{file->descriptor(), "data"}}, {}, nullptr, 0, options);
    if (!backend.ok())
      GTEST_SKIP() << backend.status();
    std::promise<bool> refused; // `done` runs on the thread of the ring
    (*backend)->Submit({false, 0, 0, kPage, memory, [&](const absl::Status &) {
                          refused.set_value(calls::RefuseRingOnThisThread(error));
                        }});
    if (!refused.get_future().get())
      GTEST_SKIP() << "no seccomp";
    std::promise<absl::Status> done;
    (*backend)->Submit({error % 2 == 0, 0, 0, 4 * kPage, memory,
                        [&](absl::Status status) { done.set_value(std::move(status)); }});
    ExpectError(done.get_future().get(), error);
  }
}

// One call of the ring, which has the transfer to submit, fails: the next one submits it, or the
// transfer fails.
TEST_F(TransferFaults, OfARingThatIsRefusedOnce) {
  for (bool write : {false, true})
    for (int error = 1; error <= kErrors; ++error) {
      SCOPED_TRACE(std::strerror(error));
      absl::StatusOr<absl::Status> status = MoveThrough({calls::RingFault::enter, error, 1}, write);
      if (!status.ok())
        GTEST_SKIP() << status.status();
      if (error == EINTR || error == EAGAIN || error == EBUSY || error == ENOMEM)
        ExpectMoved(*status);
      else
        ExpectError(*status, error);
    }
}

// The kernel accepts the transfer, and its completion says the error.
TEST_F(TransferFaults, OfCompletions) {
  for (bool write : {false, true})
    for (int error = 1; error <= kErrors; ++error)
      for (bool once : {false, true}) {
        SCOPED_TRACE(std::strerror(error));
        absl::StatusOr<absl::Status> status =
            MoveThrough({calls::RingFault::transfer, error, once ? 1 : kForEver}, write);
        if (!status.ok())
          GTEST_SKIP() << status.status();
        if (once && (error == EINTR || error == EAGAIN))
          ExpectMoved(*status);
        else
          ExpectError(*status, error);
      }
}

// Without the read that wakes it the ring would not hear of the next transfer.
TEST_F(TransferFaults, OfTheReadThatWakesTheRing) {
  for (int error = 1; error <= kErrors; ++error) {
    SCOPED_TRACE(std::strerror(error));
    const bool write = error % 2 == 0;
    absl::StatusOr<absl::Status> status =
        MoveThrough({calls::RingFault::wake, error, 1}, write, /*twice=*/true);
    if (!status.ok())
      GTEST_SKIP() << status.status();
    if (error == EINTR || error == EAGAIN)
      ExpectMoved(*status);
    else
      ExpectError(*status, error);
  }
}

TEST_F(TransferFaults, OfThreads) {
  for (bool write : {false, true})
    for (int error = 1; error <= kErrors; ++error)
      for (bool once : {false, true}) {
        SCOPED_TRACE(std::strerror(error));
        calls::Inject({write ? "pwrite" : "pread", 0, once ? 1 : kForEver, error});
        absl::Status status = Move(/*threads=*/true, write);
        if (once && (error == EINTR || error == EAGAIN))
          EXPECT_EQ(status, absl::OkStatus());
        else
          ExpectError(status, error);
      }
}

TEST_F(TransferFaults, OfWholeFiles) {
  for (bool write : {false, true})
    for (int error = 1; error <= kErrors; ++error)
      for (bool once : {false, true}) {
        SCOPED_TRACE(std::strerror(error));
        calls::Inject({write ? "pwrite" : "pread", 0, once ? 1 : kForEver, error});
        absl::Status status = write ? file->Write(0, memory, kPage) : file->Read(0, memory, kPage);
        if (once && error == EINTR)
          EXPECT_EQ(status, absl::OkStatus());
        else
          ExpectErrorOfFile(status, error);
      }
}

// A device may move part of a block: the block is moved again, from its beginning.
TEST_F(TransferFaults, PartOfABlockIsTriedAgain) {
  options.patience = std::chrono::seconds(10); // what ends it is the count
  char *read = static_cast<char *>(std::aligned_alloc(kPage, 4 * kPage));
  for (int64_t times : {int64_t(1), int64_t(3), kForEver})
    for (bool threads : {false, true})
      for (bool write : {false, true}) {
        SCOPED_TRACE(times);
        std::memset(memory, int(times), 4 * kPage);
        calls::Inject({write ? "pwrite" : "pread", 0, times, 0, /*bytes=*/kPage - 1});
        absl::Status status;
        if (threads)
          status = Move(/*threads=*/true, write);
        else
          status = write ? file->Write(0, memory, 4 * kPage) : file->Read(0, memory, 4 * kPage);
        calls::Clear();
        if (times == kForEver) {
          EXPECT_TRUE(absl::IsDataLoss(status)) << status;
          EXPECT_TRUE(absl::StrContains(status.message(), threads ? "9 times in a row" : "4095"))
              << status;
          continue;
        }
        ASSERT_EQ(status, absl::OkStatus());
        ASSERT_EQ(file->Read(0, read, 4 * kPage), absl::OkStatus());
        EXPECT_EQ(std::memcmp(read, memory, 4 * kPage), 0);
      }
  std::free(read);
}

// A device of greater blocks goes through the page cache, and this is said.
TEST_F(TransferFaults, GreaterBlocksHaveNoDirectTransfers) {
  for (uint32_t bytes : {512, 4096, 16384}) {
    calls::SetDirectAlignment(bytes);
    auto opened = SystemFiles().Open(scratch.path("data"), {/*write=*/true, false, false,
                                                            /*direct=*/true});
    calls::SetDirectAlignment(0);
    ASSERT_TRUE(opened.ok()) << opened.status();
    EXPECT_EQ(absl::StrContains((*opened)->Degraded(), "blocks of 16384 bytes"), bytes > kPage)
        << (*opened)->Degraded();
    EXPECT_EQ((fcntl((*opened)->descriptor(), F_GETFL) & O_DIRECT) != 0, bytes <= kPage);
  }
}

} // namespace
} // namespace boa
