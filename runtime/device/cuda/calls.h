//===- calls.h - What compiled kernels enqueue ------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Called by kernels of a program for CUDA, on the compute thread. Every call only
// enqueues; addresses are of the device's memory. Errors latch in the queue, which the
// device reads when the kernel has returned.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_DEVICE_CUDA_CALLS_H
#define BOA_RUNTIME_DEVICE_CUDA_CALLS_H

#include "runtime/abi.h"

namespace boa {

/// Bytes of the device's memory that a product may use on the way.
inline constexpr int64_t kCudaLibraryWorkspace = 32 << 20;

} // namespace boa

extern "C" {

/// Function `function` of the image; args[i] is its i-th argument.
void boa_cuda_launch(boa_queue *, int64_t function, int64_t grid_x, int64_t grid_y, int64_t grid_z,
                     int64_t block_x, int64_t block_y, int64_t block_z, int64_t shared_bytes,
                     int64_t count, void *const *args);

/// c = op(a) op(b) + bias, or c += the same; row-major, strides of rows in elements.
/// Types: 0 is f32, 1 bf16; sums are f32. a and b are of one type; the bias, of c's
/// type, is one value for each column, or null. scratch: kCudaLibraryWorkspace bytes, or null.
void boa_cuda_gemm(boa_queue *, int32_t transpose_a, int32_t transpose_b, int64_t m, int64_t n,
                   int64_t k, int32_t type_ab, const void *a, int64_t lda, const void *b,
                   int64_t ldb, const void *bias, int32_t accumulate, int32_t type_c, void *c,
                   int64_t ldc, void *scratch);
}

#endif // BOA_RUNTIME_DEVICE_CUDA_CALLS_H
