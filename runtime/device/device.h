//===- device.h - What carries work out -------------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A device is spaces to allocate in, queues to submit to, and a clock:
//
//   cpu        threads and one memory                     device/cpu.cpp, memory.h
//   split      the same with two memories, of which each side reaches its own alone: what a
//              GPU is for everything but speed            device/split.cpp
//   cuda       an NVIDIA GPU; what stays on the host      device/cuda, device/host.h
//   simulated  no data and virtual time                   device/simulated.cpp
//
// Work may begin once it is submitted. It waits only for work ahead of it in the same queue.
// Where the device orders kernels, a kernel also waits for the fills that it names. Kernels share
// one queue; updates and norms share another. Each queue runs in the order of Submit. Fills and
// transfers have no order but their priority.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_DEVICE_DEVICE_H
#define BOA_RUNTIME_DEVICE_DEVICE_H

#include "runtime/abi/program.h"
#include "runtime/device/scheduler.h"
#include "runtime/device/work.h"
#include "runtime/io/io.h"
#include "runtime/state/state.h"

#include "absl/status/status.h"

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace boa {

/// The device calls these on any of its threads, which holds no lock then. They may submit.
class DeviceListener {
public:
  virtual ~DeviceListener() = default;
  /// The work is over, and the device no longer uses it. Called once for each submitted work.
  virtual void Done(const Work &, int64_t begin_ns, int64_t end_ns, absl::Status) = 0;
  /// `bytes` of a transfer have gone over an SSD path.
  virtual void Moved(const Work &, int32_t path, int64_t bytes, int64_t begin_ns,
                     int64_t end_ns) = 0;
  /// A device without threads has something for Advance to do.
  virtual void Wake() = 0;
  /// Whether nobody needs the results of a kernel or a transfer any more. Asked before it begins;
  /// if so, it is Done at once.
  virtual bool IsLeftOut(const Work &) const { return false; }
};

class Device {
public:
  /// No submitted work may be under way.
  virtual ~Device() = default;

  /// Called once, before all else. Allocates and zeroes the memory of each space. The listener
  /// hears of all work.
  virtual absl::Status Start(const int64_t (&bytes)[2], Location workspace, DeviceListener *) = 0;

  /// Called from any thread; does not block. Done of a transfer may come before it returns.
  virtual void Submit(Work &) = 0;
  /// Called after an error. What has not begun is Done at once.
  virtual void Cancel() = 0;

  /// Nanoseconds.
  virtual int64_t Now() const = 0;
  /// For a device without threads: does one thing, on this thread. False: nothing is left to do,
  /// or the device has threads.
  virtual bool Advance() { return false; }
  virtual bool HasThreads() const { return true; }
  /// For a device with two memories. True: a kernel itself waits for the fills and copies in
  /// Work::after. So the engine submits it once it has submitted those, not when they are over.
  virtual bool OrdersKernels() const { return false; }

  /// Gradient norms by step, before clipping, since the last call. For programs that need norms
  /// (NeedsNorm). A step whose norm is not finite was left out.
  virtual std::map<int64_t, double> TakeNorms() { return {}; }
  /// A feature that the device has done without since the last call, and why. For one message;
  /// empty: none.
  virtual std::string TakeRemark() { return {}; }
  /// How it reaches the SSDs, for one line at start.
  virtual std::string Describe() const = 0;
  /// Versions, by name, that the bits of its kernels depend on. Called after Start.
  virtual std::map<std::string, std::string> Environment() const { return {}; }
};

struct CpuOptions {
  IoOptions io;
  Scheduler *scheduler = nullptr; // outlives it; null: threads
};

/// Has one memory, or two if the program's machine says so. Of two, each side reaches its own
/// alone. Then a kernel that touches the host's memory ends the process by a fault. So does an
/// update that touches the device's. `state` is null where nothing lives on SSD.
std::unique_ptr<Device> CreateCpuDevice(const Program &, const Kernels &, StateStore *state,
                                        const CpuOptions &);

/// The first GPU that the process sees, through its driver. The program's machine has two
/// memories. Start reports a missing driver, GPU, memory or cuBLASLt.
std::unique_ptr<Device> CreateCudaDevice(const Program &, const Kernels &, StateStore *state,
                                         const IoOptions &);

} // namespace boa

#endif // BOA_RUNTIME_DEVICE_DEVICE_H
