//===- limits.h - What the system leaves this process --------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Memory, processors and open files, within the machine and the control groups of this process,
// version 1 and 2. A group's limit counts at each level, up to the root. `root` is "/", or another
// directory with the same files, for tests.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_SUPPORT_LIMITS_H
#define BOA_RUNTIME_SUPPORT_LIMITS_H

#include <cstdint>
#include <string>

namespace boa {

struct MemoryLeft {
  int64_t total = 0; // of the machine; 0: unknown
  /// What the process may still take before others are swapped out, and in all.
  int64_t bytes = 0, with_swap = 0;
  int64_t group = 0; // the limit of the control group that leaves less than the machine; 0: none
};
/// Files in caches count as free, since the kernel drops them. With swap, it is the most that can
/// be had: who takes more is killed.
MemoryLeft MeasureMemoryLeft(const std::string &root = "/");

/// The processors that the process may use at once: those of its affinity, or its groups' quota.
/// A part of one is left to threads of I/O. At least 1.
int64_t CountProcessors(const std::string &root = "/");

/// Raises the limit of open files as far as the process may.
void RaiseFileLimit();
/// How many files the process may have open (`ulimit -n`).
int64_t MostOpenFiles();

} // namespace boa

#endif // BOA_RUNTIME_SUPPORT_LIMITS_H
