//===- source.h - The text of a template, for errors ---------- -*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_TEMPLATE_SOURCE_H
#define BOA_RUNTIME_TEMPLATE_SOURCE_H

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

#include <cstdint>
#include <string>

namespace boa::jinja {

struct Source {
  std::string name;
  std::string text; // lines end in \n

  int64_t LineOf(int32_t at) const;
  /// The message with the line's number, and the line, or what of it is near.
  absl::Status Error(absl::StatusCode code, int32_t at, absl::string_view message) const;
};

} // namespace boa::jinja

#endif // BOA_RUNTIME_TEMPLATE_SOURCE_H
