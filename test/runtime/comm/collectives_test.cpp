//===- collectives_test.cpp - Gathers and sums ----------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/comm/collectives.h"

#include "test/runtime/comm/world.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <cstring>
#include <random>

namespace boa {
namespace {

// Of chunks of 6 floats; the last has 4, and no tested K but 1 divides their number.
constexpr Sharding kEntry = {(6 * 12 + 4) * 4, 24, 1};
constexpr int64_t kFloats = kEntry.bytes / 4;

Sharding Among(int32_t ranks) { return {kEntry.bytes, kEntry.chunk_bytes, ranks}; }

class Collectives : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Engines, Collectives, testing::ValuesIn(Engines()),
                         [](const auto &info) { return info.param; });

/// The floats of a chunk in the entry.
std::pair<int64_t, int64_t> ChunkOf(const Sharding &entry, int64_t row, int32_t rank) {
  return {(row * entry.ranks + rank) * entry.chunk_bytes / 4, entry.Bytes(row, rank) / 4};
}

// After the rows' gathers each rank has all chunks. Ranks without a chunk in the last row receive.
TEST_P(Collectives, GatherEachChunkFromItsOwner) {
  World world(GetParam(), 4);
  const Sharding entry = Among(world.ranks());
  std::vector<std::vector<float>> memory(size_t(world.ranks()), std::vector<float>(kFloats));
  for (int32_t rank = 0; rank < world.ranks(); ++rank)
    for (int64_t row = 0; row < entry.Rows(); ++row) {
      const auto [begin, count] = ChunkOf(entry, row, rank);
      for (int64_t i = begin; i < begin + count; ++i)
        memory[rank][i] = float(i + 1);
    }
  for (int32_t rank = 0; rank < world.ranks(); ++rank)
    for (int64_t row = 0; row < entry.Rows(); ++row) {
      const Exchange gather =
          GatherRow(entry, row, rank, &memory[rank][row * world.ranks() * entry.chunk_bytes / 4]);
      world.Submit(rank, gather.sends, gather.receives);
    }
  world.WaitForAll();
  for (int32_t rank = 0; rank < world.ranks(); ++rank)
    for (int64_t i = 0; world.Has(rank) && i < kFloats; ++i)
      EXPECT_EQ(memory[rank][i], float(i + 1)) << rank << " " << i;
}

/// A group's partial gradient: magnitudes differ, so that the order of additions shows.
std::vector<float> Partial(int32_t group) {
  std::minstd_rand random(group + 1);
  std::vector<float> values(kFloats);
  for (float &value : values)
    value = std::ldexp(float(int64_t(random()) - (1 << 30)), int(random() % 24));
  return values;
}

/// The sum of groups [0, 12) as one rank computes it, written down.
std::vector<float> Reference() {
  std::vector<std::vector<float>> p;
  for (int32_t group = 0; group < 12; ++group)
    p.push_back(Partial(group));
  std::vector<float> sum(kFloats);
  for (int64_t i = 0; i < kFloats; ++i)
    sum[i] = (((p[0][i] + p[1][i]) + (p[2][i] + p[3][i])) +
              ((p[4][i] + p[5][i]) + (p[6][i] + p[7][i]))) +
             ((p[8][i] + p[9][i]) + (p[10][i] + p[11][i]));
  return sum;
}

// Every number of ranks that divides the groups gives the same bits, in memory of its own or in
// place. A rank sends (K-1)/K of the entry, as in a ring, where its groups are a subtree, and twice
// as much where they are two.
TEST_P(Collectives, SumTheSameBitsOnAnyNumberOfRanks) {
  const std::vector<float> reference = Reference();
  for (int32_t wanted : {1, 2, 3, 4, 6, 12}) {
    World world(GetParam(), wanted);
    const int32_t ranks = world.ranks(), groups = 12 / ranks;
    const Sharding entry = Among(ranks);
    std::vector<std::vector<float>> partials, scratch(world.ranks());
    std::vector<RowSum> sums;
    for (int32_t group = 0; group < 12; ++group)
      partials.push_back(Partial(group));
    int64_t sent = 0;
    for (int32_t rank = 0; rank < ranks; ++rank)
      for (int64_t row = 0; row < entry.Rows(); ++row) {
        std::vector<float *> places;
        for (int32_t group = 0; group < groups; ++group)
          places.push_back(&partials[rank * groups + group][row * ranks * entry.chunk_bytes / 4]);
        const int64_t bytes = RowSum(entry, row, rank, places, nullptr).ScratchBytes();
        scratch[rank].resize(size_t(entry.Rows() * bytes / 4) + 1);
        sums.emplace_back(entry, row, rank, places, &scratch[rank][row * bytes / 4]);
        sums.back().Add();
        const Exchange roots = sums.back().Roots();
        for (const Message &message : roots.sends)
          sent += message.bytes;
        world.Submit(rank, roots.sends, roots.receives);
      }
    world.WaitForAll();
    const int64_t each = ranks == 2 || ranks == 4 ? 2 : 1;
    EXPECT_EQ(sent, each * (ranks - 1) * entry.bytes) << ranks << " ranks"; // all together
    for (int32_t rank = 0; rank < ranks; ++rank)
      for (int64_t row = 0; world.Has(rank) && row < entry.Rows(); ++row) {
        const auto [begin, count] = ChunkOf(entry, row, rank);
        std::vector<float> own(size_t(count) + 1);
        float *const sum = row % 2 == 0 ? own.data() : &partials[rank * groups][0] + begin;
        sums[rank * entry.Rows() + row].Finish(sum);
        EXPECT_EQ(std::memcmp(sum, &reference[0] + begin, size_t(count) * 4), 0)
            << ranks << " ranks, rank " << rank << ", row " << row;
      }
  }
}

// The bits above come from the order: another one has others.
TEST(ShardTree, OrderShows) {
  std::vector<float> sum = Partial(0);
  for (int32_t group = 1; group < 12; ++group) {
    const std::vector<float> partial = Partial(group);
    for (int64_t i = 0; i < kFloats; ++i)
      sum[i] += partial[i];
  }
  EXPECT_NE(sum, Reference());
}

} // namespace
} // namespace boa
