//===- checked.h - Sizes that know of an overflow ---------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Sizes, offsets, budgets and bounds are products of numbers that a user writes. A product that
// wraps is a small number, or a negative one: it passes a comparison that the true one fails. So
// such a number is computed as a Checked, and looked at once, at the end.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_SUPPORT_CHECKED_H
#define BOA_RUNTIME_SUPPORT_CHECKED_H

#include <cstdint>

namespace boa {

/// An int64_t, or an overflow: then so is all that is computed from it.
class Checked {
public:
  constexpr Checked(int64_t value = 0) : value_(value) {}
  static constexpr Checked Overflow() {
    Checked overflow;
    overflow.ok_ = false;
    return overflow;
  }

  constexpr bool ok() const { return ok_; }
  /// An overflow is more than any bound.
  constexpr bool AtMost(int64_t most) const { return ok_ && value_ <= most; }
  constexpr int64_t value_or(int64_t otherwise) const { return ok_ ? value_ : otherwise; }

  friend constexpr Checked operator+(Checked a, Checked b) {
    a.ok_ &= b.ok_ && !__builtin_add_overflow(a.value_, b.value_, &a.value_);
    return a;
  }
  friend constexpr Checked operator-(Checked a, Checked b) {
    a.ok_ &= b.ok_ && !__builtin_sub_overflow(a.value_, b.value_, &a.value_);
    return a;
  }
  friend constexpr Checked operator*(Checked a, Checked b) {
    a.ok_ &= b.ok_ && !__builtin_mul_overflow(a.value_, b.value_, &a.value_);
    return a;
  }
  constexpr Checked &operator+=(Checked other) { return *this = *this + other; }
  constexpr Checked &operator*=(Checked other) { return *this = *this * other; }

  /// The next multiple of a `unit` above 0; the value is at least 0.
  constexpr Checked AlignedTo(int64_t unit) const {
    const Checked up = *this + (unit - 1);
    return up.ok_ ? Checked(up.value_ / unit * unit) : up;
  }

private:
  int64_t value_;
  bool ok_ = true;
};

/// The product of sizes: of a shape, say.
template <typename Sizes> constexpr Checked CheckedProduct(const Sizes &sizes) {
  Checked product = 1;
  for (int64_t size : sizes)
    product *= size;
  return product;
}

} // namespace boa

#endif // BOA_RUNTIME_SUPPORT_CHECKED_H
