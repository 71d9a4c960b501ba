//===- calls.cpp - What kernels for CUDA call -----------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/abi/cuda_calls.h"

#include "runtime/device/cuda/launch_times.h"
#include "runtime/device/cuda/queue.h"

#include "absl/strings/str_cat.h"

#include <vector>

using namespace boa::cuda;

/// Enqueues one call, which `name` names in errors and in times.
template <typename Name, typename Call>
static void Enqueue(boa_queue &queue, const Name &name, const Call &call) {
  if (queue.times)
    queue.status = queue.times->Begin(queue.stream);
  if (queue.status.ok())
    queue.status = call();
  if (queue.times && queue.status.ok())
    queue.status = queue.times->End(queue.stream, std::string(name()));
  // Then an error on the GPU has the name of its call.
  if (queue.synchronizes && queue.status.ok())
    queue.status = queue.driver->Call(std::string(name()).c_str(), queue.driver->StreamSynchronize,
                                      queue.stream);
}

/// What this GPU cannot launch is refused before the first step; of what it can, shared memory
/// is asked for, once for each function and size.
static absl::Status PlanLaunch(boa_queue &queue, int64_t index, const int64_t (&grid)[3],
                               const int64_t (&block)[3], int64_t shared_bytes) {
  const LoadedFunction &function = queue.gpu->functions()[index];
  const Limits &limits = queue.gpu->limits();
  absl::Status status;
  auto expect = [&](const char *what, int64_t value, int64_t least, int64_t most) {
    if (status.ok() && (value < least || value > most))
      status = absl::FailedPreconditionError(
          absl::StrCat("function ", function.name, " is launched with ", value, " ", what,
                       ", but may be with ", least, " to ", most, " on ", queue.gpu->Describe(),
                       ": train on another GPU, or write `device cpu`"));
  };
  for (int i = 0; i < 3; ++i) {
    constexpr const char *kBlocks[] = {"blocks along x", "blocks along y", "blocks along z"};
    constexpr const char *kThreads[] = {"threads along x", "threads along y", "threads along z"};
    expect(kBlocks[i], grid[i], 1, limits.grid[i]);
    expect(kThreads[i], block[i], 1, limits.block[i]);
  }
  expect("threads in a block", block[0] * block[1] * block[2], 1, function.most_threads);
  expect("bytes of shared memory beside its own", shared_bytes, 0,
         limits.shared_bytes - function.shared_bytes);
  queue.shared_bytes.resize(queue.gpu->functions().size());
  if (!status.ok() || shared_bytes <= queue.shared_bytes[index])
    return status;
  queue.shared_bytes[index] = shared_bytes;
  return queue.driver->Call("asking for shared memory", queue.driver->FuncSetAttribute,
                            function.handle, kMaxDynamicSharedBytes, int(shared_bytes));
}

void boa_cuda_launch(boa_queue *queue, int64_t function, int64_t grid_x, int64_t grid_y,
                     int64_t grid_z, int64_t block_x, int64_t block_y, int64_t block_z,
                     int64_t shared_bytes, int64_t count, void *const *args) {
  if (!queue->status.ok())
    return;
  if (function < 0 || function >= int64_t(queue->gpu->functions().size())) {
    queue->status = absl::InternalError(
        absl::StrCat("launches function ", function, ", which the image does not have"));
    return;
  }
  if (queue->listener)
    return queue->listener->Launch({function,
                                    {grid_x, grid_y, grid_z},
                                    {block_x, block_y, block_z},
                                    shared_bytes,
                                    {args, args + count}});
  ++queue->launches;
  if (queue->plans) {
    queue->status = PlanLaunch(*queue, function, {grid_x, grid_y, grid_z},
                               {block_x, block_y, block_z}, shared_bytes);
    return;
  }
  // The driver takes the addresses of arguments, and copies what is there. It never writes.
  queue->arguments.resize(count);
  for (int64_t i = 0; i < count; ++i)
    queue->arguments[i] = const_cast<void **>(&args[i]);
  const LoadedFunction &to = queue->gpu->functions()[function];
  const Driver &driver = *queue->driver;
  Enqueue(
      *queue, [&] { return to.name; },
      [&] {
        return driver.Call(to.name, driver.LaunchKernel, to.handle, unsigned(grid_x),
                           unsigned(grid_y), unsigned(grid_z), unsigned(block_x), unsigned(block_y),
                           unsigned(block_z), unsigned(shared_bytes), queue->stream,
                           queue->arguments.data(), nullptr);
      });
}

