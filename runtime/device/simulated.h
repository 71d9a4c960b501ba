//===- simulated.h - A machine that nobody needs to own ---------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A device that moves no data and keeps virtual time by the rates of the program's
// machine. It has no threads: Advance goes to the next moment at which something is
// over. The same program takes the same time, to the nanosecond.
//
//   compute      kernels one after another, each as long as its operations (products of
//                bf16 at their own rate) or its bytes take, whichever is more
//   optimizer    updates and norms one after another, by the bytes that they touch in the
//                host's memory, or, where they run on the device, in its
//   to_device,   where there are two memories; zeros of device memory are written by
//   to_host      the first
//   reads and writes of each SSD path, by priority; a transfer is there its latency after
//                its bytes have passed, which holds up no other
//
// What the machine shares slows all who share it by the same factor: the reads and writes
// of a path (`both`), the host's memory (updates; what is copied, once; what SSDs move there,
// twice, for it is summed), what leads to the device's memory and from there (what is copied, and
// what SSDs move past the host), and, where the device is a CPU or updates run on it, its
// processors, by kernels and updates.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_DEVICE_SIMULATED_H
#define BOA_RUNTIME_DEVICE_SIMULATED_H

#include "runtime/device/device.h"
#include "runtime/state/extent.h"

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace boa {

/// What a link of the machine did for a run.
struct LinkUse {
  std::string name;
  int64_t busy_ns = 0; // with something on it, at whatever speed
  int64_t full_ns = 0; // that it would have taken alone
  int64_t bytes = 0;
};

class SimulatedDevice : public Device {
public:
  /// Forgets it, and that of runs before.
  virtual std::vector<LinkUse> TakeUse(int64_t run) = 0;
};

/// Refuses a machine whose rates do not say how long something takes, with what to write.
absl::Status CheckSimulatedRates(const Program &);
/// The same, before there is a program.
absl::Status CheckSimulatedRates(const MachineSettings &, bool updates_on_device, bool on_ssd);

/// For a machine that says how fast it is. `kernel_seconds`: of kernels by name, as measured,
/// instead of their rates.
absl::StatusOr<std::unique_ptr<SimulatedDevice>>
CreateSimulatedDevice(const Program &, const std::map<std::string, double> &kernel_seconds = {});

/// Chunks on the machine's paths as a state would deal them, each written already.
std::unique_ptr<ChunkExtents> CreateSimulatedExtents(const Program &);

} // namespace boa

#endif // BOA_RUNTIME_DEVICE_SIMULATED_H
