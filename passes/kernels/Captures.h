//===- Captures.h - What an outlined body takes along -----------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_PASSES_KERNELS_CAPTURES_H
#define BOA_PASSES_KERNELS_CAPTURES_H

#include "passes/kernels/KernelDialect.h"

#include "mlir/Interfaces/FunctionInterfaces.h"

namespace boa {

/// What a region that becomes a function takes from outside: views, which become its
/// arguments, and ops that are repeated inside, in order.
struct Captures {
  mlir::SmallVector<kernel::ViewOp> views;
  llvm::SetVector<mlir::Operation *> repeated;

  /// Refuses what cannot be computed again inside: all but views, ops that describe
  /// memory with static offsets, and constants. Some rows of a view, where the region knows no
  /// others, become a view themselves: so what is done with them is the same code whichever
  /// they are.
  static mlir::FailureOr<Captures> get(mlir::Region &region);
};

/// Of `earlier` functions, one that is the same as `func` but for its name; else null.
mlir::FunctionOpInterface findSame(mlir::FunctionOpInterface func,
                                   llvm::ArrayRef<mlir::FunctionOpInterface> earlier);

} // namespace boa

#endif // BOA_PASSES_KERNELS_CAPTURES_H
