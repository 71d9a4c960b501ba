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
// What it is given may begin: it waits for nothing but what is ahead of it in the same
// queue, or, of kernels where the device orders them, for fills that it names. Kernels are one
// queue, updates and norms are one; each runs in the order of Submit. Fills and transfers
// are in no order, but for priority.
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

/// Told on any thread of the device, which holds no lock then; may submit.
class DeviceListener {
public:
  virtual ~DeviceListener() = default;
  /// The work is over, and no longer the device's: each that was submitted, once.
  virtual void Done(const Work &, int64_t begin_ns, int64_t end_ns, absl::Status) = 0;
  /// So many bytes of a transfer have gone over an SSD path.
  virtual void Moved(const Work &, int32_t path, int64_t bytes, int64_t begin_ns,
                     int64_t end_ns) = 0;
  /// Of a device without threads: there is something for Advance to do.
  virtual void Wake() = 0;
};

class Device {
public:
  /// Nothing that was submitted is under way.
  virtual ~Device() = default;

  /// Once, before all else: memory of each space, zeroed, and whom to tell.
  virtual absl::Status Start(const int64_t (&bytes)[2], Location workspace, DeviceListener *) = 0;

  /// From any thread; does not block. Of transfers, Done may come before it returns.
  virtual void Submit(Work &) = 0;
  /// After an error: kernels, updates and fills that have not begun are Done at once.
  virtual void Cancel() = 0;

  /// Nanoseconds.
  virtual int64_t Now() const = 0;
  /// Without threads of its own: does one thing of what there is to do, on this
  /// thread; false: there is nothing, or there are threads.
  virtual bool Advance() { return false; }
  virtual bool HasThreads() const { return true; }
  /// With two memories: whether a kernel that it is given waits for the fills and copies that
  /// Work::after names, so that it is given once those are, and not when they are over.
  virtual bool OrdersKernels() const { return false; }

  /// Gradient norms by step, before clipping, since the last call: of a program that needs them
  /// (NeedsNorm). A step whose norm is not finite was left out.
  virtual std::map<int64_t, double> TakeNorms() { return {}; }
  /// What it does without since the last call, and why, to be said once; empty: nothing.
  virtual std::string TakeRemark() { return {}; }
  /// How it reaches the SSDs, for one line at start.
  virtual std::string Describe() const = 0;
  /// Once started: versions of what its kernels' bits depend on, by name.
  virtual std::map<std::string, std::string> Environment() const { return {}; }
};

struct CpuOptions {
  IoOptions io;
  Scheduler *scheduler = nullptr; // outlives it; null: threads
};

/// One memory, or, where the program's machine says so, two that each side reaches its
/// own of: then kernels that touch the host's, and updates that touch the device's, end
/// the process by a fault. `state` is null where nothing lives on SSD.
std::unique_ptr<Device> CreateCpuDevice(const Program &, const boa_kernel *kernels,
                                        StateStore *state, const CpuOptions &);

/// The first GPU that the process sees, through its driver: the program's machine has two
/// memories. What is missing (a driver, a GPU, memory, cuBLASLt) Start says.
std::unique_ptr<Device> CreateCudaDevice(const Program &, const Kernels &, StateStore *state,
                                         const IoOptions &);

} // namespace boa

#endif // BOA_RUNTIME_DEVICE_DEVICE_H
