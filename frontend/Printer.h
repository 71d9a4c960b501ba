//===- Printer.h - The tree as text -----------------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_FRONTEND_PRINTER_H
#define BOA_FRONTEND_PRINTER_H

#include "frontend/AST.h"

namespace boa::frontend {

/// The program in the language itself, overrides applied, comments lost. The
/// output parses to an equal tree.
std::string printProgram(const Program &program);

/// A setting or a block inside of another, with its indent and the end of its line.
std::string printField(const Field &field, const std::string &indent);

/// With the fewest digits that read back the same: 3, 0.5.
std::string printNumber(double value);

} // namespace boa::frontend

#endif // BOA_FRONTEND_PRINTER_H
