//===- EmbeddingOps.cpp - Rows of a table ---------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "dialect/ComputeOps.h"

using namespace mlir;

namespace boa {

//===----------------------------------------------------------------------===//
// boa.embedding
//===----------------------------------------------------------------------===//

static LogicalResult verifyEmbedding(Operation *op, StringRef tableName, Value table, Value tokens,
                                     StringRef name, Value rows) {
  if (failed(verifyRank(op, tableName, table, 2)))
    return failure();
  SmallVector<int64_t> shape(shapeOf(tokens));
  shape.push_back(lastDim(table));
  return verifyShape(op, name, rows, shape);
}

LogicalResult EmbeddingOp::verify() {
  return verifyEmbedding(*this, "a table", getTable(), getTokens(), "a result", getY());
}
void EmbeddingOp::buildVJP(OpBuilder &builder, ArrayRef<Value> results, Grads &operands) {
  operands.push_back(EmbeddingGradOp::create(builder, getLoc(), getSumType(getTable().getType()),
                                             getTokens(), results[0], getPartial()));
}

LogicalResult EmbeddingGradOp::verify() {
  if (failed(verifyOneFloatType(*this, {getDtable()})))
    return failure();
  return verifyEmbedding(*this, "dtable", getDtable(), getTokens(), "dy", getDy());
}

//===----------------------------------------------------------------------===//
// boa.rebase
//===----------------------------------------------------------------------===//

LogicalResult RebaseOp::verify() {
  if (const int64_t by = getBy(); by < 0 || by > kMostExtent)
    return emitOpError("expected a number of 0 to ") << kMostExtent << " tokens but found " << by;
  return success();
}

} // namespace boa

#define GET_OP_CLASSES
#include "dialect/EmbeddingOps.cpp.inc"
