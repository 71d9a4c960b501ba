//===- CudaPasses.h - Groups to code for CUDA -------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// CudaPasses.td documents each pass; CudaPipeline.cpp runs them in order.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_PASSES_TARGET_CUDA_CUDAPASSES_H
#define BOA_PASSES_TARGET_CUDA_CUDAPASSES_H

#include "passes/kernels/KernelPasses.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

namespace boa {

#define GEN_PASS_DECL
#include "passes/target/cuda/CudaPasses.h.inc"
#define GEN_PASS_REGISTRATION
#include "passes/target/cuda/CudaPasses.h.inc"

/// The device's module of a program.
inline constexpr llvm::StringLiteral kDeviceModule = "cuda";

} // namespace boa

#endif // BOA_PASSES_TARGET_CUDA_CUDAPASSES_H
