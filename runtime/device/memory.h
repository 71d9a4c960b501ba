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

/// Anonymous pages in large ones, zeroed and touched; null with a status.
absl::Status MapArena(int64_t bytes, char *&arena);
void UnmapArena(char *arena, int64_t bytes);

} // namespace boa

#endif // BOA_RUNTIME_DEVICE_MEMORY_H
