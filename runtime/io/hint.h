//===- hint.h - Advice for an errno of a file -------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_IO_HINT_H
#define BOA_RUNTIME_IO_HINT_H

#include <cerrno>

namespace boa {

/// Advice to append to the words of the errno, or "".
inline const char *HintOf(int error) {
  return error == EFBIG    ? "; see `ulimit -f`, or take a file system of larger files"
         : error == EMFILE ? "; see `ulimit -n`"
                           : "";
}

} // namespace boa

#endif // BOA_RUNTIME_IO_HINT_H
