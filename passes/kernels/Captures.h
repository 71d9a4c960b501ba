//===- Captures.h - What an outlined body takes along -----------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_PASSES_KERNELS_CAPTURES_H
#define BOA_PASSES_KERNELS_CAPTURES_H

#include "passes/kernels/KernelDialect.h"

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

namespace boa {

/// Memory that a region uses, and that the function which it becomes is given the address of.
struct CapturedMemory {
  mlir::Value memref;    // as the region knows it
  mlir::MemRefType type; // of the argument: without the place in whatever it is a part of
  mlir::Value base;      // what it is `offset` bytes behind
  int64_t offset;
  /// That all have of which the function may be told the same: what `offset` is a multiple of,
  /// up to `most`; where it is a part of a view, up to a vector of 16 bytes.
  int64_t getAlignment(int64_t most) const;

  bool isSlice = false;
};

/// What a region that becomes a function takes from outside: memory, which becomes its
/// arguments, and ops that are repeated inside, in order.
struct Captures {
  mlir::SmallVector<CapturedMemory> memory;
  llvm::SetVector<mlir::Operation *> repeated;

  /// Refuses what cannot be computed again inside: all but views, ops that describe
  /// memory with static offsets, and constants. Some rows of a view, side by side, are an argument
  /// by themselves where the region knows no others: so what is done with them is the same code
  /// whichever they are.
  static mlir::FailureOr<Captures> get(mlir::Region &region);
};

/// Of `earlier` functions, one that is the same as `func` but for its name; else null.
mlir::FunctionOpInterface findSame(mlir::FunctionOpInterface func,
                                   llvm::ArrayRef<mlir::FunctionOpInterface> earlier);

} // namespace boa

#endif // BOA_PASSES_KERNELS_CAPTURES_H
