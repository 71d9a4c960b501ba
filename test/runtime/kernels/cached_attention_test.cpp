//===- cached_attention_test.cpp - Attention to keys of a cache -----------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Rows that come one after another, in pieces, give what attention of the whole text gives.
//
//===----------------------------------------------------------------------===//
#include "runtime/kernels/attention.h"
#include "runtime/kernels/cached_attention.h"
#include "test/runtime/kernels/fixture.h"

#include <algorithm>
#include <numeric>

using namespace boa::kernel_tests;

namespace {

struct CachedShape {
  int64_t context, heads, kvHeads, d, window;
};
const CachedShape kCachedShapes[] = {
    {1, 1, 1, 1, 0},   {40, 3, 3, 16, 0},   {130, 4, 2, 64, 0},  {129, 2, 1, 20, 0},
    {140, 6, 2, 5, 0}, {131, 3, 1, 80, 50}, {300, 2, 1, 37, 64}, {37, 2, 1, 16, 1},
};

template <typename E> struct Cached {
  using Sum = std::conditional_t<std::is_same_v<E, double>, double, float>;
  CachedShape s;
  int64_t width = s.heads * s.d, kvWidth = s.kvHeads * s.d, stride = width + 2 * kvWidth;
  std::vector<E> qkv = random<E>(s.context * stride, 1);
  // Nobody may read what was never written.
  std::vector<E> keys = std::vector<E>(size_t(s.context * kvWidth), nan()), values = keys;
  std::vector<E> y = std::vector<E>(size_t(s.context * width));

  static E nan() {
    if constexpr (std::is_same_v<E, uint16_t>)
      return 0x7fc0;
    else
      return NAN;
  }

  /// Pieces of 1, 2, 3, ... rows, whose last one is there twice.
  void run() {
    auto attend = [] {
      if constexpr (std::is_same_v<E, float>)
        return &boa_cached_attention_f32;
      else if constexpr (std::is_same_v<E, double>)
        return &boa_cached_attention_f64;
      else
        return &boa_cached_attention_bf16;
    }();
    for (int64_t first = 0, rows = 1; first < s.context; first += rows++) {
      rows = std::min(rows, s.context - first);
      std::vector<int32_t> positions(static_cast<size_t>(rows + 1), int32_t(first + rows - 1));
      std::iota(positions.begin(), positions.end() - 1, int32_t(first));
      const auto begin = qkv.begin() + first * stride, end = begin + rows * stride;
      std::vector<E> piece(begin, end), out(size_t((rows + 1) * width));
      piece.insert(piece.end(), end - stride, end);
      const E *at = piece.data();
      attend(rows + 1, s.context, s.heads, s.kvHeads, s.d, s.window, positions.data(), at, stride,
             at + width, stride, at + width + kvWidth, stride, out.data(), width, keys.data(),
             kvWidth, values.data(), kvWidth);
      std::copy_n(out.begin(), rows * width, y.begin() + first * width);
    }
  }

  std::vector<double> whole() const {
    std::vector<double> wide(qkv.size()), result(y.size()), lse(size_t(s.heads * s.context));
    for (size_t i = 0; i < qkv.size(); ++i)
      wide[i] = value(qkv[i]);
    boa_attention_f64(1, s.context, s.heads, s.kvHeads, s.d, /*causal=*/1, s.window, nullptr,
                      wide.data(), stride, wide.data() + width, stride,
                      wide.data() + width + kvWidth, stride, result.data(), width, lse.data());
    return result;
  }
};

template <typename E> void expectWhole() {
  for (CachedShape shape : kCachedShapes) {
    SCOPED_TRACE(testing::Message() << shape.context << " of " << shape.d);
    Cached<E> cached{shape};
    cached.run();
    const std::vector<double> want = cached.whole();
    const double rounding = sizeof(E) == 2 ? std::ldexp(1, -8) : 0;
    for (size_t i = 0; i < want.size(); ++i)
      ASSERT_LE(std::abs(value(cached.y[i]) - want[i]),
                rounding * std::abs(want[i]) + tolerance<typename Cached<E>::Sum>())
          << "at " << i;
  }
}

TEST_P(EachIsa, CachedAttentionIsThatOfTheWholeText) {
  expectWhole<float>();
  expectWhole<double>();
  expectWhole<uint16_t>();
}

TEST_P(EachIsa, CachedAttentionDoesNotDependOnThreads) {
  for (CachedShape shape : kCachedShapes)
    expectSameForAnyThreads([&] {
      Cached<float> cached{shape};
      cached.run();
      return cached.y;
    });
}

} // namespace
