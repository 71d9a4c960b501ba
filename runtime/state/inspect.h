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

/// Describes a state to `out`: its identity and model, its commits with their settings, its paths,
/// and how to move it. `name` may be that of a commit (FindCommit): then of that one alone. It
/// needs no program and works beside a trainer.
///
/// With `check` it also reads every chunk that a commit names. Unavailable while a trainer runs.
/// DataLoss, with the damaged chunks in `out`, if the checksum of a chunk does not match.
absl::Status DescribeState(FileSystem &, const std::string &name, bool check, std::FILE *out);

} // namespace boa

#endif // BOA_RUNTIME_STATE_INSPECT_H
