//===- LinalgBuilder.cpp - Arithmetic and row-wise linalg ops -------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/kernels/LinalgBuilder.h"

using namespace mlir;
using namespace boa;

namespace {
AffineMap getMap(OpBuilder &builder, unsigned rank, Input input) {
  unsigned have = tensorOf(input.value).getRank();
  AffineMap all = builder.getMultiDimIdentityMap(rank);
  switch (input.indexing) {
  case Indexing::Full:
    return all;
  case Indexing::Leading:
    return all.getMajorSubMap(have);
  case Indexing::Trailing:
    break;
  }
  if (have == 0)
    return AffineMap::get(rank, 0, builder.getContext());
  return all.getMinorSubMap(have);
}
} // namespace

Value LinalgBuilder::empty(RankedTensorType type) {
  return tensor::EmptyOp::create(builder, loc, type.getShape(), type.getElementType());
}

Value LinalgBuilder::filled(RankedTensorType type, double value) {
  Value scalar =
      arith::ConstantOp::create(builder, loc, builder.getFloatAttr(type.getElementType(), value));
  return linalg::FillOp::create(builder, loc, scalar, empty(type)).getResult(0);
}

Value LinalgBuilder::generic(Value init, AffineMap initMap, unsigned rank, ArrayRef<Input> inputs,
                             ArrayRef<utils::IteratorType> iterators, bool reduces, Reduction kind,
                             Body body) {
  SmallVector<Value> values;
  SmallVector<AffineMap> maps;
  for (Input input : inputs) {
    values.push_back(input.value);
    maps.push_back(getMap(builder, rank, input));
  }
  maps.push_back(initMap);
  auto op = linalg::GenericOp::create(
      builder, loc, TypeRange(init.getType()), values, init, maps, iterators,
      [&](OpBuilder &b, Location l, ValueRange args) {
        SmallVector<Scalar> scalars;
        for (Value arg : args.drop_back())
          scalars.emplace_back(b, l, arg);
        Value result = body(scalars);
        // The order within a reduction is ours to choose: lanes of a vector.
        auto flags = arith::FastMathFlags::reassoc;
        if (reduces && kind == Reduction::Sum)
          result = arith::AddFOp::create(b, l, args.back(), result, flags);
        else if (reduces)
          result = arith::MaximumFOp::create(b, l, args.back(), result, flags);
        linalg::YieldOp::create(b, l, result);
      });
  return op.getResult(0);
}

Value LinalgBuilder::elementwise(RankedTensorType type, ArrayRef<Input> inputs, Body body) {
  unsigned rank = type.getRank();
  SmallVector<utils::IteratorType> iterators(rank, utils::IteratorType::parallel);
  return generic(empty(type), builder.getMultiDimIdentityMap(rank), rank, inputs, iterators,
                 /*reduces=*/false, Reduction::Sum, body);
}

Value LinalgBuilder::reduceRows(RankedTensorType space, Reduction kind, ArrayRef<Input> inputs,
                                Body body) {
  unsigned rank = space.getRank();
  SmallVector<utils::IteratorType> iterators(rank, utils::IteratorType::parallel);
  iterators.back() = utils::IteratorType::reduction;
  double start = kind == Reduction::Sum ? 0 : -std::numeric_limits<double>::infinity();
  AffineMap rows = builder.getMultiDimIdentityMap(rank).getMajorSubMap(rank - 1);
  return generic(filled(getRowsType(space), start), rows, rank, inputs, iterators, /*reduces=*/true,
                 kind, body);
}

Value LinalgBuilder::sumLeading(RankedTensorType space, Value init, ArrayRef<Input> inputs,
                                Body body) {
  unsigned rank = space.getRank();
  unsigned kept = tensorOf(init).getRank();
  SmallVector<utils::IteratorType> iterators(rank - kept, utils::IteratorType::reduction);
  iterators.append(kept, utils::IteratorType::parallel);
  AffineMap map = getMap(builder, rank, Input(init, Indexing::Trailing));
  return generic(init, map, rank, inputs, iterators, /*reduces=*/true, Reduction::Sum, body);
}
