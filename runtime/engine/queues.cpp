//===- queues.cpp - Commands on their way to the device -------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/engine/queues.h"

namespace boa {

void CommandQueues::Issued(uint32_t id) {
  const Work::Kind kind = commands[id].work.kind;
  if (kind == Work::Kind::kernel)
    compute.push_back(id);
  else if (SameQueue(kind, Work::Kind::update))
    optimizer.push_back(id);
}

void CommandQueues::Ready(uint32_t id) {
  const Work &work = commands[id].work;
  if (work.IsTransfer())
    transfers.push_back(id);
  else if (work.IsFill())
    fills.push_back(id);
}

void CommandQueues::Clear() {
  compute.clear();
  optimizer.clear();
  fills.clear();
  transfers.clear();
}

} // namespace boa
