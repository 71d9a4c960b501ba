//===- Arena.h - The bytes that a memory holds ------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_PASSES_STORAGE_ARENA_H
#define BOA_PASSES_STORAGE_ARENA_H

#include "dialect/Config.h"
#include "runtime/abi/sizes.h"
#include "runtime/support/checked.h"

#include <algorithm>
#include <string>

namespace boa {

/// One memory, or both as one: its limit and its contents.
struct Arena {
  std::string given; // in words
  Checked limit = 0; // 0: none
  Checked used = 0;

  /// The limit of the memory in which kernels work.
  static Checked limitOfDevice(const MachineSettings &machine) {
    return Checked(machine.device_memory) + (IsSeparate(machine) ? 0 : machine.host_memory);
  }
  /// The most bytes that it may hold. No machine has more than the runtime counts.
  int64_t most() const {
    const int64_t bytes = limit.value_or(kMostBytes);
    return bytes == 0 ? kMostBytes : std::min(bytes, kMostBytes);
  }
  bool fits() const { return used.AtMost(most()); }
  bool takes(Checked more) const { return (used + more).AtMost(most()); }
};

/// Writes on the module the bytes of all memories, and those that the device needs. Of one memory
/// the device's share is filled first.
inline void setArenas(mlir::ModuleOp module, int64_t total, int64_t device) {
  const MachineSettings machine = Config(module).machine;
  if (!IsSeparate(machine) && machine.device_memory)
    device = std::min<int64_t>(machine.device_memory, total);
  mlir::Builder builder(module.getContext());
  module->setAttr(kArenaAttr, builder.getI64IntegerAttr(total));
  module->setAttr(kArenaDeviceAttr, builder.getI64IntegerAttr(device));
}

} // namespace boa

#endif // BOA_PASSES_STORAGE_ARENA_H
