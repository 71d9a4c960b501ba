//===- rendezvous.cpp - How ranks find one another ------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/comm/rendezvous.h"

#include "runtime/support/random.h"
#include "runtime/support/refuse.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

#include <algorithm>
#include <random>

namespace boa {
namespace {

// Its bytes differ where the order of bytes does.
constexpr uint64_t kMagic = 0x316b6e6172616f62; // "boarank1"
constexpr int32_t kMaxRanks = 1 << 16;
constexpr auto kHelloTime = std::chrono::seconds(10);
constexpr int32_t kMaxText = 64 * kMaxRanks; // the addresses of that many ranks

/// Who opened a connection. `meeting` is 0 in those to rank 0.
struct Hello {
  uint64_t magic = kMagic, meeting = 0;
  int32_t rank = 0, ranks = 0, port = 0, unused = 0;
};

/// Rank 0's answer. The text that follows is an error, or a line for each rank from 1 on.
struct Answer {
  uint64_t magic = kMagic, meeting = 0;
  int32_t refused = 0, bytes = 0;
};

template <typename T> absl::string_view BytesOf(const T &value) {
  return {reinterpret_cast<const char *>(&value), sizeof value};
}

absl::Status About(const absl::Status &status, absl::string_view who) {
  return absl::Status(status.code(), absl::StrCat(who, ": ", status.message()));
}

class Meeting {
public:
  explicit Meeting(const TcpOptions &options)
      : options(options), deadline(std::chrono::steady_clock::now() + options.timeout),
        sockets(size_t(options.ranks)), ports(size_t(options.ranks)) {}

  absl::Status Lead();
  absl::Status Follow();
  std::vector<Socket> TakeSockets() { return std::move(sockets); }

private:
  absl::Status AcceptFrom(int32_t first, const Socket &listening);
  absl::Status Admit(const Hello &, Socket, int32_t first);
  absl::StatusOr<std::string> Addresses() const;
  absl::Status AnswerAll(const absl::StatusOr<std::string> &);
  absl::StatusOr<std::string> AskLeader(uint16_t port);
  std::string Missing(int32_t first) const;

