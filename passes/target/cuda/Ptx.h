//===- Ptx.h - PTX from the LLVM dialect ------------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_PASSES_TARGET_CUDA_PTX_H
#define BOA_PASSES_TARGET_CUDA_PTX_H

#include "mlir/Dialect/GPU/IR/GPUDialect.h"

#include "llvm/Support/Error.h"

namespace boa {

/// Optimises the module, in the LLVM and NVVM dialects. Returns text that a driver compiles for any
/// device from sm_80 on.
llvm::Expected<std::string> emitPtx(mlir::gpu::GPUModuleOp module);

} // namespace boa

#endif // BOA_PASSES_TARGET_CUDA_PTX_H
