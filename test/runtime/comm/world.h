//===- world.h - Ranks on any engine, for tests --------------- -*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A test submits for all ranks, on one thread, and then waits. Under mpirun a process has one rank:
// what the test submits for others is theirs to submit, since each process runs the whole test.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_TEST_RUNTIME_COMM_WORLD_H
#define BOA_TEST_RUNTIME_COMM_WORLD_H

#include "runtime/comm/comm.h"
#include "test/simulation/simulated_network.h"

#include "gtest/gtest.h"

#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace boa {

class World {
public:
  /// Of mpirun's ranks there are as many as it started.
  World(const std::string &engine, int32_t ranks);
  ~World();

  int32_t ranks() const { return int32_t(comms.size()); }
  bool Has(int32_t rank) const { return comms[rank] != nullptr; }
  Comm &comm(int32_t rank) { return *comms[rank]; }
  /// More bytes than this engine's connections hold.
  int64_t big() const { return network ? 20'000 : 8 << 20; }

  /// Returns a number for the status; -1 if the rank is elsewhere.
  int Submit(int32_t rank, std::vector<Message> sends, std::vector<Message> receives);
  /// The status of an exchange, once it is complete.
  absl::Status Wait(int number);
  /// All that were submitted are complete, and without errors.
  void WaitForAll();
  bool IsComplete(int number);
  void End(int32_t rank) { comms[rank].reset(); }

private:
  std::unique_ptr<SimulatedNetwork> network;
  std::vector<std::unique_ptr<Comm>> comms; // by rank
  std::mutex mutex;
  std::condition_variable changed;
  int submitted = 0;
  std::map<int, absl::Status> complete;
};

/// The engines of this process: mpi under mpirun, all others elsewhere.
std::vector<std::string> Engines();
/// Ranks of tcp that meet on this host.
std::vector<std::unique_ptr<Comm>> OpenTcp(int32_t ranks, std::chrono::milliseconds timeout);

} // namespace boa

#endif // BOA_TEST_RUNTIME_COMM_WORLD_H
