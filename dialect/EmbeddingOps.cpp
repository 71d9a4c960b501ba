//===- EmbeddingOps.cpp - Rows of a table ---------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "dialect/ComputeOps.h"
#include "dialect/TokenDigits.h"

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
                                             getTokens(), results[0]));
  operands.push_back(Value());
}
double EmbeddingOp::getFlops() { return 0; }

LogicalResult EmbeddingGradOp::verify() {
  if (failed(verifyOneFloatType(*this, {getDtable()})))
    return failure();
  return verifyEmbedding(*this, "dtable", getDtable(), getTokens(), "dy", getDy());
}
double EmbeddingGradOp::getFlops() { return elements(getDy()); }

//===----------------------------------------------------------------------===//
// By blocks of the table
//===----------------------------------------------------------------------===//

/// Checks that `found` is [batch, time, width + 3] for a table [tokens, width].
static LogicalResult verifyFound(Operation *op, Value found, StringRef tableName, Value table) {
  if (failed(verifyRank(op, "rows", found, 3)) || failed(verifyRank(op, tableName, table, 2)))
    return failure();
  if (lastDim(found) == lastDim(table) + kTokenDigits)
    return success();
  return op->emitOpError("expected rows of ") << lastDim(table) << " values and " << kTokenDigits
                                              << " digits but found " << found.getType();
}

LogicalResult EmbeddingBeginOp::verify() {
  if (failed(verifyOneFloatType(*this)) || failed(verifyRank(*this, "rows", getFound(), 3)))
    return failure();
  if (lastDim(getFound()) <= kTokenDigits)
    return emitOpError("expected rows of values and ")
           << kTokenDigits << " digits but found " << getFound().getType();
  return verifyShape(*this, "tokens", getTokens(), shapeOf(getFound()).drop_back());
}
double EmbeddingBeginOp::getFlops() { return elements(getTokens()); }

LogicalResult EmbeddingBlockOp::verify() {
  if (failed(verifyOneFloatType(*this)) ||
      failed(verifyShape(*this, "a result", getNext(), shapeOf(getFound()))))
    return failure();
  return verifyFound(*this, getFound(), "a table", getTable());
}
// A row that a block finds was zero before, whatever is found in earlier blocks.
void EmbeddingBlockOp::buildVJP(OpBuilder &builder, ArrayRef<Value> results, Grads &operands) {
  operands.push_back(results[0]);
  operands.push_back(EmbeddingBlockGradOp::create(
      builder, getLoc(), getSumType(getTable().getType()), getFound(), results[0]));
}
double EmbeddingBlockOp::getFlops() { return elements(getNext()); }

LogicalResult EmbeddingBlockGradOp::verify() {
  if (failed(verifyOneFloatType(*this, {getDtable()})) ||
      failed(verifyShape(*this, "dnext", getDnext(), shapeOf(getFound()))))
    return failure();
  return verifyFound(*this, getFound(), "dtable", getDtable());
}
double EmbeddingBlockGradOp::getFlops() { return elements(getDnext()); }

} // namespace boa

#define GET_OP_CLASSES
#include "dialect/EmbeddingOps.cpp.inc"
