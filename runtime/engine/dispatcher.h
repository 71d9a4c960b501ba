//===- dispatcher.h - Commands from issue to completion ---------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Leads each command through its life. New adds it. Reads, Writes and RequestSlot make
// its dependences, and Issue closes the list. Once all are met, the command is ready.
// TakeReady gives it to the device, and Complete ends it, which may make others ready.
// Two kinds of commands never reach the device: `create` ends when its buffer has a
// slot, and `release` gives a slot back.
//
// Ownership: it owns the table of commands, the hazards, the queues and the counters. It
// refers to the program and the slots, which must outlive it.
// Threads: none of its own, no lock; the engine's mutex guards it.
// Errors: the first call of Fail keeps its status. From then on TakeReady gives nothing.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_ENGINE_DISPATCHER_H
#define BOA_RUNTIME_ENGINE_DISPATCHER_H

#include "runtime/abi/program.h"
#include "runtime/engine/accounting.h"
#include "runtime/engine/commands.h"
#include "runtime/engine/hazards.h"
#include "runtime/engine/queues.h"
#include "runtime/engine/slots.h"

#include "absl/status/status.h"

#include <cstdint>
#include <vector>

namespace boa {

class Dispatcher {
public:
  /// `device_orders`: the device lets kernels wait for fills that it already has.
  Dispatcher(const Program &, Slots &, bool device_orders);

  // Before a command is issued.

  /// A command of the newest run.
  Command &New(Work::Kind);
  /// The same, on these chunks.
  Command &New(Work::Kind, int32_t storage, int64_t entry, int32_t first, int32_t count);
  /// The command takes these chunks of a buffer and reads (writes) them.
  void Reads(Command &, uint32_t buffer, int32_t first, int32_t count);
  void Writes(Command &, uint32_t buffer, int32_t first, int32_t count);
  /// Whether a command took a part of this home to write it.
  bool IsWritten(uint32_t home) const { return written[home]; }
  /// The command reads (writes) its chunks on SSD.
  void ReadsDisk(Command &, int32_t chunk);
  void WritesDisk(Command &, int32_t chunk);
  /// The command waits for the buffer's slot.
  void RequestSlot(Command &opener, uint32_t buffer);
  /// All dependences are known. The command may run when they are met.
  void Issue(Command &);

  // Buffers.

  uint32_t OpenBuffer(int32_t storage, int64_t entry, int32_t first, int32_t count, int32_t space,
                      int32_t pool);
  /// Gives the slot back after all commands that were issued on the buffer.
  void ReleaseBuffer(uint32_t buffer);

  // To the device, and back.

  /// Appends the work that may begin now, in the order of each queue. The pointers are valid
  /// until Complete. While the driver is inside an entry point, a read without a known user
  /// stays: the driver may still name the user. It does not if it waits.
  void TakeReady(std::vector<Work *> &out, bool driver_waits);
  void Complete(const Work &, int64_t begin_ns, int64_t end_ns);
  /// Nothing runs and nothing can begin, but commands are left.
  bool IsStuck() const {
    return counts.Incomplete() > 0 && counts.UnderWay() == 0 && !queues.AnyReady();
  }

  void Fail(absl::Status);
  const absl::Status &status() const { return error; }
  Accounting &accounting() { return counts; }
  const Accounting &accounting() const { return counts; }

private:
  Work *GiveOut(uint32_t id);
  void Satisfy(uint32_t id, const Reason &);
  void Ready(uint32_t id);
  void Finish(uint32_t id, Reason);
  void GiveBack(uint32_t buffer, const Reason &);
  int64_t PriorityOf(const Command &) const;

  const Program &program;
  Slots &slots;
  const bool device_orders;
  std::vector<bool> written; // by home
  absl::Status error;
  CommandTable commands;
  Hazards hazards;
  CommandQueues queues;
  Accounting counts;
};

} // namespace boa

#endif // BOA_RUNTIME_ENGINE_DISPATCHER_H
