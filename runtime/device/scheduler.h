//===- scheduler.h - Who decides what happens next --------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_DEVICE_SCHEDULER_H
#define BOA_RUNTIME_DEVICE_SCHEDULER_H

#include <cstddef>

namespace boa {

/// For an engine without threads. On the caller's thread, the engine offers every possible next
/// event: a kernel, an update, a checksum, the completion of a transfer. The scheduler chooses
/// one, and that one happens. So a seed decides a whole run, and replays it.
class Scheduler {
public:
  virtual ~Scheduler() = default;
  /// One of 0 ... count - 1; count is at least 1.
  virtual size_t Choose(size_t count) = 0;
};

} // namespace boa

#endif // BOA_RUNTIME_DEVICE_SCHEDULER_H
