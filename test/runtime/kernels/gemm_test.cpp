//===- gemm_test.cpp - Matrix products of compiled kernels ---------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Against plain loops in doubles; for each element type, instruction set and
// number of threads. Results must not depend on the number of threads by a bit.
//
//===----------------------------------------------------------------------===//
#include "runtime/abi/abi.h"
#include "runtime/kernels/gemm.h"
#include "runtime/kernels/gemm_tiles.h"
#include "test/runtime/kernels/fixture.h"

using namespace boa::kernel_tests;

namespace {

void gemm(bool ta, bool tb, int64_t m, int64_t n, int64_t k, const float *a, int64_t lda,
          const float *b, int64_t ldb, const float *bias, bool accumulate, float *c, int64_t ldc,
          void *prepared = nullptr, int64_t offset = 0) {
  boa_gemm_f32(ta, tb, m, n, k, a, lda, b, ldb, bias, accumulate, c, ldc, prepared, offset);
}
void gemm(bool ta, bool tb, int64_t m, int64_t n, int64_t k, const double *a, int64_t lda,
          const double *b, int64_t ldb, const double *bias, bool accumulate, double *c,
          int64_t ldc) {
  boa_gemm_f64(ta, tb, m, n, k, a, lda, b, ldb, bias, accumulate, c, ldc);
}

// Rows wider than the matrix: what lies between them must stay as it is.
TEST(GemmF64, MatchesLoopsInEveryForm) {
  using T = double;
  struct Shape {
    int64_t m, n, k;
  };
  for (Shape s : {Shape{1, 1, 1}, Shape{5, 7, 3}, Shape{64, 130, 33}, Shape{301, 257, 128},
                  Shape{97, 480, 96}, Shape{400, 40, 900}})
    for (int form = 0; form < 4; ++form)
      for (int more = 0; more < 4; ++more) {
        bool ta = form & 1, tb = form & 2, accumulate = more & 1;
        int64_t lda = (ta ? s.m : s.k) + 3, ldb = (tb ? s.k : s.n) + 1, ldc = s.n + 2;
        auto a = random<T>((ta ? s.k : s.m) * lda, 1), b = random<T>((tb ? s.n : s.k) * ldb, 2);
        auto before = random<T>(s.m * ldc, 3), biases = random<T>(s.n, 4);
        const T *bias = more & 2 ? biases.data() : nullptr;
        std::vector<double> want(before.begin(), before.end());
        for (int64_t i = 0; i < s.m; ++i)
          for (int64_t j = 0; j < s.n; ++j) {
            double sum = 0;
            for (int64_t x = 0; x < s.k; ++x)
              sum += double(a[ta ? x * lda + i : i * lda + x]) *
                     double(b[tb ? j * ldb + x : x * ldb + j]);
            want[i * ldc + j] = sum + (bias ? bias[j] : 0) + (accumulate ? before[i * ldc + j] : 0);
          }
        withThreads([&] {
          auto c = before;
          gemm(ta, tb, s.m, s.n, s.k, a.data(), lda, b.data(), ldb, bias, accumulate, c.data(),
               ldc);
          expectNear(c, want);
        });
      }
}

void gemm(bool ta, bool tb, int64_t m, int64_t n, int64_t k, const float *a, int64_t lda,
          const uint16_t *b, int64_t ldb, const float *bias, bool accumulate, float *c, int64_t ldc,
          void *prepared = nullptr, int64_t offset = 0) {
  boa_gemm_bf16(ta, tb, m, n, k, a, lda, b, ldb, bias, accumulate, c, ldc, prepared, offset);
}
void gemm(bool ta, bool tb, int64_t m, int64_t n, int64_t k, const uint16_t *a, int64_t lda,
          const uint16_t *b, int64_t ldb, const float *bias, bool accumulate, float *c, int64_t ldc,
          void *prepared = nullptr, int64_t offset = 0) {
  boa_gemm_bf16_bf16(ta, tb, m, n, k, a, lda, b, ldb, bias, accumulate, c, ldc, prepared, offset);
}

void gemm(bool ta, bool tb, int64_t m, int64_t n, int64_t k, const uint16_t *a, int64_t lda,
          const uint16_t *b, int64_t ldb, const float *bias, bool accumulate, uint16_t *c,
          int64_t ldc, void *prepared = nullptr, int64_t offset = 0) {
  boa_gemm_bf16_bf16_bf16(ta, tb, m, n, k, a, lda, b, ldb, bias, accumulate, c, ldc, prepared,
                          offset);
}

/// A matrix of `rows`, or its transpose, with a gap behind each row but the last. What a kernel
/// reads of a gap makes its result wrong.
template <typename T>
std::vector<T> layOut(const std::vector<T> &matrix, int64_t rows, bool transposed, int64_t gap) {
  const int64_t columns = int64_t(matrix.size()) / rows;
  const int64_t outer = transposed ? columns : rows, inner = transposed ? rows : columns;
  std::vector<T> result(outer * (inner + gap) - gap, matrix[0]);
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j)
      result[transposed ? j * (inner + gap) + i : i * (inner + gap) + j] = matrix[i * columns + j];
  return result;
}

