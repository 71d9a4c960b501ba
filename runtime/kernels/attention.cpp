//===- attention.cpp - Blocked attention for compiled kernels -------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Chooses the instruction set, cuts the work into tasks and gives each thread of
// the pool its scratch, allocated at a thread's first task and kept, grown only if
// a later call needs more.
//
//===----------------------------------------------------------------------===//

#include "runtime/kernels/attention.h"

#include "runtime/abi/abi.h"
#include "runtime/kernels/attention_task.h"
#include "runtime/kernels/isa.h"
#include "runtime/support/thread_pool.h"

#include <cmath>
#include <cstdlib>
#include <memory>
#include <vector>

extern const boa::AttentionTable kAttentionBaseline;
#ifdef __x86_64__
extern const boa::AttentionTable kAttentionAvx2;
extern const boa::AttentionTable kAttentionAvx512;
extern const boa::AttentionTasks<uint16_t> kAttentionAvx512Bf16;
#endif

namespace {

using boa::AttentionArgs;

const boa::AttentionTable &Table() {
#ifdef __x86_64__
  if (boa::UsedIsa() >= boa::Isa::kAvx512)
    return kAttentionAvx512;
  if (boa::UsedIsa() >= boa::Isa::kAvx2)
    return kAttentionAvx2;
#endif
  return kAttentionBaseline;
}

const boa::AttentionTasks<float> &TasksOf(float) { return Table().f32; }
const boa::AttentionTasks<double> &TasksOf(double) { return Table().f64; }
const boa::AttentionTasks<uint16_t> &TasksOf(uint16_t) {
#ifdef __x86_64__
  // Processors with AMX are Intel's, whose bf16 instruction of AVX-512 is slower than FMA of f32
  // on widened operands: 69 against 100 GFLOP/s (`kernel-bench --attention`, context 256).
  if (boa::UsedIsa() == boa::Isa::kAvx512Bf16)
    return kAttentionAvx512Bf16;
#endif
  return Table().bf16;
}

template <typename E> using Sum = typename AttentionArgs<E>::T;

/// Of one thread; a task of backward that would sum more than 16 MiB is cut into those that
/// do not.
constexpr int64_t kMostSums = 1 << 22;

void *Scratch(int64_t bytes) {
  struct Free {
    void operator()(void *p) const { std::free(p); }
  };
  static thread_local std::unique_ptr<void, Free> memory;
  static thread_local int64_t size = 0;
  bytes = (bytes + 4095) / 4096 * 4096;
  if (bytes > size) {
    memory.reset(std::aligned_alloc(4096, static_cast<size_t>(bytes)));
    if (!memory)
      std::abort(); // a few MiB: nothing else would work either
    size = bytes;
  }
  return memory.get();
}

template <typename E> using Task = typename boa::AttentionTasks<E>::Task;

template <typename E> struct AttentionWork {
  const AttentionArgs<E> *args;
  Task<E> task;
  int64_t scratch; // bytes
};

template <typename E>
void RunTasks(const AttentionArgs<E> &args, Task<E> task, int64_t count, int64_t sums = 0) {
  int64_t numbers = boa::AttentionBlocks(args.d) + sums;
  AttentionWork<E> work{&args, task, numbers * static_cast<int64_t>(sizeof(Sum<E>))};
  boa_rt_parallel_for(
      count, 1,
      [](void *data, int64_t begin, int64_t end) {
        const AttentionWork<E> &w = *static_cast<const AttentionWork<E> *>(data);
        auto *memory = static_cast<Sum<E> *>(Scratch(w.scratch));
        for (int64_t i = begin; i < end; ++i)
          w.task(*w.args, i, memory);
      },
      &work);
}

template <typename E>
AttentionArgs<E> Shape(int64_t batch, int64_t time, int64_t heads, int64_t kv_heads, int64_t d,
                       int32_t causal, int64_t window, const int32_t *document_starts) {
  AttentionArgs<E> args{};
  args.batch = batch;
  args.time = time;
  args.heads = heads;
  args.kv_heads = kv_heads;
  args.d = d;
  args.causal = causal != 0;
  args.window = window;
  args.begins = document_starts;
  args.scale = static_cast<Sum<E>>(1.0 / std::sqrt(static_cast<double>(d)));
  args.log = [](Sum<E> x) { return std::log(x); };
  return args;
}

/// Of each row, one past the last of its document. Causal rows need none.
template <typename E> std::vector<int32_t> FindEnds(AttentionArgs<E> &args) {
  std::vector<int32_t> ends;
  if (!args.begins || args.causal)
    return ends;
  ends.resize(size_t(args.batch * args.time));
  for (int64_t b = 0; b < args.batch; ++b) {
    const int32_t *begins = args.begins + b * args.time;
    int64_t end = args.time;
    for (int64_t row = args.time - 1; row >= 0; --row) {
      ends[size_t(b * args.time + row)] = int32_t(end);
      if (begins[row] == row)
        end = row;
    }
  }
  args.ends = ends.data();
  return ends;
}

template <typename E> int64_t ChunksOf(const AttentionArgs<E> &args) {
  return (args.time + boa::kAttentionChunk - 1) / boa::kAttentionChunk;
}

template <typename E>
void Forward(AttentionArgs<E> args, const E *q, int64_t ldq, const E *k, int64_t ldk, const E *v,
             int64_t ldv, E *y, int64_t ldy, Sum<E> *lse) {
  args.q = q, args.ldq = ldq;
  args.k = k, args.ldk = ldk;
  args.v = v, args.ldv = ldv;
  args.y = y, args.ldy = ldy;
  args.lse = lse;
  const std::vector<int32_t> ends = FindEnds(args);
  RunTasks<E>(args, TasksOf(E()).forward, args.batch * args.heads * ChunksOf(args));
}

template <typename E>
void Backward(AttentionArgs<E> args, const E *q, int64_t ldq, const E *k, int64_t ldk, const E *v,
              int64_t ldv, const E *y, int64_t ldy, const Sum<E> *lse, const E *dy, int64_t lddy,
              E *dq, int64_t lddq, E *dk, int64_t lddk, E *dv, int64_t lddv) {
  args.q = q, args.ldq = ldq;
  args.k = k, args.ldk = ldk;
  args.v = v, args.ldv = ldv;
  args.yIn = y, args.ldy = ldy;
  args.lseIn = lse;
  args.dy = dy, args.lddy = lddy;
  args.dq = dq, args.lddq = lddq;
  args.dk = dk, args.lddk = lddk;
  args.dv = dv, args.lddv = lddv;
  const std::vector<int32_t> ends = FindEnds(args);
  const boa::AttentionTasks<E> &tasks = TasksOf(E());
  // Long contexts of few heads: more, smaller tasks, at 7/5 of the products.
  int64_t whole = args.batch * args.kv_heads, threads = boa::Threads();
  int64_t blocks = (args.time + boa::kAttentionRowBlock - 1) / boa::kAttentionRowBlock;
  bool even = (whole + threads - 1) / threads * threads * 5 <= whole * 7;
  int64_t sums = boa::AttentionSums(args);
  if ((even && sums <= kMostSums) || blocks == 1) {
    RunTasks<E>(args, tasks.backward, whole, sums);
    return;
  }
  RunTasks<E>(args, tasks.keys, whole * blocks);
  RunTasks<E>(args, tasks.queries, args.batch * args.heads * ChunksOf(args));
}

} // namespace

