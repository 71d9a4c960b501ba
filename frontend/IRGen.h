//===- IRGen.h - A checked specification to model IR ------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_FRONTEND_IRGEN_H
#define BOA_FRONTEND_IRGEN_H

#include "frontend/Spec.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"

namespace boa::frontend {

struct IRGenOptions {
  /// Sequences; 0: as the spec says. Sampling sets both to 1.
  int64_t batch = 0;
  int64_t microBatch = 0;
};

/// The model phase's module: the configuration as attributes, the parameter
/// groups, the stages and their functions. Loads the dialects that it needs.
/// Cannot fail on a Spec that the checker made.
mlir::OwningOpRef<mlir::ModuleOp> generateModel(const Spec &spec, mlir::MLIRContext &context,
                                                const IRGenOptions &options = {});

} // namespace boa::frontend

#endif // BOA_FRONTEND_IRGEN_H
