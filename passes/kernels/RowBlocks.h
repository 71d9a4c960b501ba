//===- RowBlocks.h - Blocks of the rows of a tensor -------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Cuts the rows of tensors into blocks that lie side by side in memory, and takes such a
// block out of a tensor or puts it back.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_PASSES_KERNELS_ROWBLOCKS_H
#define BOA_PASSES_KERNELS_ROWBLOCKS_H

#include "passes/kernels/LinalgBuilder.h"

#include <tuple>

namespace boa {

/// Some of the rows. Rows are the leading dimensions of a tensor.
struct RowBlock {
  llvm::SmallVector<int64_t> offsets, sizes;

  int64_t getCount() const { return llvm::product_of(sizes); }
  /// The type of these rows of a tensor that has all rows.
  mlir::RankedTensorType getType(mlir::RankedTensorType whole) const;
  mlir::Value extract(mlir::OpBuilder &, mlir::Location, mlir::Value whole) const;
  mlir::Value insert(mlir::OpBuilder &, mlir::Location, mlir::Value part, mlir::Value whole) const;

private:
  using Numbers = llvm::SmallVector<mlir::OpFoldResult>;
  std::tuple<Numbers, Numbers, Numbers> getSlice(mlir::OpBuilder &, mlir::Value whole) const;
};

/// The sizes that blocks should have.
struct RowLimits {
  int64_t most;              // rows of a block; `least` and `count` may exceed it
  int64_t least = 1;         // rows of a block; not more than `most`
  int64_t count = INT64_MAX; // blocks; so many of `most` hold all rows
};

/// Cuts one dimension. A block has one index of each dimension before it, and all of those behind
/// it, so its rows lie side by side. Blocks have two sizes at most: each is code of its own.
llvm::SmallVector<RowBlock> divideRows(llvm::ArrayRef<int64_t> rows, const RowLimits &);

} // namespace boa

#endif // BOA_PASSES_KERNELS_ROWBLOCKS_H