/// Within what rounding k sums to f32, and the result to C's type, allows at worst.
/// Buffers end where the matrices do.
template <typename A, typename B, typename C, typename Run> void expectWithinRounding(Run run) {
  struct Shape {
    int64_t m, n, k;
  };
  for (Shape s :
       {Shape{1, 1, 1}, Shape{5, 7, 3}, Shape{6, 16, 8}, Shape{8, 48, 16}, Shape{64, 130, 33},
        Shape{97, 200, 97}, Shape{9, 33, 1100}, Shape{100, 40, 901}, Shape{3, 3200, 5},
        Shape{1, 500, 385}, Shape{1, 1777, 1030}, Shape{500, 1, 385}}) {
    const auto a = random<A>(s.m * s.k, 1);
    const auto b = random<B>(s.k * s.n, 2);
    // Of the products alone: all forms share them.
    std::vector<double> sums(s.m * s.n), absolutes(s.m * s.n);
    for (int64_t i = 0; i < s.m; ++i)
      for (int64_t x = 0; x < s.k; ++x)
        for (int64_t j = 0; j < s.n; ++j) {
          double product = value(a[i * s.k + x]) * value(b[x * s.n + j]);
          sums[i * s.n + j] += product, absolutes[i * s.n + j] += std::abs(product);
        }
    for (int form = 0; form < 16; ++form) {
      SCOPED_TRACE(testing::Message() << s.m << "x" << s.n << "x" << s.k << " form " << form);
      bool ta = form & 1, tb = form & 2, accumulate = form & 4;
      const auto left = layOut(a, s.m, ta, 3);
      const auto right = layOut(b, s.k, tb, 1);
      int64_t lda = (ta ? s.m : s.k) + 3, ldb = (tb ? s.k : s.n) + 1, ldc = s.n + 2;
      auto before = random<C>(s.m * ldc - 2, 3);
      auto biases = random<float>(s.n, 4);
      const float *bias = form & 8 ? biases.data() : nullptr;
      std::vector<double> want, bound(before.size());
      for (C x : before)
        want.push_back(value(x));
      for (int64_t i = 0; i < s.m; ++i)
        for (int64_t j = 0; j < s.n; ++j) {
          double start = accumulate ? value(before[i * ldc + j]) : 0;
          double sum = start + (bias ? bias[j] : 0) + sums[i * s.n + j];
          double absolute =
              std::abs(start) + (bias ? std::abs(bias[j]) : 0) + absolutes[i * s.n + j];
          want[i * ldc + j] = sum;
          bound[i * ldc + j] = double(s.k + 3) * std::ldexp(absolute, -24);
          if (sizeof(C) == 2)
            bound[i * ldc + j] += std::ldexp(std::abs(sum) + bound[i * ldc + j], -8);
        }
      auto c = before;
      run(ta, tb, s.m, s.n, s.k, left.data(), lda, right.data(), ldb, bias, accumulate, c.data(),
          ldc);
      for (size_t i = 0; i < c.size(); ++i)
        ASSERT_LE(std::abs(value(c[i]) - want[i]), bound[i]) << "at " << i;
    }
  }
}

