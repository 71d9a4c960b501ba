//===- runner.cpp - What gpu-check runs beside the trainers ---------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//   boa-gpu-runner environment            which GPU it is, by the driver alone
//   boa-gpu-runner kernels DIR            what boa-pack-kernels packed
//   boa-gpu-runner peak                   the fastest products
//   boa-gpu-runner products PROGRAM PEAK  a program's products, PEAK: the rate of the fastest, or 0
//   boa-gpu-runner attention PROGRAM PEAK its attention
//   boa-gpu-runner layer PROGRAM PEAK     its layer, its kernels and their calls
//   boa-gpu-runner updates PROGRAM PEAK   its optimizer, norms and checksums
//   boa-gpu-runner times PROGRAM          seconds of each of its kernels, for `boa simulate`
//   boa-gpu-runner copies                 between host and device, and on it
//   boa-gpu-runner launches FILE          what one costs, by a kernel of a packed case
//   boa-gpu-runner watch FILE COMMAND...  the device memory that a command takes
//
// Goes with tools/gpu-check to a machine that has nothing but a driver: needs libc alone.
//
//===----------------------------------------------------------------------===//
#include "runtime/abi/cuda_calls.h"
#include "runtime/kernels/attention.h"
#include "runtime/kernels/gemm.h"
#include "test/gpu/kernels.h"
#include "test/gpu/measures.h"
#include "test/gpu/peak.h"
#include "test/gradients/Values.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

// Products in f64, in plain loops: as a reference, and so that OpenBLAS stays away.
extern "C" void boa_gemm_f64(int32_t transpose_a, int32_t transpose_b, int64_t m, int64_t n,
                             int64_t k, const double *a, int64_t lda, const double *b, int64_t ldb,
                             const double *bias, int32_t accumulate, double *c, int64_t ldc) {
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) {
      double sum = (bias ? bias[j] : 0) + (accumulate ? c[i * ldc + j] : 0);
      for (int64_t l = 0; l < k; ++l)
        sum +=
            a[transpose_a ? l * lda + i : i * lda + l] * b[transpose_b ? j * ldb + l : l * ldb + j];
      c[i * ldc + j] = sum;
    }
}

// As runtime/engine/symbols.cpp has it, which would bring all that a program may call.
extern "C" float __truncsfbf2(float value) {
  const uint32_t bits = boa::testing::toBfloat(value);
  std::memcpy(&value, &bits, sizeof bits);
  return value;
}

/// What packed kernels call: all of it is linked.
[[gnu::used]] static const void *const kCalled[] = {
    reinterpret_cast<const void *>(&boa_attention_f64),
    reinterpret_cast<const void *>(&boa_attention_grad_f64),
    reinterpret_cast<const void *>(&boa_rt_parallel_for),
    reinterpret_cast<const void *>(&boa_cuda_launch),
    reinterpret_cast<const void *>(&boa_cuda_gemm),
    reinterpret_cast<const void *>(&boa_cuda_attention),
    reinterpret_cast<const void *>(&boa_cuda_attention_grad),
};

int main(int argc, char **argv) {
  using namespace boa::gputest;
  // Whoever ends it has all lines that it printed.
  setvbuf(stdout, nullptr, _IOLBF, BUFSIZ);
  auto is = [&](const char *mode) { return argc > 1 && std::strcmp(argv[1], mode) == 0; };
  if (is("environment") && argc == 2)
    return ShowEnvironment();
  if (is("kernels") && argc == 3)
    return RunKernels(argv[2]);
  using Measure = int (*)(const std::string &, double);
  for (auto [name, measure] : {std::pair<const char *, Measure>{"products", MeasureProducts},
                               {"attention", MeasureAttention},
                               {"layer", MeasureLayer},
                               {"updates", MeasureUpdates}})
    if (is(name) && argc == 4)
      return measure(argv[2], std::atof(argv[3]));
  if (is("times") && argc == 3)
    return MeasureTimes(argv[2]);
  if (is("copies") && argc == 2)
    return MeasureCopies();
  if (is("launches") && argc == 3)
    return MeasureLaunches(argv[2]);
  if (is("peak") && argc == 2)
    return MeasurePeak();
  if (is("watch") && argc > 3)
    return Watch(argv[2], argv + 3);
  std::fprintf(
      stderr,
      "usage: boa-gpu-runner environment | kernels DIR | peak | products, attention, layer or "
      "updates PROGRAM PEAK | times PROGRAM | copies | launches FILE | watch FILE COMMAND...\n");
  return 2;
}
