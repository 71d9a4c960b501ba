//===- LoopEmitter.cpp - Loop nests from linalg ops -----------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/target/cpu/LoopEmitter.h"

#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace boa;

Value LoopEmitter::constant(int64_t value) {
  return arith::ConstantIndexOp::create(builder, loc, value);
}

void LoopEmitter::forRange(Value begin, Value end, function_ref<void(Value)> body) {
  scf::ForOp::create(builder, loc, begin, end, constant(1), ValueRange(),
                     [&](OpBuilder &, Location, Value iv, ValueRange) {
                       body(iv);
                       scf::YieldOp::create(builder, loc);
                     });
}

SmallVector<Value> LoopEmitter::delinearize(Value linear, ArrayRef<int64_t> extents) {
  SmallVector<Value> result(extents.size());
  for (int64_t i = extents.size() - 1; i >= 0; --i) {
    if (i == 0) {
      result[i] = linear;
      break;
    }
    Value extent = constant(extents[i]);
    result[i] = arith::RemUIOp::create(builder, loc, linear, extent);
    linear = arith::DivUIOp::create(builder, loc, linear, extent);
  }
  return result;
}

SmallVector<Value> LoopEmitter::indices(AffineMap map, ArrayRef<Value> ivs) {
  SmallVector<Value> result;
  for (AffineExpr expr : map.getResults()) {
    if (auto dim = dyn_cast<AffineDimExpr>(expr))
      result.push_back(ivs[dim.getPosition()]);
    else
      result.push_back(constant(cast<AffineConstantExpr>(expr).getValue()));
  }
  return result;
}

SmallVector<Value> LoopEmitter::emitBody(linalg::GenericOp op, ArrayRef<Value> ivs,
                                         ValueRange carried) {
  IRMapping mapping;
  Block *body = op.getBody();
  unsigned inputs = op.getNumDpsInputs();
  for (OpOperand &operand : op->getOpOperands()) {
    unsigned position = operand.getOperandNumber();
    BlockArgument argument = body->getArgument(position);
    if (argument.use_empty())
      continue;
    Value value;
    if (position >= inputs && !carried.empty())
      value = carried[position - inputs];
    else if (!isa<MemRefType>(operand.get().getType()))
      value = operand.get();
    else
      value = memref::LoadOp::create(builder, loc, operand.get(),
                                     indices(op.getMatchingIndexingMap(&operand), ivs));
    mapping.map(argument, value);
  }
  for (Operation &inner : body->without_terminator()) {
    if (auto index = dyn_cast<linalg::IndexOp>(inner))
      mapping.map(index.getResult(), ivs[index.getDim()]);
    else
      builder.clone(inner, mapping);
  }
  SmallVector<Value> results;
  for (Value yielded : body->getTerminator()->getOperands())
    results.push_back(mapping.lookupOrDefault(yielded));
  return results;
}

void LoopEmitter::emitStores(linalg::GenericOp op, ArrayRef<Value> ivs, ValueRange values) {
  for (auto [i, value] : llvm::enumerate(values)) {
    OpOperand *init = op.getDpsInitOperand(i);
    memref::StoreOp::create(builder, loc, value, init->get(),
                            indices(op.getMatchingIndexingMap(init), ivs));
  }
}

namespace {
/// Whether loops of the op can be emitted: maps that pick dimensions.
LogicalResult checkMaps(linalg::GenericOp op) {
  for (AffineMap map : op.getIndexingMapsArray())
    for (AffineExpr expr : map.getResults())
      if (!isa<AffineDimExpr, AffineConstantExpr>(expr))
        return op.emitOpError("expected indexing maps to be projections");
  return success();
}
} // namespace

LogicalResult LoopEmitter::emitRow(linalg::GenericOp op, ArrayRef<Value> row) {
  if (failed(checkMaps(op)))
    return failure();
  SmallVector<int64_t> extents = op.getStaticLoopRanges();
  unsigned rank = extents.size(), first = row.size();
  SmallVector<Value> ivs(row);
  // The innermost loop carries the outputs if it is a reduction.
  bool carries =
      rank > first && op.getIteratorTypesArray().back() == utils::IteratorType::reduction;
  auto nest = [&](auto &self, unsigned dim) -> void {
    if (dim == rank) {
      emitStores(op, ivs, emitBody(op, ivs));
      return;
    }
    Value begin = constant(0), end = constant(extents[dim]);
    if (dim + 1 < rank || !carries) {
      forRange(begin, end, [&](Value iv) {
        ivs.push_back(iv);
        self(self, dim + 1);
        ivs.pop_back();
      });
      return;
    }
    SmallVector<Value> start;
    ivs.push_back(begin); // outputs do not depend on it
    for (OpOperand &init : op.getDpsInitsMutable())
      start.push_back(memref::LoadOp::create(builder, loc, init.get(),
                                             indices(op.getMatchingIndexingMap(&init), ivs)));
    ivs.pop_back();
    auto loop = scf::ForOp::create(builder, loc, begin, end, constant(1), start,
                                   [&](OpBuilder &, Location, Value iv, ValueRange carried) {
                                     ivs.push_back(iv);
                                     SmallVector<Value> values = emitBody(op, ivs, carried);
                                     scf::YieldOp::create(builder, loc, values);
                                     ivs.pop_back();
                                   });
    ivs.push_back(begin);
    emitStores(op, ivs, loop.getResults());
    ivs.pop_back();
  };
  nest(nest, first);
  return success();
}

LogicalResult LoopEmitter::emitColumns(linalg::GenericOp op, Value begin, Value end) {
  if (failed(checkMaps(op)))
    return failure();
  SmallVector<int64_t> extents = op.getStaticLoopRanges();
  SmallVector<Value> ivs;
  auto nest = [&](auto &self, unsigned dim) -> void {
    bool last = dim + 1 == extents.size();
    forRange(last ? begin : constant(0), last ? end : constant(extents[dim]), [&](Value iv) {
      ivs.push_back(iv);
      if (last)
        emitStores(op, ivs, emitBody(op, ivs));
      else
        self(self, dim + 1);
      ivs.pop_back();
    });
  };
  nest(nest, 0);
  return success();
}

void LoopEmitter::emitScatter(kernel::ScatterRowsOp op, Value begin, Value end) {
  ArrayRef<int64_t> extents = cast<MemRefType>(op.getIndices().getType()).getShape();
  SmallVector<Value> ivs;
  auto nest = [&](auto &self, unsigned dim) -> void {
    if (dim < extents.size()) {
      forRange(constant(0), constant(extents[dim]), [&](Value iv) {
        ivs.push_back(iv);
        self(self, dim + 1);
        ivs.pop_back();
      });
      return;
    }
    Value token = memref::LoadOp::create(builder, loc, op.getIndices(), ivs);
    Value row = arith::IndexCastOp::create(builder, loc, builder.getIndexType(), token);
    forRange(begin, end, [&](Value column) {
      ivs.push_back(column);
      Value add = memref::LoadOp::create(builder, loc, op.getRows(), ivs);
      ivs.pop_back();
      SmallVector<Value> at{row, column};
      Value sum = memref::LoadOp::create(builder, loc, op.getTable(), at);
      sum = arith::AddFOp::create(builder, loc, sum, add);
      memref::StoreOp::create(builder, loc, sum, op.getTable(), at);
    });
  };
  nest(nest, 0);
}