TEST_P(EachIsa, ProductsAreWithinRounding) {
  auto run = [](auto... arguments) { gemm(arguments...); };
  expectWithinRounding<float, float, float>(run);
  expectWithinRounding<float, uint16_t, float>(run);
  expectWithinRounding<uint16_t, uint16_t, float>(run);
  expectWithinRounding<uint16_t, uint16_t, uint16_t>(run);
}

/// Tile registers as arrays (gemm_tiles.h), for machines that have none.
struct ArrayTiles {
  static inline char rows[8][16][64];

  template <int R> static void Zero() { std::memset(rows[R], 0, sizeof rows[R]); }
  template <int R> static void Load(const void *from, int64_t stride) {
    for (int i = 0; i < 16; ++i)
      std::memcpy(rows[R][i], static_cast<const char *>(from) + i * stride, 64);
  }
  template <int R> static void Store(void *to, int64_t stride) {
    for (int i = 0; i < 16; ++i)
      std::memcpy(static_cast<char *>(to) + i * stride, rows[R][i], 64);
  }
  template <int C, int A, int B> static void Multiply() {
    for (int i = 0; i < 16; ++i) {
      uint16_t a[32], b[32];
      float c[16];
      std::memcpy(a, rows[A][i], 64);
      std::memcpy(c, rows[C][i], 64);
      for (int y = 0; y < 16; ++y) {
        std::memcpy(b, rows[B][y], 64);
        for (int j = 0; j < 16; ++j)
          for (int half : {0, 1})
            c[j] += float(value(a[2 * y + half])) * float(value(b[2 * j + half]));
      }
      std::memcpy(rows[C][i], c, 64);
    }
  }
};

auto runTiles() {
  return
      [](bool ta, bool tb, int64_t m, int64_t n, int64_t k, const uint16_t *a, int64_t lda,
         const uint16_t *b, int64_t ldb, const float *bias, bool accumulate, auto *c, int64_t ldc) {
        // What a block finds in its scratch is of another one.
        std::vector<float> scratch(boa::kGemmScratch, NAN);
        TileProduct<ArrayTiles>::Run(
            boa::GemmBlock<uint16_t, uint16_t, std::remove_pointer_t<decltype(c)>>{
                ta, tb, m, n, k, a, lda, b, ldb, bias, accumulate, c, ldc},
            scratch.data());
      };
}

TEST(GemmTiles, AreWithinRounding) {
  expectWithinRounding<uint16_t, uint16_t, float>(runTiles());
  expectWithinRounding<uint16_t, uint16_t, uint16_t>(runTiles());
}

