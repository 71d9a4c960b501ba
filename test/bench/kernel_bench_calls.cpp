//===- kernel_bench_calls.cpp - Products and attention alone -------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/abi/abi.h"
#include "runtime/kernels/attention.h"
#include "runtime/kernels/gemm.h"
#include "runtime/kernels/isa.h"
#include "test/bench/kernel_bench.h"

#include "llvm/ADT/bit.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <utility>
#include <vector>

namespace bench {

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

namespace {

/// The kernels of an instruction set for one type, and the seconds that they took.
struct ProductWay {
  boa::Isa isa;
  bool narrow;         // bf16
  double best[3] = {}; // of one product, each of its forms: y = x w, dx = dy w^T, dw += x^T dy
  double total = 0;    // of all products
};

template <typename T, typename Gemm>
void timeForms(ProductWay &way, int64_t m, int64_t n, int64_t k, const void *xs, const void *ws,
               const void *ys, float *out, Gemm gemm) {
  const T *x = static_cast<const T *>(xs), *w = static_cast<const T *>(ws),
          *y = static_cast<const T *>(ys);
  auto time = [&](int form, auto... arguments) {
    double start = now();
    gemm(arguments...);
    way.best[form] = std::min(way.best[form], now() - start);
  };
  time(0, 0, 0, m, n, k, x, k, w, n, nullptr, 0, out, n, nullptr, 0);
  time(1, 0, 1, m, k, n, y, n, w, n, nullptr, 0, out, k, nullptr, 0);
  time(2, 1, 0, k, n, m, x, k, y, n, nullptr, 1, out, n, nullptr, 0);
}

/// One product in each way, in turns: a busy moment of the machine does not hit one way alone.
void timeProduct(std::vector<ProductWay> &ways, int64_t m, int64_t n, int64_t k) {
  float *x = allocate(m * k * 4), *w = allocate(k * n * 4), *y = allocate(m * n * 4);
  float *out = allocate(std::max({m * k, k * n, m * n}) * 4);
  // Numbers whose upper half is a number, too.
  auto narrowed = [](const float *values, int64_t count) {
    std::vector<uint16_t> upper(static_cast<size_t>(count));
    for (int64_t i = 0; i < count; ++i)
      upper[static_cast<size_t>(i)] =
          static_cast<uint16_t>(llvm::bit_cast<uint32_t>(values[i]) >> 16);
    return upper;
  };
  const std::vector<uint16_t> x16 = narrowed(x, m * k), w16 = narrowed(w, k * n),
                              y16 = narrowed(y, m * n);
  for (ProductWay &way : ways)
    std::fill(std::begin(way.best), std::end(way.best), 1e9);
  for (int turn = 0; turn < 9; ++turn)
    for (ProductWay &way : ways) {
      (void)boa::UseIsa(boa::IsaName(way.isa)); // this processor has it
      if (way.narrow)
        timeForms<uint16_t>(way, m, n, k, x16.data(), w16.data(), y16.data(), out,
                            boa_gemm_bf16_bf16);
      else
        timeForms<float>(way, m, n, k, x, w, y, out, boa_gemm_f32);
    }
  const double flops = 2e-9 * static_cast<double>(m * n * k);
  for (ProductWay &way : ways) {
    std::printf("  %-12s %-4s %8.0f %8.0f %8.0f\n", boa::IsaName(way.isa),
                way.narrow ? "bf16" : "f32", flops / way.best[0], flops / way.best[1],
                flops / way.best[2]);
    way.total += way.best[0] + way.best[1] + way.best[2];
  }
  std::free(x), std::free(w), std::free(y), std::free(out);
}

/// Whether the table (isa.cpp) chooses the fastest kernels for a type. Ways within a tenth of
/// the fastest are as good: the machine may have been busy.
bool judgeTable(const std::vector<ProductWay> &ways, bool narrow, boa::Isa table) {
  const ProductWay *fastest = nullptr, *chosen = nullptr;
  for (const ProductWay &way : ways) {
    if (way.narrow != narrow)
      continue;
    if (!fastest || way.total < fastest->total)
      fastest = &way;
    if (way.isa <= table)
      chosen = &way; // above it f32 has no other kernels
  }
  const char *type = narrow ? "bf16" : "f32";
  const double ratio = chosen->total / fastest->total;
  std::printf("%s: %s is the fastest; the table chooses %s, which takes %.2f times as long\n", type,
              boa::IsaName(fastest->isa), boa::IsaName(chosen->isa), ratio);
  if (ratio <= 1.1)
    return true;
  const boa::Processor processor = boa::ThisProcessor();
  std::printf("the table is wrong here: %s should be by %s on %s, family 0x%02x, model 0x%02x\n",
              type, boa::IsaName(fastest->isa), processor.vendor.c_str(),
              static_cast<unsigned>(processor.Family()), static_cast<unsigned>(processor.Model()));
  return false;
}

} // namespace

int measureProducts() {
  const boa::Processor processor = boa::ThisProcessor();
  const boa::Isa before = boa::UsedIsa();
  std::vector<ProductWay> ways;
  for (bool narrow : {false, true})
    for (const char *name : boa::kIsaNames) {
      const absl::StatusOr<boa::Isa> isa = boa::ChooseIsa(processor, name);
      if (!isa.ok())
        std::printf("%s: %s\n", name, std::string(isa.status().message()).c_str());
      else if (narrow || *isa <= boa::Isa::kAvx512)
        ways.push_back({*isa, narrow});
    }
  const std::pair<int64_t, int64_t> weights[] = {{384, 1152}, {384, 384},  {384, 1536},
                                                 {1536, 384}, {768, 3072}, {3072, 768}};
  for (int64_t m : {512, 2048})
    for (auto [k, n] : weights) {
      std::printf("x [%ld, %ld], w [%ld, %ld]: GFLOP/s of y, dx, dw\n", m, k, k, n);
      timeProduct(ways, m, n, k);
    }
  (void)boa::UseIsa(boa::IsaName(before));
  const boa::Isa table = *boa::ChooseIsa(processor);
  bool right = true;
  for (bool narrow : {false, true})
    right &= judgeTable(ways, narrow, table);
  return right ? 0 : 1;
}

//===----------------------------------------------------------------------===//
// Attention
//===----------------------------------------------------------------------===//

namespace {

struct AttentionShape {
  int64_t batch, time, heads, kvHeads, d;
};

/// q, k, v side by side in rows of one buffer, as a split of one product leaves them.
template <typename T> class AttentionRun {
public:
  explicit AttentionRun(AttentionShape s)
      : s(s), width(s.heads * s.d), stride((s.heads + 2 * s.kvHeads) * s.d), rows(s.batch * s.time),
        qkv(fill(rows * stride)), dy(fill(rows * width)), y(rows * width), grad(rows * stride),
        lse(rows * s.heads) {}

  template <typename Forward> void forward(Forward call) {
    const T *q = qkv.data(), *k = q + width, *v = k + s.kvHeads * s.d;
    call(s.batch, s.time, s.heads, s.kvHeads, s.d, 1, 0, nullptr, q, stride, k, stride, v, stride,
         y.data(), width, lse.data());
  }
  template <typename Backward> void backward(Backward call) {
    const T *q = qkv.data(), *k = q + width, *v = k + s.kvHeads * s.d;
    T *dq = grad.data(), *dk = dq + width, *dv = dk + s.kvHeads * s.d;
    call(s.batch, s.time, s.heads, s.kvHeads, s.d, 1, 0, nullptr, q, stride, k, stride, v, stride,
         y.data(), width, lse.data(), dy.data(), width, dq, stride, dk, stride, dv, stride);
  }

private:
  static std::vector<T> fill(int64_t count) {
    std::vector<T> values(count);
    for (int64_t i = 0; i < count; ++i) {
      float value = static_cast<float>((i * 7919) % 1009) / 1009 * 2 - 1;
      if constexpr (sizeof(T) == 2)
        values[i] = static_cast<T>(llvm::bit_cast<uint32_t>(value) >> 16);
      else
        values[i] = value;
    }
    return values;
  }

  AttentionShape s;
  int64_t width, stride, rows;
  std::vector<T> qkv, dy, y, grad;
  std::vector<float> lse;
};

/// Causal. A row is one of a head's queries; two products forward and five backward
/// are counted, of what is not masked.
void measureAttention(AttentionShape s) {
  constexpr int kTurns = 9;
  std::printf("batch %ld, context %ld, heads %ld of %ld, key/value heads %ld: GFLOP/s (ns a row) "
              "forward, backward\n",
              s.batch, s.time, s.heads, s.d, s.kvHeads);
  struct Way {
    const char *isa;
    bool narrow;
    std::vector<double> forward, backward;
  };
  std::vector<Way> ways;
  const char *before = boa::IsaName(boa::UsedIsa());
  for (const char *isa : {"baseline", "avx2", "avx512", "avx512_bf16"})
    if (boa::UseIsa(isa).ok())
      for (bool narrow : {false, true})
        ways.push_back({isa, narrow, {}, {}});
  AttentionRun<float> wide(s);
  AttentionRun<uint16_t> narrow(s);
  for (int turn = 0; turn < kTurns; ++turn)
    for (Way &way : ways) {
      (void)boa::UseIsa(way.isa);
      double start = now();
      way.narrow ? narrow.forward(boa_attention_bf16) : wide.forward(boa_attention_f32);
      double middle = now();
      way.narrow ? narrow.backward(boa_attention_grad_bf16) : wide.backward(boa_attention_grad_f32);
      way.forward.push_back(middle - start);
      way.backward.push_back(now() - middle);
    }
  (void)boa::UseIsa(before);
  double rows = static_cast<double>(s.batch * s.heads * s.time);
  double product = rows * static_cast<double>(s.d * (s.time + 1)) * 1e-9;
  for (Way &way : ways) {
    auto median = [](std::vector<double> &seconds) {
      std::nth_element(seconds.begin(), seconds.begin() + kTurns / 2, seconds.end());
      return seconds[kTurns / 2];
    };
    double forward = median(way.forward), backward = median(way.backward);
    std::printf("  %-12s %-4s %5.0f (%6.0f) %5.0f (%6.0f)\n", way.isa, way.narrow ? "bf16" : "f32",
                2 * product / forward, forward / rows * 1e9, 5 * product / backward,
                backward / rows * 1e9);
  }
}

} // namespace

void measureAttention() {
  for (AttentionShape s : {AttentionShape{2, 256, 12, 12, 64}, AttentionShape{8, 256, 12, 12, 64},
                           AttentionShape{1, 2048, 4, 4, 64}, AttentionShape{1, 2048, 4, 4, 128},
                           AttentionShape{1, 2048, 8, 2, 128}})
    measureAttention(s);
}

} // namespace bench
