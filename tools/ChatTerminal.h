//===- ChatTerminal.h - A conversation in the terminal ----------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Messages come from standard input, and answers go to standard output. All else goes to standard
// error. At a terminal a line can be edited, and the keys up and down recall earlier ones. Lines
// that are pasted together are one message.
//
// At a terminal Ctrl-C stops an answer, or drops a line that is not sent. The conversation goes on.
// A second Ctrl-C in a row ends it, as Ctrl-D does. Ctrl-Z stops the process, and also drops the
// line.
//
// From a file or a pipe each line is a message, and Ctrl-C ends the process as usual.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_TOOLS_CHATTERMINAL_H
#define BOA_TOOLS_CHATTERMINAL_H

#include "runtime/abi/program.h"
#include "runtime/generate/chat.h"

#include "absl/status/status.h"

namespace boa {

/// Talks until the user ends it. A message that is refused is an error in the end, but not at a
/// terminal, where the user has seen it. `timing` prints what each turn computed.
absl::Status converse(Chat &chat, const Program &program, bool timing);

} // namespace boa

#endif // BOA_TOOLS_CHATTERMINAL_H
