//===- EmitGroups.h - Linalg as the code of a thread ------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What EmitRows and EmitColumns share: launches, index arithmetic, an iteration
// of a linalg op on given values, and how sums of several threads become one.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_PASSES_TARGET_CUDA_EMITGROUPS_H
#define BOA_PASSES_TARGET_CUDA_EMITGROUPS_H

#include "passes/kernels/KernelGroup.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace boa {

constexpr int64_t kWarpSize = 32;
constexpr int64_t kMaxThreads = 1024;
/// What a block may have of it without asking.
constexpr int64_t kMaxWorkgroupBytes = 48 * 1024;

/// A builder at one place of the source, with arithmetic on indices that folds.
class ThreadBuilder : public mlir::OpBuilder {
public:
  ThreadBuilder(mlir::OpBuilder builder, mlir::Location loc) : OpBuilder(builder), loc(loc) {}
  /// The one result of an op, folded if it can be.
  template <typename OpTy, typename... Args> mlir::Value make(Args &&...args) {
    return createOrFold<OpTy>(loc, std::forward<Args>(args)...);
  }
  mlir::Value index(int64_t value);
  mlir::Value integer(int32_t value);
  mlir::Value add(mlir::Value a, mlir::Value b);
  mlir::Value add(mlir::Value a, int64_t b) { return add(a, index(b)); }
  mlir::Value mul(mlir::Value a, int64_t b);
  mlir::Value compare(mlir::arith::CmpIPredicate predicate, mlir::Value a, mlir::Value b);
  mlir::Value isLess(mlir::Value a, int64_t b);
  mlir::Value isZero(mlir::Value a);
  mlir::Value least(mlir::Value a, int64_t b);
  mlir::Value select(mlir::Value condition, mlir::Value yes, mlir::Value no);
  /// The index in a space of these extents that `linear` stands for.
  llvm::SmallVector<mlir::Value> delinearize(mlir::Value linear, llvm::ArrayRef<int64_t> extents);
  mlir::Value load(mlir::Value memref, mlir::AffineMap map, mlir::ValueRange ivs);
  void store(mlir::Value value, mlir::Value memref, mlir::AffineMap map, mlir::ValueRange ivs);
  /// What the op computes in iteration `ivs` of these values of its operands;
  /// those that it does not use may be null.
  llvm::SmallVector<mlir::Value> compute(mlir::linalg::LinalgOp op, mlir::ValueRange ivs,
                                         mlir::ValueRange operands);
  /// `then` if `condition`, which may be null: always.
  void when(mlir::Value condition, llvm::function_ref<void()> then);
  /// `body` of each `step`th index in [from, to); it changes what is carried to the
  /// next, which is returned.
  llvm::SmallVector<mlir::Value>
  loop(mlir::Value from, mlir::Value to, int64_t step, llvm::SmallVector<mlir::Value> carried,
       llvm::function_ref<void(mlir::Value, llvm::SmallVector<mlir::Value> &)> body);
  mlir::Value shuffle(mlir::gpu::ShuffleMode mode, mlir::Value value, int64_t offset);

  mlir::Location loc;
};

/// A launch of `blocks` times x * y threads; the builder goes to its body.
mlir::gpu::LaunchOp createLaunch(ThreadBuilder &builder, int64_t blocks, int64_t x, int64_t y);

/// Memory of a block's threads together.
mlir::Value addWorkgroupMemory(mlir::gpu::LaunchOp launch, llvm::ArrayRef<int64_t> shape,
                               mlir::Type element);

/// How many iterations of the last dimension, side by side, a thread takes: 16
/// bytes of the widest element, where all that is read and written along this
/// dimension lies at a multiple of it.
int64_t getVectorSize(mlir::linalg::LinalgOp op);
/// The same of memory of which all is gone over, of `extent` in this dimension.
int64_t getVectorSize(llvm::ArrayRef<mlir::MemRefType> types, int64_t extent);

/// How an op adds to one of its results: `result = op(result, new)`.
struct Combiner {
  mlir::Operation *op;
  unsigned position; // of the result among its operands

  /// Fails with an error if it is not known how partial sums are put together.
  static mlir::FailureOr<Combiner> get(mlir::linalg::LinalgOp op, unsigned result);
  mlir::Type getType() const { return op->getResult(0).getType(); }
  mlir::Value getNeutral(ThreadBuilder &builder) const;
  mlir::Value combine(ThreadBuilder &builder, mlir::Value sum, mlir::Value value) const;
  /// All of them; pairs first.
  mlir::Value combineAll(ThreadBuilder &builder, llvm::ArrayRef<mlir::Value> values) const;
  /// Of the lanes of a warp that differ in bits from `least` to below `end`; each
  /// has the result.
  mlir::Value combineLanes(ThreadBuilder &builder, mlir::Value value, int64_t least,
                           int64_t end) const;
};

/// One launch for a group of rows; of the allocations among `memory` nothing else
/// knows.
mlir::LogicalResult emitRows(mlir::OpBuilder &builder, llvm::ArrayRef<int64_t> space,
                             llvm::ArrayRef<GroupMember> members,
                             llvm::ArrayRef<mlir::Operation *> memory);

/// A launch for each shape of sums over rows.
mlir::LogicalResult emitColumns(mlir::OpBuilder &builder, llvm::ArrayRef<GroupMember> members);

/// A launch for rows that are added to those of a table.
void emitScatter(mlir::OpBuilder &builder, kernel::ScatterRowsOp op);

} // namespace boa

#endif // BOA_PASSES_TARGET_CUDA_EMITGROUPS_H
