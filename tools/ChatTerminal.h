//===- ChatTerminal.h - A conversation in the terminal ----------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Messages come from standard input, and answers go to standard output. All else goes to standard
// error. At a terminal a line can be edited, and the keys up and down recall earlier ones.
//
// At a terminal Ctrl-C stops an answer, or drops what is typed; the conversation goes on. A second
// one in a row ends it, as Ctrl-D does. From a file or a pipe each line is a message, and Ctrl-C
// ends the process as usual.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_TOOLS_CHATTERMINAL_H
#define BOA_TOOLS_CHATTERMINAL_H

#include "runtime/abi/program.h"
#include "runtime/generate/chat.h"

#include "absl/status/status.h"

namespace boa {

/// Until the user ends it. A message that is refused is an error, but at a terminal, where the user
/// has seen it.
/// `timing`: what each turn computed goes to standard error.
absl::Status converse(Chat &chat, const Program &program, bool timing);

} // namespace boa

#endif // BOA_TOOLS_CHATTERMINAL_H
