//===- BufferSyntax.h - How the type of a buffer is printed -----*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// <tensor<8x8xf32>, device>, without `!boa.buffer`: custom<BufferType> and custom<BufferTypes> of
// assembly formats. The generated code prints only operands that are always there so.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_DIALECT_BUFFERSYNTAX_H
#define BOA_DIALECT_BUFFERSYNTAX_H

#include "dialect/Boa.h"

namespace boa {

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

#endif // BOA_DIALECT_BUFFERSYNTAX_H
