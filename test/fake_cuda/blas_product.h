//===- blas_product.h - The products of cuBLASLt ----------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_TEST_FAKE_CUDA_BLAS_PRODUCT_H
#define BOA_TEST_FAKE_CUDA_BLAS_PRODUCT_H

#include "test/fake_cuda/blas_abi.h"

#include <cstddef>
#include <cstdint>

namespace boa::fake {

struct Layout {
  int32_t type, order;
  uint64_t rows, cols;
  int64_t ld;
  uint64_t alive;

  size_t Size() const { return type == CUDA_R_32F ? 4 : 2; }
  size_t Bytes() const {
    return order == CUBLASLT_ORDER_COL ? ((cols - 1) * ld + rows) * Size()
                                       : ((rows - 1) * ld + cols) * Size();
  }
  size_t Index(uint64_t row, uint64_t col) const {
    return order == CUBLASLT_ORDER_COL ? row + col * ld : row * ld + col;
  }
  bool Valid() const {
    return rows && cols && ld >= int64_t(order == CUBLASLT_ORDER_COL ? rows : cols) &&
           (order == CUBLASLT_ORDER_COL || order == CUBLASLT_ORDER_ROW);
  }
};

struct Desc {
  int32_t compute, scale, transpose[2], bias_type;
  uint32_t epilogue;
  CUdeviceptr bias;
  uint64_t alive;
};

struct Problem {
  Desc desc;
  Layout a, b, c, d;
  uint64_t m, n, k;

  /// Of everything by which algorithms are chosen but alignments.
  uint64_t Hash() const;
};

/// d = alpha op(a) op(b) + beta c + bias. Sums are of f32 over `depth` values of k, and of f64
/// over these sums.
void Multiply(const Problem &, uint64_t depth, float alpha, float beta, const char *a,
              const char *b, const char *c, char *d, const char *bias);

} // namespace boa::fake

#endif // BOA_TEST_FAKE_CUDA_BLAS_PRODUCT_H
