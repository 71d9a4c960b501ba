//===- calls.cpp - What kernels for CUDA call -----------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/device/cuda/calls.h"

#include "runtime/device/cuda/queue.h"

#include "absl/strings/str_cat.h"

#include <vector>

using namespace boa::cuda;

/// Once for each function and size.
static absl::Status Reserve(boa_queue &queue, boa_queue::Function &function, int64_t bytes) {
  if (bytes <= function.shared_bytes)
    return absl::OkStatus();
  function.shared_bytes = bytes;
  return queue.driver->Call("asking for shared memory", queue.driver->FuncSetAttribute,
                            function.handle, kMaxDynamicSharedBytes, int(bytes));
}

void boa_cuda_launch(boa_queue *queue, int64_t function, int64_t grid_x, int64_t grid_y,
                     int64_t grid_z, int64_t block_x, int64_t block_y, int64_t block_z,
                     int64_t shared_bytes, int64_t count, void *const *args) {
  if (!queue->status.ok())
    return;
  if (function < 0 || function >= int64_t(queue->functions.size())) {
    queue->status = absl::InternalError(
        absl::StrCat("launches function ", function, ", which the image does not have"));
    return;
  }
  boa_queue::Function &to = queue->functions[function];
  if (queue->plans) {
    queue->status = Reserve(*queue, to, shared_bytes);
    return;
  }
  // The driver takes the addresses of arguments, and copies what is there. It never writes.
  constexpr int64_t kFew = 64;
  void *few[kFew];
  std::vector<void *> many(count > kFew ? count : 0);
  void **const addresses = count > kFew ? many.data() : few;
  for (int64_t i = 0; i < count; ++i)
    addresses[i] = const_cast<void **>(&args[i]);
  const Driver &driver = *queue->driver;
  queue->status =
      driver.Call(to.name, driver.LaunchKernel, to.handle, unsigned(grid_x), unsigned(grid_y),
                  unsigned(grid_z), unsigned(block_x), unsigned(block_y), unsigned(block_z),
                  unsigned(shared_bytes), queue->stream, addresses, nullptr);
}

void boa_cuda_gemm(boa_queue *queue, int32_t transpose_a, int32_t transpose_b, int64_t m, int64_t n,
                   int64_t k, int32_t type_ab, const void *a, int64_t lda, const void *b,
                   int64_t ldb, const void *bias, int32_t accumulate, int32_t type_c, void *c,
                   int64_t ldc, void *scratch) {
  if (!queue->status.ok())
    return;
  if (!queue->blas) {
    absl::StatusOr<std::unique_ptr<Blas>> opened = Blas::Open();
    queue->status = opened.status();
    if (!opened.ok())
      return;
    queue->blas = *std::move(opened);
  }
  Product product;
  product.transpose_a = transpose_a != 0;
  product.transpose_b = transpose_b != 0;
  product.accumulate = accumulate != 0;
  product.m = m;
  product.n = n;
  product.k = k;
  product.type_ab = type_ab;
  product.type_c = type_c;
  product.a = a;
  product.b = b;
  product.bias = bias;
  product.c = c;
  product.scratch = scratch;
  product.lda = lda;
  product.ldb = ldb;
  product.ldc = ldc;
  product.scratch_bytes = scratch ? BOA_CUDA_LIBRARY_WORKSPACE : 0;
  queue->status =
      queue->plans ? queue->blas->Plan(product) : queue->blas->Enqueue(product, queue->stream);
}