#define BOA_DEFINE_ATTENTION(suffix, E, T)                                                         \
  extern "C" void boa_attention_##suffix(                                                          \
      int64_t batch, int64_t time, int64_t heads, int64_t kv_heads, int64_t d, int32_t causal,     \
      int64_t window, const int32_t *document_starts, const E *q, int64_t ldq, const E *k,         \
      int64_t ldk, const E *v, int64_t ldv, E *y, int64_t ldy, T *lse) {                           \
    Forward<E>(Shape<E>(batch, time, heads, kv_heads, d, causal, window, document_starts), q, ldq, \
               k, ldk, v, ldv, y, ldy, lse);                                                       \
  }                                                                                                \
  extern "C" void boa_attention_grad_##suffix(                                                     \
      int64_t batch, int64_t time, int64_t heads, int64_t kv_heads, int64_t d, int32_t causal,     \
      int64_t window, const int32_t *document_starts, const E *q, int64_t ldq, const E *k,         \
      int64_t ldk, const E *v, int64_t ldv, const E *y, int64_t ldy, const T *lse, const E *dy,    \
      int64_t lddy, E *dq, int64_t lddq, E *dk, int64_t lddk, E *dv, int64_t lddv) {               \
    Backward<E>(Shape<E>(batch, time, heads, kv_heads, d, causal, window, document_starts), q,     \
                ldq, k, ldk, v, ldv, y, ldy, lse, dy, lddy, dq, lddq, dk, lddk, dv, lddv);         \
  }

BOA_DEFINE_ATTENTION(f32, float, float)
BOA_DEFINE_ATTENTION(f64, double, double)
BOA_DEFINE_ATTENTION(bf16, uint16_t, float)
