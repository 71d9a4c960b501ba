//===- inspect.h - What a state directory holds -----------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_STATE_INSPECT_H
#define BOA_RUNTIME_STATE_INSPECT_H

#include "absl/status/status.h"

#include <cstdio>
#include <string>

namespace boa {

/// Tells on `out` what the state in `directory` holds: its commits, its files and
/// what it would take to move it. With `check` every byte is read and compared with
/// its checksum; one that differs is an error, which names file and tensor. Changes
/// nothing.
absl::Status DescribeState(const std::string &directory, bool check, std::FILE *out);

} // namespace boa

#endif // BOA_RUNTIME_STATE_INSPECT_H
