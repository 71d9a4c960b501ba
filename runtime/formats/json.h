//===- json.h - JSON documents of others, within limits ------- -*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// nlohmann's parser for each file of JSON that anyone may have written. It has limits of depth, of
// values and of memory. A key that stands twice is refused: readers disagree on which of them
// counts.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_FORMATS_JSON_H
#define BOA_RUNTIME_FORMATS_JSON_H

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"

#include <cstdint>

namespace boa {

struct JsonLimits {
  int64_t depth = 64;
  int64_t values = 8 << 20;
  int64_t bytes = int64_t{2} << 30; // of memory, counted from above
};

/// The document. An error names the fault and its byte, but not the file.
absl::StatusOr<nlohmann::json> ParseJson(absl::string_view text, const JsonLimits &limits = {});

} // namespace boa

#endif // BOA_RUNTIME_FORMATS_JSON_H
