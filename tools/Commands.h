//===- Commands.h - The commands of boa -------------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_TOOLS_COMMANDS_H
#define BOA_TOOLS_COMMANDS_H

#include "tools/CommandLine.h"

#include "absl/status/status.h"

namespace boa {

/// Carries a command out: it calls Compiler, Train, Sample, Simulate or DescribeState. Prints
/// results to standard output. For a launcher or an editor, too: it reads no command line and
/// ends no process.
absl::Status runCommand(Invocation &invocation);

} // namespace boa

#endif // BOA_TOOLS_COMMANDS_H
