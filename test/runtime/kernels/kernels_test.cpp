//===- kernels_test.cpp - Library calls of compiled kernels ---------------===//
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
#include "runtime/kernels/attention.h"
#include "runtime/kernels/check.h"
#include "runtime/kernels/gemm.h"
#include "runtime/kernels/gemm_tiles.h"
#include "runtime/kernels/isa.h"
#include "runtime/support/thread_pool.h"

#include <absl/strings/str_cat.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

namespace {

/// What is stored as uint16_t is bf16: the upper half of an f32.
uint16_t upperHalf(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, 4);
  return static_cast<uint16_t>(bits >> 16);
}

template <typename T> std::vector<T> random(int64_t count, unsigned seed) {
  std::mt19937 engine(seed);
  std::normal_distribution<double> normal;
  std::vector<T> values(static_cast<size_t>(count));
  for (T &value : values)
    if constexpr (std::is_same_v<T, uint16_t>)
      value = upperHalf(static_cast<float>(normal(engine)));
    else
      value = static_cast<T>(normal(engine));
  return values;
}

template <typename T> double tolerance() { return sizeof(T) == 4 ? 5e-5 : 1e-12; }

template <typename T, typename U>
void expectNear(const std::vector<T> &got, const std::vector<U> &want) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i)
    ASSERT_NEAR(got[i], want[i], tolerance<T>() * std::max(1.0, std::abs(double(want[i]))))
        << "at " << i;
}

/// Runs the test body with several numbers of threads, then restores it.
template <typename Body> void withThreads(Body body) {
  int64_t before = boa::Threads();
  for (int64_t threads : {1, 2, 3, 7}) {
    SCOPED_TRACE(threads);
    boa::SetThreads(threads);
    body();
  }
  boa::SetThreads(before);
}

/// With each instruction set that this processor has; `tools/check` names the others.
class EachIsa : public ::testing::TestWithParam<const char *> {
protected:
  void SetUp() override {
    before = boa::IsaName(boa::UsedIsa());
    if (absl::Status status = boa::UseIsa(GetParam()); !status.ok()) {
      RecordProperty("lacking", GetParam());
      GTEST_SKIP() << GetParam() << ": " << status.message();
    }
  }
  void TearDown() override { EXPECT_TRUE(boa::UseIsa(before).ok()); }

  const char *before;
};
INSTANTIATE_TEST_SUITE_P(All, EachIsa, ::testing::ValuesIn(boa::kIsaNames),
                         [](const auto &info) { return std::string(info.param); });

/// That `run`, which computes afresh, gives the same to the bit each time.
template <typename Run> void expectSameForAnyThreads(Run run) {
  decltype(run()) first;
  withThreads([&] {
    auto again = run();
    if (first.empty())
      first = again;
    ASSERT_EQ(again.size(), first.size());
    EXPECT_EQ(std::memcmp(again.data(), first.data(), first.size() * sizeof(first[0])), 0);
  });
}

//===----------------------------------------------------------------------===//
// Matrix products
//===----------------------------------------------------------------------===//

void gemm(bool ta, bool tb, int64_t m, int64_t n, int64_t k, const float *a, int64_t lda,
          const float *b, int64_t ldb, const float *bias, bool accumulate, float *c, int64_t ldc) {
  boa_gemm_f32(ta, tb, m, n, k, a, lda, b, ldb, bias, accumulate, c, ldc);
}
void gemm(bool ta, bool tb, int64_t m, int64_t n, int64_t k, const double *a, int64_t lda,
          const double *b, int64_t ldb, const double *bias, bool accumulate, double *c,
          int64_t ldc) {
  boa_gemm_f64(ta, tb, m, n, k, a, lda, b, ldb, bias, accumulate, c, ldc);
}

template <typename T> class GemmTest : public ::testing::Test {};
using Elements = ::testing::Types<float, double>;
TYPED_TEST_SUITE(GemmTest, Elements);

