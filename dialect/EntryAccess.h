//===- EntryAccess.h - How ops name an entry of a storage -------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What ops of the step and of the storage phase share: the verifier of an access, the printed
// names of entries, and the printed type of a buffer. Only sources of the dialect include it.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_DIALECT_ENTRYACCESS_H
#define BOA_DIALECT_ENTRYACCESS_H

#include "dialect/Boa.h"

namespace boa {

/// Checks that the storage exists, that all its dimensions are indexed, and that its entries have
/// the type `value`.
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

/// custom<BufferType> and custom<BufferTypes> of assembly formats: <tensor<8x8xf32>, device>,
/// without
/// `!boa.buffer`. The generated code prints only operands that are always there so.
inline mlir::ParseResult parseBufferType(mlir::OpAsmParser &parser, mlir::Type &type) {
  BufferType buffer;
  if (parser.parseCustomTypeWithFallback(buffer))
    return mlir::failure();
  type = buffer;
  return mlir::success();
}
inline void printBufferType(mlir::OpAsmPrinter &printer, mlir::Operation *, mlir::Type type) {
  printer.printStrippedAttrOrType(mlir::cast<BufferType>(type));
}

inline mlir::ParseResult parseBufferTypes(mlir::OpAsmParser &parser,
                                          llvm::SmallVectorImpl<mlir::Type> &types) {
  return parser.parseCommaSeparatedList(
      [&] { return parseBufferType(parser, types.emplace_back()); });
}
inline void printBufferTypes(mlir::OpAsmPrinter &printer, mlir::Operation *op,
                             mlir::TypeRange types) {
  llvm::interleaveComma(types, printer,
                        [&](mlir::Type type) { printBufferType(printer, op, type); });
}

} // namespace boa

#endif // BOA_DIALECT_ENTRYACCESS_H
