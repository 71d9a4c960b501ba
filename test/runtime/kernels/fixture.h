//===- fixture.h - What tests of kernels share ---------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_TEST_RUNTIME_KERNELS_FIXTURE_H
#define BOA_TEST_RUNTIME_KERNELS_FIXTURE_H

#include "runtime/kernels/isa.h"
#include "runtime/support/thread_pool.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

namespace boa::kernel_tests {

/// What is stored as uint16_t is bf16: the upper half of an f32.
inline uint16_t upperHalf(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, 4);
  return static_cast<uint16_t>(bits >> 16);
}

inline double value(double x) { return x; }
inline double value(uint16_t x) {
  uint32_t bits = uint32_t(x) << 16;
  float wide;
  std::memcpy(&wide, &bits, 4);
  return wide;
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

} // namespace boa::kernel_tests

#endif // BOA_TEST_RUNTIME_KERNELS_FIXTURE_H