/// Small integers, of which every sum is exact: so is the product, past all blocks of it.
template <typename C, typename Run> void expectExact(Run run, int64_t m, int64_t n, int64_t k) {
  auto integers = [](int64_t count, int64_t step) {
    std::vector<uint16_t> values;
    for (int64_t i = 0; i < count; ++i)
      values.push_back(upperHalf(static_cast<float>(i * step % 7 - 3)));
    return values;
  };
  auto wide = [](const std::vector<uint16_t> &values) {
    std::vector<double> result;
    for (uint16_t x : values)
      result.push_back(value(x));
    return result;
  };
  auto a = integers(m * k, 3), b = integers(k * n, 5), start = integers(m * n, 2);
  std::vector<float> bias(n, 2);
  for (int form = 0; form < 4; ++form) {
    SCOPED_TRACE(form);
    bool ta = form & 1, tb = form & 2;
    std::vector<double> want = wide(start), biases(n, 2), wideA = wide(a), wideB = wide(b);
    boa_gemm_f64(ta, tb, m, n, k, wideA.data(), ta ? m : k, wideB.data(), tb ? k : n, biases.data(),
                 1, want.data(), n);
    std::vector<C> c;
    for (uint16_t x : start)
      if constexpr (sizeof(C) == 2)
        c.push_back(x);
      else
        c.push_back(static_cast<C>(value(x)));
    run(ta, tb, m, n, k, a.data(), ta ? m : k, b.data(), tb ? k : n, bias.data(), true, c.data(),
        n);
    // Rounded to the nearest of bf16's eight digits, ties to even, as nearbyint does.
    for (size_t i = 0; i < c.size(); ++i) {
      int exponent;
      std::frexp(want[i], &exponent);
      double digits = sizeof(C) == 2 ? std::ldexp(1, exponent - 8) : 1;
      ASSERT_EQ(value(c[i]), std::nearbyint(want[i] / digits) * digits) << "at " << i;
    }
  }
}

TEST_P(EachIsa, ProductsOfIntegersAreExact) {
  auto run = [](auto... arguments) { gemm(arguments...); };
  expectExact<float>(run, 400, 1200, 1600);
  expectExact<uint16_t>(run, 400, 1200, 1600);
  expectExact<uint16_t>(run, 3, 5, 0);
  expectExact<float>(run, 3, 5, 0);
}

TEST(GemmTiles, OfIntegersAreExact) {
  // More columns than are packed at once; then more slices of k, blocks of rows and of sums.
  expectExact<float>(runTiles(), 40, 1600, 1100);
  expectExact<float>(runTiles(), 330, 40, 3300);
  expectExact<uint16_t>(runTiles(), 530, 40, 3300);
  expectExact<uint16_t>(runTiles(), 40, 400, 6200);
}

template <typename A, typename B, typename C> void expectSameProductsForAnyThreads() {
  for (int form = 0; form < 4; ++form) {
    SCOPED_TRACE(form);
    bool ta = form & 1, tb = form & 2;
    const int64_t m = 517, n = 389, k = 1101;
    auto a = random<A>(m * k, 1);
    auto b = random<B>(k * n, 2);
    auto before = random<C>(m * n, 3);
    auto bias = random<std::conditional_t<sizeof(C) == 2, float, C>>(n, 4);
    expectSameForAnyThreads([&] {
      auto c = before;
      gemm(ta, tb, m, n, k, a.data(), ta ? m : k, b.data(), tb ? k : n, bias.data(), true, c.data(),
           n);
      return c;
    });
  }
}

TEST(GemmF64, DoesNotDependOnThreads) { expectSameProductsForAnyThreads<double, double, double>(); }

TEST_P(EachIsa, ProductsDoNotDependOnThreads) {
  expectSameProductsForAnyThreads<float, float, float>();
  expectSameProductsForAnyThreads<float, uint16_t, float>();
  expectSameProductsForAnyThreads<uint16_t, uint16_t, float>();
  expectSameProductsForAnyThreads<uint16_t, uint16_t, uint16_t>();
}

void prepare(bool tb, int64_t n, int64_t k, const float *, const float *b, int64_t ldb, void *to) {
  boa_gemm_prepare_f32(tb, n, k, b, ldb, to);
}
void prepare(bool tb, int64_t n, int64_t k, const float *, const uint16_t *b, int64_t ldb,
             void *to) {
  boa_gemm_prepare_bf16(tb, n, k, b, ldb, to);
}
void prepare(bool tb, int64_t n, int64_t k, const uint16_t *, const uint16_t *b, int64_t ldb,
             void *to) {
  boa_gemm_prepare_bf16_bf16(tb, n, k, b, ldb, to);
}

