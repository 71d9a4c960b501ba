//===- cached_attention.cpp - Attention to keys of a cache ----------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/kernels/cached_attention.h"

#include "runtime/abi/abi.h"
#include "runtime/kernels/attention_task.h"
#include "runtime/kernels/isa.h"

#include <cmath>
#include <cstring>
#include <vector>

extern const boa::AttentionTable kAttentionBaseline;
#ifdef __x86_64__
extern const boa::AttentionTable kAttentionAvx2;
extern const boa::AttentionTable kAttentionAvx512;
#endif

namespace {

const boa::CachedAttentionTable &CachedTable() {
#ifdef __x86_64__
  if (boa::UsedIsa() >= boa::Isa::kAvx512)
    return kAttentionAvx512.cached;
  if (boa::UsedIsa() >= boa::Isa::kAvx2)
    return kAttentionAvx2.cached;
#endif
  return kAttentionBaseline.cached;
}

boa::CachedAttentionTask<float> CachedTaskOf(float) { return CachedTable().f32; }
boa::CachedAttentionTask<double> CachedTaskOf(double) { return CachedTable().f64; }
boa::CachedAttentionTask<uint16_t> CachedTaskOf(uint16_t) { return CachedTable().bf16; }

template <typename E> void Attend(boa::CachedAttentionArgs<E> args) {
  const int64_t bytes = args.kv_heads * args.d * static_cast<int64_t>(sizeof(E));
  for (int64_t i = 0; i < args.rows; ++i) {
    std::memcpy(args.keys + args.positions[i] * args.ld_keys, args.k + i * args.ldk,
                static_cast<size_t>(bytes));
    std::memcpy(args.values + args.positions[i] * args.ld_values, args.v + i * args.ldv,
                static_cast<size_t>(bytes));
  }
  using T = typename boa::AttentionSum<E>::Type;
  args.scale = static_cast<T>(1.0 / std::sqrt(static_cast<double>(args.d)));
  boa_rt_parallel_for(
      args.rows * args.heads, 1,
      [](void *data, int64_t begin, int64_t end) {
        const auto &of = *static_cast<const boa::CachedAttentionArgs<E> *>(data);
        static thread_local std::vector<T> scratch;
        const size_t numbers = static_cast<size_t>(boa::CachedAttentionScratch(of.context, of.d));
        if (scratch.size() < numbers)
          scratch.resize(numbers);
        for (int64_t task = begin; task < end; ++task)
          CachedTaskOf(E())(of, task, scratch.data());
      },
      &args);
}

} // namespace

#define BOA_DEFINE_CACHED_ATTENTION(suffix, E)                                                     \
  extern "C" void boa_cached_attention_##suffix(                                                   \
      int64_t rows, int64_t context, int64_t heads, int64_t kv_heads, int64_t d, int64_t window,   \
      const int32_t *positions, const E *q, int64_t ldq, const E *k, int64_t ldk, const E *v,      \
      int64_t ldv, E *y, int64_t ldy, E *keys, int64_t ld_keys, E *values, int64_t ld_values) {    \
    Attend<E>({rows, context, heads, kv_heads, d, window, 0,    positions, q,      ldq,            \
               k,    ldk,     v,     ldv,      y, ldy,    keys, ld_keys,   values, ld_values});    \
  }

BOA_DEFINE_CACHED_ATTENTION(f32, float)
BOA_DEFINE_CACHED_ATTENTION(f64, double)
BOA_DEFINE_CACHED_ATTENTION(bf16, uint16_t)
