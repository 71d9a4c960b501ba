//===- NormalDistribution.cpp - The normal distribution -------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// With a = |x|, the tail beyond a is e^(-a^2/2) m(a). m is smooth and falls as 1/a. So
// m(a) (a + K) is nearly flat, and a polynomial of 1 / (a + K) comes close to it. 1 + erf
// would lose all digits where x is far below zero. The tail keeps them.
//
// The coefficients are those of the Chebyshev series of m(a) (a + K) with respect to
// r = slope / (a + K) + offset. r runs from -1 to 1 as a runs from `far` to 0. Beyond `far`
// the exponential is zero in that type, or nearly so.
//
//===----------------------------------------------------------------------===//

#include "passes/kernels/NormalDistribution.h"

#include <cmath>

using namespace mlir;
using namespace boa;

namespace {

/// A polynomial for the tail. Its coefficients begin with the constant term.
struct Tail {
  double k, far;
  SmallVector<double> coefficients;
};

Tail getTail(bool isDouble) {
  if (isDouble)
    return {5.75,
            38,
            {0.87733479404588499, 0.74835824319039532, 0.55510876183233763, 0.35697939109354574,
             0.19734299394608868, 0.092254094716599287, 0.035364113921683294, 0.010423338623164041,
             0.0019678305277126691, 2.0554682752845966e-05, -0.00012501745820213643,
             -3.4060820876359076e-05, 1.7748366609127737e-06, 3.0785130308647923e-06,
             3.6038997465532618e-07, -2.1330477884580552e-07, -5.4038963713166691e-08,
             1.1126545579624067e-08, 4.1764490813091614e-09}};
  return {4.25,
          13.5,
          {0.93653236277223545, 0.66041843895199612, 0.35201486646681107, 0.13762485034924816,
           0.03570377964783469, 0.00393885106246367, -0.00091510698495381286,
           -0.0003541216009487454, 1.57167513802417e-05, 2.0365701753324167e-05}};
}

} // namespace

Normal boa::computeNormal(Scalar x) {
  const bool isDouble = x.getType().isF64();
  const Tail tail = getTail(isDouble);
  const double nearest = 1 / tail.k, farthest = 1 / (tail.k + tail.far);
  const double slope = 2 / (nearest - farthest);
  const double offset = -(nearest + farthest) / (nearest - farthest);
  auto fma = [](Scalar a, Scalar b, Scalar c) { return a.make<math::FmaOp>(a, b, c); };

  Scalar zero = x.zero(), minus = 0.0 - x;
  Scalar isNegative = x.make<arith::CmpFOp>(arith::CmpFPredicate::OLT, x, zero);
  Scalar a = x.make<arith::SelectOp>(isNegative, minus, x);
  // e^(-a^2/2). The square's rounding error would show in it.
  Scalar square = x.make<arith::MulFOp>(x, x);
  Scalar rest = fma(x, x, 0.0 - square);
  Scalar e = (square * -0.5).exp();
  e = fma(e, rest * -0.5, e);
  // exp in f32 is never zero, but x may be large enough for a product that shows it.
  Scalar isNear = x.make<arith::CmpFOp>(arith::CmpFPredicate::OLT, a, a.constant(tail.far));
  e = x.make<arith::SelectOp>(isNear, e, zero);

  Scalar t = 1.0 / (a + tail.k);
  Scalar r = fma(t, t.constant(slope), t.constant(offset));
  Scalar sum = t.constant(tail.coefficients.back());
  for (double c : llvm::reverse(ArrayRef(tail.coefficients).drop_back()))
    sum = fma(sum, r, t.constant(c));
  Scalar beyond = e * sum * t;
  Scalar distribution = x.make<arith::SelectOp>(isNegative, beyond, 1.0 - beyond);
  return {distribution, e * (1 / std::sqrt(2 * M_PI))};
}
