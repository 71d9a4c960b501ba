//===- peak.cpp -----------------------------------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "test/gpu/peak.h"

#include "runtime/abi/cuda_calls.h"
#include "test/gpu/timing.h"

#include <algorithm>
#include <cstdio>
#include <vector>

namespace boa::gputest {
namespace {

/// Sizes are doubled up to this one, or until a product takes longer than this.
constexpr int64_t kFirst = 256, kLast = 16384;
constexpr double kLongMs = 25;

/// Matrices of numbers that no processor multiplies with less power than others.
std::vector<char> MakeMatrix(int32_t type, int64_t n) {
  std::vector<char> bytes(size_t(n * n) * (type == 0 ? 4 : 2));
  uint32_t random = 1;
  for (size_t i = 0; i + 1 < bytes.size(); i += 2) {
    random = random * 1664525 + 1013904223;
    // The upper half of an f32, or a bf16: of either sign, between 1/2 and 1.
    const uint16_t value = uint16_t(0x3f00 | (random >> 16 & 0x80ff));
    bytes[i] = char(value & 0xff);
    bytes[i + 1] = char(value >> 8);
  }
  return bytes;
}

/// Milliseconds of one product of n by n.
absl::StatusOr<double> Time(const Session &session, cuda::Blas &blas, int32_t type, int64_t n) {
  const std::vector<char> matrix = MakeMatrix(type, n);
  const size_t bytes = matrix.size();
  DeviceMemory memory(session);
  absl::Status status = memory.Allocate(3 * bytes + BOA_CUDA_LIBRARY_WORKSPACE);
  for (size_t at : {size_t(0), bytes})
    if (status.ok())
      status = memory.Put(at, matrix.data(), bytes);
  cuda::Product product = {};
  product.m = product.n = product.k = product.lda = product.ldb = product.ldc = n;
  product.type_ab = product.type_c = type;
  product.a = memory.at(0);
  product.b = memory.at(bytes);
  product.c = memory.at(2 * bytes);
  product.scratch = memory.at(3 * bytes);
  product.scratch_bytes = BOA_CUDA_LIBRARY_WORKSPACE;
  if (status.ok())
    status = blas.Plan(product);
  if (!status.ok())
    return status;
  return MeasureMs(session, [&] { return blas.Enqueue(product, session.stream()); });
}

absl::Status Measure() {
  auto session = Session::Open();
  if (!session.ok())
    return session.status();
  std::printf("GPU: %s\n", (*session)->gpu().Describe().c_str());
  size_t before = 0, after = 0, total = 0;
  absl::Status status = (*session)->AskMemory(before, total);
  if (!status.ok())
    return status;
  auto blas = cuda::Blas::Open((*session)->driver().version());
  if (!blas.ok())
    return blas.status();
  for (int32_t type : {1, 0}) {
    double best = 0;
    int64_t of = 0;
    double each = 0;
    for (int64_t n = kFirst; n <= kLast && each < kLongMs; n *= 2) {
      if (size_t(n * n) * 16 > before / 2)
        break;
      auto time = Time(**session, **blas, type, n);
      if (!time.ok())
        return time.status();
      each = *time;
      const double rate = each > 0 ? 2.0 * double(n) * double(n) * double(n) / each * 1e3 : 0;
      if (rate > best) {
        best = rate;
        of = n;
      }
    }
    std::printf("peak %s: %.6g FLOP/s (product of %d x %d)\n", type == 0 ? "f32" : "bf16", best,
                int(of), int(of));
  }
  if (status = (*session)->AskMemory(after, total); !status.ok())
    return status;
  std::printf("device memory: %.0f MiB, of which with a context %.0f MiB are in use, with cuBLASLt "
              "%.0f MiB more\n",
              double(total) / 1048576, double(total - before) / 1048576,
              double(std::max(before, after) - after) / 1048576);
  return absl::OkStatus();
}

} // namespace

int MeasurePeak() {
  const absl::Status status = Measure();
  if (status.ok())
    return 0;
  std::printf("peak failed: error: %s\n", std::string(status.message()).c_str());
  return 1;
}

} // namespace boa::gputest
