//===- tensor.h - What a warp does together on fragments --------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// mma.sync and ldmatrix, of all 32 lanes at once. PTX ISA, "Warp-level matrix instructions", has
// the places of elements in lanes' registers.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_TEST_FAKE_CUDA_TENSOR_H
#define BOA_TEST_FAKE_CUDA_TENSOR_H

#include <cstdint>

namespace boa::fake {

/// c += a b of 16 x 16 by 16 x 8 in bf16, sums in f32. registers[lane]: four of a, two of b, four
/// of c.
void MultiplyTile(uint32_t *const registers[32]);

/// Four matrices of 8 x 8 elements of 16 bits. rows[8 * i + r] is row r of matrix i, and
/// registers[lane][i] becomes the lane's two elements of it.
void LoadMatrices(const void *const rows[32], bool transpose, uint32_t *const registers[32]);

} // namespace boa::fake

#endif // BOA_TEST_FAKE_CUDA_TENSOR_H
