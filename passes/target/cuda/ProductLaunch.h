//===- ProductLaunch.h - One launch of a blocked product --------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The common part of products of all types. A block of threads owns a square of the result. It
// streams strips of both operands through shared memory: while it multiplies one, two more are on
// their way. EmitProducts.cpp says how a strip is multiplied.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_PASSES_TARGET_CUDA_PRODUCTLAUNCH_H
#define BOA_PASSES_TARGET_CUDA_PRODUCTLAUNCH_H

#include "passes/kernels/KernelDialect.h"
#include "passes/target/cuda/ThreadBuilder.h"

namespace boa {

/// The strips that are in shared memory at once.
constexpr int64_t kStrips = 3;
/// The bytes of a strip along the sum.
constexpr int64_t kStripBytes = 64;

/// The shape of a product: c[m, n] is the sum over k of a and b, as memrefs of rank 2.
struct ProductShape {
  /// Takes all leading dimensions of an operand together as its rows. Memrefs are null if these are
  /// not evenly apart.
  explicit ProductShape(mlir::OpBuilder &builder, kernel::GemmOp op);
  bool isValid() const { return a && b && c && (!isAdded || addend); }
  mlir::Type getElement() const;

  mlir::Value a, b, c, bias, addend; // the last two may be null
  bool transposeA, transposeB, isAdded;
  int64_t m, n, k;
  mlir::Location loc;
};

/// A strip of an operand: `side` rows or columns of the result by kStripBytes of the sum. It lies
/// in shared memory as the operand does in memory. Its chunks are permuted within a row, so that
/// eight rows' chunks of one column are in different banks.
class OperandStrips {
public:
  /// `isDeep` says that the operand's rows are those of the sum.
  OperandStrips(ThreadBuilder &builder, mlir::gpu::LaunchOp launch, mlir::Value operand,
                bool isDeep, int64_t side);

  /// The thread's part of a copy of a strip: from `first` along the side and `deep` along the sum.
  /// Elements outside the operand are zero. The copy is complete after the wait for its group.
  void copy(mlir::Value thread, int64_t threads, mlir::Value first, mlir::Value deep,
            mlir::Value strip);
  /// The place of an element of a strip in `memory`.
  std::array<mlir::Value, 2> find(mlir::Value strip, mlir::Value side, mlir::Value deep);

  const bool isDeep;
  mlir::Value memory; // of all strips

private:
  void copyChunk(mlir::ValueRange from, mlir::ValueRange to);
  mlir::Value permute(mlir::Value row, mlir::Value chunk);

  ThreadBuilder &b;
  mlir::Value operand;
  int64_t rows, columns, chunk; // of a strip; elements of a chunk
  bool isAligned;
};

/// Builds one launch.
class ProductLaunch : public ThreadBuilder {
public:
  /// `side` is the number of rows and columns of the result that a block of `threads` owns.
  ProductLaunch(mlir::OpBuilder &outside, const ProductShape &shape, int64_t side, int64_t threads);

  /// Streams all strips. `multiply` adds the product of those in place `strip` to the sums.
  Values stream(Values sums, llvm::function_ref<void(mlir::Value strip, Values &)> multiply);
  /// Stores sums of `row`, in the result, at those of `columns` that are in it.
  void storeRow(mlir::Value row, llvm::ArrayRef<mlir::Value> columns, mlir::ValueRange sums);

  /// The elements of a strip along the sum.
  int64_t depth() const;

  const ProductShape shape;
  const int64_t side, threads;
  mlir::gpu::LaunchOp launch;
  mlir::Value thread, row, column; // the last two: the first of the block
  OperandStrips a, b;

private:
  mlir::Value widen(mlir::Value value);
};

} // namespace boa

#endif // BOA_PASSES_TARGET_CUDA_PRODUCTLAUNCH_H
