//===- threads_test.cpp - Threads that may not start ----------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/support/threads.h"

#include "runtime/io/io.h"
#include "runtime/support/thread_pool.h"
#include "test/runtime/refuse_threads.h"

#include "gtest/gtest.h"

#include <atomic>

namespace boa {
namespace {

TEST(Threads, Start) {
  std::atomic<bool> ran{false};
  std::thread thread;
  EXPECT_EQ(StartThread("a test", thread, [&] { ran = true; }), absl::OkStatus());
  thread.join();
  EXPECT_TRUE(ran);
  EXPECT_EQ(CheckThreads("a test", 3), absl::OkStatus());
}

TEST(Threads, ThatCannotStartAreErrors) {
  WithoutNewThreads([] {
    std::thread thread;
    EXPECT_EQ(StartThread("a test", thread, [] {}).message(), CannotStart("a test"));
    EXPECT_FALSE(thread.joinable());
    EXPECT_EQ(CheckThreads("a test", 3).message(), CannotStart("a test"));
    EXPECT_EQ(CreateThreadBackend({}, {IoLink{}}, {}).status().message(),
              CannotStart("an I/O thread"));
    EXPECT_EQ(CreateUringBackend({}, {}, nullptr, 0, {}).status().message(),
              CannotStart("the I/O thread"));
  });
}

// The caller does the work of workers that did not start.
TEST(Threads, ALoopNeedsNone) {
  WithoutNewThreads([] {
    SetThreads(3);
    std::atomic<int64_t> sum{0};
    ParallelFor(
        1000, 1,
        [](void *data, int64_t begin, int64_t end) {
          *static_cast<std::atomic<int64_t> *>(data) += end - begin;
        },
        &sum);
    EXPECT_EQ(sum, 1000);
    SetThreads(0);
  });
}

} // namespace
} // namespace boa
