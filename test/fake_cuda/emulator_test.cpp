//===- emulator_test.cpp - Tests of the emulator ----------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "test/fake_cuda/emulator.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace boa::fake {
namespace {

using testing::HasSubstr;
using testing::StartsWith;
using Thread = boa_emulated_thread;
using Body = void (*)(Thread *, void *const *);

int64_t Linear(const Thread *t) {
  return t->thread[0] + t->block_dim[0] * (t->thread[1] + t->block_dim[1] * t->thread[2]);
}

template <typename T> T *Argument(void *const *args, int i) {
  return *static_cast<T *const *>(args[i]);
}

/// Runs a kernel over these arguments.
std::string RunBody(Body body, std::vector<void *> arguments, int64_t blocks, int64_t threads,
                    uint64_t seed = 1, int64_t shared_bytes = 0) {
  boa_emulated_function function = {"k", body, shared_bytes, int64_t(arguments.size())};
  std::vector<void *> args;
  for (void *&argument : arguments)
    args.push_back(&argument);
  Launch launch = {&function, {blocks, 1, 1}, {threads, 1, 1}};
  launch.args = args.data();
  launch.seed = seed;
  launch.threads = 2;
  return RunLaunch(launch);
}

void AddVectors(Thread *t, void *const *args) {
  int64_t i = t->block[0] * t->block_dim[0] + t->thread[0];
  if (i >= 1000)
    return;
  Argument<float>(args, 2)[i] = Argument<float>(args, 0)[i] + Argument<float>(args, 1)[i];
}

// Each element once, whatever is left over in the last block.
TEST(EmulatorTest, AddsVectors) {
  std::vector<float> a(1000), b(1000), c(1000, -1);
  for (int i = 0; i < 1000; ++i) {
    a[i] = i;
    b[i] = 2 * i;
  }
  EXPECT_EQ(RunBody(AddVectors, {a.data(), b.data(), c.data()}, 4, 256), "");
  for (int i = 0; i < 1000; ++i)
    ASSERT_EQ(c[i], 3 * i);
}

void NoteCoordinates(Thread *t, void *const *args) {
  int64_t at = 0;
  for (int d = 2; d >= 0; --d)
    at = at * t->grid_dim[d] + t->block[d];
  for (int d = 2; d >= 0; --d)
    at = at * t->block_dim[d] + t->thread[d];
  ++Argument<int>(args, 0)[at];
}

// Grids and blocks of three dimensions: every thread of every block, once.
TEST(EmulatorTest, CountsThreeDimensions) {
  std::vector<int> seen(2 * 3 * 4 * 5 * 6 * 7);
  boa_emulated_function function = {"k", NoteCoordinates, 0, 1};
  void *data = seen.data();
  void *args[] = {&data};
  Launch launch = {&function, {2, 3, 4}, {5, 6, 7}, 0, args, 3, 2};
  EXPECT_EQ(RunLaunch(launch), "");
  for (int count : seen)
    ASSERT_EQ(count, 1);
}

/// Sums a block's values by shuffles within warps, then by shared memory. `barrier`: whether
/// it waits before it reads what other warps have written.
template <bool barrier> void SumBlock(Thread *t, void *const *args) {
  int64_t i = Linear(t);
  float value = Argument<float>(args, 0)[t->block[0] * t->block_dim[0] + i];
  for (int offset = 16; offset > 0; offset /= 2) {
    uint32_t bits;
    memcpy(&bits, &value, 4);
    bits = t->shuffle(t, bits, offset, 32, 0);
    float other;
    memcpy(&other, &bits, 4);
    value += other;
  }
  float *shared = reinterpret_cast<float *>(t->shared);
  if (i % 32 == 0)
    shared[i / 32] = value;
  if (barrier)
    t->barrier(t);
  if (i == 0) {
    float sum = 0;
    for (int64_t warp = 0; warp < t->block_dim[0] / 32; ++warp)
      sum += shared[warp];
    Argument<float>(args, 1)[t->block[0]] = sum;
  }
}

TEST(EmulatorTest, SumsBlocks) {
  std::vector<float> values(8 * 128, 1), sums(8);
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    std::fill(sums.begin(), sums.end(), 0);
    EXPECT_EQ(RunBody(SumBlock<true>, {values.data(), sums.data()}, 8, 128, seed, 16), "");
    EXPECT_EQ(sums, std::vector<float>(8, 128));
  }
}

// Without the barrier the sum is of what is not there yet, which is NaN, in nearly every
// block: a seed that hides it is hard to find.
TEST(EmulatorTest, MissingBarrierIsSeen) {
  std::vector<float> values(8 * 128, 1), sums(8);
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    EXPECT_EQ(RunBody(SumBlock<false>, {values.data(), sums.data()}, 8, 128, seed, 16), "");
    EXPECT_TRUE(std::any_of(sums.begin(), sums.end(), [](float sum) { return std::isnan(sum); }));
  }
}

