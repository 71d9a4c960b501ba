//===- host.h - The host's memory and processors ----------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_PROBE_HOST_H
#define BOA_RUNTIME_PROBE_HOST_H

#include "runtime/probe/figures.h"
#include "runtime/support/limits.h"

#include "absl/status/statusor.h"

#include <cstdint>
#include <cstdlib>
#include <memory>

namespace boa {

/// Memory that the probe works on, filled with small numbers, whether read as f32 or as bf16.
class ProbeMemory {
public:
  /// ResourceExhausted if there is none. Of whole blocks.
  static absl::StatusOr<ProbeMemory> Allocate(int64_t bytes);
  char *data() const { return memory.get(); }
  int64_t size() const { return bytes; }

private:
  struct Free {
    void operator()(char *address) const { std::free(address); }
  };
  std::unique_ptr<char, Free> memory;
  int64_t bytes = 0;
};

/// Seconds on the clock of all measurements.
double ProbeNow();

/// What a process may still take, for a machine file.
Figure FreeMemory(const MemoryLeft &);

/// Bytes a second that all threads read and write in memory, adding one array to another.
absl::StatusOr<Figure> MeasureBandwidth(bool quick);

/// Bytes a second that all threads sum, each the checksum of a chunk.
absl::StatusOr<Figure> MeasureChecksums(bool quick);

} // namespace boa

#endif // BOA_RUNTIME_PROBE_HOST_H
