//===- worker_comm.h - An engine with a thread of its own ----- -*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What tcp and mpi have in common: a thread that alone knows the streams, and what other threads
// leave for it.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_COMM_WORKER_COMM_H
#define BOA_RUNTIME_COMM_WORKER_COMM_H

#include "runtime/comm/sockets.h"
#include "runtime/comm/streams.h"
#include "runtime/support/mutex.h"

#include <thread>

namespace boa {

/// A derived class calls Start once, and Stop in its destructor.
class WorkerComm : public Comm {
public:
  void Submit(Exchange) override;
  void Abort(absl::Status) override;

protected:
  WorkerComm(int32_t rank, int32_t ranks) : Comm(rank, ranks), streams(rank, ranks) {}

  /// Starts the thread, which calls Run.
  absl::Status Start();
  /// Returns when Run has. Nothing where there is no thread.
  void Stop();

  /// Calls Take before it waits, and returns when that is false.
  virtual void Run() = 0;
  /// Takes over what other threads left, and runs callbacks. False: the end has come, and no
  /// exchange is left.
  bool Take();

  // Of the thread alone.
  Streams streams;
  Socket wake; // an eventfd: readable when Take has something to take

private:
  void Wake();

  Mutex mutex;
  std::vector<Exchange> submitted ABSL_GUARDED_BY(mutex);
  absl::Status aborted ABSL_GUARDED_BY(mutex);
  bool stop ABSL_GUARDED_BY(mutex) = false;
  std::thread thread;
};

} // namespace boa

#endif // BOA_RUNTIME_COMM_WORKER_COMM_H
