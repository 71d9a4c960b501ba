//===- Descriptor.h - What a compiled program says of itself ----*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// From a module after --boa-assign-buffers and the kernel pipeline to the JSON
// that runtime/abi/program.h parses. Numbers of storages, groups and kernels are
// their positions in the module, as --convert-boa-to-runtime uses them; call it
// before that pass.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_PASSES_TARGET_RUNTIME_DESCRIPTOR_H
#define BOA_PASSES_TARGET_RUNTIME_DESCRIPTOR_H

#include "mlir/IR/BuiltinOps.h"

#include <string>

namespace boa {

std::string describeProgram(mlir::ModuleOp module);

} // namespace boa

#endif // BOA_PASSES_TARGET_RUNTIME_DESCRIPTOR_H
