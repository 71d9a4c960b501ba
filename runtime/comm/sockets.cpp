//===- sockets.cpp - Sockets, and calls with a deadline -------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/comm/sockets.h"

#include "runtime/support/refuse.h"

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

namespace boa {

constexpr int kNoWait = SOCK_NONBLOCK | SOCK_CLOEXEC;
// Between two attempts to connect.
constexpr auto kConnectPause = std::chrono::milliseconds(20);

void Socket::Close() {
  if (fd_ >= 0)
    close(Release());
}

absl::Status SocketError(absl::string_view doing, int error) {
  return absl::UnavailableError(absl::StrCat("cannot ", doing, ": ", std::strerror(error)));
}

//===----------------------------------------------------------------------===//
// Addresses
//===----------------------------------------------------------------------===//

absl::StatusOr<Address> ParseAddress(absl::string_view text) {
  const size_t colon = text.rfind(':');
  uint32_t port = 0;
  if (colon == absl::string_view::npos || colon == 0 ||
      !absl::SimpleAtoi(text.substr(colon + 1), &port) || port > 65535)
    return Refuse("`", text, "` is no address of the form host:port");
  absl::string_view host = text.substr(0, colon);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']')
    host = host.substr(1, host.size() - 2);
  return Address{std::string(host), uint16_t(port)};
}

std::string Format(const Address &address) {
  const bool six = absl::StrContains(address.host, ':');
  return absl::StrCat(six ? "[" : "", address.host, six ? "]" : "", ":", address.port);
}

using AddressOf = int(int, sockaddr *, socklen_t *);
static absl::StatusOr<Address> Find(AddressOf *call, const Socket &socket) {
  sockaddr_storage storage;
  auto *const address = reinterpret_cast<sockaddr *>(&storage);
  socklen_t size = sizeof storage;
  char host[NI_MAXHOST], port[NI_MAXSERV];
  if (call(socket.fd(), address, &size) != 0)
    return SocketError("find the address of a connection", errno);
  if (int error = getnameinfo(address, size, host, sizeof host, port, sizeof port,
                              NI_NUMERICHOST | NI_NUMERICSERV))
    return absl::UnavailableError(gai_strerror(error));
  uint32_t number = 0;
  (void)absl::SimpleAtoi(port, &number);
  return Address{host, uint16_t(number)};
}

absl::StatusOr<Address> OwnAddress(const Socket &socket) { return Find(getsockname, socket); }
absl::StatusOr<Address> PeerAddress(const Socket &socket) { return Find(getpeername, socket); }

/// Calls `use` with each of a host's addresses until it returns a socket.
template <typename Use>
static absl::StatusOr<Socket> TryEach(const Address &address, absl::string_view doing, Use use) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo *list = nullptr;
  const std::string what = absl::StrCat(doing, " ", Format(address));
  if (int error =
          getaddrinfo(address.host.c_str(), absl::StrCat(address.port).c_str(), &hints, &list))
    return absl::UnavailableError(absl::StrCat("cannot ", what, ": ", gai_strerror(error)));
  const std::unique_ptr<addrinfo, void (*)(addrinfo *)> owner(list, freeaddrinfo);
  int error = 0;
  for (const addrinfo *one = list; one; one = one->ai_next) {
    Socket socket(::socket(one->ai_family, SOCK_STREAM | kNoWait, 0));
    error = socket.fd() < 0 ? errno : use(socket, *one);
    if (error == 0)
      return socket;
  }
  return SocketError(what, error);
}

absl::StatusOr<Socket> Listen(const Address &address) {
  return TryEach(address, "listen at", [](const Socket &socket, const addrinfo &one) {
    const int yes = 1;
    setsockopt(socket.fd(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    const bool ok =
        bind(socket.fd(), one.ai_addr, one.ai_addrlen) == 0 && listen(socket.fd(), SOMAXCONN) == 0;
    return ok ? 0 : errno;
  });
}

//===----------------------------------------------------------------------===//
// Calls with a deadline
//===----------------------------------------------------------------------===//

/// Whether the socket became ready, for better or worse.
static bool Wait(const Socket &socket, short events, CommTime deadline) {
  pollfd one = {socket.fd(), events, 0};
  while (true) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    if (poll(&one, 1, int(std::clamp<int64_t>(left.count(), 0, 1 << 30))) > 0)
      return true;
    if (left.count() <= 0)
      return false;
  }
}

absl::StatusOr<Socket> Accept(const Socket &listening, CommTime deadline) {
  while (Wait(listening, POLLIN, deadline)) {
    Socket socket(accept4(listening.fd(), nullptr, nullptr, kNoWait));
    if (socket.fd() >= 0)
      return socket;
    // All other errors are those of a connection that ended before it was accepted.
    if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
      return SocketError("accept a connection", errno);
  }
  return absl::DeadlineExceededError("nobody connects");
}

/// Where nobody listens at a port from which connections start, a socket can reach itself.
static bool IsOwn(const Socket &socket) {
  const absl::StatusOr<Address> own = OwnAddress(socket), peer = PeerAddress(socket);
  return own.ok() && peer.ok() && Format(*own) == Format(*peer);
}

absl::StatusOr<Socket> Connect(const Address &address, CommTime deadline) {
  while (true) {
    absl::StatusOr<Socket> socket =
        TryEach(address, "connect to", [&](const Socket &socket, const addrinfo &one) {
          if (connect(socket.fd(), one.ai_addr, one.ai_addrlen) == 0)
            return 0;
          if (errno != EINPROGRESS)
            return errno;
          int error = ETIMEDOUT;
          socklen_t size = sizeof error;
          if (Wait(socket, POLLOUT, deadline))
            getsockopt(socket.fd(), SOL_SOCKET, SO_ERROR, &error, &size);
          return error == 0 && IsOwn(socket) ? ECONNREFUSED : error;
        });
    if (socket.ok() || std::chrono::steady_clock::now() + kConnectPause > deadline)
      return socket;
    std::this_thread::sleep_for(kConnectPause);
  }
}

/// Calls `move(data, bytes)`, a system call, until all bytes have moved.
template <typename Call>
static absl::Status MoveAll(const Socket &socket, short events, size_t bytes, CommTime deadline,
                            Call move) {
  for (size_t moved = 0; moved < bytes;) {
    const ssize_t now = move(moved, bytes - moved);
    if (now == 0)
      return absl::UnavailableError("it closed the connection");
    if (now > 0)
      moved += size_t(now);
    else if (errno == EAGAIN && !Wait(socket, events, deadline))
      return absl::DeadlineExceededError("it does not answer");
    else if (errno != EAGAIN && errno != EINTR)
      return absl::UnavailableError(std::strerror(errno));
  }
  return absl::OkStatus();
}

absl::Status Send(const Socket &socket, absl::string_view bytes, CommTime deadline) {
  return MoveAll(socket, POLLOUT, bytes.size(), deadline, [&](size_t at, size_t left) {
    return send(socket.fd(), bytes.data() + at, left, MSG_NOSIGNAL);
  });
}

absl::Status Receive(const Socket &socket, void *data, size_t bytes, CommTime deadline) {
  return MoveAll(socket, POLLIN, bytes, deadline, [&](size_t at, size_t left) {
    return recv(socket.fd(), static_cast<char *>(data) + at, left, 0);
  });
}

} // namespace boa
