//===- AutoMemory.h - `memory = auto` ---------------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_TOOLS_AUTOMEMORY_H
#define BOA_TOOLS_AUTOMEMORY_H

#include "tools/Compiler.h"

namespace boa {

/// Replaces `memory = auto` in a spec's machine by what this machine has free now, as overrides of
/// the request. A part is left for the process itself and, on a GPU, for code and libraries. Where
/// device and host are one memory and both are `auto`, each takes half. Reads the files into the
/// request's texts. A spec that is wrong stays as it is: compiling it says why.
absl::Status replaceAutoMemory(CompileRequest &request);

} // namespace boa

#endif // BOA_TOOLS_AUTOMEMORY_H
