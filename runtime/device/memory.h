//===- memory.h - Where things are in memory --------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Translates locations to addresses for one side: kernels, the host (updates, norms, SSDs), or
// copies between the two.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_DEVICE_MEMORY_H
#define BOA_RUNTIME_DEVICE_MEMORY_H

#include "runtime/device/work.h"

#include "runtime/support/limits.h"

#include "absl/status/status.h"

#include <cstdint>
#include <memory>

namespace boa {

class Memory {
public:
  enum class Side { device, host, copies };
  virtual ~Memory() = default;
  /// Zeroed and touched: first touch is slow, and must not happen in the first step.
  virtual absl::Status Allocate(const int64_t (&bytes)[2]) = 0;
  /// Null for nowhere. With two memories, a side that does not reach the location takes a fault
  /// when it touches the address.
  virtual char *Address(Side, Location) const = 0;
  /// The memory that SSDs reach, to be registered.
  virtual std::pair<char *, int64_t> HostArena() const = 0;
};

/// One memory: all sides reach all of it.
std::unique_ptr<Memory> CreateUnifiedMemory();
/// Two: each side reaches its own, copies reach both (device/split.cpp).
std::unique_ptr<Memory> CreateSplitMemory();

/// ResourceExhausted, with both numbers, if the program's arenas are more than the host can give.
/// The kernel would kill the process when Allocate touches them.
///
/// It refuses only what cannot run. Arenas are touched as a whole at the start, so their size is
/// certain. What else a process takes is less certain, and left out: its code, a few MiB of each
/// thread, the tables of the state. Of the host, what the kernel calls available and all of free
/// swap count: no process can have more, while others keep what they have. MemTotal would let
/// those be killed for which others leave too little.
absl::Status CheckMemoryLeft(const Program &, const MemoryLeft & = MeasureMemoryLeft());

/// Anonymous pages in large ones, zeroed and touched; null with a status. A signal ends it.
absl::Status MapArena(int64_t bytes, char *&arena);
void UnmapArena(char *arena, int64_t bytes);

} // namespace boa

#endif // BOA_RUNTIME_DEVICE_MEMORY_H
