//===- golden.h - Renderings as JSON, to compare with jinja2's - -*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_TEST_RUNTIME_TEMPLATE_GOLDEN_H
#define BOA_TEST_RUNTIME_TEMPLATE_GOLDEN_H

#include "runtime/template/template.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"

#include <string>

namespace boa {

/// The date of reference.py.
inline RenderOptions GoldenOptions() {
  RenderOptions options;
  options.now.emplace();
  options.now->tm_year = 124;
  options.now->tm_mon = 6;
  options.now->tm_mday = 26;
  options.now->tm_hour = 13;
  options.now->tm_min = 5;
  options.now->tm_sec = 9;
  options.now->tm_wday = 5;
  options.now->tm_yday = 207;
  return options;
}

/// As reference.py writes it, with our own message beside a failure.
inline nlohmann::json Outcome(const absl::StatusOr<Template> &chat, const jinja::Value &input) {
  if (!chat.ok())
    return {{"error", "syntax"}, {"message", chat.status().message()}};
  const absl::StatusOr<Rendered> out = chat->Render(input, GoldenOptions());
  if (out.ok()) {
    nlohmann::json ranges = nlohmann::json::array();
    for (const Rendered::Range &range : out->generated)
      ranges.push_back({range.begin, range.end});
    return {{"text", out->text}, {"ranges", ranges}};
  }
  const std::string message(out.status().message());
  if (out.status().code() != absl::StatusCode::kFailedPrecondition)
    return {{"error", "fault"}, {"message", message}};
  // What the template says stands between our own words and the line that says it.
  const std::string before = "the template refuses this: ";
  const size_t begin = message.find(before) + before.size();
  const size_t end = message.rfind("\n  ", message.rfind("\n  ") - 1);
  return {{"refusal", message.substr(begin, end - begin)}, {"message", message}};
}

} // namespace boa

#endif // BOA_TEST_RUNTIME_TEMPLATE_GOLDEN_H
