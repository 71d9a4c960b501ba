//===- attention.cpp - Blocked attention for compiled kernels -------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Chooses the instruction set once, cuts the work into tasks and gives each
// thread of the pool its scratch: a few blocks, allocated at a thread's first
// task and kept, grown only if a later call has larger heads.
//
//===----------------------------------------------------------------------===//

#include "runtime/kernels/attention.h"

#include "runtime/abi.h"
#include "runtime/kernels/attention_task.h"
#include "runtime/kernels/isa.h"
#include "runtime/thread_pool.h"

#include <cmath>
#include <cstdlib>
#include <memory>

extern const boa::AttentionTable kAttentionBaseline;
#ifdef __x86_64__
extern const boa::AttentionTable kAttentionAvx2;
extern const boa::AttentionTable kAttentionAvx512;
#endif

namespace {

using boa::AttentionArgs;

const boa::AttentionTable &table() {
#ifdef __x86_64__
  if (boa::UsedIsa() >= boa::Isa::kAvx512)
    return kAttentionAvx512;
  if (boa::UsedIsa() >= boa::Isa::kAvx2)
    return kAttentionAvx2;
#endif
  return kAttentionBaseline;
}

/// Elements of scratch that a task may use: transposed blocks, scores and their
/// gradients, accumulators of one block, row statistics of one chunk.
int64_t scratchElements(int64_t d) {
  return 4 * (d + 16) * boa::kAttentionKeyBlock +
         2 * boa::kAttentionRowBlock * boa::kAttentionKeyBlock + 2 * boa::kAttentionChunk + 128;
}

template <typename T> T *scratch(int64_t d) {
  struct Free {
    void operator()(void *p) const { std::free(p); }
  };
  static thread_local std::unique_ptr<void, Free> memory;
  static thread_local int64_t size = 0;
  int64_t bytes = scratchElements(d) * static_cast<int64_t>(sizeof(T));
  bytes = (bytes + 4095) / 4096 * 4096;
  if (bytes > size) {
    memory.reset(std::aligned_alloc(4096, static_cast<size_t>(bytes)));
    if (!memory)
      std::abort(); // some hundred KiB: nothing else would work either
    size = bytes;
  }
  return static_cast<T *>(memory.get());
}

template <typename T> using Task = typename boa::AttentionTasks<T>::Task;

template <typename T> struct Work {
  const AttentionArgs<T> *args;
  Task<T> task;
};

template <typename T> void runTasks(const AttentionArgs<T> &args, Task<T> task, int64_t count) {
  Work<T> work{&args, task};
  boa_rt_parallel_for(
      count, 1,
      [](void *data, int64_t begin, int64_t end) {
        const Work<T> &w = *static_cast<const Work<T> *>(data);
        T *memory = scratch<T>(w.args->d);
        for (int64_t i = begin; i < end; ++i)
          w.task(*w.args, i, memory);
      },
      &work);
}

template <typename T>
AttentionArgs<T> shape(int64_t batch, int64_t time, int64_t heads, int64_t kv_heads, int64_t d,
                       int32_t causal) {
  AttentionArgs<T> args{};
  args.batch = batch;
  args.time = time;
  args.heads = heads;
  args.kv_heads = kv_heads;
  args.d = d;
  args.causal = causal != 0;
  args.scale = static_cast<T>(1.0 / std::sqrt(static_cast<double>(d)));
  args.log = [](T x) { return std::log(x); };
  return args;
}

template <typename T> int64_t chunksOf(const AttentionArgs<T> &args) {
  return (args.time + boa::kAttentionChunk - 1) / boa::kAttentionChunk;
}

template <typename T>
void forward(AttentionArgs<T> args, Task<T> task, const T *q, int64_t ldq, const T *k, int64_t ldk,
             const T *v, int64_t ldv, T *y, int64_t ldy, T *lse) {
  args.q = q, args.ldq = ldq;
  args.k = k, args.ldk = ldk;
  args.v = v, args.ldv = ldv;
  args.y = y, args.ldy = ldy;
  args.lse = lse;
  runTasks<T>(args, task, args.batch * args.heads * chunksOf(args));
}

template <typename T>
void backward(AttentionArgs<T> args, const boa::AttentionTasks<T> &tasks, const T *q, int64_t ldq,
              const T *k, int64_t ldk, const T *v, int64_t ldv, const T *y, int64_t ldy,
              const T *lse, const T *dy, int64_t lddy, T *dq, int64_t lddq, T *dk, int64_t lddk,
              T *dv, int64_t lddv) {
  args.q = q, args.ldq = ldq;
  args.k = k, args.ldk = ldk;
  args.v = v, args.ldv = ldv;
  args.yIn = y, args.ldy = ldy;
  args.lseIn = lse;
  args.dy = dy, args.lddy = lddy;
  args.dq = dq, args.lddq = lddq;
  args.dk = dk, args.lddk = lddk;
  args.dv = dv, args.lddv = lddv;
  // Long contexts of few heads: more, smaller tasks, at 7/5 of the products.
  int64_t whole = args.batch * args.kv_heads, threads = boa::Threads();
  int64_t blocks = (args.time + boa::kAttentionRowBlock - 1) / boa::kAttentionRowBlock;
  if ((whole + threads - 1) / threads * threads * 5 <= whole * 7 || blocks == 1) {
    runTasks<T>(args, tasks.backward, whole);
    return;
  }
  runTasks<T>(args, tasks.keys, whole * blocks);
  runTasks<T>(args, tasks.queries, args.batch * args.heads * chunksOf(args));
}

} // namespace

#define BOA_DEFINE_ATTENTION(suffix, T)                                                            \
  extern "C" void boa_attention_##suffix(int64_t batch, int64_t time, int64_t heads,               \
                                         int64_t kv_heads, int64_t d, int32_t causal, const T *q,  \
                                         int64_t ldq, const T *k, int64_t ldk, const T *v,         \
                                         int64_t ldv, T *y, int64_t ldy, T *lse) {                 \
    forward<T>(shape<T>(batch, time, heads, kv_heads, d, causal), table().suffix.forward, q, ldq,  \
               k, ldk, v, ldv, y, ldy, lse);                                                       \
  }                                                                                                \
  extern "C" void boa_attention_grad_##suffix(                                                     \
      int64_t batch, int64_t time, int64_t heads, int64_t kv_heads, int64_t d, int32_t causal,     \
      const T *q, int64_t ldq, const T *k, int64_t ldk, const T *v, int64_t ldv, const T *y,       \
      int64_t ldy, const T *lse, const T *dy, int64_t lddy, T *dq, int64_t lddq, T *dk,            \
      int64_t lddk, T *dv, int64_t lddv) {                                                         \
    backward<T>(shape<T>(batch, time, heads, kv_heads, d, causal), table().suffix, q, ldq, k, ldk, \
                v, ldv, y, ldy, lse, dy, lddy, dq, lddq, dk, lddk, dv, lddv);                      \
  }

BOA_DEFINE_ATTENTION(f32, float)
BOA_DEFINE_ATTENTION(f64, double)
