//===- Link.h - Object files to a shared object -----------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_TOOLS_LINK_H
#define BOA_TOOLS_LINK_H

#include "absl/status/status.h"

#include <string>
#include <vector>

namespace boa {

/// Links with lld, or the system's linker; the objects are given as files' contents. Removes
/// the temporary files beside `output`.
absl::Status LinkShared(const std::vector<std::string> &objects, const std::string &output);

} // namespace boa

#endif // BOA_TOOLS_LINK_H
