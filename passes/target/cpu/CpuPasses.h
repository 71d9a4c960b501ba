//===- CpuPasses.h - Groups to code for a CPU -------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// CpuPasses.td documents each pass; CpuPipeline.cpp runs them in order.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_PASSES_TARGET_CPU_CPUPASSES_H
#define BOA_PASSES_TARGET_CPU_CPUPASSES_H

#include "passes/kernels/KernelPasses.h"

namespace boa {

/// The attribute that says how LLVM may change a loop: of scf.for, then of the branch that it
/// becomes.
inline constexpr llvm::StringLiteral kLoopAnnotationAttr = "llvm.loop_annotation";

#define GEN_PASS_DECL
#include "passes/target/cpu/CpuPasses.h.inc"
#define GEN_PASS_REGISTRATION
#include "passes/target/cpu/CpuPasses.h.inc"

} // namespace boa

#endif // BOA_PASSES_TARGET_CPU_CPUPASSES_H
