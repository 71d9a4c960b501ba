//===- socket_comm.cpp - Ranks connected by sockets ------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One socket for each peer, and one thread that moves the bytes of all of them. It sleeps in poll.
// A peer that ends closes its sockets, and the system tells at once. A host that is gone does not
// close: then the system ends the connection when `timeout` has passed without an answer of the
// other system. It asks for one also while no bytes move.
//
//===----------------------------------------------------------------------===//
#include "runtime/comm/rendezvous.h"
#include "runtime/comm/worker_comm.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

namespace boa {
namespace {

// Of one stream, before it is the turn of the next.
constexpr int64_t kTurnBytes = 4 << 20;

class SocketComm : public WorkerComm {
public:
  SocketComm(int32_t rank, std::string kind, std::vector<Socket> sockets,
             std::vector<std::string> names)
      : WorkerComm(rank, int32_t(sockets.size())), kind(std::move(kind)),
        sockets(std::move(sockets)), names(std::move(names)) {}
  ~SocketComm() override { Stop(); }

  using WorkerComm::Start;
  std::string Describe() const override {
    return absl::StrCat(kind, ", rank ", rank(), " of ", ranks());
  }

private:
  void Run() override;
  void SendTo(int32_t peer);
  void ReceiveFrom(int32_t peer);
  void Close(int32_t peer, absl::string_view why);

  const std::string kind;
  std::vector<Socket> sockets;    // by rank
  std::vector<std::string> names; // " at host:port", if they have an address
};

void SocketComm::Run() {
  std::vector<pollfd> polled;
  while (Take()) {
    // The peers learn of an error by this.
    if (!streams.failed().ok())
      for (Socket &socket : sockets)
        socket.Close();
    polled.assign(1, {wake.fd(), POLLIN, 0});
    for (int32_t peer = 0; peer < ranks(); ++peer) {
      const short in = streams.Incoming(peer).bytes > 0 ? POLLIN : 0;
      const short out = streams.Outgoing(peer).bytes > 0 ? POLLOUT : 0;
      // Poll leaves out -1. A socket that nobody needs may have ended, and is looked at later.
      polled.push_back({in || out ? sockets[peer].fd() : -1, short(in | out), 0});
    }
    if (poll(polled.data(), polled.size(), -1) <= 0)
      continue;
    for (int32_t peer = 0; peer < ranks(); ++peer)
      if (polled[peer + 1].revents != 0) {
        ReceiveFrom(peer); // first: what came before an end is still there
        SendTo(peer);
      }
  }
}

void SocketComm::SendTo(int32_t peer) {
  int64_t moved = 0;
  for (Span span = streams.Outgoing(peer); span.bytes > 0 && moved < kTurnBytes;
       span = streams.Outgoing(peer)) {
    const ssize_t bytes = send(sockets[peer].fd(), span.data, size_t(span.bytes), MSG_NOSIGNAL);
    if (bytes < 0 && (errno == EAGAIN || errno == EINTR))
      return;
    if (bytes < 0)
      return Close(peer, std::strerror(errno));
    streams.Sent(peer, bytes);
    moved += bytes;
  }
}

void SocketComm::ReceiveFrom(int32_t peer) {
  int64_t moved = 0;
  for (Span span = streams.Incoming(peer); span.bytes > 0 && moved < kTurnBytes;
       span = streams.Incoming(peer)) {
    const ssize_t bytes = recv(sockets[peer].fd(), span.data, size_t(span.bytes), 0);
    if (bytes < 0 && (errno == EAGAIN || errno == EINTR))
      return;
    if (bytes <= 0)
      return Close(peer, bytes == 0 ? "closed its connection" : std::strerror(errno));
    streams.Received(peer, bytes);
    moved += bytes;
  }
}

void SocketComm::Close(int32_t peer, absl::string_view why) {
  sockets[peer].Close();
  streams.Close(peer, absl::UnavailableError(absl::StrCat("rank ", peer, names[peer], ": ", why)));
}

/// Lets the system watch a connection and send without delay.
absl::Status Prepare(const Socket &socket, std::chrono::milliseconds timeout) {
  const auto whole = int(timeout.count());
  const int seconds = std::max(whole / 1000, 2), yes = 1;
  const std::pair<int, int> options[] = {{TCP_NODELAY, 1},
                                         {TCP_USER_TIMEOUT, whole},
                                         {TCP_KEEPIDLE, seconds / 2},
                                         {TCP_KEEPINTVL, std::max(seconds / 8, 1)},
                                         {TCP_KEEPCNT, 4}};
  bool ok = setsockopt(socket.fd(), SOL_SOCKET, SO_KEEPALIVE, &yes, sizeof yes) == 0;
  for (auto [name, value] : options)
    ok = ok && setsockopt(socket.fd(), IPPROTO_TCP, name, &value, sizeof value) == 0;
  return ok ? absl::OkStatus() : SocketError("prepare a connection", errno);
}

} // namespace

absl::StatusOr<std::unique_ptr<Comm>> CreateTcpComm(const TcpOptions &options) {
  absl::StatusOr<std::vector<Socket>> sockets = Meet(options);
  if (!sockets.ok())
    return sockets.status();
  std::vector<std::string> names(sockets->size());
  for (int32_t peer = 0; peer < options.ranks; ++peer) {
    const Socket &socket = (*sockets)[peer];
    if (peer == options.rank)
      continue;
    if (absl::Status status = Prepare(socket, options.timeout); !status.ok())
      return status;
    if (absl::StatusOr<Address> address = PeerAddress(socket); address.ok())
      names[peer] = absl::StrCat(" at ", Format(*address));
  }
  auto comm = std::make_unique<SocketComm>(options.rank, "tcp", *std::move(sockets), names);
  if (absl::Status status = comm->Start(); !status.ok())
    return status;
  return comm;
}

absl::StatusOr<std::vector<std::unique_ptr<Comm>>> CreateThreadComms(int32_t ranks) {
  std::vector<std::vector<Socket>> sockets;
  for (int32_t rank = 0; rank < ranks; ++rank) {
    sockets.emplace_back(size_t(ranks));
    for (int32_t peer = 0; peer < rank; ++peer) {
      int pair[2];
      if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair) != 0)
        return SocketError("connect ranks", errno);
      sockets[rank][peer] = Socket(pair[0]);
      sockets[peer][rank] = Socket(pair[1]);
    }
  }
  std::vector<std::unique_ptr<Comm>> comms;
  for (int32_t rank = 0; rank < ranks; ++rank) {
    auto comm = std::make_unique<SocketComm>(rank, "threads", std::move(sockets[rank]),
                                             std::vector<std::string>(size_t(ranks)));
    if (absl::Status status = comm->Start(); !status.ok())
      return status;
    comms.push_back(std::move(comm));
  }
  return comms;
}

} // namespace boa
