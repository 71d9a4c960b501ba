//===- NextCommand.h - What to type behind a training -----------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_TOOLS_NEXTCOMMAND_H
#define BOA_TOOLS_NEXTCOMMAND_H

#include "runtime/abi/program.h"
#include "tools/CommandLine.h"

#include <string>
#include <vector>

namespace boa {

/// A command line that uses the state of a training: it samples text, or evaluates a model from
/// which no text can be drawn. Quoted for a shell. "" where the training was not of files.
/// `settings`: those of the command line.
std::string nextCommand(const Invocation &training, const std::vector<std::string> &settings,
                        const Program &program);

} // namespace boa

#endif // BOA_TOOLS_NEXTCOMMAND_H
