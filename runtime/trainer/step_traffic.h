//===- step_traffic.h - Traffic of steps ------------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The plan predicts the traffic of steps and of the calls that apply delayed updates. To
// compare with it, this class counts the same part of a run: it leaves out the traffic of
// initialisation, evaluation, commits and export.
//
// Ownership: numbers only. The engine must outlive it.
// Threads: one, the driver.
// Errors: Settle returns those of the engine.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_TRAINER_STEP_TRAFFIC_H
#define BOA_RUNTIME_TRAINER_STEP_TRAFFIC_H

#include "runtime/engine/engine.h"
#include "runtime/trainer/process.h"

#include "absl/status/status.h"

#include <cstdint>
#include <map>
#include <optional>

namespace boa {

class StepTraffic {
public:
  explicit StepTraffic(Engine &engine) : engine(engine) {}

  /// Steps begin. Waits for all transfers, which do not count.
  void Begin();
  /// Steps end, for the time being. Does nothing if none have begun.
  void End();
  bool IsCounting() const { return begin.has_value(); }

  /// Counts the runs up to this one.
  void Count(int64_t run) { Count(engine.TakeCounters(run)); }
  /// Waits for all transfers and counts them.
  absl::Status Settle();
  /// Takes out the counts since the last call.
  Counters TakeCounters();

  /// In all.
  const Traffic &moved() const { return total; }
  /// Bytes to each SSD path.
  const std::map<int32_t, int64_t> &written_to() const { return to_paths; }
  /// In all, as the system counts it.
  const DiskBytes &disk() const { return disk_total; }

private:
  void Count(const Counters &);

  Engine &engine;
  std::optional<DiskBytes> begin; // the system's counts at Begin
  Counters untaken;
  Traffic total;
  std::map<int32_t, int64_t> to_paths;
  DiskBytes disk_total;
};

} // namespace boa

#endif // BOA_RUNTIME_TRAINER_STEP_TRAFFIC_H
