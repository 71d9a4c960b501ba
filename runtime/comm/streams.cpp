//===- streams.cpp - Exchanges as streams of bytes ------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/comm/streams.h"

#include "runtime/support/refuse.h"

#include "absl/strings/str_cat.h"

namespace boa {

constexpr int64_t kSizeBytes = sizeof(int64_t);

Streams::Streams(int32_t rank, int32_t ranks) : rank(rank), peers(size_t(ranks)) {}

absl::Status Streams::Validate(const Exchange &exchange) const {
  for (const std::vector<Message> *messages : {&exchange.sends, &exchange.receives})
    for (const Message &message : *messages) {
      if (message.peer < 0 || message.peer >= int32_t(peers.size()) || message.peer == rank)
        return Refuse("rank ", rank, " of ", peers.size(), " has no peer ", message.peer);
      if (message.bytes < 0)
        return Refuse("a message of ", message.bytes, " bytes with rank ", message.peer);
    }
  return absl::OkStatus();
}

void Streams::Add(Exchange exchange) {
  absl::Status status = failure.ok() ? Validate(exchange) : failure;
  if (!status.ok() || exchange.sends.size() + exchange.receives.size() == 0) {
    done.emplace_back(std::move(exchange.done), std::move(status));
    return;
  }
  auto pending = std::make_shared<Pending>();
  pending->done = std::move(exchange.done);
  pending->messages = int64_t(exchange.sends.size() + exchange.receives.size());
  waiting += pending->messages;
  absl::Status gone;
  for (const Message &message : exchange.sends)
    peers[message.peer].outgoing.items.push_back({message, pending});
  for (const Message &message : exchange.receives)
    peers[message.peer].incoming.items.push_back({message, pending});
  for (const std::vector<Message> *messages : {&exchange.sends, &exchange.receives})
    for (const Message &message : *messages)
      gone.Update(peers[message.peer].gone);
  if (!gone.ok())
    Fail(gone);
}

Span Streams::Outgoing(int32_t peer) {
  Stream &stream = peers[peer].outgoing;
  if (stream.moved == 0 && !stream.items.empty())
    stream.size = stream.items.front().message.bytes;
  return Next(stream);
}

Span Streams::Incoming(int32_t peer) { return Next(peers[peer].incoming); }

Span Streams::Next(Stream &stream) {
  if (stream.items.empty())
    return {};
  const Message &message = stream.items.front().message;
  if (stream.moved < kSizeBytes)
    return {reinterpret_cast<char *>(&stream.size) + stream.moved, kSizeBytes - stream.moved};
  const int64_t at = stream.moved - kSizeBytes;
  return {static_cast<char *>(message.data) + at, message.bytes - at};
}

void Streams::Move(Stream &stream, int64_t bytes) {
  stream.moved += bytes;
  Item &item = stream.items.front();
  if (stream.moved < kSizeBytes + item.message.bytes)
    return;
  --waiting;
  if (--item.exchange->messages == 0)
    done.emplace_back(std::move(item.exchange->done), absl::OkStatus());
  stream.items.pop_front();
  stream.moved = 0;
}

void Streams::Sent(int32_t peer, int64_t bytes) { Move(peers[peer].outgoing, bytes); }

void Streams::Received(int32_t peer, int64_t bytes) {
  Stream &stream = peers[peer].incoming;
  const int64_t expected = stream.items.front().message.bytes;
  if (stream.moved + bytes == kSizeBytes && stream.size != expected)
    return Fail(absl::InternalError(
        absl::StrCat("rank ", peer, " sends a message of ", stream.size, " bytes where rank ", rank,
                     " receives one of ", expected, ": the ranks do not run the same program")));
  Move(stream, bytes);
}

void Streams::Close(int32_t peer, const absl::Status &why) {
  Peer &closed = peers[peer];
  closed.gone.Update(why);
  if (!closed.outgoing.items.empty() || !closed.incoming.items.empty())
    Fail(closed.gone);
}

void Streams::Fail(const absl::Status &status) {
  failure.Update(status);
  for (Peer &peer : peers)
    for (Stream *stream : {&peer.outgoing, &peer.incoming})
      for (; !stream->items.empty(); stream->items.pop_front())
        if (Pending &exchange = *stream->items.front().exchange; exchange.done)
          done.emplace_back(std::exchange(exchange.done, nullptr), failure);
  waiting = 0;
}

void CompleteExchanges(std::vector<Streams::Completion> completions) {
  for (auto &[done, status] : completions)
    done(std::move(status));
}

} // namespace boa
