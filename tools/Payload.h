//===- Payload.h - A program at the end of an executable --------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A stand-alone trainer is the shell boa-trainer (the runtime and nothing else)
// with the compiled program, a shared object, behind it:
//
//   shell | shared object | its size, 8 bytes, little endian | "boa-prog"
//
//===----------------------------------------------------------------------===//
#ifndef BOA_TOOLS_PAYLOAD_H
#define BOA_TOOLS_PAYLOAD_H

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include <string>

namespace boa {

/// Writes `output`, executable: the shell, then the shared object.
absl::Status AppendPayload(const std::string &shell, const std::string &library,
                           const std::string &output);

/// Loads the program behind this process's own executable; a dlopen handle.
absl::StatusOr<void *> LoadPayload();

} // namespace boa

#endif // BOA_TOOLS_PAYLOAD_H
