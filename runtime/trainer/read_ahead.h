//===- read_ahead.h - Batches of the next steps -----------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A thread reads the micro-batches of the next steps while earlier ones are computed. It reads at
// most kReadAhead steps that nobody has taken.
//
// Ownership: batches that are taken are the caller's. Program and data must outlive it.
// Threads: one caller, the driver.
// Errors: that of a step is returned when the step is taken; that of the thread at the first call.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_TRAINER_READ_AHEAD_H
#define BOA_RUNTIME_TRAINER_READ_AHEAD_H

#include "runtime/abi/program.h"
#include "runtime/data/data.h"
#include "runtime/support/mutex.h"
#include "runtime/trainer/micro_batches.h"

#include "absl/status/statusor.h"

#include <cstdint>
#include <deque>
#include <memory>
#include <thread>

namespace boa {

inline constexpr size_t kReadAhead = 2; // steps

class ReadAhead {
public:
  ReadAhead(const Program &program, const Data &data) : program(program), data(data) {}
  ~ReadAhead();
  ReadAhead(const ReadAhead &) = delete;
  ReadAhead &operator=(const ReadAhead &) = delete;

  /// The batches of a step, and waits for them; a signal (support/interrupt.h) ends the wait with
  /// kCancelled. The first call begins to read. Steps come in order.
  absl::StatusOr<std::unique_ptr<MicroBatches>> Take(int64_t step);

private:
  using Batches = absl::StatusOr<std::unique_ptr<MicroBatches>>;

  Batches Read(int64_t step) const;
  void Run();

  const Program &program;
  const Data &data;
  Mutex mutex;
  CondVar changed;
  std::deque<Batches> ready ABSL_GUARDED_BY(mutex); // of the steps before `next`
  int64_t next ABSL_GUARDED_BY(mutex) = 0;          // that the thread reads
  bool stopping ABSL_GUARDED_BY(mutex) = false;
  std::thread thread; // runs from the first Take on
};

} // namespace boa

#endif // BOA_RUNTIME_TRAINER_READ_AHEAD_H
