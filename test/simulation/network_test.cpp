//===- network_test.cpp - Exchanges on a network that fails ---------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Random programs of gathers and sums on a simulated network. Of each seed this holds:
//
//   - a rank whose process lives completes all that it has submitted, each exchange once
//   - an exchange without error has the right bytes, those of one rank
//   - without a fault none has an error
//   - an error names a rank
//   - a network that does nothing any more has no rank that waits
//
//===----------------------------------------------------------------------===//
#include "runtime/comm/collectives.h"
#include "runtime/support/random.h"
#include "test/simulation/simulated_network.h"

#include "absl/strings/match.h"
#include "gtest/gtest.h"

#include <cstdlib>
#include <cstring>

namespace boa {
namespace {

constexpr int32_t kShards = 12;
enum class Fault { kNone, kKill, kDrop, kPartition, kSilence, kAbort };
constexpr int kFaults = 6;

/// An exchange of one rank, and what has to hold after it.
struct Task {
  std::function<Exchange()> begin;
  std::function<bool()> end;
};

float Value(uint64_t seed, int32_t op, int32_t group, int64_t at) {
  const uint64_t hash = Hash({seed, uint64_t(op), uint64_t(group), uint64_t(at)});
  return float(int32_t(hash)) * (1 << (hash >> 60));
}

class Program {
public:
  Program(uint64_t seed, Fault fault)
      : seed(seed), fault(fault), ranks(std::array{2, 3, 4, 6, 12}[Hash({seed, 1}) % 5]),
        network(ranks, seed), all(ranks), comms(network.Open()) {
    for (int32_t op = 0; op < 5; ++op)
      AddOp(op);
  }

  /// Empty, or what does not hold.
  std::string Run();
  int64_t steps() const { return count; }

private:
  struct Rank {
    std::vector<Task> tasks; // in the order of the text
    size_t next = 0, outstanding = 0, most = 1;
    bool dead = false;
    absl::Status failed;
  };

  void AddOp(int32_t op);
  void AddGather(int32_t op, const Sharding &);
  void AddSum(int32_t op, const Sharding &);
  void Advance(int32_t rank);
  void DoFault();
  bool IsOver(const Rank &rank) const {
    return rank.dead ||
           (rank.outstanding == 0 && (!rank.failed.ok() || rank.next == rank.tasks.size()));
  }

  const uint64_t seed;
  const Fault fault;
  const int32_t ranks;
  SimulatedNetwork network;
  std::vector<Rank> all;
  std::vector<std::unique_ptr<std::vector<float>>> memory;
  int64_t count = 0;
  bool partitioned = false;
  std::string wrong;
  std::vector<std::unique_ptr<Comm>> comms; // last, since callbacks use the others

