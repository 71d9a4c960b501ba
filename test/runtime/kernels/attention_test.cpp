//===- attention_test.cpp - Attention of compiled kernels ----------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Against its definition in doubles; for each element type, instruction set and
// number of threads. Results must not depend on the number of threads by a bit.
//
//===----------------------------------------------------------------------===//
#include "runtime/abi/abi.h"
#include "runtime/kernels/attention.h"
#include "test/runtime/kernels/fixture.h"

using namespace boa::kernel_tests;

namespace {

struct AttentionShape {
  int64_t batch, time, heads, kvHeads, d;
  bool causal;
  int64_t window = 0;
  /// Lengths of documents, over and over, in another order in each sequence. None: one document.
  std::vector<int64_t> documents = {};
};
const AttentionShape kShapes[] = {
    {1, 1, 1, 1, 1, true},
    {2, 37, 3, 3, 16, false},
    {2, 37, 3, 3, 16, true},
    {1, 300, 4, 2, 64, false},
    {1, 300, 4, 2, 64, true},
    {2, 129, 2, 1, 20, true},
    {1, 65, 2, 1, 5, false},
    {1, 128, 2, 2, 32, true},
    {1, 520, 1, 1, 24, true},
    {1, 131, 3, 1, 80, true},
    {1, 67, 2, 1, 128, false},
    {1, 70, 2, 1, 37, true},
    {1, 37, 2, 1, 16, true, 1},
    {2, 129, 2, 1, 20, true, 50},
    {1, 300, 4, 2, 64, true, 64},
    {1, 300, 3, 3, 24, true, 65},
    {1, 700, 1, 1, 16, true, 129},
    {1, 530, 2, 1, 8, true, 300},
    // Documents that begin and end in blocks, fill several, or are one token.
    {2, 300, 4, 2, 16, true, 0, {1, 70, 128, 3}},
    {2, 300, 4, 2, 16, false, 0, {1, 70, 128, 3}},
    {1, 700, 2, 1, 24, true, 50, {20, 64, 190, 7}},
    {2, 700, 1, 1, 8, false, 0, {290, 1, 260}},
    {1, 700, 2, 2, 8, true, 0, {699}},
};

/// q, k, v side by side in rows of one buffer, and so are their gradients. Buffers end
/// where the matrices do.
template <typename E> struct Attention {
  using Sum = std::conditional_t<std::is_same_v<E, double>, double, float>;

  AttentionShape s;
  int64_t width, stride, rows;
  std::vector<E> qkv, dy, y, grad;
  std::vector<Sum> lse;
  std::vector<int32_t> starts; // of documents, or none

  explicit Attention(AttentionShape shape)
      : s(shape), width(s.heads * s.d), stride((s.heads + 2 * s.kvHeads) * s.d),
        rows(s.batch * s.time), qkv(random<E>(rows * stride, 1)), dy(random<E>(rows * width, 2)),
        y(rows * width), grad(rows * stride), lse(s.batch * s.heads * s.time) {
    for (int64_t b = 0; b < s.batch && !s.documents.empty(); ++b)
      for (size_t at = size_t(b), begin = 0; begin < size_t(s.time); ++at) {
        const auto length = size_t(s.documents[at % s.documents.size()]);
        starts.resize(size_t(b * s.time) + std::min(begin + length, size_t(s.time)),
                      int32_t(begin));
        begin += length;
      }
  }

  E *q() { return qkv.data(); }
  E *k() { return q() + width; }
  E *v() { return k() + s.kvHeads * s.d; }

  void run() {
    auto [forward, backward] = [] {
      if constexpr (std::is_same_v<E, float>)
        return std::pair(&boa_attention_f32, &boa_attention_grad_f32);
      else if constexpr (std::is_same_v<E, double>)
        return std::pair(&boa_attention_f64, &boa_attention_grad_f64);
      else
        return std::pair(&boa_attention_bf16, &boa_attention_grad_bf16);
    }();
    const int32_t *documents = starts.empty() ? nullptr : starts.data();
    forward(s.batch, s.time, s.heads, s.kvHeads, s.d, s.causal, s.window, documents, q(), stride,
            k(), stride, v(), stride, y.data(), width, lse.data());
    E *g = grad.data();
    backward(s.batch, s.time, s.heads, s.kvHeads, s.d, s.causal, s.window, documents, q(), stride,
             k(), stride, v(), stride, y.data(), width, lse.data(), dy.data(), width, g, stride,
             g + width, stride, g + width + s.kvHeads * s.d, stride);
  }

  /// What was computed, against the definition in doubles; gradients by it from the y
  /// that was computed, as they were. In bf16 each result is rounded once, by 2^-8; with
  /// `narrow`, so is a factor of each product that it is a sum of.
  void expectDefinition(bool narrow) const {
    std::vector<double> wantLse(lse.size()), wantY(y.size()), want(grad.size());
    std::vector<double> sizeY(y.size()), size(grad.size()); // sums of what is absolute
    double scale = 1 / std::sqrt(double(s.d));
    for (int64_t b = 0; b < s.batch; ++b)
      for (int64_t h = 0; h < s.heads; ++h)
        for (int64_t t = 0; t < s.time; ++t) {
          int64_t end = s.causal ? t + 1 : s.time, at = b * s.time + t;
          int64_t first = s.window != 0 ? std::max<int64_t>(0, end - s.window) : 0;
          if (!starts.empty()) {
            first = std::max<int64_t>(first, starts[at]);
            while (starts[b * s.time + end - 1] != starts[at])
              --end;
          }
          int64_t qAt = at * stride + h * s.d, yAt = at * width + h * s.d;
          auto kAt = [&](int64_t j) {
            return (b * s.time + j) * stride + width + h / (s.heads / s.kvHeads) * s.d;
          };
          const int64_t toV = s.kvHeads * s.d;
          std::vector<double> p(end, -INFINITY);
          double max = -INFINITY, sum = 0, delta = 0;
          for (int64_t j = first; j < end; ++j) {
            p[j] = 0;
            for (int64_t x = 0; x < s.d; ++x)
              p[j] += scale * value(qkv[qAt + x]) * value(qkv[kAt(j) + x]);
            max = std::max(max, p[j]);
          }
          for (double &each : p)
            sum += each = std::exp(each - max);
          wantLse[(b * s.heads + h) * s.time + t] = max + std::log(sum);
          auto add = [](double &want, double &size, double term) {
            want += term, size += std::abs(term);
          };
          for (int64_t x = 0; x < s.d; ++x) {
            for (int64_t j = first; j < end; ++j)
              add(wantY[yAt + x], sizeY[yAt + x], p[j] / sum * value(qkv[kAt(j) + toV + x]));
            delta += value(dy[yAt + x]) * value(y[yAt + x]);
          }
          for (int64_t j = first; j < end; ++j) {
            double dp = 0, pj = p[j] / sum;
            for (int64_t x = 0; x < s.d; ++x)
              dp += value(dy[yAt + x]) * value(qkv[kAt(j) + toV + x]);
            double ds = pj * (dp - delta) * scale;
            for (int64_t x = 0; x < s.d; ++x) {
              int64_t dk = kAt(j) + x, dv = dk + toV;
              add(want[qAt + x], size[qAt + x], ds * value(qkv[dk]));
              add(want[dk], size[dk], ds * value(qkv[qAt + x]));
              add(want[dv], size[dv], pj * value(dy[yAt + x]));
            }
          }
        }
    auto expectClose = [&](auto &got, const std::vector<double> &want,
                           const std::vector<double> &size) {
      double rounding = sizeof(got[0]) == 2 ? std::ldexp(1, -8) : 0;
      for (size_t i = 0; i < want.size(); ++i)
        ASSERT_LE(std::abs(value(got[i]) - want[i]),
                  1.01 * rounding * (std::abs(want[i]) + (narrow ? size[i] : 0)) +
                      tolerance<Sum>() * std::max(1.0, std::abs(want[i])))
            << "at " << i << ", not " << want[i];
    };
    expectNear(lse, wantLse);
    expectClose(y, wantY, sizeY);
    expectClose(grad, want, size);
  }
};

template <typename E> void expectAttention(bool narrow = false) {
  for (AttentionShape shape : kShapes) {
    SCOPED_TRACE(testing::Message()
                 << shape.time << " of " << shape.d << ", window " << shape.window << ", "
                 << shape.documents.size() << " lengths of documents");
    Attention<E> a(shape);
    a.run();
    a.expectDefinition(narrow);
  }
}

TEST_P(EachIsa, AttentionMatchesDefinition) {
  expectAttention<float>();
  expectAttention<double>();
  expectAttention<uint16_t>(boa::UsedIsa() >= boa::Isa::kAvx512Bf16);
}

template <typename E> void expectSameAttentionForAnyThreads() {
  for (AttentionShape shape : kShapes) {
    SCOPED_TRACE(shape.time);
    expectSameForAnyThreads([&] {
      Attention<E> a(shape);
      a.run();
      std::vector<double> all(a.lse.begin(), a.lse.end());
      for (const std::vector<E> *part : {&a.y, &a.grad})
        for (E x : *part)
          all.push_back(value(x));
      return all;
    });
  }
}

// Whether one task does a whole head's backward pass or several share it.
TEST_P(EachIsa, AttentionDoesNotDependOnThreads) {
  expectSameAttentionForAnyThreads<float>();
  expectSameAttentionForAnyThreads<double>();
  expectSameAttentionForAnyThreads<uint16_t>();
}

// A diverged run must show: NaN in gives NaN out, not zero.
template <typename E> void expectAttentionKeepsNaN(E nan) {
  Attention<E> a({1, 40, 1, 1, 15, true});
  a.qkv[20 * a.stride + 14] = nan; // of q, row 20
  a.run();
  EXPECT_TRUE(std::isnan(value(a.y[20 * a.width])));
  EXPECT_FALSE(std::isnan(value(a.y[19 * a.width])));
  EXPECT_FALSE(std::isnan(value(a.y[21 * a.width])));
  EXPECT_TRUE(std::isnan(value(a.grad[20 * a.stride])));
  EXPECT_FALSE(std::isnan(value(a.grad[19 * a.stride])));
  EXPECT_FALSE(std::isnan(value(a.grad[21 * a.stride])));
}

TEST_P(EachIsa, AttentionKeepsNaN) {
  expectAttentionKeepsNaN<float>(NAN);
  expectAttentionKeepsNaN<uint16_t>(0x7fc0);
}

} // namespace
