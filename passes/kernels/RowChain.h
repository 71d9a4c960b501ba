//===- RowChain.h - A wide product and the ops that reduce it ---*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A chain begins with a product that is wider than its operands. All ops that read its rows
// follow, until no value as wide is left: sums of rows, elementwise ops, products that end the
// chain, sums over rows. A chain can be computed block by block if each op needs only its own rows.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_PASSES_KERNELS_ROWCHAIN_H
#define BOA_PASSES_KERNELS_ROWCHAIN_H

#include "passes/kernels/KernelDialect.h"
#include "passes/kernels/MemoryAccess.h"
#include "passes/kernels/RowBlocks.h"

#include "llvm/ADT/DenseMap.h"

#include <optional>
#include <string>

namespace boa {

/// An op of a chain, and the rows that it reads.
struct ChainMember {
  mlir::Operation *op;
  llvm::SmallVector<bool> byRow; // of each operand: row r for row r of the result; else all of it
  bool sums = false;             // adds rows to its init; else row r of each result is row r's
};

class RowChain {
public:
  explicit RowChain(kernel::GemmOp product)
      : product(product), type(tensorOf(product.getResult()[0])), rows(type.getShape().drop_back()),
        widest(getElementBytes(type)) {}

  /// Finds the ops of the chain. Returns the reason why it cannot be computed block by block, if
  /// there is one.
  std::optional<std::string> find();

  llvm::ArrayRef<int64_t> getRows() const { return rows; }
  /// Bytes of a row of the widest value.
  int64_t getBytesPerRow() const { return type.getShape().back() * widest; }
  /// The ops, in order.
  llvm::ArrayRef<mlir::Operation *> getOps() const { return order; }
  const ChainMember &getMember(mlir::Operation *op) const { return members.at(op); }
  /// Ops between the first and the last that are not of the chain but need its results.
  llvm::SmallVector<mlir::Operation *> getLate() const;

  bool contains(mlir::Operation *op) const { return members.contains(op); }
  /// Whether an op of the chain makes the value.
  bool makes(mlir::Value value) const {
    return value.getDefiningOp() && contains(value.getDefiningOp());
  }
  /// The op of the kernel that is the user, or holds it in a region.
  mlir::Operation *getOuter(mlir::Operation *user) const {
    return product->getBlock()->findAncestorOpInBlock(*user);
  }

private:
  bool add(mlir::Operation *op, llvm::SmallVectorImpl<mlir::Value> &wide);
  std::optional<std::string> check();
  bool looksAtOwnRow(mlir::Operation *op) const;

  kernel::GemmOp product;
  mlir::RankedTensorType type;
  llvm::ArrayRef<int64_t> rows;
  int64_t widest; // bytes of an element
  llvm::DenseMap<mlir::Operation *, ChainMember> members;
  llvm::SmallVector<mlir::Operation *> order;
};

} // namespace boa

#endif // BOA_PASSES_KERNELS_ROWCHAIN_H