/// Returns whether any product took the form.
template <typename A, typename B, typename C> bool expectSamePrepared() {
  bool taken = false;
  struct Shape {
    int64_t m, n, k;
  };
  for (Shape s : {Shape{70, 389, 1101}, Shape{9, 3200, 5}, Shape{3, 50, 385}, Shape{1, 500, 40},
                  Shape{2, 1, 1}})
    for (int form = 0; form < 4; ++form) {
      SCOPED_TRACE(testing::Message() << s.m << "x" << s.n << "x" << s.k << " form " << form);
      const bool ta = form & 1, tb = form & 2;
      const auto a = random<A>(s.m * s.k, 1);
      const auto b = random<B>(s.k * s.n, 2);
      const auto before = random<C>(s.m * s.n, 3);
      const auto bias = random<float>(s.n, 4);
      auto want = before;
      gemm(ta, tb, s.m, s.n, s.k, a.data(), ta ? s.m : s.k, b.data(), tb ? s.k : s.n, bias.data(),
           true, want.data(), s.n);
      withThreads([&] {
        // A form is written nowhere before its memory, and nowhere behind it.
        constexpr size_t kOffset = 64;
        const size_t floats = size_t(s.k * ((s.n + 15) / 16 * 16));
        const float unused = 17;
        std::vector<float> memory(kOffset / 4 + floats + 16, unused);
        prepare(tb, s.n, s.k, a.data(), b.data(), tb ? s.k : s.n, memory.data() + kOffset / 4);
        EXPECT_EQ(memory[kOffset / 4 - 1], unused);
        EXPECT_EQ(memory[kOffset / 4 + floats], unused);
        auto multiply = [&](const B *right, void *prepared) {
          auto c = before;
          gemm(ta, tb, s.m, s.n, s.k, a.data(), ta ? s.m : s.k, right, tb ? s.k : s.n, bias.data(),
               true, c.data(), s.n, prepared, kOffset);
          EXPECT_EQ(std::memcmp(c.data(), want.data(), c.size() * sizeof(C)), 0);
        };
        multiply(b.data(), memory.data());
        multiply(b.data(), nullptr);
        // A product of one row never reads the form. Others read B only if no form was made.
        if (memory[kOffset / 4] == unused || s.m == 1)
          return;
        taken = true;
        multiply(std::vector<B>(b.size(), B{}).data(), memory.data());
      });
    }
  return taken;
}

TEST_P(EachIsa, PreparedProductsAreTheSame) {
  const bool panels = boa::UsedIsa() >= boa::Isa::kAvx2;
  const bool tiles = boa::UsedIsa() >= boa::Isa::kAmx;
  EXPECT_EQ((expectSamePrepared<float, float, float>()), panels);
  EXPECT_EQ((expectSamePrepared<float, uint16_t, float>()), panels);
  EXPECT_EQ((expectSamePrepared<uint16_t, uint16_t, float>()), panels && !tiles);
  EXPECT_EQ((expectSamePrepared<uint16_t, uint16_t, uint16_t>()), panels && !tiles);
}

// A diverged run must show, where one of a pair alone is not finite, too.
TEST_P(EachIsa, ProductsKeepNaN) {
  const uint16_t one = 0x3f80, nan = 0x7fc0;
  for (int64_t k : {1, 2, 3})
    for (int64_t at = 0; at < k; ++at) {
      std::vector<uint16_t> a(k, one), b(k, one);
      a[at] = nan;
      float c = 0;
      gemm(false, false, 1, 1, k, a.data(), k, b.data(), 1, nullptr, false, &c, 1);
      EXPECT_TRUE(std::isnan(c)) << k << " " << at;
      uint16_t rounded = 0;
      gemm(false, false, 1, 1, k, a.data(), k, b.data(), 1, nullptr, false, &rounded, 1);
      EXPECT_TRUE(std::isnan(value(rounded))) << k << " " << at;
    }
}

} // namespace
