//===- queues.h - Commands on their way to the device -----------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The commands that the device does not have yet. Compute and the optimizer are queues:
// their commands leave in program order, so one that is not ready holds up the rest.
// Fills and transfers leave as they become ready.
//
// Ownership: numbers of commands only. It refers to the table of commands, which must
// outlive it.
// Threads: none of its own, no lock; the engine's mutex guards it.
// Errors: none.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_ENGINE_QUEUES_H
#define BOA_RUNTIME_ENGINE_QUEUES_H

#include "runtime/engine/commands.h"

#include <cstdint>
#include <deque>
#include <vector>

namespace boa {

class CommandQueues {
public:
  explicit CommandQueues(const CommandTable &commands) : commands(commands) {}

  /// A command is issued: a kernel, an update or a norm takes its place in its queue.
  void Issued(uint32_t id);
  /// All its dependences are met: a fill or a transfer may leave.
  void Ready(uint32_t id);
  bool AnyReady() const {
    return IsFrontReady(compute) || IsFrontReady(optimizer) || !fills.empty() || !transfers.empty();
  }
  /// Calls `give` with each command that may leave, but for transfers. `give` may make kernels
  /// ready; they leave, too.
  template <typename Give> void TakeOrdered(Give give);
  /// Calls `give` with each transfer that `hold` does not keep here.
  template <typename Hold, typename Give> void TakeTransfers(Hold hold, Give give);
  /// Forgets all commands.
  void Clear();

private:
  bool IsFrontReady(const std::deque<uint32_t> &queue) const {
    return !queue.empty() && commands[queue.front()].unmet == 0;
  }

  const CommandTable &commands;
  std::deque<uint32_t> compute, optimizer;
  std::vector<uint32_t> fills, transfers;
};

template <typename Give> void CommandQueues::TakeOrdered(Give give) {
  do {
    for (std::deque<uint32_t> *queue : {&compute, &optimizer})
      for (; IsFrontReady(*queue); queue->pop_front())
        give(queue->front());
    for (size_t i = 0; i < fills.size(); ++i)
      give(fills[i]);
    fills.clear();
  } while (IsFrontReady(compute));
}

template <typename Hold, typename Give> void CommandQueues::TakeTransfers(Hold hold, Give give) {
  size_t held = 0;
  for (uint32_t id : transfers) {
    if (hold(id))
      transfers[held++] = id;
    else
      give(id);
  }
  transfers.resize(held);
}

} // namespace boa

#endif // BOA_RUNTIME_ENGINE_QUEUES_H
