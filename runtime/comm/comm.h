//===- comm.h - Messages between the ranks of a training ------ -*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One primitive, Exchange, and three engines that carry it out:
//
//   threads   ranks of one process, for tests   socket_comm.cpp
//   tcp       processes, by host and port       socket_comm.cpp, rendezvous.h
//   mpi       Open MPI, opened by dlopen        mpi.cpp, mpi_library.h
//
// The n-th message that a rank sends to a peer goes to the n-th place in which that peer receives
// from it, in order of Submit. Each peer and direction has a queue of its own. A message starts
// when it is the first of its queue, whatever the rest of its exchange does. README.md shows that
// ranks which submit in the same order cannot deadlock.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_COMM_H
#define BOA_RUNTIME_COMM_H

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace boa {

/// Bytes at a place in memory that go to a peer, or come from it. Both ends name the same number
/// of bytes. 0 are a message, too.
struct Message {
  int32_t peer = 0; // another rank
  void *data = nullptr;
  int64_t bytes = 0;
};

/// Messages that together are one command.
///
/// `done` runs once, on a thread of the engine that holds no lock. It must not block, and it may
/// submit. On success all receives are in place, and all places of sends may be used again. The
/// peers may not have received yet. An error names the peer at fault. The caller owns the memory.
/// Until `done` it stays valid, and nobody else writes to it.
struct Exchange {
  std::vector<Message> sends, receives;
  std::function<void(absl::Status)> done;
};

/// One rank's end. The first error is final: exchanges that are not complete end with it, and so
/// do all that follow. The peers then see that this rank is gone. A peer that is gone is an error
/// only once an exchange needs it.
class Comm {
public:
  /// Exchanges that are not complete end with Cancelled before it returns. All messages whose sends
  /// are complete arrive, unless there was an error. Not to be called from `done`.
  virtual ~Comm() = default;

  int32_t rank() const { return rank_; }
  int32_t ranks() const { return ranks_; }

  /// Called from any thread; does not wait for peers.
  virtual void Submit(Exchange) = 0;
  /// Makes this error the first, unless there is one. Called from any thread; does not wait.
  virtual void Abort(absl::Status) = 0;
  /// "tcp, rank 1 of 4", for one line at start.
  virtual std::string Describe() const = 0;

protected:
  Comm(int32_t rank, int32_t ranks) : rank_(rank), ranks_(ranks) {}

private:
  const int32_t rank_, ranks_;
};

/// The ends of all ranks, in one process.
absl::StatusOr<std::vector<std::unique_ptr<Comm>>> CreateThreadComms(int32_t ranks);

struct TcpOptions {
  int32_t rank = 0, ranks = 1;
  /// "host:port" of rank 0. Every other rank connects to it, and is reached at the address from
  /// which it does.
  std::string root;
  /// For rank 0: a socket that listens at `root` (ListenTcp), which the call takes over; -1: none.
  int listening = -1;
  /// For all ranks to come, and later for an answer of a peer's system. A peer that computes for
  /// longer is no error.
  std::chrono::milliseconds timeout = std::chrono::seconds(60);
};

/// Listens at `address`, "host:port", and sets its port if that is 0. So a parent can choose a port
/// before it starts the ranks. Returns the socket.
absl::StatusOr<int> ListenTcp(std::string &address);

/// Returns when all ranks are connected. Deadline exceeded: the error names the ranks that did not
/// come.
absl::StatusOr<std::unique_ptr<Comm>> CreateTcpComm(const TcpOptions &);

/// A rank of mpirun's. Once a process: Open MPI does not start again. Without an error the
/// destructor waits for those of the other ranks (MPI_Finalize). With one it waits for nobody, and
/// mpirun ends all ranks when this process has ended.
absl::StatusOr<std::unique_ptr<Comm>> CreateMpiComm();

} // namespace boa

#endif // BOA_RUNTIME_COMM_H