  const TcpOptions &options;
  const CommTime deadline;
  uint64_t meeting = 0;
  std::vector<Socket> sockets;
  std::vector<uint16_t> ports; // at which ranks listen
};

/// The ranks from `first` on that have not come.
std::string Meeting::Missing(int32_t first) const {
  std::vector<int32_t> missing;
  for (int32_t rank = first; rank < options.ranks; ++rank)
    if (sockets[rank].fd() < 0)
      missing.push_back(rank);
  return absl::StrCat(missing.size() == 1 ? "rank " : "ranks ", absl::StrJoin(missing, ", "));
}

/// Accepts connections until each rank from `first` on has one.
absl::Status Meeting::AcceptFrom(int32_t first, const Socket &listening) {
  for (int32_t left = options.ranks - first; left > 0;) {
    absl::StatusOr<Socket> socket = Accept(listening, deadline);
    if (absl::IsDeadlineExceeded(socket.status()))
      return absl::DeadlineExceededError(
          absl::StrCat(Missing(first), " of ", options.ranks, " did not come to rank ",
                       options.rank, " within ", options.timeout.count() / 1000.0, " s"));
    if (!socket.ok())
      return socket.status();
    // A rank speaks as soon as it is connected.
    Hello hello;
    const CommTime soon = std::min(deadline, std::chrono::steady_clock::now() + kHelloTime);
    if (!Receive(*socket, &hello, sizeof hello, soon).ok() || hello.magic != kMagic ||
        hello.meeting != meeting)
      continue;
    if (absl::Status status = Admit(hello, *std::move(socket), first); !status.ok())
      return status;
    --left;
  }
  return absl::OkStatus();
}

absl::Status Meeting::Admit(const Hello &hello, Socket socket, int32_t first) {
  if (hello.ranks != options.ranks)
    return Refuse("rank ", hello.rank, " belongs to ", hello.ranks, " ranks, and rank ",
                  options.rank, " to ", options.ranks);
  if (hello.rank < first || hello.rank >= options.ranks)
    return Refuse("rank ", hello.rank, " of ", options.ranks, " came to rank ", options.rank);
  if (sockets[hello.rank].fd() >= 0)
    return Refuse("rank ", hello.rank, " came twice: each process needs a number of its own");
  ports[hello.rank] = uint16_t(hello.port);
  sockets[hello.rank] = std::move(socket);
  return absl::OkStatus();
}

/// A line for each rank from 1 on.
absl::StatusOr<std::string> Meeting::Addresses() const {
  std::string text;
  for (int32_t rank = 1; rank < options.ranks; ++rank) {
    absl::StatusOr<Address> address = PeerAddress(sockets[rank]);
    if (!address.ok())
      return About(address.status(), absl::StrCat("rank ", rank));
    absl::StrAppend(&text, Format({address->host, ports[rank]}), "\n");
  }
  return text;
}

/// Tells those that came, also that it failed.
absl::Status Meeting::AnswerAll(const absl::StatusOr<std::string> &addresses) {
  const std::string text = addresses.ok() ? *addresses : std::string(addresses.status().message());
  Answer answer;
  answer.meeting = meeting;
  answer.refused = !addresses.ok();
  answer.bytes = int32_t(text.size());
  absl::Status status = addresses.status();
  // Those who came already learn of a failure without waiting, so a second is theirs.
  const CommTime until =
      status.ok() ? deadline : std::chrono::steady_clock::now() + std::chrono::seconds(1);
  for (int32_t rank = 1; rank < options.ranks; ++rank) {
    if (sockets[rank].fd() < 0)
      continue;
    const absl::Status sent = Send(sockets[rank], absl::StrCat(BytesOf(answer), text), until);
    if (!sent.ok())
      status.Update(About(sent, absl::StrCat("rank ", rank)));
  }
  return status;
}

absl::Status Meeting::Lead() {
  Socket listening(options.listening);
  if (options.ranks == 1)
    return absl::OkStatus();
  if (listening.fd() < 0) {
    const absl::StatusOr<Address> root = ParseAddress(options.root);
    if (!root.ok())
      return root.status();
    absl::StatusOr<Socket> opened = Listen(*root);
    if (!opened.ok())
      return About(opened.status(), "rank 0");
    listening = *std::move(opened);
  }
  absl::Status status = AcceptFrom(1, listening);
  std::random_device random;
  meeting = Hash({random(), random(), random()}) | 1;
  return AnswerAll(status.ok() ? Addresses() : absl::StatusOr<std::string>(std::move(status)));
}

/// Returns the addresses of the ranks from 1 on.
absl::StatusOr<std::string> Meeting::AskLeader(uint16_t port) {
  Hello hello;
  hello.rank = options.rank;
  hello.ranks = options.ranks;
  hello.port = port;
  Answer answer;
  if (absl::Status status = Send(sockets[0], BytesOf(hello), deadline); !status.ok())
    return status;
  // Rank 0 waits as long for the others, perhaps from a later time on.
  const CommTime later = deadline + options.timeout;
  if (absl::Status status = Receive(sockets[0], &answer, sizeof answer, later); !status.ok())
    return status;
  if (answer.magic != kMagic || answer.bytes < 0 || answer.bytes > kMaxText)
    return Refuse("it is no rank of Boa");
  std::string text(size_t(answer.bytes), ' ');
  if (absl::Status status = Receive(sockets[0], text.data(), text.size(), later); !status.ok())
    return status;
  if (answer.refused)
    return Refuse(text);
  meeting = answer.meeting;
  return text;
}

absl::Status Meeting::Follow() {
  const absl::StatusOr<Address> root = ParseAddress(options.root);
  if (!root.ok())
    return root.status();
  const std::string leader = absl::StrCat("rank 0 at ", options.root);
  absl::StatusOr<Socket> socket = Connect(*root, deadline);
  if (!socket.ok())
    return About(socket.status(), leader);
  sockets[0] = *std::move(socket);
  // The others reach this rank where rank 0 sees it.
  absl::StatusOr<Address> own = OwnAddress(sockets[0]);
  if (!own.ok())
    return own.status();
  absl::StatusOr<Socket> listening = Listen({own->host, 0});
  if (!listening.ok())
    return listening.status();
  own = OwnAddress(*listening);
  if (!own.ok())
    return own.status();
  const absl::StatusOr<std::string> text = AskLeader(own->port);
  if (!text.ok())
    return About(text.status(), leader);
  const std::vector<std::string> lines = absl::StrSplit(*text, '\n');
  for (int32_t rank = 1; rank < options.rank; ++rank) {
    const std::string who = absl::StrCat("rank ", rank);
    const absl::StatusOr<Address> address =
        ParseAddress(size_t(rank) <= lines.size() ? lines[rank - 1] : "");
    if (!address.ok())
      return About(address.status(), who);
    absl::StatusOr<Socket> peer = Connect(*address, deadline + options.timeout);
    if (!peer.ok())
      return About(peer.status(), who);
    Hello hello;
    hello.meeting = meeting;
    hello.rank = options.rank;
    hello.ranks = options.ranks;
    if (absl::Status status = Send(*peer, BytesOf(hello), deadline + options.timeout); !status.ok())
      return About(status, who);
    sockets[rank] = *std::move(peer);
  }
  return AcceptFrom(options.rank + 1, *listening);
}

} // namespace

absl::StatusOr<std::vector<Socket>> Meet(const TcpOptions &options) {
  if (options.ranks < 1 || options.ranks > kMaxRanks || options.rank < 0 ||
      options.rank >= options.ranks)
    return Refuse("there is no rank ", options.rank, " of ", options.ranks);
  Meeting meeting(options);
  absl::Status status = options.rank == 0 ? meeting.Lead() : meeting.Follow();
  if (!status.ok())
    return status;
  return meeting.TakeSockets();
}

absl::StatusOr<int> ListenTcp(std::string &address) {
  const absl::StatusOr<Address> root = ParseAddress(address);
  if (!root.ok())
    return root.status();
  absl::StatusOr<Socket> socket = Listen(*root);
  if (!socket.ok())
    return socket.status();
  const absl::StatusOr<Address> own = OwnAddress(*socket);
  if (!own.ok())
    return own.status();
  address = Format({root->host, own->port});
  return socket->Release();
}

} // namespace boa
