//===- EmulatedGpu.cpp - A GPU that does what it is told at once ----------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/gradients/EmulatedGpu.h"

#include "runtime/abi/cuda_calls.h"
#include "runtime/kernels/attention.h"
#include "test/fake_cuda/emulator.h"
#include "test/gradients/Values.h"

#include <cstdlib>
#include <cstring>
#include <vector>

namespace boa::testing {
namespace {

void launch(boa_queue *queue, int64_t function, int64_t gridX, int64_t gridY, int64_t gridZ,
            int64_t blockX, int64_t blockY, int64_t blockZ, int64_t sharedBytes, int64_t count,
            void *const *args) {
  const auto &module = *reinterpret_cast<const boa_emulated_module *>(queue);
  std::vector<void *> addresses(count);
  for (int64_t i = 0; i < count; ++i)
    addresses[i] = const_cast<void **>(&args[i]);
  fake::Launch launch{&module.functions[function],
                      {gridX, gridY, gridZ},
                      {blockX, blockY, blockZ},
                      sharedBytes,
                      addresses.data()};
  // Each function has an order of threads of its own, the same again each time.
  launch.seed = uint64_t(function) + 1;
  if (std::string fault = fake::RunLaunch(launch); !fault.empty())
    failTest(fault);
}

/// Elements of a matrix, by rows: f32, or bf16.
struct Elements {
  bool narrow;
  char *memory;

  Elements(int32_t type, const void *memory)
      : narrow(type != 0), memory(static_cast<char *>(const_cast<void *>(memory))) {}
  float get(int64_t i) const {
    return narrow ? fromBfloat(reinterpret_cast<const uint16_t *>(memory)[i])
                  : reinterpret_cast<const float *>(memory)[i];
  }
  void set(int64_t i, double value) const {
    if (narrow)
      reinterpret_cast<uint16_t *>(memory)[i] = toBfloat(static_cast<float>(value));
    else
      reinterpret_cast<float *>(memory)[i] = static_cast<float>(value);
  }
};

/// A library may write all of its scratch whenever it runs, and leaves there what it likes:
/// an operand or a result that lies in it is NaN.
void poison(void *scratch) {
  if (scratch)
    std::memset(scratch, 0xff, BOA_CUDA_LIBRARY_WORKSPACE);
}

void multiply(boa_queue *, int32_t transposeA, int32_t transposeB, int64_t m, int64_t n, int64_t k,
              int32_t typeAB, const void *a, int64_t lda, const void *b, int64_t ldb,
              const void *bias, const void *addend, int32_t typeC, void *c, int64_t ldc,
              void *scratch) {
  poison(scratch);
  const Elements as(typeAB, a), bs(typeAB, b), biases(typeC, bias), added(typeC, addend),
      cs(typeC, c);
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) {
      double sum = bias ? biases.get(j) : 0;
      if (addend)
        sum += added.get(i * ldc + j);
      for (int64_t x = 0; x < k; ++x)
        sum += double(as.get(transposeA ? x * lda + i : i * lda + x)) *
               bs.get(transposeB ? j * ldb + x : x * ldb + j);
      cs.set(i * ldc + j, sum);
    }
  poison(scratch);
}

/// With BOA_TEST_LIBRARY=attention there is a library that takes it: the CPU's.
bool hasAttention() {
  const char *library = std::getenv("BOA_TEST_LIBRARY");
  return library && std::string(library) == "attention";
}

int32_t attend(boa_queue *, int32_t causal, int64_t batch, int64_t time, int64_t heads,
               int64_t kvHeads, int64_t columns, const void *q, int64_t ldq, const void *k,
               int64_t ldk, const void *v, int64_t ldv, void *y, int64_t ldy, float *lse,
               void *scratch, int64_t scratchBytes) {
  std::memset(scratch, 0xff, scratchBytes);
  if (!hasAttention())
    return 0;
  auto values = [](const void *memory) { return static_cast<const uint16_t *>(memory); };
  boa_attention_bf16(batch, time, heads, kvHeads, columns, causal, /*window=*/0, nullptr, values(q),
                     ldq, values(k), ldk, values(v), ldv, static_cast<uint16_t *>(y), ldy, lse);
  return 1;
}

int32_t attendGrad(boa_queue *, int32_t causal, int64_t batch, int64_t time, int64_t heads,
                   int64_t kvHeads, int64_t columns, const void *q, int64_t ldq, const void *k,
                   int64_t ldk, const void *v, int64_t ldv, const void *y, int64_t ldy,
                   const float *lse, const void *dy, int64_t lddy, void *dq, int64_t lddq, void *dk,
                   int64_t lddk, void *dv, int64_t lddv, float *delta, void *scratch,
                   int64_t scratchBytes) {
  std::memset(scratch, 0xff, scratchBytes);
  std::memset(delta, 0xff, batch * heads * time * sizeof(float));
  if (!hasAttention())
    return 0;
  auto values = [](const void *memory) { return static_cast<const uint16_t *>(memory); };
  auto results = [](void *memory) { return static_cast<uint16_t *>(memory); };
  boa_attention_grad_bf16(batch, time, heads, kvHeads, columns, causal, /*window=*/0, nullptr,
                          values(q), ldq, values(k), ldk, values(v), ldv, values(y), ldy, lse,
                          values(dy), lddy, results(dq), lddq, results(dk), lddk, results(dv),
                          lddv);
  return 1;
}

} // namespace

void *findEmulated(const std::string &name) {
  if (name == "boa_cuda_launch")
    return reinterpret_cast<void *>(&launch);
  if (name == "boa_cuda_gemm")
    return reinterpret_cast<void *>(&multiply);
  if (name == "boa_cuda_attention")
    return reinterpret_cast<void *>(&attend);
  if (name == "boa_cuda_attention_grad")
    return reinterpret_cast<void *>(&attendGrad);
  return nullptr;
}

} // namespace boa::testing
