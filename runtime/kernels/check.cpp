//===- check.cpp ----------------------------------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/kernels/check.h"

#include "runtime/support/mutex.h"

#include <absl/strings/str_cat.h>

#include <cmath>
#include <cstring>
#include <iterator>
#include <optional>
#include <type_traits>
#include <vector>

namespace boa {
namespace {

/// More than one tile of each kernel along each edge, and a part of one.
constexpr int64_t kM = 37, kN = 101, kK = 71;

/// Multiples of 1/64 between -1 and 1: exact in bf16. Sums of kK products are exact in f32, in
/// any order, so kernels agree to the bit until a result is rounded to bf16.
float ValueAt(int64_t row, int64_t column) {
  return static_cast<float>((row * 53 + column * 29) % 129 - 64) / 64;
}

void Store(float value, float &to) { to = value; }
void Store(float value, uint16_t &to) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  to = static_cast<uint16_t>(bits >> 16); // exact
}
float Load(float value) { return value; }
float Load(uint16_t value) {
  const uint32_t bits = static_cast<uint32_t>(value) << 16;
  float wide;
  std::memcpy(&wide, &bits, sizeof wide);
  return wide;
}

template <typename T> std::vector<T> Matrix(int64_t rows, int64_t columns, bool transposed) {
  std::vector<T> values(static_cast<size_t>(rows * columns));
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j)
      Store(ValueAt(i, j),
            values[static_cast<size_t>(transposed ? j * rows + i : i * columns + j)]);
  return values;
}

/// [kM, kN] C + bias + A B, by plain loops.
std::vector<float> Expected() {
  std::vector<float> sums = Matrix<float>(kM, kN, false);
  const std::vector<float> a = Matrix<float>(kM, kK, false), b = Matrix<float>(kK, kN, false);
  for (int64_t i = 0; i < kM; ++i)
    for (int64_t x = 0; x < kK; ++x)
      for (int64_t j = 0; j < kN; ++j)
        sums[static_cast<size_t>(i * kN + j)] +=
            a[static_cast<size_t>(i * kK + x)] * b[static_cast<size_t>(x * kN + j)];
  for (int64_t i = 0; i < kM; ++i)
    for (int64_t j = 0; j < kN; ++j)
      sums[static_cast<size_t>(i * kN + j)] += ValueAt(0, j);
  return sums;
}

template <typename A, typename B, typename C>
absl::Status CheckForms(const char *what, const std::vector<float> &expected,
                        const std::function<void(const GemmBlock<A, B, C> &)> &kernel) {
  const std::vector<float> bias = Matrix<float>(1, kN, false);
  constexpr const char *kForms[] = {" is ", ", B transposed, is ", ", A transposed, is ",
                                    ", both transposed, is "};
  for (const bool transpose_a : {false, true})
    for (const bool transpose_b : {false, true}) {
      const std::vector<A> a = Matrix<A>(kM, kK, transpose_a);
      const std::vector<B> b = Matrix<B>(kK, kN, transpose_b);
      std::vector<C> c = Matrix<C>(kM, kN, false);
      kernel({transpose_a, transpose_b, kM, kN, kK, a.data(), transpose_a ? kM : kK, b.data(),
              transpose_b ? kK : kN, bias.data(), /*accumulate=*/true, c.data(), kN});
      for (size_t i = 0; i < c.size(); ++i) {
        const float found = Load(c[i]), allowed = std::is_same_v<C, uint16_t>
                                                      ? std::ldexp(std::abs(expected[i]), -8)
                                                      : 0;
        if (!(std::abs(found - expected[i]) <= allowed))
          return absl::InternalError(
              absl::StrCat("the product of ", what, kForms[2 * transpose_a + transpose_b], found,
                           " at row ", static_cast<int64_t>(i) / kN, ", column ",
                           static_cast<int64_t>(i) % kN, ", where plain loops make ", expected[i]));
      }
    }
  return absl::OkStatus();
}

/// Compares them in all forms; an error says which product differs, and where.
absl::Status CheckProducts(const ProductKernels &kernels) {
  const std::vector<float> expected = Expected();
  absl::Status status = CheckForms("f32 by f32", expected, kernels.f32);
  if (status.ok())
    status = CheckForms("f32 by bf16", expected, kernels.f32_by_bf16);
  if (status.ok())
    status = CheckForms("bf16 by bf16 in f32", expected, kernels.bf16);
  if (status.ok())
    status = CheckForms("bf16 by bf16 in bf16", expected, kernels.all_bf16);
  return status;
}

} // namespace

ProductKernels ProductsOf(Isa isa) {
  const auto run = [isa](const auto &block) { ComputeGemmBlock(isa, block); };
  return {run, run, run, run};
}

absl::Status CheckKernels(Isa isa, const ProductKernels &kernels) {
  const absl::Status status = CheckProducts(kernels);
  if (status.ok())
    return status;
  const char *other = IsaName(static_cast<Isa>(static_cast<int>(isa) - 1));
  return absl::Status(status.code(),
                      absl::StrCat("the kernels of ", IsaName(isa),
                                   " are wrong on this processor: ", status.message(),
                                   "; use others by BOA_CPU=", other,
                                   " or by `device cpu { kernels = ", other, " }` in the machine"));
}

absl::Status CheckKernels(Isa isa) {
  if (isa == Isa::kBaseline)
    return absl::OkStatus();
  static Mutex mutex;
  static std::optional<absl::Status> found[std::size(kIsaNames)] ABSL_GUARDED_BY(mutex);
  MutexLock lock(mutex);
  std::optional<absl::Status> &status = found[static_cast<int>(isa)];
  if (!status)
    status = CheckKernels(isa, ProductsOf(isa));
  return *status;
}

} // namespace boa
