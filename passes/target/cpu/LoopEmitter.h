//===- LoopEmitter.h - Loop nests from linalg ops ---------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_PASSES_TARGET_CPU_LOOPEMITTER_H
#define BOA_PASSES_TARGET_CPU_LOOPEMITTER_H

#include "passes/kernels/KernelPasses.h"

namespace boa {

/// Emits scf loops for ops on memrefs at the builder's insertion point.
class LoopEmitter {
public:
  LoopEmitter(mlir::OpBuilder &builder, mlir::Location loc) : builder(builder), loc(loc) {}

  mlir::Value constant(int64_t value);
  void forRange(mlir::Value begin, mlir::Value end, llvm::function_ref<void(mlir::Value)> body);

  /// The index in a space of these extents that `linear` stands for.
  llvm::SmallVector<mlir::Value> delinearize(mlir::Value linear, llvm::ArrayRef<int64_t> extents);

  /// The op's iterations with the first dimensions fixed to `row`. A reduction
  /// over all that remains is carried in registers.
  mlir::LogicalResult emitRow(mlir::linalg::GenericOp op, llvm::ArrayRef<mlir::Value> row);

  /// The op's iterations with the last dimension in [begin, end), which is the
  /// innermost loop; the leading dimensions are reduced in order.
  mlir::LogicalResult emitColumns(mlir::linalg::GenericOp op, mlir::Value begin, mlir::Value end);

  /// Columns [begin, end) of a scatter of rows, in order of rows.
  void emitScatter(kernel::ScatterRowsOp op, mlir::Value begin, mlir::Value end);

private:
  llvm::SmallVector<mlir::Value> indices(mlir::AffineMap map, llvm::ArrayRef<mlir::Value> ivs);
  /// Clones the op's body for one iteration: values that it yields. Outputs
  /// that the body reads are loaded, or taken from `carried`.
  llvm::SmallVector<mlir::Value> emitBody(mlir::linalg::GenericOp op,
                                          llvm::ArrayRef<mlir::Value> ivs,
                                          mlir::ValueRange carried = {});
  void emitStores(mlir::linalg::GenericOp op, llvm::ArrayRef<mlir::Value> ivs,
                  mlir::ValueRange values);

  mlir::OpBuilder &builder;
  mlir::Location loc;
};

} // namespace boa

#endif // BOA_PASSES_TARGET_CPU_LOOPEMITTER_H
