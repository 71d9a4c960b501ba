//===- MemoryAccess.h - What kernel ops touch -------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Accesses of ops on memrefs: through which allocation or argument, whether
// written, and whether row by row.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_PASSES_KERNELS_MEMORYACCESS_H
#define BOA_PASSES_KERNELS_MEMORYACCESS_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/AffineMap.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Operation.h"

namespace boa {

/// The alignment of tensors in buffers, and of temporaries in the workspace, in bytes
/// (runtime/abi/abi.h).
constexpr int64_t kMemoryAlignment = 64;

/// The bytes of an element in memory, alone or beside others: whole bytes also for i1.
int64_t getElementBytes(mlir::ShapedType type);
/// The bytes of all elements.
inline int64_t getBytes(mlir::ShapedType type) {
  return type.getNumElements() * getElementBytes(type);
}
/// The type of a value that is a memref.
inline mlir::MemRefType memrefOf(mlir::Value value) {
  return mlir::cast<mlir::MemRefType>(value.getType());
}

/// The alloc, kernel.view or global that a memref is, or is a part of.
mlir::Value getMemoryRoot(mlir::Value memref);

/// Whether the op holds or describes memory and computes nothing.
bool isMemoryOp(mlir::Operation *op);

/// Whether the op only writes its input to its output, element by element.
bool isCopy(mlir::linalg::GenericOp op);

/// Moves the ops that define the memrefs of `op` (and of the ops in it) before `point`, in the same
/// block.
void hoistMemory(mlir::Operation *op, mlir::Operation *point);

/// Whether two views of one root may have an element in common.
bool mayOverlap(mlir::Value a, mlir::Value b);

/// Whether the first `rows` dimensions of `memref` are those of its root.
bool keepsLeadingDims(mlir::Value memref, unsigned rows);

struct MemoryAccess {
  mlir::Value memref, root;
  bool write;
  /// The map by which the iterations of a linalg op index it; null if not known.
  mlir::AffineMap map;

  /// Whether iteration (r, ...) touches only row r, for the first `rows`
  /// dimensions.
  bool isByRow(unsigned rows) const;
};

/// All accesses of an op: operands of a linalg or library op, and loads and
/// stores nested in any op.
llvm::SmallVector<MemoryAccess> getMemoryAccesses(mlir::Operation *op);

/// Whether two accesses may touch the same memory, one of them writing.
inline bool mayConflict(const MemoryAccess &a, const MemoryAccess &b) {
  return a.root == b.root && (a.write || b.write);
}
bool mayConflict(llvm::ArrayRef<MemoryAccess> a, llvm::ArrayRef<MemoryAccess> b);

} // namespace boa

#endif // BOA_PASSES_KERNELS_MEMORYACCESS_H
