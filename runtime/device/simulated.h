//===- simulated.h - A machine that nobody needs to own ---------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A device that moves no data and keeps virtual time, by the rates of the program's machine. It
// has no threads: Advance goes to the next moment at which some work is over. The same program
// takes the same time, to the nanosecond.
//
//   compute      Kernels, one after another. Products and attention, of each type at its own rate,
//                take as long as their operations or their bytes, whichever is more. All between
//                them takes as long as its bytes.
//   optimizer    Updates and norms, one after another. Their time depends on the bytes that they
//                touch in host memory, or in device memory if they run on the device.
//   to_device    Copies from host memory to device memory, and zeros of device memory.
//   to_host      Copies back. These two queues need two memories.
//   SSD paths    Reads and writes of each path, by priority. A transfer is complete its latency
//                after its bytes have passed. The latency holds up no other transfer.
//
// Work that shares a part of the machine slows down by the same factor. Reads and writes share
// each path (`both`). Updates, copies and SSD transfers share host memory; these transfers count
// twice, for they are summed. Copies, and SSD transfers that bypass the host, share the links to
// and from device memory. Copies both ways share what the link has (`both`). Kernels and updates
// share the processors of a CPU device, or of a device that runs updates. On a CPU device SSD
// transfers come first: the operating system moves them, and threads sum them (`transfers`; or
// `checksum`, where only that is known). They never take more than half.
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

/// The use of one link of the machine during a run.
struct LinkUse {
  std::string name;
  int64_t busy_ns = 0; // with something on it, at whatever speed
  int64_t full_ns = 0; // that it would have taken alone
  int64_t bytes = 0;
};

class SimulatedDevice : public Device {
public:
  /// Returns the use of links during a run. Forgets it, and that of earlier runs.
  virtual std::vector<LinkUse> TakeUse(int64_t run) = 0;
};

/// Whether the machine says of any SSD how fast it is.
bool HasSsdRates(const MachineSettings &);
/// Refuses a machine whose rates do not give all durations. The error says what to write.
absl::Status CheckSimulatedRates(const Program &);
/// The same, before there is a program.
absl::Status CheckSimulatedRates(const MachineSettings &, bool updates_on_device, bool on_ssd);

/// For a machine that says how fast it is. `kernel_seconds` has measured times of kernels by
/// name, which replace their rates.
absl::StatusOr<std::unique_ptr<SimulatedDevice>>
CreateSimulatedDevice(const Program &, const std::map<std::string, double> &kernel_seconds = {});

/// Chunks on the machine's paths as a state would deal them, each written already.
std::unique_ptr<ChunkExtents> CreateSimulatedExtents(const Program &);

} // namespace boa

#endif // BOA_RUNTIME_DEVICE_SIMULATED_H
