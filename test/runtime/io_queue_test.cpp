//===- io_queue_test.cpp - Tests of the queue of transfers -------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The queue alone, in time of its own: no test here waits.
//
//===----------------------------------------------------------------------===//
#include "test/runtime/io_fixture.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <map>
#include <optional>

namespace boa {
namespace {

// A transfer that stalls is tried again less and less
// often, and given up after ten seconds in which none of its bytes moved.
TEST(IoQueueTest, PatienceEndsWhereNothingMoves) {
  for (int error : {EAGAIN, EINTR})
    for (bool moves : {false, true}) {
      SCOPED_TRACE(moves);
      AlignedBuffer buffer(16 * kPage);
      IoClock::time_point begin{}, now = begin;
      IoQueue queue({{-1, "somewhere", 0}}, {}, NormalizeIoOptions({}), now);
      std::optional<absl::Status> outcome;
      queue.Add({true, 0, 8 * kPage, 16 * kPage, buffer.data(),
                 [&](absl::Status status) { outcome = std::move(status); }});
      int attempts = 0;
      IoClock::duration longest{0};
      while (!outcome && attempts < 1000 && now - begin < std::chrono::seconds(25)) {
        std::optional<IoSegment> segment = queue.Pop(now);
        if (!segment) {
          std::optional<IoClock::time_point> next = queue.NextStart(now);
          ASSERT_TRUE(next && *next > now);
          longest = std::max(longest, *next - now);
          now = *next;
          continue;
        }
        ++attempts;
        // A page in eight seconds is progress.
        bool page = moves && attempts % 80 == 0;
        queue.Finish(std::move(*segment), page ? kPage : -error, now);
        RunCompletions(queue.TakeDone());
      }
      EXPECT_LT(attempts, 500);
      EXPECT_EQ(longest, std::chrono::milliseconds(100));
      if (moves) {
        EXPECT_FALSE(outcome);
        continue;
      }
      ASSERT_TRUE(outcome);
      EXPECT_EQ(outcome->code(), absl::ErrnoToStatusCode(error));
      EXPECT_NE(outcome->message().find("cannot write somewhere at offset 32768"),
                std::string::npos)
          << *outcome;
      EXPECT_NEAR(std::chrono::duration<double>(now - begin).count(), 10, 0.2);
      EXPECT_TRUE(queue.Idle());
    }
}

/// Transfers over links with limits. Time is virtual, and a disk takes none of it.
class IoLimitTest : public testing::Test {
protected:
  void Start(std::vector<IoLink> links, int64_t segment_bytes, int depth = 32) {
    std::vector<IoFile> files;
    for (size_t link = 0; link < links.size(); ++link)
      files.push_back({-1, "somewhere", int32_t(link)});
    IoOptions options;
    options.segment_bytes = segment_bytes;
    options.depth = depth;
    queue.emplace(std::move(files), std::move(links), NormalizeIoOptions(options), now);
  }
  /// `seconds` becomes how long after the beginning it is done.
  void Submit(bool write, int32_t file, int64_t bytes, double &seconds) {
    queue->Add({write, file, 0, bytes, buffer.data(), [&](absl::Status status) {
                  EXPECT_EQ(status, absl::OkStatus());
                  seconds = std::chrono::duration<double>(now - IoClock::time_point()).count();
                }});
  }
  /// Until everything is done.
  void Run() {
    while (!queue->Idle()) {
      if (std::optional<IoSegment> segment = queue->Pop(now)) {
        const int64_t bytes = segment->attempt;
        queue->Finish(std::move(*segment), bytes, now);
        RunCompletions(queue->TakeDone());
        continue;
      }
      const std::optional<IoClock::time_point> next = queue->NextStart(now);
      ASSERT_TRUE(next && *next > now);
      now = *next;
    }
  }

