//===- EntryAccess.h - How ops name an entry of a storage -------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What ops of the step and of the storage phase share: the verifier of an access, and the printed
// names of entries. Only sources of the dialect include it.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_DIALECT_ENTRYACCESS_H
#define BOA_DIALECT_ENTRYACCESS_H

#include "dialect/Boa.h"

namespace boa {

/// Checks that the storage exists, that all its dimensions are indexed and, if `value` is given,
/// that its entries have that type.
mlir::LogicalResult verifyAccess(mlir::Operation *op, mlir::FlatSymbolRefAttr name,
                                 mlir::OperandRange indices, mlir::Type value,
                                 mlir::SymbolTableCollection &tables);

/// The name of an entry's value; empty for a storage that does not exist. Outside the loop over
/// layers several entries of one role are live side by side: there the name adds the stage, or the
/// layer's number. `made` says that it is a result that is written, as opposed to an operand that
/// is read.
std::string getEntryName(mlir::Operation *op, mlir::FlatSymbolRefAttr name,
                         mlir::ValueRange indices, bool chunk, bool made);

/// Whether the index is that of a loop over layers, perhaps shifted.
bool isLayerIndex(mlir::Value index);

} // namespace boa

#endif // BOA_DIALECT_ENTRYACCESS_H
