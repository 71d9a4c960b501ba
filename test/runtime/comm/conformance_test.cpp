//===- conformance_test.cpp - What holds of any engine --------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "test/runtime/comm/world.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <thread>

namespace boa {
namespace {

using testing::HasSubstr;

/// Bytes that depend on who sends them to whom, and on which message they are.
std::vector<char> Text(int32_t from, int32_t to, int message, int64_t bytes) {
  std::vector<char> text(size_t(bytes), '\0');
  auto value = uint32_t(from * 1009 + to * 101 + message * 7 + 1);
  for (char &byte : text)
    byte = char((value = value * 1664525 + 1013904223) >> 24);
  return text;
}

Message To(int32_t peer, std::vector<char> &text) {
  return {peer, text.data(), int64_t(text.size())};
}

class Exchanges : public testing::TestWithParam<std::string> {};
/// Those after which no rank exchanges any more.
class ExchangeErrors : public Exchanges {};

INSTANTIATE_TEST_SUITE_P(Engines, Exchanges, testing::ValuesIn(Engines()),
                         [](const auto &info) { return info.param; });
INSTANTIATE_TEST_SUITE_P(Engines, ExchangeErrors, testing::ValuesIn(Engines()),
                         [](const auto &info) { return info.param; });

// The n-th message to a peer arrives in its n-th receive, whatever their sizes and however many an
// exchange has, from and to many peers at once. A message may be empty.
TEST_P(Exchanges, KeepTheOrderOfEachPeer) {
  World world(GetParam(), 8);
  const std::vector<int64_t> sizes = {0, 1, 7, 8, 0, 9, 4096, world.big() / 64, 3, 0};
  const auto count = int(sizes.size());
  std::map<std::tuple<int32_t, int32_t, int>, std::vector<char>> sent, received;
  for (int32_t from = 0; from < world.ranks(); ++from)
    for (int32_t to = 0; to < world.ranks(); ++to)
      for (int message = 0; message < count; ++message) {
        sent[{from, to, message}] = Text(from, to, message, sizes[message]);
        received[{from, to, message}].resize(size_t(sizes[message]));
      }
  for (int32_t rank = 0; rank < world.ranks(); ++rank)
    for (int message = 0; message < count; message += 2) {
      std::vector<Message> sends, receives;
      for (int32_t peer = 0; peer < world.ranks(); ++peer)
        for (int one : {message, message + 1})
          if (peer != rank) {
            sends.push_back(To(peer, sent[{rank, peer, one}]));
            receives.push_back(To(peer, received[{peer, rank, one}]));
          }
      world.Submit(rank, sends, receives);
    }
  world.WaitForAll();
  for (const auto &[key, text] : sent)
    if (const auto [from, to, message] = key; from != to && world.Has(to))
      EXPECT_TRUE(text == received[key]) << from << " to " << to << ", message " << message;
}

// Ranks that submit in the same order do not deadlock, though nobody takes the first message before
// the second rank has sent its own: neither fits into a connection.
TEST_P(Exchanges, InTheSameOrderDoNotDeadlock) {
  World world(GetParam(), 2);
  std::vector<char> there = Text(0, 1, 0, world.big()), back = Text(1, 0, 0, world.big());
  std::vector<char> got_there(there.size()), got_back(back.size());
  world.Submit(0, {To(1, there)}, {});
  world.Submit(0, {}, {To(1, got_back)});
  world.Submit(1, {}, {To(0, got_there)});
  world.Submit(1, {To(0, back)}, {});
  world.Submit(0, {To(1, there)}, {To(1, got_back)});
  world.Submit(1, {To(0, back)}, {To(0, got_there)});
  world.WaitForAll();
  EXPECT_TRUE(!world.Has(1) || got_there == there);
  EXPECT_TRUE(!world.Has(0) || got_back == back);
}

// A message that its receiver does not want yet holds up no other peer, and not the other
// direction.
TEST_P(Exchanges, OfOnePeerHoldUpNoOther) {
  World world(GetParam(), 3);
  std::vector<char> large = Text(0, 1, 0, world.big()), got_large(large.size());
  std::vector<char> small = Text(0, 2, 0, 100), got_small(100), back = small, got_back(100),
                    got_opposite(100);
  const int first = world.Submit(0, {To(1, large)}, {});
  const int other = world.Submit(0, {To(2, small)}, {To(2, got_back)});
  const int answer = world.Submit(2, {To(0, back)}, {To(0, got_small)});
  const int opposite = world.Submit(0, {}, {To(1, got_opposite)});
  const int sent = world.Submit(1, {To(0, back)}, {});
  for (int number : {other, answer, sent, opposite})
    EXPECT_EQ(world.Wait(number), absl::OkStatus());
  EXPECT_FALSE(world.Has(0) && world.Has(1) && world.IsComplete(first));
  world.Submit(1, {}, {To(0, got_large)});
  world.WaitForAll();
  EXPECT_TRUE(!world.Has(1) || got_large == large);
  EXPECT_TRUE(!world.Has(2) || got_small == small);
}

// A callback may submit, and an exchange without messages is complete.
TEST_P(Exchanges, AreSubmittedByCallbacks) {
  World world(GetParam(), 2);
  constexpr int kRounds = 50;
  std::vector<int> counts(2, 0);
  std::vector<std::function<void(absl::Status)>> next(2);
  std::vector<std::vector<char>> text(2, std::vector<char>(16)), got = text;
  for (int32_t rank : {0, 1})
    next[rank] = [&, rank](absl::Status status) {
      EXPECT_EQ(status, absl::OkStatus());
      const int round = counts[rank]++;
      if (round < kRounds)
        world.comm(rank).Submit(
            {{To(1 - rank, text[rank])}, {To(1 - rank, got[rank])}, next[rank]});
      if (round == kRounds)
        world.Submit(rank, {To(1 - rank, text[rank])}, {To(1 - rank, got[rank])});
    };
  // What the last callbacks submit is the first that this world counts.
  for (int32_t rank : {0, 1})
    if (world.Has(rank))
      world.comm(rank).Submit({{}, {}, next[rank]});
  for (int number = 0; number < int(world.Has(0)) + int(world.Has(1)); ++number)
    EXPECT_EQ(world.Wait(number), absl::OkStatus());
  EXPECT_EQ(counts[0] + counts[1], (kRounds + 1) * (int(world.Has(0)) + int(world.Has(1))));
}

// An exchange that names no peer is refused as a whole. The others go on.
TEST_P(Exchanges, AreRefusedWithoutAPeer) {
  World world(GetParam(), 2);
  std::vector<char> text(8), got(8);
  for (int32_t rank : {0, 1}) {
    if (!world.Has(rank))
      continue;
    const std::string self = absl::StrCat("rank ", rank, " of ", world.ranks(), " has no peer ");
    for (int32_t peer : {-1, rank, world.ranks()})
      EXPECT_EQ(world.Wait(world.Submit(rank, {To(1 - rank, text), To(peer, text)}, {})),
                absl::InvalidArgumentError(absl::StrCat(self, peer)));
    EXPECT_EQ(
        world.Wait(world.Submit(rank, {}, {{1 - rank, got.data(), -8}})),
        absl::InvalidArgumentError(absl::StrCat("a message of -8 bytes with rank ", 1 - rank)));
    EXPECT_THAT(world.comm(rank).Describe(),
                HasSubstr(absl::StrCat(", rank ", rank, " of ", world.ranks())));
  }
  const int there = world.Submit(0, {To(1, text)}, {}), here = world.Submit(1, {}, {To(0, got)});
  EXPECT_EQ(world.Wait(there), absl::OkStatus());
  EXPECT_EQ(world.Wait(here), absl::OkStatus());
}

// The ends of a message name different sizes: an error, not a wrong number of bytes.
TEST_P(ExchangeErrors, OfDifferentSizes) {
  World world(GetParam(), 2);
  std::vector<char> text(16), got(24);
  world.Submit(0, {To(1, text)}, {});
  const absl::Status status = world.Wait(world.Submit(1, {}, {To(0, got)}));
  if (world.Has(1))
    EXPECT_EQ(status,
              absl::InternalError("rank 0 sends a message of 16 bytes where rank 1 receives "
                                  "one of 24: the ranks do not run the same program"));
}

// A rank that has ended is an error of the exchanges that need it, not of those of other ranks.
// What it had sent arrives. The first error ends all that follow.
TEST_P(ExchangeErrors, OfAPeerThatHasEnded) {
  World world(GetParam(), 3);
  std::vector<char> text = Text(1, 0, 0, 100), got(100), other(100), got_other(100);
  world.Submit(0, {}, {To(1, got)});
  EXPECT_EQ(world.Wait(world.Submit(1, {To(0, text)}, {})), absl::OkStatus());
  world.End(1);
  world.Submit(0, {To(2, text)}, {To(2, other)});
  world.Submit(2, {To(0, text)}, {To(0, got_other)});
  world.WaitForAll();
  EXPECT_TRUE(got == text);
  const absl::Status status = world.Wait(world.Submit(0, {}, {To(1, got)}));
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()), HasSubstr("rank 1"));
  EXPECT_EQ(world.Wait(world.Submit(0, {To(2, text)}, {})), status);
  EXPECT_EQ(world.Wait(world.Submit(0, {}, {})), status);
  const absl::Status sent = world.Wait(world.Submit(2, {To(1, text), To(1, text)}, {To(1, got)}));
  EXPECT_THAT(std::string(sent.message()), HasSubstr("rank 1"));
}

