//===- Override.h - Values from the command line ----------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_FRONTEND_OVERRIDE_H
#define BOA_FRONTEND_OVERRIDE_H

#include "frontend/AST.h"

namespace boa::frontend {

/// Applies option `file` of the sources, `PATH=VALUE`, to a parsed program:
/// model.CONSTANT, train.KEY, train.KEY.ARGUMENT, train.KEY.ARGUMENT.ARGUMENT,
/// machine.device.KEY, machine.host.KEY, machine.ssd.KEY (every ssd),
/// machine.ssd.path (the only one).
void applyOverride(const Sources &sources, int32_t file, Program &program,
                   Diagnostics &diagnostics);

} // namespace boa::frontend

#endif // BOA_FRONTEND_OVERRIDE_H