  float *Allocate(int64_t floats) {
    memory.push_back(std::make_unique<std::vector<float>>(size_t(floats) + 1));
    return memory.back()->data();
  }
};

void Program::AddOp(int32_t op) {
  Sharding entry;
  entry.ranks = ranks;
  entry.chunk_bytes = 4 * (1 + int64_t(network.Random(20)));
  entry.bytes = 4 * (1 + int64_t(network.Random(uint64_t(ranks) * 40)));
  op % 2 == 0 ? AddGather(op, entry) : AddSum(op, entry);
}

void Program::AddGather(int32_t op, const Sharding &entry) {
  for (int32_t rank = 0; rank < ranks; ++rank) {
    float *const data = Allocate(entry.bytes / 4);
    for (int64_t row = 0; row < entry.Rows(); ++row) {
      const int64_t first = row * ranks * entry.chunk_bytes / 4;
      const int64_t last = std::min(first + ranks * entry.chunk_bytes / 4, entry.bytes / 4);
      all[rank].tasks.push_back({[=] {
                                   const int64_t own = first + entry.Offset(rank) / 4;
                                   for (int64_t i = own; i < own + entry.Bytes(row, rank) / 4; ++i)
                                     data[i] = Value(seed, op, 0, i);
                                   return GatherRow(entry, row, rank, data + first);
                                 },
                                 [=] {
                                   bool right = true;
                                   for (int64_t i = first; i < last; ++i)
                                     right = right && data[i] == Value(seed, op, 0, i);
                                   return right;
                                 }});
    }
  }
}

void Program::AddSum(int32_t op, const Sharding &entry) {
  const int32_t groups = kShards / ranks;
  for (int32_t rank = 0; rank < ranks; ++rank)
    for (int64_t row = 0; row < entry.Rows(); ++row) {
      const int64_t first = row * ranks * entry.chunk_bytes / 4;
      std::vector<float *> partials;
      for (int32_t group = 0; group < groups; ++group)
        partials.push_back(Allocate(ranks * entry.chunk_bytes / 4));
      const int64_t bytes = RowSum(entry, row, rank, partials, nullptr).ScratchBytes();
      const RowSum sum(entry, row, rank, partials, Allocate(bytes / 4));
      all[rank].tasks.push_back(
          {[=] {
             for (int32_t group = 0; group < groups; ++group)
               for (int64_t i = 0; i < ranks * entry.chunk_bytes / 4; ++i)
                 partials[group][i] = Value(seed, op, rank * groups + group, first + i);
             sum.Add();
             return sum.Roots();
           },
           [=] {
             const int64_t floats = entry.Bytes(row, rank) / 4;
             std::vector<float> got(size_t(floats) + 1);
             sum.Finish(got.data());
             bool right = true;
             for (int64_t i = 0; i < floats; ++i) {
               float p[kShards];
               for (int32_t group = 0; group < kShards; ++group)
                 p[group] = Value(seed, op, group, first + entry.Offset(rank) / 4 + i);
               const float expected =
                   (((p[0] + p[1]) + (p[2] + p[3])) + ((p[4] + p[5]) + (p[6] + p[7]))) +
                   ((p[8] + p[9]) + (p[10] + p[11]));
               right = right && std::memcmp(&got[i], &expected, 4) == 0;
             }
             return right;
           }});
    }
}

/// Submits as many exchanges as may be under way.
void Program::Advance(int32_t number) {
  Rank &rank = all[number];
  while (!rank.dead && rank.failed.ok() && rank.outstanding < rank.most &&
         rank.next < rank.tasks.size()) {
    const Task &task = rank.tasks[rank.next++];
    ++rank.outstanding;
    Exchange exchange = task.begin();
    exchange.done = [this, &rank, &task, number, times = 0](absl::Status status) mutable {
      if (++times > 1 || rank.dead)
        wrong = absl::StrCat("a callback of rank ", number, " ran once more");
      --rank.outstanding;
      if (status.ok() && !task.end())
        wrong = absl::StrCat("wrong bytes on rank ", number);
      if (!status.ok() && rank.failed.ok())
        rank.failed = std::move(status);
      Advance(number);
    };
    comms[number]->Submit(std::move(exchange));
  }
}

void Program::DoFault() {
  const auto a = int32_t(network.Random(uint64_t(ranks)));
  const auto b = int32_t((a + 1 + network.Random(uint64_t(ranks - 1))) % ranks);
  switch (fault) {
  case Fault::kNone:
    return;
  case Fault::kKill:
    network.Kill(a);
    all[a].dead = true;
    return;
  case Fault::kDrop:
    return network.Drop(a, b);
  case Fault::kPartition:
  case Fault::kSilence:
    partitioned = true;
    return network.Partition(a, b, true);
  case Fault::kAbort:
    return comms[a]->Abort(absl::AbortedError(absl::StrCat("rank ", a, " aborts")));
  }
}

std::string Program::Run() {
  const auto when = int64_t(network.Random(2000));
  for (int32_t rank = 0; rank < ranks; ++rank) {
    all[rank].most = 1 + network.Random(4);
    Advance(rank);
  }
  for (; wrong.empty(); ++count) {
    if (count == when)
      DoFault();
    if (network.Step())
      continue;
    if (std::all_of(all.begin(), all.end(), [&](const Rank &rank) { return IsOver(rank); }))
      break;
    if (count < when) // all wait? Then the fault comes too late to help.
      return "a deadlock";
    if (!std::exchange(partitioned, false))
      return "ranks wait, and nothing happens";
    if (fault == Fault::kSilence)
      network.TimeOut();
    for (int32_t a = 0; a < ranks; ++a)
      for (int32_t b = 0; b < a; ++b)
        network.Partition(a, b, false);
  }
  for (const Rank &rank : all) {
    if (rank.failed.ok())
      continue;
    if (fault == Fault::kNone || fault == Fault::kPartition)
      return absl::StrCat("an error without a fault: ", rank.failed.message());
    if (!absl::StrContains(rank.failed.message(), "rank "))
      return absl::StrCat("an error without a rank: ", rank.failed.message());
  }
  return wrong;
}

TEST(Network, KeepsWhatHoldsOfEachSeed) {
  const char *const wanted = std::getenv("BOA_NETWORK_SEEDS");
  const uint64_t seeds = wanted ? std::strtoull(wanted, nullptr, 10) : 60;
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    Program program(seed, Fault(seed % kFaults));
    EXPECT_EQ(program.Run(), "") << "seed " << seed << ", fault " << seed % kFaults;
  }
}

TEST(Network, RepeatsASeed) {
  Program first(7, Fault::kKill), second(7, Fault::kKill), other(37, Fault::kKill);
  for (Program *program : {&first, &second, &other})
    EXPECT_EQ(program->Run(), "");
  EXPECT_EQ(first.steps(), second.steps());
  EXPECT_NE(first.steps(), other.steps());
}

} // namespace
} // namespace boa
