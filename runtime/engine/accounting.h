//===- accounting.h - Counters, waits and the ends of runs ------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Counts commands, from New to the end: the commands that are left and their memory, the
// time that they ran, and the time that compute waited for them. Also knows when a run is
// done. It decides nothing. The times come from the device's clock.
//
// Ownership: it keeps numbers only. The program must outlive it.
// Threads: none of its own, no lock; the engine's mutex guards it.
// Errors: none.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_ENGINE_ACCOUNTING_H
#define BOA_RUNTIME_ENGINE_ACCOUNTING_H

#include "runtime/abi/program.h"
#include "runtime/engine/commands.h"

#include <cstdint>
#include <map>

namespace boa {

/// The run of commands outside of an entry point. Nothing of them is counted.
constexpr int64_t kNoRun = -1;

class Accounting {
public:
  explicit Accounting(const Program &program) : program(program) {}

  // Runs.

  /// Commands from now on belong to a new run. Returns its number. `now`: the device's clock.
  int64_t BeginRun(int64_t now);
  void EndRun() { issuing = false; }
  /// The newest run.
  int64_t run() const { return newest; }
  /// Whether the driver is inside an entry point.
  bool is_issuing() const { return issuing; }
  /// Whether at most `share` of the run's kernels is left. With 0: whether its kernels, updates
  /// and copies are over, and those of all runs before it.
  bool IsDone(int64_t run, double share);
  /// The end of a run that is done.
  int64_t EndOf(int64_t run) const;

  // A command's life, in this order.

  void Added() { ++incomplete; }
  void Issued(const Command &);
  void GivenOut() { ++under_way; }
  /// The device has done the work.
  void Completed(const Work &, const Command &, int64_t begin_ns, int64_t end_ns);
  void Finished(const Command &);

  // Totals.

  /// The time of the last completion.
  int64_t now_ns() const { return now; }
  int64_t Incomplete() const { return incomplete; }
  /// An upper bound of the memory that commands take until they are over.
  int64_t IncompleteBytes() const { return incomplete_bytes; }
  /// Commands that the device has.
  int64_t UnderWay() const { return under_way; }
  Counters &CountersOf(int64_t run) { return counters[run]; }
  /// Takes out the counters of all runs up to this one.
  Counters TakeCounters(int64_t run);

private:
  struct Run {
    int64_t begin_ns = 0, end_ns = 0; // the end: so far
    int64_t kernels = 0, kernels_left = 0;
    int64_t others_left = 0; // updates, norms, fills
    bool IsOver() const { return kernels_left == 0 && others_left == 0; }
  };

  int64_t *LeftOf(const Work &);
  void Count(const Work &, const Command &, int64_t begin_ns, int64_t end_ns);

  const Program &program;
  bool issuing = false;
  int64_t newest = 0;
  int64_t incomplete = 0, incomplete_bytes = 0, under_way = 0;
  int64_t now = 0, compute_free_ns = 0; // the end of the last command; of the last kernel
  std::map<int64_t, Run> runs;          // under way
  std::map<int64_t, int64_t> ends;      // of the newest runs that are done
  std::map<int64_t, Counters> counters; // by run
};

} // namespace boa

#endif // BOA_RUNTIME_ENGINE_ACCOUNTING_H
