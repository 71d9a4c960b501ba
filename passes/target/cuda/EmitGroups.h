//===- EmitGroups.h - Rows and columns as launches --------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Shared by EmitRows and EmitColumns: the number of elements that a thread takes side by side,
// and sums across threads.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_PASSES_TARGET_CUDA_EMITGROUPS_H
#define BOA_PASSES_TARGET_CUDA_EMITGROUPS_H

#include "passes/kernels/KernelGroup.h"
#include "passes/target/cuda/ThreadBuilder.h"

namespace boa {

/// The number of iterations of the last dimension that a thread takes side by side. They fill 16
/// bytes of the widest element, if all memory along this dimension is aligned to that.
int64_t getVectorSize(mlir::linalg::LinalgOp op);
/// The same number for memory that is traversed whole, of `extent` in this dimension.
int64_t getVectorSize(llvm::ArrayRef<mlir::MemRefType> types, int64_t extent);

/// How an op adds to one of its results: `result = op(result, new)`.
struct Combiner {
  mlir::Operation *op;
  unsigned position; // of the result among its operands

  /// Returns the combiner of a result. Fails with an error if it is not known how partial sums are
  /// put together.
  static mlir::FailureOr<Combiner> get(mlir::linalg::LinalgOp op, unsigned result);
  mlir::Type getType() const { return op->getResult(0).getType(); }
  mlir::Value getNeutral(ThreadBuilder &builder) const;
  mlir::Value combine(ThreadBuilder &builder, mlir::Value sum, mlir::Value value) const;
  /// Combines all values, pairs first.
  mlir::Value combineAll(ThreadBuilder &builder, llvm::ArrayRef<mlir::Value> values) const;
  /// Combines the values of the lanes of a warp that differ in bits from `least` to below `end`.
  /// Each has the result.
  mlir::Value combineLanes(ThreadBuilder &builder, mlir::Value value, int64_t least,
                           int64_t end) const;
};

/// Emits one launch for a group of rows. Only the group uses the allocations among `memory`.
mlir::LogicalResult emitRows(mlir::OpBuilder &builder, llvm::ArrayRef<int64_t> space,
                             llvm::ArrayRef<GroupMember> members,
                             llvm::ArrayRef<mlir::Operation *> memory);

/// Emits a launch for each shape of sums over rows.
mlir::LogicalResult emitColumns(mlir::OpBuilder &builder, llvm::ArrayRef<GroupMember> members);

/// Emits a launch for rows that are added to those of a table.
void emitScatter(mlir::OpBuilder &builder, kernel::ScatterRowsOp op);

} // namespace boa

#endif // BOA_PASSES_TARGET_CUDA_EMITGROUPS_H