// Rows wider than the matrix: what lies between them must stay as it is.
TYPED_TEST(GemmTest, MatchesLoopsInEveryForm) {
  using T = TypeParam;
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

double value(double x) { return x; }
double value(uint16_t x) {
  uint32_t bits = uint32_t(x) << 16;
  float wide;
  std::memcpy(&wide, &bits, 4);
  return wide;
}

void gemm(bool ta, bool tb, int64_t m, int64_t n, int64_t k, const float *a, int64_t lda,
          const uint16_t *b, int64_t ldb, const float *bias, bool accumulate, float *c,
          int64_t ldc) {
  boa_gemm_bf16(ta, tb, m, n, k, a, lda, b, ldb, bias, accumulate, c, ldc);
}
void gemm(bool ta, bool tb, int64_t m, int64_t n, int64_t k, const uint16_t *a, int64_t lda,
          const uint16_t *b, int64_t ldb, const float *bias, bool accumulate, float *c,
          int64_t ldc) {
  boa_gemm_bf16_bf16(ta, tb, m, n, k, a, lda, b, ldb, bias, accumulate, c, ldc);
}

void gemm(bool ta, bool tb, int64_t m, int64_t n, int64_t k, const uint16_t *a, int64_t lda,
          const uint16_t *b, int64_t ldb, const float *bias, bool accumulate, uint16_t *c,
          int64_t ldc) {
  boa_gemm_bf16_bf16_bf16(ta, tb, m, n, k, a, lda, b, ldb, bias, accumulate, c, ldc);
}

/// Within what rounding k sums to f32, and the result to C's type, allows at worst.
/// Buffers end where the matrices do.
template <typename A, typename B, typename C, typename Run> void expectWithinRounding(Run run) {
  struct Shape {
    int64_t m, n, k;
  };
  for (Shape s : {Shape{1, 1, 1}, Shape{5, 7, 3}, Shape{6, 16, 8}, Shape{8, 48, 16},
                  Shape{64, 130, 33}, Shape{97, 200, 97}, Shape{9, 33, 1100}, Shape{100, 40, 901},
                  Shape{3, 3200, 5}, Shape{1, 500, 385}, Shape{500, 1, 385}})
    for (int form = 0; form < 16; ++form) {
      SCOPED_TRACE(testing::Message() << s.m << "x" << s.n << "x" << s.k << " form " << form);
      bool ta = form & 1, tb = form & 2, accumulate = form & 4;
      int64_t lda = (ta ? s.m : s.k) + 3, ldb = (tb ? s.k : s.n) + 1, ldc = s.n + 2;
      auto a = random<A>((ta ? s.k : s.m) * lda - 3, 1);
      auto b = random<B>((tb ? s.n : s.k) * ldb - 1, 2);
      auto before = random<C>(s.m * ldc - 2, 3);
      auto biases = random<float>(s.n, 4);
      const float *bias = form & 8 ? biases.data() : nullptr;
      std::vector<double> want, bound(before.size());
      for (C x : before)
        want.push_back(value(x));
      for (int64_t i = 0; i < s.m; ++i)
        for (int64_t j = 0; j < s.n; ++j) {
          double start = accumulate ? value(before[i * ldc + j]) : 0;
          double sum = start + (bias ? bias[j] : 0);
          double absolute = std::abs(start) + (bias ? std::abs(bias[j]) : 0);
          for (int64_t x = 0; x < s.k; ++x) {
            double product =
                value(a[ta ? x * lda + i : i * lda + x]) * value(b[tb ? j * ldb + x : x * ldb + j]);
            sum += product, absolute += std::abs(product);
          }
          want[i * ldc + j] = sum;
          bound[i * ldc + j] = double(s.k + 3) * std::ldexp(absolute, -24);
          if (sizeof(C) == 2)
            bound[i * ldc + j] += std::ldexp(std::abs(sum) + bound[i * ldc + j], -8);
        }
      auto c = before;
      run(ta, tb, s.m, s.n, s.k, a.data(), lda, b.data(), ldb, bias, accumulate, c.data(), ldc);
      for (size_t i = 0; i < c.size(); ++i)
        ASSERT_LE(std::abs(value(c[i]) - want[i]), bound[i]) << "at " << i;
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

TYPED_TEST(GemmTest, DoesNotDependOnThreads) {
  expectSameProductsForAnyThreads<TypeParam, TypeParam, TypeParam>();
}

TEST_P(EachIsa, ProductsDoNotDependOnThreads) {
  expectSameProductsForAnyThreads<float, float, float>();
  expectSameProductsForAnyThreads<float, uint16_t, float>();
  expectSameProductsForAnyThreads<uint16_t, uint16_t, float>();
  expectSameProductsForAnyThreads<uint16_t, uint16_t, uint16_t>();
}

// A diverged run must show, where one of a pair alone is not finite, too.
TEST_P(EachIsa, ProductsKeepNaN) {
  const uint16_t one = 0x3f80, nan = 0x7fc0;
  for (int64_t k : {1, 2, 3})
    for (int64_t at = 0; at < k; ++at) {
      std::vector<uint16_t> a(k, one), b(k, one);
      a[at] = nan;
      float c = 0;
      boa_gemm_bf16_bf16(0, 0, 1, 1, k, a.data(), k, b.data(), 1, nullptr, 0, &c, 1);
      EXPECT_TRUE(std::isnan(c)) << k << " " << at;
      uint16_t rounded = 0;
      boa_gemm_bf16_bf16_bf16(0, 0, 1, 1, k, a.data(), k, b.data(), 1, nullptr, 0, &rounded, 1);
      EXPECT_TRUE(std::isnan(value(rounded))) << k << " " << at;
    }
}

/// Signatures as CPUID of leaf 1 gives them, of processors that there are.
boa::Processor processorOf(const char *vendor, uint32_t signature, boa::Isa last) {
  return {vendor,
          signature,
          last >= boa::Isa::kAvx2,
          last >= boa::Isa::kAvx512,
          last >= boa::Isa::kAvx512Bf16,
          last >= boa::Isa::kAmx};
}

// The fastest set is chosen by the model, not the last one that the processor lists.
TEST(Isa, IsChosenByTheModel) {
  using boa::Isa;
  const struct {
    const char *what, *vendor;
    uint32_t signature;
    int family, model;
    Isa last, want;
  } cases[] = {
      {"Sapphire Rapids", "GenuineIntel", 0x806f8, 6, 0x8f, Isa::kAmx, Isa::kAmx},
      {"its AMX hidden", "GenuineIntel", 0x806f8, 6, 0x8f, Isa::kAvx512Bf16, Isa::kAvx512},
      {"Granite Rapids, AMX hidden", "GenuineIntel", 0xa06d1, 6, 0xad, Isa::kAvx512Bf16,
       Isa::kAvx512},
      {"Ice Lake", "GenuineIntel", 0x606a6, 6, 0x6a, Isa::kAvx512, Isa::kAvx512},
      {"Zen 3", "AuthenticAMD", 0xa00f11, 0x19, 0x01, Isa::kAvx2, Isa::kAvx2},
      {"Zen 4", "AuthenticAMD", 0xa10f11, 0x19, 0x11, Isa::kAvx512Bf16, Isa::kAvx512Bf16},
      {"Zen 5", "AuthenticAMD", 0xb00f21, 0x1a, 0x02, Isa::kAvx512Bf16, Isa::kAvx512Bf16},
      {"unknown", "GenuineAbacus", 0xa10f11, 0x19, 0x11, Isa::kAvx512Bf16, Isa::kAvx512},
      {"unknown, with AMX", "GenuineAbacus", 0x806f8, 6, 0x8f, Isa::kAmx, Isa::kAmx},
      {"nothing", "", 0, 0, 0, Isa::kBaseline, Isa::kBaseline},
  };
  for (const auto &c : cases) {
    SCOPED_TRACE(c.what);
    const boa::Processor processor = processorOf(c.vendor, c.signature, c.last);
    EXPECT_EQ(processor.Family(), c.family);
    EXPECT_EQ(processor.Model(), c.model);
    EXPECT_STREQ(boa::IsaName(*boa::ChooseIsa(processor)), boa::IsaName(c.want));
    // A name wins over the table, where the processor has the set.
    for (const char *name : boa::kIsaNames) {
      const absl::StatusOr<Isa> isa = boa::ChooseIsa(processor, name);
      if (isa.ok())
        EXPECT_STREQ(boa::IsaName(*isa), name);
      else
        EXPECT_EQ(isa.status().message(),
                  absl::StrCat("this processor has ", boa::IsaName(c.last), " at most"));
    }
    EXPECT_EQ(boa::ChooseIsa(processor, "abacus").status().message(),
              "expected \"baseline\", \"avx2\", \"avx512\", \"avx512_bf16\" or \"amx\"");
  }
}

TEST(Isa, IsThisProcessorsUntilItIsNamed) {
  const boa::Isa before = boa::UsedIsa();
  EXPECT_EQ(before, *boa::ChooseIsa(boa::ThisProcessor()));
  EXPECT_TRUE(boa::UseIsa("baseline").ok());
  EXPECT_EQ(boa::UsedIsa(), boa::Isa::kBaseline);
  EXPECT_FALSE(boa::UseIsa("abacus").ok());
  EXPECT_EQ(boa::UsedIsa(), boa::Isa::kBaseline);
  EXPECT_TRUE(boa::UseIsa(boa::IsaName(before)).ok());
}

TEST_P(EachIsa, PassesTheCheckAtStart) {
  EXPECT_EQ(boa::CheckKernels(boa::UsedIsa()), absl::OkStatus());
}

// Each kernel in turn is wrong in another way, some only in one form.
TEST(CheckAtStart, RefusesWrongKernels) {
  const boa::ProductKernels right = boa::ProductsOf(boa::Isa::kBaseline);
  const auto refused = [](const boa::ProductKernels &kernels) {
    return std::string(boa::CheckKernels(boa::Isa::kAvx512, kernels).message());
  };
  const auto forgetful = [](auto kernel) {
    return [kernel](auto block) {
      --block.k;
      kernel(block);
    };
  };
  EXPECT_EQ(refused(right), "");
  boa::ProductKernels wrong = right;
  wrong.f32 = forgetful(right.f32);
  EXPECT_EQ(
      refused(wrong),
      "the kernels of avx512 are wrong on this processor: the product of f32 by f32 is -1.8501 "
      "at row 0, column 0, where plain loops make -1.59277; use others by BOA_CPU=avx2 or by "
      "`device cpu { kernels = avx2 }` in the machine");
  wrong = right;
  wrong.f32_by_bf16 = [&](boa::GemmBf16 block) {
    block.bias = nullptr;
    right.f32_by_bf16(block);
  };
  EXPECT_THAT(refused(wrong), testing::HasSubstr("the product of f32 by bf16 is "));
  wrong = right;
  wrong.bf16 = [&](boa::GemmBf16Bf16 block) {
    block.accumulate = block.transpose_a;
    right.bf16(block);
  };
  EXPECT_THAT(refused(wrong), testing::HasSubstr("the product of bf16 by bf16 in f32 is "));
  wrong = right;
  wrong.all_bf16 = [&](boa::GemmAllBf16 block) {
    right.all_bf16(block);
    if (block.transpose_b)
      for (int64_t i = 0; i < block.m; ++i)
        ++block.c[i * block.ldc];
  };
  EXPECT_THAT(refused(wrong),
              testing::HasSubstr("the product of bf16 by bf16 in bf16, B transposed, is "));
}

// Widening on the way gives what widening before would.
TEST(GemmNarrow, MatchesWidened) {
  for (bool tb : {false, true})
    for (int64_t n : {5, 130, 513}) {
      const int64_t m = 77, k = 1100, ldb = (tb ? k : n) + 3;
      auto a = random<float>(m * k, 1), b = random<float>((tb ? n : k) * ldb, 2);
      std::vector<uint16_t> narrow(b.size());
      for (size_t i = 0; i < b.size(); ++i) {
        narrow[i] = upperHalf(b[i]);
        b[i] = static_cast<float>(value(narrow[i]));
      }
      std::vector<float> c(m * n), d(m * n);
      boa_gemm_f32(0, tb, m, n, k, a.data(), k, b.data(), ldb, nullptr, 0, c.data(), n);
      boa_gemm_bf16(0, tb, m, n, k, a.data(), k, narrow.data(), ldb, nullptr, 0, d.data(), n);
      expectNear(d, c);
    }
}

//===----------------------------------------------------------------------===//
// Attention
//===----------------------------------------------------------------------===//

struct AttentionShape {
  int64_t batch, time, heads, kvHeads, d;
  bool causal;
};
const AttentionShape kShapes[] = {
    {1, 1, 1, 1, 1, true},     {2, 37, 3, 3, 16, false},  {2, 37, 3, 3, 16, true},
    {1, 300, 4, 2, 64, false}, {1, 300, 4, 2, 64, true},  {2, 129, 2, 1, 20, true},
    {1, 65, 2, 1, 5, false},   {1, 128, 2, 2, 32, true},  {1, 520, 1, 1, 24, true},
    {1, 131, 3, 1, 80, true},  {1, 67, 2, 1, 128, false}, {1, 70, 2, 1, 37, true},
};

/// q, k, v side by side in rows of one buffer, and so are their gradients. Buffers end
/// where the matrices do.
template <typename E> struct Attention {
  using Sum = std::conditional_t<std::is_same_v<E, double>, double, float>;

  AttentionShape s;
  int64_t width, stride, rows;
  std::vector<E> qkv, dy, y, grad;
  std::vector<Sum> lse;

  explicit Attention(AttentionShape shape)
      : s(shape), width(s.heads * s.d), stride((s.heads + 2 * s.kvHeads) * s.d),
        rows(s.batch * s.time), qkv(random<E>(rows * stride, 1)), dy(random<E>(rows * width, 2)),
        y(rows * width), grad(rows * stride), lse(s.batch * s.heads * s.time) {}

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
    forward(s.batch, s.time, s.heads, s.kvHeads, s.d, s.causal, q(), stride, k(), stride, v(),
            stride, y.data(), width, lse.data());
    E *g = grad.data();
    backward(s.batch, s.time, s.heads, s.kvHeads, s.d, s.causal, q(), stride, k(), stride, v(),
             stride, y.data(), width, lse.data(), dy.data(), width, g, stride, g + width, stride,
             g + width + s.kvHeads * s.d, stride);
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
          int64_t seen = s.causal ? t + 1 : s.time, at = b * s.time + t;
          int64_t qAt = at * stride + h * s.d, yAt = at * width + h * s.d;
          auto kAt = [&](int64_t j) {
            return (b * s.time + j) * stride + width + h / (s.heads / s.kvHeads) * s.d;
          };
          const int64_t toV = s.kvHeads * s.d;
          std::vector<double> p(seen);
          double max = -INFINITY, sum = 0, delta = 0;
          for (int64_t j = 0; j < seen; ++j) {
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
            for (int64_t j = 0; j < seen; ++j)
              add(wantY[yAt + x], sizeY[yAt + x], p[j] / sum * value(qkv[kAt(j) + toV + x]));
            delta += value(dy[yAt + x]) * value(y[yAt + x]);
          }
          for (int64_t j = 0; j < seen; ++j) {
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
    SCOPED_TRACE(testing::Message() << shape.time << " of " << shape.d);
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