void boa_cuda_gemm(boa_queue *queue, int32_t transpose_a, int32_t transpose_b, int64_t m, int64_t n,
                   int64_t k, int32_t type_ab, const void *a, int64_t lda, const void *b,
                   int64_t ldb, const void *bias, const void *addend, int32_t type_c, void *c,
                   int64_t ldc, void *scratch) {
  if (!queue->status.ok())
    return;
  if (!queue->blas && !queue->listener) {
    absl::StatusOr<std::unique_ptr<Blas>> opened = Blas::Open(queue->driver->version());
    queue->status = opened.status();
    if (!opened.ok())
      return;
    queue->blas = *std::move(opened);
  }
  ++queue->launches;
  const Product product = {transpose_a != 0,
                           transpose_b != 0,
                           m,
                           n,
                           k,
                           type_ab,
                           type_c,
                           a,
                           b,
                           bias,
                           addend,
                           c,
                           scratch,
                           lda,
                           ldb,
                           ldc,
                           scratch ? BOA_CUDA_LIBRARY_WORKSPACE : 0};
  if (queue->listener)
    return queue->listener->Multiply(product);
  if (queue->plans)
    queue->status = queue->blas->Plan(product);
  else
    Enqueue(
        *queue, [&] { return Format(product); },
        [&] { return queue->blas->Enqueue(product, queue->stream); });
}

/// 1, too, where the queue has an error: nothing is launched any more.
static int32_t Offer(boa_queue *queue, const Attention &attention) {
  if (queue->listener)
    return queue->listener->Attend(attention);
  if (!queue->dnn)
    queue->dnn = std::make_unique<Dnn>();
  if (queue->status.ok() && queue->plans)
    queue->status = queue->dnn->Plan(attention, queue->gpu->capability(), queue->stream);
  if (!queue->status.ok())
    return 1;
  const absl::StatusOr<bool> takes = queue->dnn->Takes(attention);
  queue->status = takes.status();
  queue->launches += takes.ok() && *takes;
  if (takes.ok() && *takes && !queue->plans)
    Enqueue(
        *queue, [&] { return Format(attention.shape); },
        [&] { return queue->dnn->Enqueue(attention); });
  return !takes.ok() || *takes;
}

int32_t boa_cuda_attention(boa_queue *queue, int32_t causal, int64_t batch, int64_t time,
                           int64_t heads, int64_t kv_heads, int64_t columns, const void *q,
                           int64_t ldq, const void *k, int64_t ldk, const void *v, int64_t ldv,
                           void *y, int64_t ldy, float *lse, void *scratch, int64_t scratch_bytes) {
  Attention attention = {};
  attention.shape = {/*gradient=*/false,
                     causal != 0,
                     batch,
                     time,
                     heads,
                     kv_heads,
                     columns,
                     ldq,
                     ldk,
                     ldv,
                     ldy};
  attention.q = const_cast<void *>(q);
  attention.k = const_cast<void *>(k);
  attention.v = const_cast<void *>(v);
  attention.y = y;
  attention.lse = lse;
  attention.scratch = scratch;
  attention.scratch_bytes = scratch_bytes;
  return Offer(queue, attention);
}

int32_t boa_cuda_attention_grad(boa_queue *queue, int32_t causal, int64_t batch, int64_t time,
                                int64_t heads, int64_t kv_heads, int64_t columns, const void *q,
                                int64_t ldq, const void *k, int64_t ldk, const void *v, int64_t ldv,
                                const void *y, int64_t ldy, const float *lse, const void *dy,
                                int64_t lddy, void *dq, int64_t lddq, void *dk, int64_t lddk,
                                void *dv, int64_t lddv, float *delta, void *scratch,
                                int64_t scratch_bytes) {
  const Attention attention = {{/*gradient=*/true, causal != 0, batch, time, heads, kv_heads,
                                columns, ldq, ldk, ldv, ldy, lddy, lddq, lddk, lddv},
                               const_cast<void *>(q),
                               const_cast<void *>(k),
                               const_cast<void *>(v),
                               const_cast<void *>(y),
                               const_cast<float *>(lse),
                               const_cast<void *>(dy),
                               dq,
                               dk,
                               dv,
                               delta,
                               scratch,
                               scratch_bytes};
  return Offer(queue, attention);
}
