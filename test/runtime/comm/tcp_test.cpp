//===- tcp_test.cpp - How ranks meet, and hosts that vanish ---------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/comm/sockets.h"
#include "test/runtime/comm/world.h"

#include "absl/strings/match.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <future>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

namespace boa {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

/// A rank and the number of ranks that it was told.
struct Told {
  int32_t rank, ranks;
};

/// What each of these processes is told by the meeting. The first is rank 0.
std::vector<std::string> Meet(const std::vector<Told> &all, milliseconds timeout,
                              const std::string &rubbish = "") {
  TcpOptions options;
  options.root = "127.0.0.1:0";
  options.timeout = timeout;
  const int listening = *ListenTcp(options.root);
  std::vector<Socket> strangers;
  if (!rubbish.empty()) {
    const CommTime soon = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    for (const std::string &said : {rubbish, std::string()}) {
      strangers.push_back(*Connect(*ParseAddress(options.root), soon));
      EXPECT_EQ(Send(strangers.back(), said, soon), absl::OkStatus());
    }
    strangers.pop_back(); // one that says nothing and leaves
  }
  std::vector<std::future<std::string>> results;
  for (Told told : all) {
    options.rank = told.rank;
    options.ranks = told.ranks;
    options.listening = results.empty() ? listening : -1;
    results.push_back(std::async(std::launch::async, [options] {
      return std::string(CreateTcpComm(options).status().message());
    }));
  }
  std::vector<std::string> messages;
  for (std::future<std::string> &result : results)
    messages.push_back(result.get());
  return messages;
}

// What rank 0 finds, the others that have come learn as well.
TEST(Tcp, RefusesRanksThatContradict) {
  const std::string twice = "rank 1 came twice: each process needs a number of its own";
  std::vector<std::string> said = Meet({{0, 3}, {1, 3}, {1, 3}}, milliseconds(10'000));
  EXPECT_EQ(said[0], twice);
  EXPECT_TRUE(absl::EndsWith(said[1], twice) || absl::EndsWith(said[2], twice)) << said[1];
  said = Meet({{0, 2}, {1, 3}}, milliseconds(10'000));
  EXPECT_EQ(said[0], "rank 1 belongs to 3 ranks, and rank 0 to 2");
  said = Meet({{0, 2}, {0, 2}}, milliseconds(300));
  EXPECT_EQ(said[0], "rank 1 of 2 did not come to rank 0 within 0.3 s");
  said = Meet({{0, 2}, {2, 2}}, milliseconds(300));
  EXPECT_EQ(said[1], "there is no rank 2 of 2");
}

TEST(Tcp, NamesRanksThatDoNotCome) {
  RecordProperty("depends_on_time", "rank 2 comes within a second");
  const std::vector<std::string> said = Meet({{0, 4}, {2, 4}}, milliseconds(1000));
  EXPECT_EQ(said[0], "ranks 1, 3 of 4 did not come to rank 0 within 1 s");
  EXPECT_THAT(said[1], HasSubstr("rank 0 at 127.0.0.1:"));
  EXPECT_THAT(said[1], HasSubstr(": ranks 1, 3 of 4 did not come"));
  TcpOptions options;
  options.rank = 1;
  options.ranks = 2;
  options.timeout = milliseconds(50);
  options.root = "127.0.0.1:0";
  close(*ListenTcp(options.root)); // a port where nobody listens
  EXPECT_EQ(CreateTcpComm(options).status().message(),
            absl::StrCat("rank 0 at ", options.root, ": cannot connect to ", options.root,
                         ": Connection refused"));
  options.root = "nowhere";
  EXPECT_EQ(CreateTcpComm(options).status().message(),
            "`nowhere` is no address of the form host:port");
  options.rank = 0;
  options.root = "192.0.2.1:1"; // of no machine
  EXPECT_EQ(CreateTcpComm(options).status().message(),
            "rank 0: cannot listen at 192.0.2.1:1: Cannot assign requested address");
}

// Whatever else connects to the port changes nothing.
TEST(Tcp, IgnoresStrangers) {
  EXPECT_THAT(Meet({{0, 3}, {2, 3}, {1, 3}}, milliseconds(60'000),
                   "GET / HTTP/1.1\r\nHost: here\r\nAccept: text/html\r\n\r\n"),
              testing::Each(""));
}

/// Sets the loopback interface of this thread's network up or down.
bool SetLoopback(bool up) {
  const Socket socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq request = {};
  std::strcpy(request.ifr_name, "lo");
  request.ifr_flags = short(up ? IFF_UP | IFF_RUNNING : 0);
  return ioctl(socket.fd(), SIOCSIFFLAGS, &request) == 0;
}

// Two ranks in a network of their own, which then carries nothing: neither closes, so no packet
// says that a peer is gone. A rank that only waits learns it, and so does one that sends.
TEST(Tcp, ConnectionsEndWithoutAnAnswer) {
  std::string skipped;
  std::thread([&] {
    if (unshare(CLONE_NEWNET) != 0 || !SetLoopback(true)) {
      skipped = "the process may not have a network of its own";
      return;
    }
    std::vector<std::unique_ptr<Comm>> comms = OpenTcp(2, milliseconds(500));
    std::vector<char> large(8 << 20);
    std::promise<absl::Status> sent, received;
    ASSERT_TRUE(SetLoopback(false));
    comms[0]->Submit({{{1, large.data(), int64_t(large.size())}}, {}, [&](absl::Status status) {
                        sent.set_value(status);
                      }});
    comms[1]->Submit(
        {{}, {{0, large.data(), 8}}, [&](absl::Status status) { received.set_value(status); }});
    EXPECT_THAT(std::string(sent.get_future().get().message()), HasSubstr("rank 1 at 127.0.0.1:"));
    EXPECT_THAT(std::string(received.get_future().get().message()), HasSubstr("rank 0 at "));
  }).join();
  if (!skipped.empty())
    GTEST_SKIP() << skipped;
}

} // namespace
} // namespace boa