/// Rotates values by one thread, `times` times over. `barriers`: 2, or 1, without the one that
/// keeps a thread from writing what its neighbour has not read.
template <int barriers> void Rotate(Thread *t, void *const *args) {
  int64_t i = t->thread[0], n = t->block_dim[0];
  auto *shared = reinterpret_cast<int32_t *>(t->shared);
  int32_t value = int32_t(i);
  for (int times = 0; times < 5; ++times) {
    shared[i] = value;
    t->barrier(t);
    value = shared[(i + 1) % n];
    if (barriers == 2)
      t->barrier(t);
  }
  Argument<int32_t>(args, 0)[i] = value;
}

TEST(EmulatorTest, BarrierBeforeTheNextWriteIsNeeded) {
  std::vector<int32_t> got(64), want(64);
  for (int i = 0; i < 64; ++i)
    want[i] = (i + 5) % 64;
  EXPECT_EQ(RunBody(Rotate<2>, {got.data()}, 1, 64, 1, 256), "");
  EXPECT_EQ(got, want);
  EXPECT_EQ(RunBody(Rotate<1>, {got.data()}, 1, 64, 1, 256), "");
  EXPECT_NE(got, want);
}

void ShuffleAll(Thread *t, void *const *args) {
  int32_t lane = int32_t(t->thread[0]);
  auto *out = Argument<uint32_t>(args, 0) + 4 * lane;
  const int32_t offsets[] = {5, 3, 3, 37};
  for (int32_t mode = 0; mode < 4; ++mode)
    out[mode] = t->shuffle(t, 100 + lane, offsets[mode], 32, mode);
}

// Who has nobody to take from keeps its own.
TEST(EmulatorTest, ShufflesTakeFromTheirLanes) {
  std::vector<uint32_t> got(4 * 32);
  EXPECT_EQ(RunBody(ShuffleAll, {got.data()}, 1, 32), "");
  for (uint32_t lane = 0; lane < 32; ++lane) {
    EXPECT_EQ(got[4 * lane], 100 + (lane ^ 5));
    EXPECT_EQ(got[4 * lane + 1], 100 + (lane < 3 ? lane : lane - 3));
    EXPECT_EQ(got[4 * lane + 2], 100 + (lane + 3 > 31 ? lane : lane + 3));
    EXPECT_EQ(got[4 * lane + 3], 105u);
  }
}

// A barrier that a thread passes by; it is named with one that waits.
TEST(EmulatorTest, DivergentBarrierIsRefused) {
  Body body = [](Thread *t, void *const *) {
    if (t->thread[0] != 7)
      t->barrier(t);
  };
  EXPECT_EQ(RunBody(body, {}, 1, 32),
            "kernel 'k', block (0, 0, 0), thread (0, 0, 0): waits at a barrier that thread "
            "(7, 0, 0) never reaches: it has ended");
}

TEST(EmulatorTest, ShuffleThatALaneLeavesOutIsRefused) {
  Body body = [](Thread *t, void *const *) {
    if (t->thread[0] == 3)
      t->barrier(t);
    else
      t->shuffle(t, 0, 1, 32, 0);
  };
  EXPECT_EQ(RunBody(body, {}, 1, 64),
            "kernel 'k', block (0, 0, 0), thread (0, 0, 0): waits at a shuffle, but thread "
            "(3, 0, 0) of its warp waits at a barrier");
}

TEST(EmulatorTest, ShuffleInPartOfAWarpIsRefused) {
  Body body = [](Thread *t, void *const *) { t->shuffle(t, 0, 1, 32, 0); };
  EXPECT_EQ(RunBody(body, {}, 1, 16),
            "kernel 'k', block (0, 0, 0), thread (0, 0, 0): shuffles in a warp of 16 lanes, where "
            "there must be 32");
}

TEST(EmulatorTest, ShufflesOfTwoModesAreRefused) {
  Body body = [](Thread *t, void *const *) { t->shuffle(t, 0, 1, 32, t->thread[0] == 9 ? 1 : 2); };
  EXPECT_EQ(RunBody(body, {}, 1, 32),
            "kernel 'k', block (0, 0, 0), thread (9, 0, 0): shuffles up where the first of its "
            "warp shuffles down");
}

/// One warp multiplies c[16][8] = a[16][16] b[16][8]. The operands come into shared
/// memory by asynchronous copies; `waits`: for both groups, not only for the first.
template <bool waits> void MultiplyTiles(Thread *t, void *const *args) {
  const int64_t lane = t->thread[0];
  uint16_t *a = reinterpret_cast<uint16_t *>(t->shared), *b = a + 256;
  // A lane copies half a row of a, and half of the lanes a row of b.
  t->copy(t, a + lane * 8, Argument<uint16_t>(args, 0) + lane * 8, 16);
  t->group(t);
  if (lane < 16)
    t->copy(t, b + lane * 8, Argument<uint16_t>(args, 1) + lane * 8, 16);
  t->group(t);
  t->wait(t, waits ? 0 : 1);
  t->barrier(t);
  uint32_t registers[10] = {}, of_b[4];
  t->matrices(t, a + lane % 16 * 16 + lane / 16 * 8, /*transpose=*/0, registers);
  t->matrices(t, b + lane % 16 * 8, /*transpose=*/1, of_b); // the last two are the first again
  registers[4] = of_b[0];
  registers[5] = of_b[1];
  t->multiply(t, registers);
  for (int i = 0; i < 4; ++i)
    memcpy(Argument<float>(args, 2) + (lane / 4 + i / 2 * 8) * 8 + lane % 4 * 2 + i % 2,
           &registers[6 + i], sizeof(float));
}

