//===- commands.h - The table of commands -----------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Commands by number, and the edges between them. A number is used again after its
// command is over. A reference also holds the number's generation, so it never means
// a later command.
//
// All edges point backward in program order. Compute and the optimizer are queues:
// each runs its commands in the order in which the device gets them. So no edge joins
// two commands of one queue.
//
// Ownership: the table owns the commands. The address of a command stays valid.
// Threads: the table has none and takes no lock; the engine's mutex guards it.
// Errors: none. Numbers come from Add.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_ENGINE_COMMANDS_H
#define BOA_RUNTIME_ENGINE_COMMANDS_H

#include "runtime/device/work.h"

#include <cstdint>
#include <deque>
#include <vector>

namespace boa {

/// Why a command became ready when it did: the last thing that compute waited for.
enum class Cause : uint8_t { none, read, write, copy, optimizer, compute };

/// The cause and, of a copy, what that copy itself had waited for until `since_ns`: compute waited
/// for that as long.
struct Reason {
  Cause cause = Cause::none, before = Cause::none;
  int64_t since_ns = 0;
};

/// Names a command until it is over. Number 0 names none.
struct CommandRef {
  uint32_t id = 0, generation = 0;
};

/// A buffer that a command works on, from this chunk on. Number 0 is the null buffer.
struct BufferUse {
  uint32_t buffer = 0;
  int32_t first = 0;
};

struct Command {
  Work work;
  uint32_t generation = 1;
  int32_t unmet = 0;   // dependences left; one more until it is issued
  int32_t touched = 0; // the chunks that it reads or writes, with repetitions
  Reason reason;
  int64_t sequence = 0;  // its place in program order
  int64_t first_use = 0; // of a read: the sequence of the chunks' first user; 0: not known
  int64_t ready_ns = 0;
  bool given = false; // to the device
  // It fills or copies the device's memory, on a device that orders kernels behind such commands.
  bool fills_device = false;
  std::vector<uint32_t> dependents;
  // On such a device: the kernels that wait until this is given out, and, of a kernel, the
  // commands that it follows.
  std::vector<CommandRef> followers, after;
  std::vector<BufferUse> uses;
};

/// Whether one queue runs both kinds, in order.
bool SameQueue(Work::Kind a, Work::Kind b);

class CommandTable {
public:
  /// A command of this run, next in program order, with one dependence: its own issue.
  uint32_t Add(Work::Kind, int64_t run);

  Command &operator[](uint32_t id) { return commands[id]; }
  const Command &operator[](uint32_t id) const { return commands[id]; }
  CommandRef RefTo(uint32_t id) const { return {id, commands[id].generation}; }
  bool IsOver(CommandRef ref) const {
    return ref.id == 0 || commands[ref.id].generation != ref.generation;
  }

  /// Makes the command wait for the other one, unless that one is over or ahead in the same
  /// queue.
  void DependOn(uint32_t id, CommandRef on);

  /// From now on, references to the command see that it is over.
  void End(uint32_t id) { ++commands[id].generation; }
  /// The number of an ended command may be used again.
  void Recycle(uint32_t id);

private:
  std::deque<Command> commands{1};
  std::vector<uint32_t> unused;
  int64_t sequence = 0; // of the newest
};

} // namespace boa

#endif // BOA_RUNTIME_ENGINE_COMMANDS_H
