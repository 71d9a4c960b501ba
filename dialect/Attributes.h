//===- Attributes.h - What attributes of the dialect may be -----*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Verifiers of single attributes that stand in the files of their syntax. Attributes.cpp has the
// table of all.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_DIALECT_ATTRIBUTES_H
#define BOA_DIALECT_ATTRIBUTES_H

#include "dialect/Boa.h"

namespace boa {

/// Checks boa.activation on `op`.
mlir::LogicalResult verifyActivation(mlir::Operation *op, mlir::Attribute value);

} // namespace boa

#endif // BOA_DIALECT_ATTRIBUTES_H
