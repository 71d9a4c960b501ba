//===- simulated_network.h - A network that a seed decides ---- -*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Ranks of one process and one thread. Each event is chosen by the seed: bytes that enter a
// connection or leave it, news of its end, callbacks. A connection holds a few bytes. So every
// delay and every division of messages occurs, and a failing seed is repeated exactly.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_TEST_SIMULATION_SIMULATED_NETWORK_H
#define BOA_TEST_SIMULATION_SIMULATED_NETWORK_H

#include "runtime/comm/streams.h"

#include <deque>
#include <memory>
#include <string>
#include <vector>

namespace boa {

class SimulatedNetwork {
public:
  SimulatedNetwork(int32_t ranks, uint64_t seed);

  /// The ends of all ranks. The network outlives them.
  std::vector<std::unique_ptr<Comm>> Open();

  /// One event. False: nothing happens until a rank submits, or a partition ends.
  bool Step();

  /// A process dies: its callbacks do not run any more. What it has sent arrives, or is lost.
  void Kill(int32_t rank);
  /// A connection breaks. What is on its way is lost.
  void Drop(int32_t a, int32_t b);
  /// No byte and no news passes between these two, until `off`.
  void Partition(int32_t a, int32_t b, bool on);
  /// The systems of both ends wait for an answer no longer, and drop the connections that are
  /// partitioned.
  void TimeOut();

  uint64_t Random(uint64_t count);

private:
  friend class SimulatedComm;

  /// One direction of a connection.
  struct Pipe {
    std::deque<char> bytes;
    size_t capacity = 1;
    bool slow = false;
    bool closed = false;  // nothing enters any more
    bool known = false;   // the receiver knows that
    bool blocked = false; // by a partition
    std::string why;
  };
  struct Event {
    enum Kind { kEnter, kLeave, kLearn, kRun } kind;
    int32_t from, to;
  };

  Pipe &PipeOf(int32_t from, int32_t to) { return pipes[from * ranks + to]; }
  void Close(int32_t from, int32_t to, const std::string &why, bool lose);
  void Leave(int32_t rank);
  void SeeFailure(int32_t rank);
  std::vector<Event> Events();
  void Do(Event);

  const int32_t ranks;
  const uint64_t seed;
  uint64_t choices = 0;
  std::vector<Streams> streams;
  std::vector<bool> dead, told; // by rank
  std::vector<Pipe> pipes;
};

} // namespace boa

#endif // BOA_TEST_SIMULATION_SIMULATED_NETWORK_H
