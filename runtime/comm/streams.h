//===- streams.h - Exchanges as streams of bytes -------------- -*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the engines have in common: the exchanges of one rank as two streams of bytes for each peer,
// one in each direction. A message is its size (8 bytes) and its bytes. So an engine moves bytes in
// order and knows nothing of messages. If the ends name different sizes, that is found.
//
// It knows no thread, lock, socket or clock. An engine guards it.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_COMM_STREAMS_H
#define BOA_RUNTIME_COMM_STREAMS_H

#include "runtime/comm/comm.h"

#include <deque>
#include <memory>
#include <utility>
#include <vector>

namespace boa {

/// Bytes of a stream that may move now; none: nothing does.
struct Span {
  char *data = nullptr;
  int64_t bytes = 0;
};

class Streams {
public:
  using Completion = std::pair<std::function<void(absl::Status)>, absl::Status>;

  Streams(int32_t rank, int32_t ranks);

  void Add(Exchange);

  /// The next bytes for a peer and from it. They stay where they are until they have moved, or an
  /// error ends the exchange.
  Span Outgoing(int32_t peer);
  Span Incoming(int32_t peer);
  /// `bytes` of them have moved.
  void Sent(int32_t peer, int64_t bytes);
  void Received(int32_t peer, int64_t bytes);

  /// The peer is gone: Fails now, or when an exchange needs it.
  void Close(int32_t peer, const absl::Status &);
  /// Ends all exchanges, and all that follow. The first status stays.
  void Fail(const absl::Status &);
  const absl::Status &failed() const { return failure; }

  /// Nothing waits.
  bool Idle() const { return waiting == 0; }
  bool HasDone() const { return !done.empty(); }
  /// Callbacks to run, without any lock held.
  std::vector<Completion> TakeDone() { return std::exchange(done, {}); }

private:
  /// An exchange that is not complete.
  struct Pending {
    std::function<void(absl::Status)> done;
    int64_t messages = 0; // that have not moved
  };
  struct Item {
    Message message;
    std::shared_ptr<Pending> exchange;
  };
  struct Stream {
    std::deque<Item> items;
    int64_t size = 0;  // the first message's, as it is sent
    int64_t moved = 0; // bytes of the size and the first message
  };
  struct Peer {
    Stream outgoing, incoming;
    absl::Status gone;
  };

  absl::Status Validate(const Exchange &) const;
  Span Next(Stream &);
  void Move(Stream &, int64_t bytes);

  const int32_t rank;
  std::vector<Peer> peers;
  int64_t waiting = 0; // messages
  absl::Status failure;
  std::vector<Completion> done;
};

/// Runs callbacks taken from streams.
void CompleteExchanges(std::vector<Streams::Completion>);

} // namespace boa

#endif // BOA_RUNTIME_COMM_STREAMS_H