  AlignedBuffer buffer{kPage}; // nothing is moved
  IoClock::time_point now{};
  std::optional<IoQueue> queue;
};

TEST_F(IoLimitTest, LimitsHold) {
  Start({{64 * kMiB, 32 * kMiB}}, kMiB / 2);
  double read[8], write[8];
  for (double &seconds : read)
    Submit(false, 0, 4 * kMiB, seconds);
  for (double &seconds : write)
    Submit(true, 0, 4 * kMiB, seconds);
  Run();
  EXPECT_NEAR(read[7], 0.5, 0.001);
  EXPECT_NEAR(write[7], 1.0, 0.001);
}

// Two links at once, and a direction without a limit, take no longer than one.
TEST_F(IoLimitTest, LinksAndDirectionsHaveTheirOwn) {
  Start({{32 * kMiB, 0}, {32 * kMiB, 0}}, kMiB);
  double first = -1, second = -1, unlimited = -1;
  Submit(false, 0, 16 * kMiB, first);
  Submit(false, 1, 16 * kMiB, second);
  Submit(true, 1, kMiB, unlimited);
  Run();
  EXPECT_NEAR(first, 0.5, 0.001);
  EXPECT_NEAR(second, 0.5, 0.001);
  EXPECT_EQ(unlimited, 0);
}

TEST_F(IoLimitTest, AFastLinkKeepsItsRateBesideASlowOne) {
  Start({{4 * kMiB, 0}, {32 * kMiB, 0}}, kMiB, /*depth=*/2);
  double slow[4], fast = -1;
  for (double &seconds : slow)
    Submit(false, 0, kMiB, seconds);
  Submit(false, 1, 16 * kMiB, fast);
  Run();
  EXPECT_NEAR(fast, 0.5, 0.001);
  EXPECT_NEAR(slow[3], 1.0, 0.001);
}

// A disk that had nothing to do is no faster after it.
TEST_F(IoLimitTest, NothingAccruesWhileALinkIsIdle) {
  Start({{32 * kMiB, 0}}, kMiB);
  double first = -1, second = -1;
  Submit(false, 0, kMiB, first);
  Run();
  now += std::chrono::seconds(1);
  Submit(false, 0, kMiB, second);
  Run();
  EXPECT_NEAR(first, 1.0 / 32, 0.001);
  EXPECT_NEAR(second, 1 + 2.0 / 32, 0.001);
}

// A link whose disk is slow takes its own places and no others: the other keeps
// the rate that its depth allows.
TEST(IoQueueTest, ASlowLinkTakesNoPlacesOfAFastOne) {
  IoOptions options;
  options.depth = 4;
  options.segment_bytes = kPage;
  AlignedBuffer buffer(kPage);
  IoClock::time_point now{};
  IoQueue queue({{-1, "slow", 0}, {-1, "fast", 1}}, {}, options, now);
  EXPECT_EQ(queue.Capacity(), 8);
  const IoClock::duration services[] = {std::chrono::milliseconds(100),
                                        std::chrono::milliseconds(1)};
  std::multimap<IoClock::time_point, IoSegment> flying;
  int done[2] = {};
  std::function<void(int)> add = [&](int file) {
    queue.Add({false, file, 0, kPage, buffer.data(), [&, file](absl::Status) {
                 ++done[file];
                 add(file);
               }});
  };
  for (int i = 0; i < 100; ++i)
    for (int file : {0, 1})
      add(file);
  while (now < IoClock::time_point(std::chrono::seconds(1))) {
    while (std::optional<IoSegment> segment = queue.Pop(now)) {
      IoClock::time_point lands = now + services[segment->transfer->request.file];
      flying.emplace(lands, std::move(*segment));
    }
    EXPECT_LE(flying.size(), 8u);
    EXPECT_FALSE(queue.NextStart(now)) << "all places are taken";
    now = flying.begin()->first;
    queue.Finish(std::move(flying.begin()->second), kPage, now);
    flying.erase(flying.begin());
    RunCompletions(queue.TakeDone());
  }
  EXPECT_NEAR(done[0], 40, 4);
  EXPECT_NEAR(done[1], 4000, 8);
}

// What waits for its next attempt holds up nobody.
TEST(IoQueueTest, PausesHoldUpNobody) {
  AlignedBuffer buffer(2 * kPage);
  IoClock::time_point now{};
  IoQueue queue({{-1, "somewhere", 0}}, {}, NormalizeIoOptions({}), now);
  std::vector<int> done;
  for (int i : {0, 1})
    queue.Add(
        {false, 0, i * kPage, kPage, buffer.data() + i * kPage, [&done, i](absl::Status status) {
           EXPECT_TRUE(status.ok());
           done.push_back(i);
         }});
  queue.Finish(*queue.Pop(now), -EAGAIN, now);
  std::optional<IoSegment> second = queue.Pop(now);
  ASSERT_TRUE(second);
  EXPECT_EQ(second->offset, kPage);
  queue.Finish(std::move(*second), kPage, now);
  EXPECT_FALSE(queue.Pop(now));
  now = *queue.NextStart(now);
  queue.Finish(*queue.Pop(now), kPage, now);
  RunCompletions(queue.TakeDone());
  EXPECT_EQ(done, (std::vector<int>{1, 0}));
  EXPECT_TRUE(queue.Idle());
}

} // namespace
} // namespace boa
