//===- Completion.h - Completion scripts for shells -------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Scripts from the tables of commands, flags and settings. A shell completes commands, the
// flags of each, their words, files and directories, and settings after --set.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_TOOLS_COMPLETION_H
#define BOA_TOOLS_COMPLETION_H

#include <string>

namespace boa {

/// `shell` is bash, zsh or fish.
std::string completionScript(const std::string &shell);

} // namespace boa

#endif // BOA_TOOLS_COMPLETION_H
