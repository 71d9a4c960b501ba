//===- InputFile.h - A file that may be a spec ------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_FRONTEND_INPUTFILE_H
#define BOA_FRONTEND_INPUTFILE_H

#include "frontend/Frontend.h"

namespace boa::frontend {

/// Whether `path` was read into `input`; if not, `diagnostics` says why. For a state, a model and
/// other things that people give in place of a spec, it says how they come from it to one.
bool readInput(const std::string &path, InputText &input, std::string &diagnostics);

} // namespace boa::frontend

#endif // BOA_FRONTEND_INPUTFILE_H