TEST(EmulatorTest, MultipliesTiles) {
  std::vector<uint16_t> a(256), b(128);
  std::vector<float> wide_a(256), wide_b(128), c(128);
  auto fill = [](std::vector<uint16_t> &halves, std::vector<float> &values) {
    for (size_t i = 0; i < halves.size(); ++i) {
      values[i] = float(int(i * i % 23) - 11);
      uint32_t bits;
      memcpy(&bits, &values[i], sizeof bits);
      halves[i] = uint16_t(bits >> 16);
    }
  };
  fill(a, wide_a);
  fill(b, wide_b);
  EXPECT_EQ(RunBody(MultiplyTiles<true>, {a.data(), b.data(), c.data()}, 1, 32, 1, 768), "");
  for (int i = 0; i < 16; ++i)
    for (int j = 0; j < 8; ++j) {
      float sum = 0;
      for (int k = 0; k < 16; ++k)
        sum += wide_a[i * 16 + k] * wide_b[k * 8 + j];
      EXPECT_EQ(c[i * 8 + j], sum) << i << ", " << j;
    }
  // The operand that it did not wait for is not there.
  EXPECT_EQ(RunBody(MultiplyTiles<false>, {a.data(), b.data(), c.data()}, 1, 32, 1, 768), "");
  for (float value : c)
    EXPECT_TRUE(std::isnan(value));
}

TEST(EmulatorTest, ShuffleOfAnotherWidthIsRefused) {
  Body body = [](Thread *t, void *const *) { t->shuffle(t, 0, 1, 16, 0); };
  EXPECT_THAT(RunBody(body, {}, 1, 32), HasSubstr("a shuffle of width 16 and mode 0"));
}

// A fault ends the launch, wherever the others wait, and the next one is as if it had not
// been.
TEST(EmulatorTest, FaultEndsTheLaunch) {
  Body body = [](Thread *t, void *const *) {
    if (t->block[0] == 2 && t->thread[0] == 5)
      t->fault(t, "index 9 is out of 8");
    t->barrier(t);
  };
  for (uint64_t seed = 1; seed <= 50; ++seed)
    ASSERT_EQ(RunBody(body, {}, 4, 64, seed),
              "kernel 'k', block (2, 0, 0), thread (5, 0, 0): index 9 is out of 8");
  std::vector<float> values(8 * 128, 1), sums(8);
  EXPECT_EQ(RunBody(SumBlock<true>, {values.data(), sums.data()}, 8, 128, 1, 16), "");
  EXPECT_EQ(sums, std::vector<float>(8, 128));
}

// The seed decides the order in which threads run, and different seeds decide differently.
TEST(EmulatorTest, SeedOrdersThreads) {
  Body body = [](Thread *t, void *const *args) {
    int *order = Argument<int>(args, 0);
    order[1 + order[0]++] = int(t->thread[0]);
  };
  std::set<std::vector<int>> orders;
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    std::vector<int> order(65), again(65);
    EXPECT_EQ(RunBody(body, {order.data()}, 1, 64, seed), "");
    EXPECT_EQ(RunBody(body, {again.data()}, 1, 64, seed), "");
    EXPECT_EQ(order, again);
    orders.insert(order);
  }
  EXPECT_EQ(orders.size(), 10u);
}

// Shared memory holds nothing of the block before; what a launch adds follows what the
// function has.
TEST(EmulatorTest, SharedMemoryIsPoisoned) {
  Body body = [](Thread *t, void *const *args) {
    for (int i = 0; i < 16 + 32; ++i)
      if (uint8_t(t->shared[i]) != 0xff)
        t->fault(t, "something is there");
    memset(t->shared, 0, 16 + 32);
  };
  boa_emulated_function function = {"k", body, 4, 0};
  Launch launch = {&function, {10, 1, 1}, {1, 1, 1}};
  launch.dynamic_bytes = 32;
  EXPECT_EQ(RunLaunch(launch), "");
}

/// Stacks are deep enough for a kernel that keeps tables of its own.
TEST(EmulatorTest, StacksAreDeep) {
  Body body = [](Thread *t, void *const *args) {
    volatile float table[8192];
    for (int i = 0; i < 8192; ++i)
      table[i] = float(i);
    t->barrier(t);
    Argument<float>(args, 0)[t->thread[0]] = table[8191];
  };
  std::vector<float> got(256);
  EXPECT_EQ(RunBody(body, {got.data()}, 1, 256), "");
  EXPECT_EQ(got, std::vector<float>(256, 8191));
}

} // namespace
} // namespace boa::fake
