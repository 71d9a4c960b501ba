//===- file_kinds.h - Files that are no data yet ----------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What a person tries: a compressed file, a table, JSON where a text is expected. The beginning of
// a file tells what it is. The error names it, with the command that makes data of it.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_DATA_FILE_KINDS_H
#define BOA_RUNTIME_DATA_FILE_KINDS_H

#include "runtime/io/input_file.h"

#include "absl/status/status.h"

namespace boa {

/// What a file should hold: tokens; a text of bytes; a text for a tokenizer; records; a text that
/// may well be JSON.
enum class Wanted { tokens, bytes, text, records, any_text };

/// Refuses a file of another kind.
absl::Status CheckKind(const InputFile &, Wanted);

} // namespace boa

#endif // BOA_RUNTIME_DATA_FILE_KINDS_H
