//===- TensorCores.h - A warp's products of bf16 ----------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A warp multiplies fragments of 16 x 8 x 16 by mma.sync, and loads them from shared memory by
// ldmatrix. Source: PTX ISA, "Matrix fragments for mma.m16n8k16".
//
//===----------------------------------------------------------------------===//
#ifndef BOA_PASSES_TARGET_CUDA_TENSORCORES_H
#define BOA_PASSES_TARGET_CUDA_TENSORCORES_H

#include "passes/target/cuda/ThreadBuilder.h"

namespace boa {

/// The sizes of a tile of the result, and of the sum of one instruction.
constexpr int64_t kTileRows = 16, kTileColumns = 8, kTileDepth = 16;
/// The number of a lane's sums of a tile: two neighbours of one row, and those eight rows below.
constexpr int64_t kTilePart = 4;
/// The bytes of one copy to shared memory.
constexpr int64_t kChunkBytes = 16;

/// Whether all rows of a memref begin at whole chunks.
bool hasAlignedRows(mlir::Value memref);

/// Begins to copy a chunk. The first `count` elements are copied, the others are zero. With null
/// all are copied.
void copyChunk(ThreadBuilder &builder, mlir::Value from, mlir::ValueRange at, mlir::Value to,
               mlir::ValueRange where, mlir::Value count);

/// Ends a group of such copies.
mlir::Value endCopies(ThreadBuilder &builder);
/// Waits for all groups but the `latest` ones.
void waitForCopies(ThreadBuilder &builder, mlir::Value group, int32_t latest = 0);

/// An operand in shared memory. It knows the place of an element, by its place along the side of
/// the result and along the sum.
struct SharedOperand {
  mlir::Value memory;
  /// Whether the rows of the memory are those of the sum.
  bool isDeep;
  llvm::function_ref<std::array<mlir::Value, 2>(mlir::Value side, mlir::Value deep)> find;
};

/// Loads four matrices of 8 x 8, a register each: from `side` and from `deep`, and those eight
/// further on. In the first operand the second matrix is further along the side, in the other along
/// the sum.
ThreadBuilder::Values loadMatrices(ThreadBuilder &builder, mlir::Value lane,
                                   const SharedOperand &operand, mlir::Value side, mlir::Value deep,
                                   bool isFirst);

/// Adds the product of a tile: four registers of the first operand, two of the other.
void multiplyTile(ThreadBuilder &builder, mlir::ValueRange a, mlir::ValueRange b,
                  llvm::MutableArrayRef<mlir::Value> sums);

/// Packs two neighbours, in bf16, into a register.
mlir::Value packPair(ThreadBuilder &builder, mlir::Value first, mlir::Value second);

} // namespace boa

#endif // BOA_PASSES_TARGET_CUDA_TENSORCORES_H
