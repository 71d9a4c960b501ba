//===- step_traffic.cpp - Traffic of steps --------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/trainer/step_traffic.h"

#include <utility>

namespace boa {

void StepTraffic::Begin() {
  // An error stays in the engine: its next call returns it.
  engine.Drain().IgnoreError();
  engine.TakeCounters();
  begin = ReadDiskBytes();
}

void StepTraffic::End() {
  if (!begin)
    return;
  const DiskBytes now = ReadDiskBytes();
  disk_total.read += now.read - begin->read;
  disk_total.written += now.written - begin->written;
  begin.reset();
}

void StepTraffic::Count(const Counters &counters) {
  if (!begin)
    return;
  untaken.Add(counters);
  total.Add(counters.moved);
  for (const auto &[path, bytes] : counters.written_to)
    to_paths[path] += bytes;
}

absl::Status StepTraffic::Settle() {
  absl::Status status = engine.Drain();
  Count(engine.TakeCounters());
  return status;
}

Counters StepTraffic::TakeCounters() { return std::exchange(untaken, {}); }

} // namespace boa
