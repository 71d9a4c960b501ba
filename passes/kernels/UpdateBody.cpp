//===- UpdateBody.cpp - One element of an update --------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/kernels/UpdateBody.h"

using namespace mlir;

namespace boa {

Value magnitude(CodeBuilder &b, Value value) { return b.both(b.bitsOf(value), 0x7fffffff); }

//===----------------------------------------------------------------------===//
// Weights
//===----------------------------------------------------------------------===//

Value joinMaster(CodeBuilder &b, Value high, Value low) {
  Type i32 = b.getI32Type();
  Value upper = b.shiftLeft(b.make<arith::ExtUIOp>(i32, high), 16);
  return b.floatOf(b.add(upper, b.make<arith::ExtSIOp>(i32, low)));
}

std::pair<Value, Value> splitMaster(CodeBuilder &b, Value master) {
  Type i16 = b.getI16Type();
  Value bits = b.bitsOf(master);
  Value high = b.shiftRight(b.add(bits, 0x8000), 16);
  Value low = b.sub(bits, b.shiftLeft(high, 16));
  return {b.make<arith::TruncIOp>(i16, high), b.make<arith::TruncIOp>(i16, low)};
}

//===----------------------------------------------------------------------===//
// States
//===----------------------------------------------------------------------===//

/// Hashes the inputs: each bit of them changes half of the bits. These are the last steps of
/// MurmurHash3.
Value random(CodeBuilder &b, Value seed, Value element, unsigned state) {
  auto shiftIn = [&](Value bits, int64_t by) { return b.exclusive(bits, b.shiftRight(bits, by)); };
  Value bits = b.mul(element, int32_t(0x9e3779b9));
  bits = b.add(bits, b.add(seed, int32_t(state * 0x632be5ab)));
  bits = b.mul(shiftIn(bits, 16), int32_t(0x85ebca6b));
  bits = b.mul(shiftIn(bits, 13), int32_t(0xc2b2ae35));
  return shiftIn(bits, 16);
}

Value widen(CodeBuilder &b, Value narrow) {
  return b.floatOf(b.shiftLeft(b.make<arith::ExtUIOp>(b.getI32Type(), narrow), 16));
}

Value narrow(CodeBuilder &b, Value value, Value random) {
  Value bits = b.add(b.bitsOf(value), b.both(random, 0xffff));
  return b.make<arith::TruncIOp>(b.getI16Type(), b.shiftRight(bits, 16));
}

/// (code / most)^4, as an f32.
static Value fourthPower(CodeBuilder &b, Value code, double most) {
  Value share = b.mulf(code, b.number(1 / most));
  Value square = b.mulf(share, share);
  return b.mulf(square, square);
}

Value decode(CodeBuilder &b, Type type, Value code, Value scale) {
  Type i32 = b.getI32Type(), f32 = b.getF32Type();
  if (type.isUnsignedInteger()) {
    Value wide = b.make<arith::MaxUIOp>(b.make<arith::ExtUIOp>(i32, code), b.integer(1));
    return b.mulf(fourthPower(b, b.make<arith::SIToFPOp>(f32, wide), 255), scale);
  }
  Value wide = b.make<arith::ExtSIOp>(i32, code);
  Value size = b.mulf(fourthPower(b, b.make<arith::SIToFPOp>(f32, wide), 127), scale);
  Value sign = b.both(wide, int32_t(0x80000000));
  return b.floatOf(b.either(b.bitsOf(size), sign));
}

/// Encodes a value as one of the two codes around it, with such odds that the mean is the value.
Value encode(CodeBuilder &b, Type type, Value value, Value scale, Value random) {
  Type i32 = b.getI32Type(), f32 = b.getF32Type();
  const double most = type.isUnsignedInteger() ? 255 : 127;
  Value empty = b.make<arith::CmpFOp>(arith::CmpFPredicate::OEQ, scale, b.number(0));
  Value divisor = b.select(empty, b.number(1), scale);
  Value share = b.divf(b.floatOf(magnitude(b, value)), divisor);
  Value root = b.make<math::SqrtOp>(b.make<math::SqrtOp>(share));
  Value step = b.mulf(root, b.number(most));
  // NaN, as of infinities, becomes 0 in one instruction: no integer is NaN.
  Value isNumber = b.make<arith::CmpFOp>(arith::CmpFPredicate::OGT, step, b.number(0));
  Value low = b.make<arith::FPToSIOp>(i32, b.select(isNumber, step, b.number(0)));
  Value below = b.make<arith::SIToFPOp>(f32, low);
  Value from = fourthPower(b, below, most);
  Value to = fourthPower(b, b.addf(below, b.number(1)), most);
  Value odds = b.divf(b.subf(share, from), b.subf(to, from));
  Value drawn = b.make<arith::SIToFPOp>(f32, b.shiftRight(random, 8));
  drawn = b.mulf(drawn, b.number(1.0 / (1 << 24)));
  Value up = b.make<arith::CmpFOp>(arith::CmpFPredicate::OLT, drawn, odds);
  Value code = b.least(b.add(low, b.make<arith::ExtUIOp>(i32, up)), int64_t(most));
  if (!type.isUnsignedInteger()) {
    Value negative = b.compare(CodeBuilder::Predicate::slt, b.bitsOf(value), b.integer(0));
    code = b.select(negative, b.sub(b.integer(0), code), code);
  }
  return b.make<arith::TruncIOp>(b.getI8Type(), code);
}

} // namespace boa
