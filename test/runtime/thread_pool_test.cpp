//===- thread_pool_test.cpp - Tests of the thread pool ----------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/support/thread_pool.h"

#include "runtime/abi/abi.h"

#include "gtest/gtest.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <fstream>
#include <functional>
#include <iterator>
#include <mutex>
#include <new>
#include <string>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

namespace boa {
namespace {

using Parts = std::vector<std::pair<int64_t, int64_t>>;
using Body = std::function<void(int64_t, int64_t)>;

void For(int64_t count, int64_t grain, Body body) {
  ParallelFor(
      count, grain,
      [](void *data, int64_t begin, int64_t end) { (*static_cast<Body *>(data))(begin, end); },
      &body);
}

Parts PartsOf(int64_t count, int64_t grain) {
  std::mutex mutex;
  Parts parts;
  For(count, grain, [&](int64_t begin, int64_t end) {
    std::lock_guard<std::mutex> lock(mutex);
    parts.emplace_back(begin, end);
  });
  std::sort(parts.begin(), parts.end());
  return parts;
}

class ThreadPoolTest : public testing::TestWithParam<int64_t> {
protected:
  void SetUp() override { SetThreads(GetParam()); }
  void TearDown() override { SetThreads(0); }
};

TEST_P(ThreadPoolTest, PartsCoverTheRangeInMultiplesOfTheGrain) {
  for (int64_t count : {1, 2, 7, 64, 1000, 4097})
    for (int64_t grain : {1, 3, 16, 5000}) {
      Parts parts = PartsOf(count, grain);
      int64_t next = 0;
      for (auto [begin, end] : parts) {
        EXPECT_EQ(begin, next);
        EXPECT_LT(begin, end);
        EXPECT_TRUE(end == count || (end - begin) % grain == 0);
        next = end;
      }
      EXPECT_EQ(next, count);
    }
}

TEST_P(ThreadPoolTest, PartsAreTheSameEachTime) {
  Parts first = PartsOf(12345, 7);
  for (int i = 0; i < 100; ++i)
    EXPECT_EQ(PartsOf(12345, 7), first);
}

// The caller gets the exception when no body uses its frame any more, and the next loop is whole.
TEST_P(ThreadPoolTest, AnExceptionOfABodyReachesTheCaller) {
  constexpr int64_t kCount = 64;
  for (int64_t thrower : {int64_t(0), kCount / 2, kCount - 1}) {
    std::atomic<int> running{0};
    EXPECT_THROW(For(kCount, 1,
                     [&](int64_t begin, int64_t end) {
                       ++running;
                       std::this_thread::sleep_for(std::chrono::milliseconds(1));
                       --running;
                       if (begin <= thrower && thrower < end)
                         throw std::bad_alloc();
                     }),
                 std::bad_alloc);
    EXPECT_EQ(running, 0);
    std::atomic<int64_t> done{0};
    For(kCount, 1, [&](int64_t begin, int64_t end) { done += end - begin; });
    EXPECT_EQ(done, kCount);
  }
}

TEST_P(ThreadPoolTest, OtherThreadsTakeTheWorkOfOneThatIsHeldUp) {
  if (Threads() == 1)
    return;
  constexpr int64_t kCount = 1000;
  std::atomic<int64_t> done{0}, by_held{0};
  std::atomic<std::thread::id> held{std::thread::id()};
  For(kCount, 1, [&](int64_t begin, int64_t end) {
    const int64_t size = end - begin;
    std::thread::id nobody, self = std::this_thread::get_id();
    if (held.compare_exchange_strong(nobody, self))
      while (done < kCount - size)
        std::this_thread::yield();
    done += size;
    by_held += held.load() == self ? size : 0;
  });
  EXPECT_EQ(done, kCount);
  EXPECT_LE(by_held, kCount / Threads() / 2);
}

TEST_P(ThreadPoolTest, CallsFromABodyRunInline) {
  std::atomic<int64_t> sum{0};
  For(16, 1, [&](int64_t begin, int64_t end) {
    std::thread::id self = std::this_thread::get_id();
    for (int64_t i = begin; i < end; ++i)
      For(10, 1, [&](int64_t from, int64_t to) {
        EXPECT_EQ(std::this_thread::get_id(), self);
        EXPECT_EQ(from, 0);
        EXPECT_EQ(to, 10);
        sum += to - from;
      });
  });
  EXPECT_EQ(sum, 160);
}

TEST_P(ThreadPoolTest, ConcurrentCallersTakeTurns) {
  std::atomic<int64_t> sum{0};
  std::atomic<int> running{-1}; // the caller whose loop runs
  std::atomic<bool> mixed{false};
  auto call = [&](int caller) {
    for (int round = 0; round < 200; ++round) {
      std::atomic<int64_t> left{64};
      For(64, 1, [&](int64_t begin, int64_t end) {
        int other = running.exchange(caller);
        mixed = mixed || (other != -1 && other != caller);
        sum += end - begin;
        if (left.fetch_sub(end - begin) == end - begin)
          running = -1; // the last part of this loop
      });
    }
  };
  std::vector<std::thread> callers;
  for (int i = 0; i < 4; ++i)
    callers.emplace_back(call, i);
  for (std::thread &caller : callers)
    caller.join();
  EXPECT_EQ(sum, 4 * 200 * 64);
  EXPECT_FALSE(mixed);
}

TEST_P(ThreadPoolTest, ManyShortLoops) {
  std::vector<int64_t> values(64);
  for (int round = 0; round < 2000; ++round)
    For(64, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        ++values[i];
    });
  EXPECT_EQ(values, std::vector<int64_t>(64, 2000));
}

TEST_P(ThreadPoolTest, LoopsAfterTheWorkersWentToSleep) {
  for (int round = 0; round < 20; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    std::atomic<int64_t> sum{0};
    For(100, 1, [&](int64_t begin, int64_t end) { sum += end - begin; });
    EXPECT_EQ(sum, 100);
  }
}

INSTANTIATE_TEST_SUITE_P(Threads, ThreadPoolTest, testing::Values(0, 1, 2, 3, 8));

TEST(ThreadPool, EmptyRangeRunsNothing) {
  For(0, 1, [](int64_t, int64_t) { FAIL(); });
  For(-5, 1, [](int64_t, int64_t) { FAIL(); });
}

TEST(ThreadPool, GrainBelowOneIsOne) { EXPECT_EQ(PartsOf(3, 0).back().second, 3); }

TEST(ThreadPool, ThreadsMayChangeBetweenLoops) {
  for (int64_t threads : {1, 4, 2, 7, 0, 3}) {
    SetThreads(threads);
    if (threads > 0)
      EXPECT_EQ(Threads(), threads);
    else
      EXPECT_GE(Threads(), 1);
    // Each thread may take four.
    EXPECT_EQ(int64_t(PartsOf(1000, 1).size()), Threads() == 1 ? 1 : 4 * Threads());
  }
  SetThreads(0);
}

/// Whether a thread of this process sleeps, as whoever waits for a lock does.
bool Sleeps(pid_t thread) {
  std::ifstream file("/proc/self/task/" + std::to_string(thread) + "/stat");
  const std::string stat((std::istreambuf_iterator<char>(file)), {});
  const size_t name_end = stat.rfind(") ");
  return name_end != std::string::npos && stat[name_end + 2] == 'S';
}

// A caller that runs one loop after another does not keep the pool to itself.
TEST(ThreadPool, WhoWaitsIsNext) {
  for (int i = 0; i < 10; ++i) {
    std::vector<const char *> order;
    std::atomic<bool> busy{false};
    std::atomic<pid_t> asking{0};
    std::thread other([&] {
      while (!busy)
        std::this_thread::yield();
      asking = gettid();
      For(1, 1, [&](int64_t, int64_t) { order.push_back("other"); });
    });
    For(1, 1, [&](int64_t, int64_t) {
      busy = true;
      // Until the other waits for the pool; where it does not, not for ever.
      for (int ms = 0; ms < 10000 && !(asking && Sleeps(asking)); ++ms)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    });
    For(1, 1, [&](int64_t, int64_t) { order.push_back("the same"); });
    other.join();
    EXPECT_EQ(order, (std::vector<const char *>{"other", "the same"}));
  }
}

TEST(ThreadPool, AbiFunctionUsesThePool) {
  std::atomic<int64_t> sum{0};
  boa_rt_parallel_for(
      1000, 8,
      [](void *data, int64_t begin, int64_t end) {
        *static_cast<std::atomic<int64_t> *>(data) += end - begin;
      },
      &sum);
  EXPECT_EQ(sum, 1000);
}

} // namespace
} // namespace boa
