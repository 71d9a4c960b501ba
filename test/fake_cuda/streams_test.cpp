//===- streams_test.cpp - Tests of the fake driver's streams and events --===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "test/fake_cuda/fixture.h"

#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define BOA_THREAD_SANITIZER 1
#endif
#endif

namespace boa::fake {
namespace {

/// With which settings a body that waits for too little goes wrong.
std::string Settings(int seed) { return "delay_us=200 seed=" + std::to_string(seed); }

// In one stream each happens after what was enqueued before it.
TEST_F(FakeCudaTest, StreamsKeepTheirOrder) {
  for (int seed = 1; seed <= 10; ++seed) {
    Session session(Settings(seed));
    CUstream stream = NewStream();
    CUdeviceptr memory = NewMemory<char>(10);
    Pinned<char> host(10);
    for (int value = 1; value <= 5; ++value)
      EXPECT_EQ(cuMemsetD8Async(memory, value, 10, stream), CUDA_SUCCESS);
    EXPECT_EQ(cuMemcpyDtoHAsync_v2(host.values.data(), memory, 10, stream), CUDA_SUCCESS);
    EXPECT_EQ(cuStreamSynchronize(stream), CUDA_SUCCESS);
    EXPECT_EQ(cuStreamQuery(stream), CUDA_SUCCESS);
    EXPECT_EQ(host.values, std::vector<char>(10, 5));
    EXPECT_EQ(cuMemFree_v2(memory), CUDA_SUCCESS);
    EXPECT_EQ(cuStreamDestroy_v2(stream), CUDA_SUCCESS);
  }
}

enum class Held { none, in, out };

/// Copies a 7 to the device on one stream and back on another, which waits for the first or does
/// not. Returns what came back: before the 7 there is a 0. The stream that is `held` begins when
/// the other one is over.
int CopyOnTwoStreams(const std::string &settings, bool wait, Held held = Held::none) {
  Session session(settings);
  CUstream in = NewStream(), out = NewStream();
  CUevent event = NewEvent();
  CUdeviceptr memory = NewMemory<int>(1);
  Pinned<int> from(1, 7), to(1);
  EXPECT_EQ(cuMemsetD8Async(memory, 0, 4, in), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamSynchronize(in), CUDA_SUCCESS);
  std::optional<Gate> gate;
  if (held != Held::none)
    gate.emplace(held == Held::in ? in : out);
  EXPECT_EQ(cuMemcpyHtoDAsync_v2(memory, from.values.data(), 4, in), CUDA_SUCCESS);
  EXPECT_EQ(cuEventRecord(event, in), CUDA_SUCCESS);
  if (wait)
    EXPECT_EQ(cuStreamWaitEvent(out, event, 0), CUDA_SUCCESS);
  EXPECT_EQ(cuMemcpyDtoHAsync_v2(to.values.data(), memory, 4, out), CUDA_SUCCESS);
  if (gate) {
    EXPECT_EQ(cuStreamSynchronize(held == Held::in ? out : in), CUDA_SUCCESS);
    gate->Open();
  }
  EXPECT_EQ(cuStreamSynchronize(out), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamSynchronize(in), CUDA_SUCCESS);
  EXPECT_EQ(cuEventDestroy_v2(event), CUDA_SUCCESS);
  EXPECT_EQ(cuMemFree_v2(memory), CUDA_SUCCESS);
  for (CUstream stream : {in, out})
    EXPECT_EQ(cuStreamDestroy_v2(stream), CUDA_SUCCESS);
  return to.values[0];
}

TEST_F(FakeCudaTest, StreamsWaitForEvents) {
  for (int seed = 1; seed <= 50; ++seed)
    EXPECT_EQ(CopyOnTwoStreams(Settings(seed), true), 7) << "seed " << seed;
}

// With `delay_us` each stream sleeps before its work, for times that follow from the seed.
TEST_F(FakeCudaTest, StreamsAreDelayedByTheSeed) {
  auto delays = [](const std::string &settings) {
    Session session(settings);
    CUstream stream = NewStream();
    CUdeviceptr memory = NewMemory<char>(1);
    boa_fake_cuda_delays(); // of streams before
    for (int i = 0; i < 20; ++i)
      EXPECT_EQ(cuMemsetD8Async(memory, i, 1, stream), CUDA_SUCCESS);
    EXPECT_EQ(cuStreamSynchronize(stream), CUDA_SUCCESS);
    EXPECT_EQ(cuMemFree_v2(memory), CUDA_SUCCESS);
    EXPECT_EQ(cuStreamDestroy_v2(stream), CUDA_SUCCESS);
    return boa_fake_cuda_delays();
  };
  EXPECT_EQ(delays(""), 0);
  const int64_t first = delays(Settings(1));
  EXPECT_GT(first, 0);
  EXPECT_EQ(delays(Settings(1)), first);
  EXPECT_NE(delays(Settings(2)), first);
}

#ifdef BOA_THREAD_SANITIZER
// What nothing orders is a race even where it happens to come in the right order.
TEST_F(FakeCudaTest, MissingWaitIsARace) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(CopyOnTwoStreams("", false); exit(0), testing::ExitedWithCode(66), "data race");
}
#else
// Without a wait either stream may be first.
TEST_F(FakeCudaTest, MissingWaitIsSeen) {
  EXPECT_EQ(CopyOnTwoStreams("", false, Held::in), 0);
  EXPECT_EQ(CopyOnTwoStreams("", false, Held::out), 7);
}

// Pinned memory is read when the copy's turn comes; of pageable memory there is a copy.
TEST_F(FakeCudaTest, PinnedMemoryIsReadInItsTurn) {
  Session session("");
  CUstream stream = NewStream();
  CUdeviceptr pinned_memory = NewMemory<int>(1), pageable_memory = NewMemory<int>(1);
  {
    std::vector<int> pageable = {1};
    Pinned<int> pinned(1, 1);
    Gate gate(stream);
    Upload(pageable_memory, pageable, stream);
    Upload(pinned_memory, pinned.values, stream);
    pageable[0] = pinned.values[0] = 2; // too early for pinned memory
    gate.Open();
    EXPECT_EQ(Download<int>(pageable_memory, 1, stream)[0], 1);
    EXPECT_EQ(Download<int>(pinned_memory, 1, stream)[0], 2);
  }
  for (CUdeviceptr memory : {pinned_memory, pageable_memory})
    EXPECT_EQ(cuMemFree_v2(memory), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamDestroy_v2(stream), CUDA_SUCCESS);
}
#endif

// A wait is for what was recorded last before it was called; where nothing was, for nothing.
TEST_F(FakeCudaTest, EventsAreWaitedForAsTheyWere) {
  Session session("");
  CUstream held = NewStream(), free = NewStream();
  CUevent event = NewEvent();
  EXPECT_EQ(cuEventQuery(event), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamWaitEvent(free, event, 0), CUDA_SUCCESS);
  EXPECT_EQ(cuEventRecord(event, free), CUDA_SUCCESS);
  EXPECT_EQ(cuEventSynchronize(event), CUDA_SUCCESS);
  Gate gate(held);
  EXPECT_EQ(cuStreamWaitEvent(free, event, 0), CUDA_SUCCESS); // as it was: over
  EXPECT_EQ(cuEventRecord(event, held), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamSynchronize(free), CUDA_SUCCESS);
  EXPECT_EQ(cuEventQuery(event), CUDA_ERROR_NOT_READY);
  EXPECT_EQ(cuStreamQuery(held), CUDA_ERROR_NOT_READY);
  EXPECT_EQ(cuStreamWaitEvent(free, event, 0), CUDA_SUCCESS); // what it is now
  EXPECT_EQ(cuStreamQuery(free), CUDA_ERROR_NOT_READY);
  // What waits does so for an event that is gone, too.
  EXPECT_EQ(cuEventDestroy_v2(event), CUDA_SUCCESS);
  gate.Open();
  EXPECT_EQ(cuStreamSynchronize(free), CUDA_SUCCESS);
  for (CUstream stream : {held, free})
    EXPECT_EQ(cuStreamDestroy_v2(stream), CUDA_SUCCESS);
}

TEST_F(FakeCudaTest, EventsTakeTimes) {
  Session session("");
  CUstream stream = NewStream();
  CUevent begin = NewEvent(0), end = NewEvent(0), untimed = NewEvent();
  float ms = -1;
  const auto before = std::chrono::steady_clock::now();
  EXPECT_EQ(cuEventElapsedTime(&ms, begin, end), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(Reports(), "cuEventElapsedTime: of an event that was never recorded\n");
  auto sleep = [](void *) { std::this_thread::sleep_for(std::chrono::milliseconds(5)); };
  EXPECT_EQ(cuEventRecord(begin, stream), CUDA_SUCCESS);
  EXPECT_EQ(cuLaunchHostFunc(stream, sleep, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(cuEventRecord(end, stream), CUDA_SUCCESS);
  EXPECT_EQ(cuEventRecord(untimed, stream), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamSynchronize(stream), CUDA_SUCCESS);
  EXPECT_EQ(cuEventElapsedTime(&ms, begin, end), CUDA_SUCCESS);
  EXPECT_GE(ms, 5);
  const std::chrono::duration<double, std::milli> all = std::chrono::steady_clock::now() - before;
  EXPECT_LE(ms, all.count() * 1.001);
  EXPECT_EQ(cuEventElapsedTime(&ms, begin, untimed), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(Reports(), "cuEventElapsedTime: of an event without timing\n");
  for (CUevent event : {begin, end, untimed})
    EXPECT_EQ(cuEventDestroy_v2(event), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamDestroy_v2(stream), CUDA_SUCCESS);
}

// An error stops the device: after it the host may free memory that other streams used.
TEST_F(FakeCudaTest, AnErrorIsSeenWhenNothingRuns) {
  struct Long {
    std::atomic<bool> begun{false};
    bool over = false;
  } work;
  Session session("late=cuMemsetD8Async:1");
  CUstream runs = NewStream(), fails = NewStream();
  CUdeviceptr memory = NewMemory<char>(1);
  auto run = [](void *given) {
    Long &work = *static_cast<Long *>(given);
    work.begun = true;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    work.over = true;
  };
  EXPECT_EQ(cuLaunchHostFunc(runs, run, &work), CUDA_SUCCESS);
  while (!work.begun)
    std::this_thread::yield();
  EXPECT_EQ(cuMemsetD8Async(memory, 0, 1, fails), CUDA_SUCCESS);
  while (cuStreamQuery(runs) != CUDA_ERROR_LAUNCH_FAILED)
    std::this_thread::yield();
  EXPECT_TRUE(work.over);
  EXPECT_EQ(cuMemFree_v2(memory), CUDA_ERROR_LAUNCH_FAILED);
  EXPECT_EQ(cuStreamDestroy_v2(runs), CUDA_ERROR_LAUNCH_FAILED);
  EXPECT_EQ(cuStreamDestroy_v2(fails), CUDA_ERROR_LAUNCH_FAILED);
}

} // namespace
} // namespace boa::fake
