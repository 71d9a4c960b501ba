//===- blas_product.cpp - The products of cuBLASLt --------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "test/fake_cuda/blas_product.h"
#include "test/fake_cuda/numbers.h"

#include <algorithm>
#include <cstring>
#include <vector>

namespace boa::fake {

uint64_t Problem::Hash() const {
  uint64_t hash = 1469598103934665603u;
  auto add = [&](uint64_t value) { hash = (hash ^ value) * 1099511628211u; };
  for (uint64_t value : {uint64_t(desc.compute), uint64_t(desc.transpose[0]),
                         uint64_t(desc.transpose[1]), uint64_t(desc.epilogue)})
    add(value);
  for (const Layout *layout : {&a, &b, &c, &d})
    for (uint64_t value : {uint64_t(layout->type), uint64_t(layout->order), layout->rows,
                           layout->cols, uint64_t(layout->ld)})
      add(value);
  return hash;
}

/// To the nearest of 10 bits of mantissa.
static float ToTf32(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  bits = (bits + 0xfffu + ((bits >> 13) & 1)) & ~0x1fffu;
  std::memcpy(&value, &bits, sizeof bits);
  return value;
}

void Multiply(const Problem &p, uint64_t depth, float alpha, float beta, const char *a,
              const char *b, const char *c, char *d, const char *bias) {
  constexpr uint64_t kRows = 64, kCols = 4;
  // op(a) by columns, rows in whole blocks; op(b) by rows of its transpose.
  uint64_t rows = (p.m + kRows - 1) / kRows * kRows;
  std::vector<float> left(p.k * rows), right(p.n * p.k);
  for (uint64_t l = 0; l < p.k; ++l)
    for (uint64_t i = 0; i < p.m; ++i)
      left[l * rows + i] =
          Load(a, p.desc.transpose[0] ? p.a.Index(l, i) : p.a.Index(i, l), p.a.type == CUDA_R_16BF);
  for (uint64_t j = 0; j < p.n; ++j)
    for (uint64_t l = 0; l < p.k; ++l)
      right[j * p.k + l] =
          Load(b, p.desc.transpose[1] ? p.b.Index(j, l) : p.b.Index(l, j), p.b.type == CUDA_R_16BF);
  if (p.desc.compute == CUBLAS_COMPUTE_32F_FAST_TF32 && p.a.type == CUDA_R_32F)
    for (std::vector<float> *operand : {&left, &right})
      for (float &value : *operand)
        value = ToTf32(value);
  for (uint64_t j0 = 0; j0 < p.n; j0 += kCols) {
    uint64_t cols = std::min(kCols, p.n - j0);
    for (uint64_t i0 = 0; i0 < p.m; i0 += kRows) {
      double totals[kCols][kRows] = {};
      for (uint64_t l0 = 0; l0 < p.k; l0 += depth) {
        float sums[kCols][kRows] = {};
        for (uint64_t l = l0; l < std::min(p.k, l0 + depth); ++l) {
          const float *column = &left[l * rows + i0];
          for (uint64_t j = 0; j < cols; ++j) {
            const float factor = right[(j0 + j) * p.k + l];
            for (uint64_t i = 0; i < kRows; ++i)
              sums[j][i] += column[i] * factor;
          }
        }
        for (uint64_t j = 0; j < cols; ++j)
          for (uint64_t i = 0; i < kRows; ++i)
            totals[j][i] += sums[j][i];
      }
      for (uint64_t j = 0; j < cols; ++j)
        for (uint64_t i = 0; i < std::min(kRows, p.m - i0); ++i) {
          size_t at = p.d.Index(i0 + i, j0 + j);
          double value = alpha * totals[j][i];
          if (beta != 0)
            value += beta * Load(c, p.c.Index(i0 + i, j0 + j), p.c.type == CUDA_R_16BF);
          if (bias)
            value += Load(bias, i0 + i, p.d.type == CUDA_R_16BF);
          Store(float(value), d, at, p.d.type == CUDA_R_16BF);
        }
    }
  }
}

} // namespace boa::fake
