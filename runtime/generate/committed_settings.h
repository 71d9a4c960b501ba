//===- template_date.h - The date that chat templates show ------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Some templates write the date of today into a conversation. A state keeps the one with which its
// tokens were made, so that the tokens, and texts of the model, are the same on another day.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_GENERATE_TEMPLATE_DATE_H
#define BOA_RUNTIME_GENERATE_TEMPLATE_DATE_H

#include "runtime/io/file_system.h"

#include <cstdint>
#include <optional>
#include <string>

namespace boa {

/// That of the commit of step `at`, or else of the last one. "": it has none, or cannot be read,
/// which is for others to report.
std::string TemplateDateOf(FileSystem &, const std::string &directory, std::optional<int64_t> at);
/// That of a state, named as DIR[@COMMIT].
std::string TemplateDateOf(const std::string &state);

} // namespace boa

#endif // BOA_RUNTIME_GENERATE_TEMPLATE_DATE_H
