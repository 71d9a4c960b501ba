//===- work.h - What a device is given to do --------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The interface between the graph, which orders commands, and a device, which runs them. Memory
// is a space and an offset in it. The owner of the memory knows the address.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_DEVICE_WORK_H
#define BOA_RUNTIME_DEVICE_WORK_H

#include "runtime/abi/abi.h"
#include "runtime/abi/program.h"
#include "runtime/state/extent.h"

#include <cstdint>
#include <string>
#include <vector>

namespace boa {

/// Where some bytes are. A space below 0: nowhere.
struct Location {
  int32_t space = -1;
  int64_t offset = 0;
};

/// One command. Its dependences are met, or they are ahead of it in its queue, or in `after`.
struct Work {
  enum class Kind : uint8_t {
    kernel, // the compute queue, in the order given
    update, // the optimizer's, in the order given, with the next two
    norm,
    norm_done,
    zero,
    copy,
    copy_in,
    copy_out,
    read,
    write,
    create, // these two are the graph's own
    release
  };
  Kind kind = Kind::kernel;
  uint32_t id = 0; // the graph's
  int64_t run = 0; // that it is part of
  // The chunks that it works on: of updates, norms, fills, copies and transfers.
  int32_t storage = 0, first = 0, count = 0;
  int32_t index = 0; // the kernel; of updates and norms the group
  int64_t entry = 0; // of the chunks
  int64_t step = 0;  // of updates and norms
  /// The starts of its operands. Kernels: all buffers. Updates: weights, low, gradient, then
  /// the states, each at the chunk. Copies: from, to. Others: one.
  std::vector<Location> buffers;
  int64_t bytes = 0;           // that it moves or fills
  void *outside = nullptr;     // memory of the caller: of copies in and out, and of
                               // transfers that have no buffer
  std::vector<Extent> extents; // of transfers, by chunk
  int64_t priority = 0;        // of transfers: the least goes first
  /// Its place in program order, which no other command has. `after` is for kernels, on a device
  /// that orders them: the fills that a kernel must follow. These were submitted before it, and
  /// may be over by now.
  int64_t sequence = 0;
  std::vector<int64_t> after;
  /// For a kernel that is over: its launches on a GPU, and its calls of the driver and of
  /// libraries that made them.
  int32_t launches = 0, launch_calls = 0;
  // The device's own, while it has it.
  int32_t parts = 0;
  int64_t begin_ns = 0;

  bool IsTransfer() const { return kind == Kind::read || kind == Kind::write; }
  bool IsFill() const { return kind >= Kind::zero && kind <= Kind::copy_out; }
  /// With two memories: the direction of a fill or copy in the device's queues. Zeros of device
  /// memory, and copies within it, count as to the device.
  bool ToDevice() const {
    return IsFill() && kind != Kind::copy_out && buffers.back().space == BOA_DEVICE;
  }
  bool ToHost() const { return IsFill() && !ToDevice() && buffers[0].space == BOA_DEVICE; }
};

/// The error of a chunk that was never written and is read.
absl::Status NeverWritten(const Storage &, int64_t entry, int32_t chunk);

struct Counters {
  Traffic moved; // by the run: from and to SSD, and between separate memories
  std::map<int32_t, int64_t> written_to;  // of those to SSD, by path
  double compute_seconds = 0;             // kernels running
  double flops = 0;                       // of those kernels, as the program says
  int64_t launches = 0, launch_calls = 0; // of those kernels, as Work has them
  double optimizer_seconds = 0;           // updates, norms and what fills the host's memory
  // Compute had a next kernel but waited. These count by the last thing that it waited for.
  double waited_read = 0;  // a transfer from SSD
  double waited_write = 0; // a slot, given back after a write
  double waited_copy = 0;  // a copy between separate memories
  double waited_optimizer = 0;
  /// Compute was idle though all was there: the host had not submitted its next kernel.
  double waited_launch = 0;

  void Add(const Counters &);
};

} // namespace boa

#endif // BOA_RUNTIME_DEVICE_WORK_H
