//===- calls.h - What kernels for CUDA call ----------------------*- C -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A kernel (runtime/abi.h) of a program for CUDA computes addresses in the device's memory
// and calls these, which enqueue on the queue that it was given, in order, and return. The
// first error is kept in the queue and makes all calls after it do nothing; the device
// asks for it when the kernel returns.
//
// Before the first step each kernel is called once with a queue that enqueues nothing: what
// its products need is found out then. There is no memory yet: all buffers are at one address,
// aligned to 256 bytes, and nothing is there.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_DEVICE_CUDA_CALLS_H
#define BOA_RUNTIME_DEVICE_CUDA_CALLS_H

#include "runtime/abi.h"

#ifdef __cplusplus
extern "C" {
#endif

/// What a kernel that multiplies has in its workspace for cuBLASLt, while the product runs.
#define BOA_CUDA_LIBRARY_WORKSPACE INT64_C(33554432)

/// Enqueues a function of the image. args[i]: the address in device memory that is the i-th
/// argument. Shared memory: what is asked for beside the function's own.
void boa_cuda_launch(boa_queue *, int64_t function, int64_t grid_x, int64_t grid_y, int64_t grid_z,
                     int64_t block_x, int64_t block_y, int64_t block_z, int64_t shared_bytes,
                     int64_t count, void *const *args);

/// c = op(a) op(b) + bias, or c += the same: row-major, m x k by k x n, strides of rows in
/// elements. Types: 0 f32, 1 bf16; a and b are of one, sums are of f32. bias: one value of
/// c's type a column, or null. scratch: BOA_CUDA_LIBRARY_WORKSPACE bytes of device memory,
/// or null.
void boa_cuda_gemm(boa_queue *, int32_t transpose_a, int32_t transpose_b, int64_t m, int64_t n,
                   int64_t k, int32_t type_ab, const void *a, int64_t lda, const void *b,
                   int64_t ldb, const void *bias, int32_t accumulate, int32_t type_c, void *c,
                   int64_t ldc, void *scratch);

#ifdef __cplusplus
}
#endif

#endif // BOA_RUNTIME_DEVICE_CUDA_CALLS_H
