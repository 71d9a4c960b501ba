//===- Passes.h - The passes of the schedule --------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Passes.td documents each pass: its reason, and the program that it leaves.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_PASSES_PASSES_H
#define BOA_PASSES_PASSES_H

#include "dialect/Boa.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace boa {
#define GEN_PASS_DECL
#include "passes/Passes.h.inc"
#define GEN_PASS_REGISTRATION
#include "passes/Passes.h.inc"
} // namespace boa

#endif // BOA_PASSES_PASSES_H
