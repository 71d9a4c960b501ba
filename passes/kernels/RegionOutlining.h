//===- RegionOutlining.h - From a region to a function ----------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_PASSES_KERNELS_REGIONOUTLINING_H
#define BOA_PASSES_KERNELS_REGIONOUTLINING_H

#include "passes/kernels/KernelDialect.h"

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/Hashing.h"

namespace boa {

/// Memory that a region uses. The function that the region becomes takes its address.
struct CapturedMemory {
  mlir::Value memref;    // as the region knows it
  mlir::MemRefType type; // of the argument: without the place in whatever it is a part of
  mlir::Value base;      // what it is `offset` bytes behind
  int64_t offset;
  /// An alignment that all captured memory of this offset has: `offset` is a multiple of it. It is
  /// at most `most`; for a part of a view it is at most a vector of 16 bytes.
  int64_t getAlignment(int64_t most) const;

  bool isSlice = false;
};

/// The values from outside that a region uses when it becomes a function: memory becomes
/// arguments, and some ops are repeated inside, in order.
struct Captures {
  mlir::SmallVector<CapturedMemory> memory;
  llvm::SetVector<mlir::Operation *> repeated;

  /// Views, ops that describe memory with static offsets, and constants can be repeated
  /// inside; any other op is refused. If the region uses only some rows of a view, these rows
  /// are the argument. So the code is the same for any rows.
  static mlir::FailureOr<Captures> get(mlir::Region &region);
};

/// Functions of a module. No two of them differ only in their names.
class DistinctFunctions {
public:
  /// Adds `func`. If an earlier one is the same, erases `func` and returns the earlier one.
  template <typename Function> Function findOrInsert(Function func) {
    mlir::FunctionOpInterface found = find(func);
    if (found == func)
      return func;
    func.erase();
    return mlir::cast<Function>(found.getOperation());
  }

private:
  mlir::FunctionOpInterface find(mlir::FunctionOpInterface func);

  llvm::DenseMap<llvm::hash_code, mlir::SmallVector<mlir::FunctionOpInterface, 1>> byHash;
};

} // namespace boa

#endif // BOA_PASSES_KERNELS_REGIONOUTLINING_H
