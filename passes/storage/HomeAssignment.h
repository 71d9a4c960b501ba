//===- HomeAssignment.h - From the plan's places to homes -------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_PASSES_STORAGE_HOMEASSIGNMENT_H
#define BOA_PASSES_STORAGE_HOMEASSIGNMENT_H

#include "dialect/Boa.h"
#include "runtime/abi/settings.h"

namespace boa {

/// The place of a role in the plan; null if it stays on the device.
const Placement *findPlacement(Role role, const PlaceSettings &place);

/// The homes of a storage's entries. Layers are counted in its first dimension. A share is of the
/// chunks of each entry, or, where an entry is one chunk, of the entries of each layer.
mlir::ArrayAttr assignHomes(StorageOp storage, const Placement &place);

} // namespace boa

#endif // BOA_PASSES_STORAGE_HOMEASSIGNMENT_H
