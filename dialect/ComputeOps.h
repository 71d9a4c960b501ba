//===- ComputeOps.h - What families of compute ops share --------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Helpers of verifiers, gradients and costs. Only the families of compute ops include it.
//
// buildVJP(builder, results, operands) goes from the gradients of the results to those of the
// operands. `results[i]` is null where result i has no gradient; where no result has one the op is
// not asked.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_DIALECT_COMPUTEOPS_H
#define BOA_DIALECT_COMPUTEOPS_H

#include "dialect/Boa.h"

#include "mlir/IR/Builders.h"

namespace boa {

using Shape = llvm::ArrayRef<int64_t>;
using Grads = llvm::SmallVectorImpl<mlir::Value>;

inline mlir::RankedTensorType tensorType(mlir::Value value) {
  return mlir::cast<mlir::RankedTensorType>(value.getType());
}
inline Shape shapeOf(mlir::Value value) { return tensorType(value).getShape(); }
inline int64_t lastDim(mlir::Value value) { return tensorType(value).getShape().back(); }
inline double elements(mlir::Value value) { return double(tensorType(value).getNumElements()); }
/// The number of rows: the product of all leading dimensions.
inline double rows(mlir::Value value) { return elements(value) / double(lastDim(value)); }

/// Succeeds if the value has that shape, or that rank. `name` is the name of the value in the
/// error.
mlir::LogicalResult verifyShape(mlir::Operation *op, llvm::StringRef name, mlir::Value value,
                                Shape expected);
mlir::LogicalResult verifyRank(mlir::Operation *op, llvm::StringRef name, mlir::Value value,
                               int64_t rank, bool exact = true);

/// The gradient of an operand that was broadcast to dy's shape.
mlir::Value sumTo(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value dy,
                  mlir::Value operand);

} // namespace boa

#endif // BOA_DIALECT_COMPUTEOPS_H