// A rank ends in the middle of messages, to it and from it. Its own exchanges are cancelled before
// its end, and those of its peer end with an error that names it.
TEST_P(ExchangeErrors, OfAPeerThatEndsInTheMiddle) {
  World world(GetParam(), 2);
  std::vector<char> large(size_t(world.big())), got(large.size()), got_back(large.size()), small(8),
      never(8), never_back(8);
  world.Submit(1, {To(0, small), To(0, large)}, {});
  const int begun = world.Submit(0, {}, {To(1, small)});
  const int cut = world.Submit(0, {To(1, large)}, {To(1, got), To(1, never)});
  const int own = world.Submit(1, {}, {To(0, got_back), To(0, never_back)});
  EXPECT_EQ(world.Wait(begun), absl::OkStatus());
  world.End(1);
  EXPECT_TRUE(world.IsComplete(own));
  EXPECT_EQ(world.Wait(own), absl::CancelledError("rank 1 ends"));
  EXPECT_THAT(std::string(world.Wait(cut).message()), HasSubstr("rank 1"));
}

// An abort ends all waits of the rank, and with it those of all that wait for it in a chain.
TEST_P(ExchangeErrors, AbortEndsAllWaits) {
  World world(GetParam(), 4);
  std::vector<char> text(8), got(8);
  // Each waits for the next.
  std::vector<int> waits;
  for (int32_t rank = 0; rank < world.ranks(); ++rank)
    waits.push_back(world.Submit(rank, {}, {To((rank + 1) % world.ranks(), got)}));
  const absl::Status why = absl::AbortedError("a disk is full");
  if (world.Has(1)) {
    world.comm(1).Abort(why);
    world.comm(1).Abort(absl::AbortedError("later"));
    EXPECT_EQ(world.Wait(waits[1]), why);
    EXPECT_EQ(world.Wait(world.Submit(1, {To(0, text)}, {})), why);
  }
  for (int32_t rank = 0; rank < world.ranks(); ++rank)
    if (rank != 1 && world.Has(rank))
      EXPECT_THAT(std::string(world.Wait(waits[rank]).message()),
                  HasSubstr(absl::StrCat("rank ", (rank + 1) % world.ranks())));
  // mpirun ends all processes when the first has ended: none does before all have come here.
  const char *const folder = std::getenv("BOA_TEST_MEETING");
  for (int32_t rank = 0; folder && !HasFailure() && rank < world.ranks(); ++rank)
    if (world.Has(rank))
      std::ofstream(absl::StrCat(folder, "/", rank));
  while (folder && std::distance(std::filesystem::directory_iterator(folder), {}) < world.ranks())
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
}

} // namespace
} // namespace boa
