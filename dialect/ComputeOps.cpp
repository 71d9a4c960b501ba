//===- ComputeOps.cpp - What families of compute ops share ----------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "dialect/ComputeOps.h"

#include "mlir/IR/TypeUtilities.h"

using namespace mlir;

namespace boa {

RankedTensorType getSumType(Type tensor) {
  auto type = cast<RankedTensorType>(tensor);
  if (!type.getElementType().isBF16())
    return type;
  return type.clone(Float32Type::get(type.getContext()));
}

LogicalResult verifyOneFloatType(Operation *op, ValueRange sums) {
  SmallVector<Value> values;
  for (bool isSum : {false, true})
    for (ValueRange range : {ValueRange(op->getOperands()), ValueRange(op->getResults())})
      for (Value value : range)
        if (isa<FloatType>(getElementTypeOrSelf(value)) && // no token indices
            llvm::is_contained(sums, value) == isSum)
          values.push_back(value);
  auto first = cast<RankedTensorType>(values.front().getType());
  for (Value value : values) {
    bool isSum = llvm::is_contained(sums, value);
    Type expected = (isSum ? getSumType(first) : first).getElementType();
    Type found = tensorType(value).getElementType();
    if (found == expected)
      continue;
    if (expected != first.getElementType())
      return op->emitOpError("expected sums of ") << expected << " but found " << found;
    return op->emitOpError("expected one floating-point type but found ")
           << expected << " and " << found;
  }
  return success();
}

LogicalResult verifyShape(Operation *op, StringRef name, Value value, Shape expected) {
  if (shapeOf(value) == expected)
    return success();
  return op->emitOpError("expected ")
         << name << " of shape [" << expected << "] but found " << value.getType();
}
LogicalResult verifyRank(Operation *op, StringRef name, Value value, int64_t rank, bool exact) {
  int64_t found = tensorType(value).getRank();
  if (exact ? found == rank : found >= rank)
    return success();
  return op->emitOpError("expected ") << name << " of rank " << rank << (exact ? "" : " or more")
                                      << " but found " << value.getType();
}

Value sumTo(OpBuilder &builder, Location loc, Value dy, Value operand) {
  if (dy.getType() == operand.getType())
    return dy;
  return SumLeadingOp::create(builder, loc, getSumType(operand.getType()), dy);
}

} // namespace boa
