//===- UpdateBody.cpp - One element of an update --------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/kernels/UpdateBody.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace boa {

Value UpdateBody::integer(int64_t value, unsigned width) {
  return arith::ConstantIntOp::create(builder, loc, value, width);
}
Value UpdateBody::number(double value) {
  return arith::ConstantOp::create(builder, loc, builder.getF32FloatAttr(float(value)));
}
Value UpdateBody::bitsOf(Value value) {
  return make<arith::BitcastOp>(builder.getI32Type(), value);
}
Value UpdateBody::floatOf(Value bits) { return make<arith::BitcastOp>(builder.getF32Type(), bits); }
Value UpdateBody::magnitude(Value value) {
  return make<arith::AndIOp>(bitsOf(value), integer(0x7fffffff));
}

SmallVector<Value> UpdateBody::clone(Region &region, ValueRange arguments) {
  Block &block = region.front();
  IRMapping map;
  map.map(block.getArguments(), arguments);
  for (Operation &op : block.without_terminator())
    builder.clone(op, map); // with its own location: what refuses it later names the user's line
  return llvm::map_to_vector(block.getTerminator()->getOperands(),
                             [&](Value value) { return map.lookup(value); });
}

//===----------------------------------------------------------------------===//
// Weights
//===----------------------------------------------------------------------===//

Value UpdateBody::joinMaster(Value high, Value low) {
  Type i32 = builder.getI32Type();
  Value upper = make<arith::ShLIOp>(make<arith::ExtUIOp>(i32, high), integer(16));
  return floatOf(make<arith::AddIOp>(upper, make<arith::ExtSIOp>(i32, low)));
}

std::pair<Value, Value> UpdateBody::splitMaster(Value master) {
  Type i16 = builder.getI16Type();
  Value bits = bitsOf(master), sixteen = integer(16);
  Value high = make<arith::ShRUIOp>(make<arith::AddIOp>(bits, integer(0x8000)), sixteen);
  Value low = make<arith::SubIOp>(bits, make<arith::ShLIOp>(high, sixteen));
  return {make<arith::TruncIOp>(i16, high), make<arith::TruncIOp>(i16, low)};
}

//===----------------------------------------------------------------------===//
// States
//===----------------------------------------------------------------------===//

/// Hashes the inputs: each bit of them changes half of the bits. These are the last steps of
/// MurmurHash3.
Value UpdateBody::random(Value seed, Value element, unsigned state) {
  auto shiftIn = [&](Value bits, int64_t by) {
    return make<arith::XOrIOp>(bits, make<arith::ShRUIOp>(bits, integer(by)));
  };
  Value bits = make<arith::MulIOp>(element, integer(int32_t(0x9e3779b9)));
  bits = make<arith::AddIOp>(bits, make<arith::AddIOp>(seed, integer(int32_t(state * 0x632be5ab))));
  bits = make<arith::MulIOp>(shiftIn(bits, 16), integer(int32_t(0x85ebca6b)));
  bits = make<arith::MulIOp>(shiftIn(bits, 13), integer(int32_t(0xc2b2ae35)));
  return shiftIn(bits, 16);
}

Value UpdateBody::widen(Value narrow) {
  Value bits = make<arith::ExtUIOp>(builder.getI32Type(), narrow);
  return floatOf(make<arith::ShLIOp>(bits, integer(16)));
}

Value UpdateBody::narrow(Value value, Value random) {
  Value bits = make<arith::AddIOp>(bitsOf(value), make<arith::AndIOp>(random, integer(0xffff)));
  return make<arith::TruncIOp>(builder.getI16Type(), make<arith::ShRUIOp>(bits, integer(16)));
}

/// (code / most)^4, as an f32.
Value UpdateBody::fourthPower(Value code, double most) {
  Value share = make<arith::MulFOp>(code, number(1 / most));
  Value square = make<arith::MulFOp>(share, share);
  return make<arith::MulFOp>(square, square);
}

Value UpdateBody::decode(Type type, Value code, Value scale) {
  Type i32 = builder.getI32Type(), f32 = builder.getF32Type();
  if (type.isUnsignedInteger()) {
    Value wide = make<arith::MaxUIOp>(make<arith::ExtUIOp>(i32, code), integer(1));
    return make<arith::MulFOp>(fourthPower(make<arith::SIToFPOp>(f32, wide), 255), scale);
  }
  Value wide = make<arith::ExtSIOp>(i32, code);
  Value size = make<arith::MulFOp>(fourthPower(make<arith::SIToFPOp>(f32, wide), 127), scale);
  Value sign = make<arith::AndIOp>(wide, integer(int32_t(0x80000000)));
  return floatOf(make<arith::OrIOp>(bitsOf(size), sign));
}

/// Encodes a value as one of the two codes around it, with such odds that the mean is the value.
Value UpdateBody::encode(Type type, Value value, Value scale, Value random) {
  Type i32 = builder.getI32Type(), f32 = builder.getF32Type();
  const double most = type.isUnsignedInteger() ? 255 : 127;
  Value empty = make<arith::CmpFOp>(arith::CmpFPredicate::OEQ, scale, number(0));
  Value divisor = make<arith::SelectOp>(empty, number(1), scale);
  Value share = make<arith::DivFOp>(floatOf(magnitude(value)), divisor);
  Value root = make<math::SqrtOp>(make<math::SqrtOp>(share));
  Value step = make<arith::MulFOp>(root, number(most));
  // NaN, as of infinities, becomes 0 in one instruction: no integer is NaN.
  Value isNumber = make<arith::CmpFOp>(arith::CmpFPredicate::OGT, step, number(0));
  Value low = make<arith::FPToSIOp>(i32, make<arith::SelectOp>(isNumber, step, number(0)));
  Value below = make<arith::SIToFPOp>(f32, low);
  Value from = fourthPower(below, most);
  Value to = fourthPower(make<arith::AddFOp>(below, number(1)), most);
  Value odds = make<arith::DivFOp>(make<arith::SubFOp>(share, from), make<arith::SubFOp>(to, from));
  Value drawn = make<arith::SIToFPOp>(f32, make<arith::ShRUIOp>(random, integer(8)));
  Value up = make<arith::CmpFOp>(arith::CmpFPredicate::OLT,
                                 make<arith::MulFOp>(drawn, number(1.0 / (1 << 24))), odds);
  Value code = make<arith::AddIOp>(low, make<arith::ExtUIOp>(i32, up));
  code = make<arith::MinUIOp>(code, integer(int64_t(most)));
  if (!type.isUnsignedInteger()) {
    Value negative = make<arith::CmpIOp>(arith::CmpIPredicate::slt, bitsOf(value), integer(0));
    code = make<arith::SelectOp>(negative, make<arith::SubIOp>(integer(0), code), code);
  }
  return make<arith::TruncIOp>(builder.getIntegerType(8), code);
}

} // namespace boa
