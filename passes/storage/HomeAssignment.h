//===- HomeAssignment.h - From the plan's places to homes -------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_PASSES_STORAGE_HOMEASSIGNMENT_H
#define BOA_PASSES_STORAGE_HOMEASSIGNMENT_H

#include "dialect/Boa.h"

namespace boa {

/// Sets the homes of storages: where the plan places their role, or their own boa.place, which
/// goes. Layers are counted in their first dimension. A share is of the chunks of each entry, or,
/// where an entry is one chunk, of the entries of each layer.
void assignHomes(mlir::ModuleOp module);

} // namespace boa

#endif // BOA_PASSES_STORAGE_HOMEASSIGNMENT_H
