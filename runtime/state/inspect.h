//===- inspect.h - What a state directory holds -----------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_STATE_INSPECT_H
#define BOA_RUNTIME_STATE_INSPECT_H

#include "runtime/io/file_system.h"

#include "absl/status/status.h"

#include <cstdio>
#include <string>

namespace boa {

/// Writes to `out` what the state in `directory` holds: its identity, model,
/// commits with their settings, where its bytes are, and what it takes to move it.
/// Needs no program, and may look while a trainer runs. With `check` it also reads
/// every byte that a commit names, while no trainer runs (Unavailable otherwise):
/// DataLoss, with the damaged chunks in `out`, if any is not what was written.
absl::Status DescribeState(FileSystem &, const std::string &directory, bool check, std::FILE *out);

} // namespace boa

#endif // BOA_RUNTIME_STATE_INSPECT_H
