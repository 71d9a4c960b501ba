//===- simulated_network.cpp - A network that a seed decides --------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "test/simulation/simulated_network.h"

#include "runtime/support/random.h"

#include "absl/strings/str_cat.h"

#include <algorithm>

namespace boa {

class SimulatedComm : public Comm {
public:
  SimulatedComm(int32_t rank, SimulatedNetwork &network)
      : Comm(rank, network.ranks), network(network) {}
  ~SimulatedComm() override { network.Leave(rank()); }

  void Submit(Exchange exchange) override {
    if (!network.dead[rank()])
      network.streams[rank()].Add(std::move(exchange));
  }
  void Abort(absl::Status status) override { network.streams[rank()].Fail(status); }
  std::string Describe() const override {
    return absl::StrCat("simulated, rank ", rank(), " of ", ranks());
  }

private:
  SimulatedNetwork &network;
};

SimulatedNetwork::SimulatedNetwork(int32_t ranks, uint64_t seed)
    : ranks(ranks), seed(seed), dead(size_t(ranks)), told(size_t(ranks)),
      pipes(size_t(ranks * ranks)) {
  for (int32_t rank = 0; rank < ranks; ++rank)
    streams.emplace_back(rank, ranks);
  for (Pipe &pipe : pipes) {
    pipe.capacity = size_t(1) << Random(13);
    pipe.slow = Random(4) == 0;
  }
}

std::vector<std::unique_ptr<Comm>> SimulatedNetwork::Open() {
  std::vector<std::unique_ptr<Comm>> comms;
  for (int32_t rank = 0; rank < ranks; ++rank)
    comms.push_back(std::make_unique<SimulatedComm>(rank, *this));
  return comms;
}

uint64_t SimulatedNetwork::Random(uint64_t count) { return Below(Hash({seed, choices++}), count); }

void SimulatedNetwork::Close(int32_t from, int32_t to, const std::string &why, bool lose) {
  Pipe &pipe = PipeOf(from, to);
  if (pipe.closed)
    return;
  pipe.closed = true;
  pipe.why = why;
  if (lose)
    pipe.bytes.clear();
}

void SimulatedNetwork::Leave(int32_t rank) {
  if (dead[rank])
    return;
  while (!streams[rank].Idle() || streams[rank].HasDone()) {
    if (!streams[rank].Idle())
      streams[rank].Fail(absl::CancelledError(absl::StrCat("rank ", rank, " ends")));
    CompleteExchanges(streams[rank].TakeDone());
  }
  for (int32_t peer = 0; peer < ranks; ++peer)
    Close(rank, peer, "ended", false);
  dead[rank] = true;
}

void SimulatedNetwork::SeeFailure(int32_t rank) {
  if (streams[rank].failed().ok() || told[rank])
    return;
  told[rank] = true;
  for (int32_t peer = 0; peer < ranks; ++peer)
    Close(rank, peer, "failed", true);
}

void SimulatedNetwork::Kill(int32_t rank) {
  dead[rank] = true;
  for (int32_t peer = 0; peer < ranks; ++peer)
    Close(rank, peer, "died", Random(2) == 0);
}

void SimulatedNetwork::Drop(int32_t a, int32_t b) {
  Close(a, b, "broken", true);
  Close(b, a, "broken", true);
}

void SimulatedNetwork::Partition(int32_t a, int32_t b, bool on) {
  PipeOf(a, b).blocked = PipeOf(b, a).blocked = on;
}

void SimulatedNetwork::TimeOut() {
  for (int32_t a = 0; a < ranks; ++a)
    for (int32_t b = 0; b < ranks; ++b)
      if (PipeOf(a, b).blocked) {
        Close(a, b, "does not answer", true);
        PipeOf(a, b).blocked = false;
      }
}

std::vector<SimulatedNetwork::Event> SimulatedNetwork::Events() {
  std::vector<Event> fast, slow;
  for (int32_t rank = 0; rank < ranks; ++rank) {
    if (dead[rank])
      continue;
    if (streams[rank].HasDone())
      fast.push_back({Event::kRun, rank, rank});
    for (int32_t peer = 0; peer < ranks; ++peer) {
      const Pipe &out = PipeOf(rank, peer), &in = PipeOf(peer, rank);
      // Whoever sends to a rank that is gone fills its own end.
      if (peer == rank)
        continue;
      if (streams[rank].Outgoing(peer).bytes > 0 && !out.closed && out.bytes.size() < out.capacity)
        (out.slow ? slow : fast).push_back({Event::kEnter, rank, peer});
      if (in.blocked)
        continue;
      if (streams[rank].Incoming(peer).bytes > 0 && !in.bytes.empty())
        (in.slow ? slow : fast).push_back({Event::kLeave, peer, rank});
      if (in.closed && !in.known &&
          (in.bytes.empty() ||
           (streams[rank].Incoming(peer).bytes == 0 && streams[rank].Outgoing(peer).bytes > 0)))
        slow.push_back({Event::kLearn, peer, rank});
    }
  }
  return fast.empty() || (!slow.empty() && Random(16) == 0) ? slow : fast;
}

bool SimulatedNetwork::Step() {
  for (int32_t rank = 0; rank < ranks; ++rank)
    SeeFailure(rank);
  const std::vector<Event> events = Events();
  if (events.empty())
    return false;
  Do(events[Random(events.size())]);
  return true;
}

void SimulatedNetwork::Do(Event event) {
  Pipe &pipe = PipeOf(event.from, event.to);
  switch (event.kind) {
  case Event::kRun:
    return CompleteExchanges(streams[event.to].TakeDone());
  case Event::kLearn:
    pipe.known = true;
    return streams[event.to].Close(event.from, absl::UnavailableError(absl::StrCat(
                                                   "rank ", event.from, " is gone: ", pipe.why)));
  case Event::kEnter: {
    const Span span = streams[event.from].Outgoing(event.to);
    const auto most = std::min<uint64_t>(span.bytes, pipe.capacity - pipe.bytes.size());
    const auto bytes = int64_t(Random(most) + 1);
    pipe.bytes.insert(pipe.bytes.end(), span.data, span.data + bytes);
    return streams[event.from].Sent(event.to, bytes);
  }
  case Event::kLeave: {
    const Span span = streams[event.to].Incoming(event.from);
    const auto most = std::min<uint64_t>(span.bytes, pipe.bytes.size());
    const auto bytes = int64_t(Random(most) + 1);
    std::copy_n(pipe.bytes.begin(), bytes, span.data);
    pipe.bytes.erase(pipe.bytes.begin(), pipe.bytes.begin() + bytes);
    return streams[event.to].Received(event.from, bytes);
  }
  }
}

} // namespace boa
