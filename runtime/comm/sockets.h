//===- sockets.h - Sockets, and calls with a deadline --------- -*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the ranks need to find one another. No socket blocks: a call that waits has a deadline.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_COMM_SOCKETS_H
#define BOA_RUNTIME_COMM_SOCKETS_H

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

namespace boa {

using CommTime = std::chrono::steady_clock::time_point;

/// A descriptor, closed by its destructor.
class Socket {
public:
  explicit Socket(int fd = -1) : fd_(fd) {}
  Socket(Socket &&other) noexcept : fd_(other.Release()) {}
  Socket &operator=(Socket &&other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Socket() { Close(); }

  int fd() const { return fd_; }
  int Release() { return std::exchange(fd_, -1); }
  void Close();

private:
  int fd_;
};

/// A host, by name or number, and a port.
struct Address {
  std::string host;
  uint16_t port = 0;
};

/// Of "host:port"; an IPv6 address stands in brackets.
absl::StatusOr<Address> ParseAddress(absl::string_view);
std::string Format(const Address &);

/// The numeric addresses of a socket: its own, and its peer's.
absl::StatusOr<Address> OwnAddress(const Socket &);
absl::StatusOr<Address> PeerAddress(const Socket &);

absl::StatusOr<Socket> Listen(const Address &);
absl::StatusOr<Socket> Accept(const Socket &listening, CommTime deadline);
/// Tries again until the deadline, since the other end may start later.
absl::StatusOr<Socket> Connect(const Address &, CommTime deadline);

absl::Status Send(const Socket &, absl::string_view, CommTime deadline);
/// Unavailable: the other end closed the connection.
absl::Status Receive(const Socket &, void *data, size_t bytes, CommTime deadline);

/// "cannot DOING: ", and the words of this errno.
absl::Status SocketError(absl::string_view doing, int error);

} // namespace boa

#endif // BOA_RUNTIME_COMM_SOCKETS_H
