//===- memory_errors.h - Allocations that fail ------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Readers limit what a file may ask for, but a process may have less memory than that. Then the
// allocation throws, and here the exception becomes an error that names the file.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_SUPPORT_MEMORY_ERRORS_H
#define BOA_RUNTIME_SUPPORT_MEMORY_ERRORS_H

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

#include <new>
#include <stdexcept>

namespace boa {

/// What `read` returns: a Status, or a StatusOr. ResourceExhausted if an allocation fails in it.
template <typename Read> auto WithinMemory(absl::string_view file, Read read) -> decltype(read()) {
  try {
    return read();
  } catch (const std::bad_alloc &) {
  } catch (const std::length_error &) { // of a container: more than any machine has
  }
  return absl::ResourceExhaustedError(
      absl::StrCat("cannot read `", file, "`: there is not enough memory for its contents"));
}

} // namespace boa

#endif // BOA_RUNTIME_SUPPORT_MEMORY_ERRORS_H
