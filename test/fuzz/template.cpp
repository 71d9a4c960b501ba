//===- template.cpp - Any bytes as a template and its input ---------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A template, and after a zero byte its input as JSON. It parses or is refused. It renders within
// its limits, or fails with the line. A second rendering gives the same.
//
//===----------------------------------------------------------------------===//
#include "runtime/template/template.h"
#include "test/fuzz/support.h"

#include "absl/strings/match.h"

using namespace boa;

namespace {

const char kInput[] = R"({"messages": [
  {"role": "system", "content": "S"},
  {"role": "user", "content": [{"type": "text", "text": "é"}]},
  {"role": "assistant", "content": null, "tool_calls": [{"function": {"name": "f", "arguments": {"a": 1.5}}}]},
  {"role": "tool", "content": "1\n2"}], "tools": [], "add_generation_prompt": true})";

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const std::string input(reinterpret_cast<const char *>(data), size);
  const size_t end = input.find('\0');
  const absl::StatusOr<Template> chat = Template::Parse(input.substr(0, end), "chat.jinja");
  fuzz::Require(chat.ok() || absl::StartsWith(chat.status().message(), "`chat.jinja`"),
                "an error names the template");
  absl::StatusOr<jinja::Value> given =
      jinja::Value::FromJson(end == std::string::npos ? kInput : input.substr(end + 1));
  if (!chat.ok() || !given.ok())
    return 0;
  RenderOptions options;
  options.now.emplace();
  options.now->tm_mday = 1;
  options.steps = 100'000;
  options.bytes = 1 << 20;
  const absl::StatusOr<Rendered> first = chat->Render(*given, options);
  const absl::StatusOr<Rendered> second = chat->Render(*given, options);
  fuzz::Require(first.status() == second.status(), "the same input has the same result");
  if (!first.ok()) {
    fuzz::Require(absl::StartsWith(first.status().message(), "`chat.jinja`, line "),
                  "an error names its line");
    return 0;
  }
  fuzz::Require(first->text == second->text, "the same input has the same text");
  fuzz::Require(first->text.size() <= size_t{1 << 20}, "a text is within its limit");
  for (const Rendered::Range &range : first->generated)
    fuzz::Require(range.begin <= range.end && range.end <= first->text.size(),
                  "a range is within the text");
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed) {
  return fuzz::MutateText(data, size, most, seed);
}
