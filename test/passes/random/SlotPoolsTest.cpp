//===- SlotPoolsTest.cpp - Which pools of slots are shared ----------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Against a plain search, which counts all slots anew after each two pools that become one.
//
//===----------------------------------------------------------------------===//
#include "passes/storage/SlotPools.h"
#include "test/passes/random/Random.h"

#include "gtest/gtest.h"
#include "mlir/Parser/Parser.h"

#include <string>
#include <vector>

using namespace mlir;

namespace boa::random {
namespace {

class SlotPoolsTest : public ::testing::Test {
protected:
  SlotPoolsTest() { context.loadDialect<BoaDialect>(); }

  /// Storages of several sizes and roles.
  void makeStorages(Random &random, int count, int64_t sizes) {
    static constexpr const char *roles[] = {"checkpoints", "saved", "boundary_gradients"};
    std::string text;
    for (int i = 0; i < count; ++i)
      text += "boa.storage @s" + std::to_string(i) + "[1] : tensor<" +
              std::to_string(1024 * random.between(1, sizes)) + "xf32> on ssd role " +
              roles[random.between(0, 2)] + "\n";
    module = parseSourceString<ModuleOp>(text, &context);
    ASSERT_TRUE(module);
    storages.assign(module->getOps<StorageOp>().begin(), module->getOps<StorageOp>().end());
  }

  /// Takes and gives back slots of storages, by number, in two runs.
  struct Event {
    size_t storage;
    bool takes;
  };
  std::vector<std::vector<Event>> makeEvents(Random &random, int count) {
    std::vector<std::vector<Event>> runs(2);
    for (std::vector<Event> &run : runs) {
      std::vector<int64_t> live(storages.size());
      for (int i = 0; i < count; ++i) {
        const size_t storage = size_t(random.between(0, int64_t(storages.size()) - 1));
        const bool takes = live[storage] == 0 || random.chance(0.3);
        live[storage] += takes ? 1 : -1;
        run.push_back({storage, takes});
      }
    }
    return runs;
  }

  SlotNeed &needOf(SlotPools &slots, size_t storage) {
    return slots.get(storages[storage], Space::device, 1);
  }

  void play(SlotPools &slots, const std::vector<std::vector<Event>> &runs) {
    for (const std::vector<Event> &run : runs) {
      slots.forgetLive();
      for (Event event : run)
        if (event.takes)
          slots.take(needOf(slots, event.storage));
        else
          slots.giveBack(needOf(slots, event.storage));
    }
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
  std::vector<StorageOp> storages;
};

/// The pools of storages in the order in which they are first taken.
class PlainSearch {
public:
  PlainSearch(std::vector<StorageOp> &storages) : storages(storages), poolOf(storages.size()) {}

  template <typename Runs> void number(const Runs &runs) {
    std::vector<bool> known(storages.size());
    for (const auto &run : runs)
      for (auto event : run)
        if (!known[event.storage]) {
          known[event.storage] = true;
          poolOf[event.storage] = pools.size();
          pools.push_back({event.storage});
        }
  }

  /// The most live slots of two pools together, or of one.
  template <typename Runs> int64_t peak(const Runs &runs, size_t a, size_t b) const {
    int64_t most = 0;
    for (const auto &run : runs) {
      int64_t live = 0;
      for (auto event : run)
        if (poolOf[event.storage] == a || poolOf[event.storage] == b)
          most = std::max(most, live += event.takes ? 1 : -1);
    }
    return most;
  }
  int64_t slotBytes(size_t pool) const {
    int64_t most = 0;
    for (size_t storage : pools[pool])
      most = std::max(most, boa_slot_stride(StorageOp(storages[storage]).getChunkBytes()));
    return most;
  }

  template <typename Runs> bool share(const Runs &runs) {
    std::pair<int64_t, bool> most;
    size_t into = 0, from = 0;
    for (size_t a = 0; a < pools.size(); ++a)
      for (size_t b = a + 1; b < pools.size(); ++b) {
        if (pools[a].empty() || pools[b].empty())
          continue;
        auto roleOf = [&](size_t pool) { return storages[pools[pool].front()].getRole(); };
        const std::pair saved(peak(runs, a, a) * slotBytes(a) + peak(runs, b, b) * slotBytes(b) -
                                  peak(runs, a, b) * std::max(slotBytes(a), slotBytes(b)),
                              roleOf(a) == roleOf(b));
        if (saved.first > 0 && saved > most) {
          most = saved;
          into = a;
          from = b;
        }
      }
    if (most.first == 0)
      return false;
    for (size_t storage : std::exchange(pools[from], {})) {
      poolOf[storage] = into;
      pools[into].push_back(storage);
    }
    return true;
  }

  std::vector<StorageOp> &storages;
  std::vector<std::vector<size_t>> pools; // storages
  std::vector<size_t> poolOf;
};

TEST_F(SlotPoolsTest, SharesAsAPlainSearchDoes) {
  for (int seed = 1; seed <= 40; ++seed) {
    Random random(seed);
    // Few sizes: many pairs save the same.
    ASSERT_NO_FATAL_FAILURE(makeStorages(random, int(random.between(2, 10)), seed % 2 ? 2 : 9));
    const auto runs = makeEvents(random, int(random.between(20, 120)));
    PlainSearch plain(storages);
    plain.number(runs);
    bool more = true;
    for (int merges = 0;; ++merges) {
      SlotPools slots;
      play(slots, runs);
      int left = merges;
      ASSERT_EQ(slots.shareUntil(Space::device, [&] { return left-- == 0; }), more);
      if (!more)
        break;
      for (const std::vector<size_t> &pool : plain.pools)
        for (size_t storage : pool) {
          SlotPool &shared = *needOf(slots, storage).pool;
          ASSERT_EQ(shared.number, plain.poolOf[storage]) << "seed " << seed << ", " << merges;
          ASSERT_EQ(shared.peak, plain.peak(runs, shared.number, shared.number));
          ASSERT_EQ(shared.needs.size(), pool.size());
        }
      more = plain.share(runs);
    }
  }
}

/// 400 pools become one. A count of all slots for each of them would take hours.
TEST_F(SlotPoolsTest, TakesAsLongForAnyNumberOfMerges) {
  Random random(7);
  ASSERT_NO_FATAL_FAILURE(makeStorages(random, 400, 3));
  SlotPools slots;
  slots.forgetLive();
  for (int microBatch = 0; microBatch < 500; ++microBatch)
    for (size_t storage = 0; storage < storages.size(); ++storage) {
      slots.take(needOf(slots, storage));
      slots.giveBack(needOf(slots, storage));
    }
  EXPECT_FALSE(slots.shareUntil(Space::device, [] { return false; }));
  SlotPool &shared = *needOf(slots, 0).pool;
  EXPECT_EQ(shared.needs.size(), 400u);
  EXPECT_EQ(shared.peak, 1);
}

} // namespace
} // namespace boa::random
