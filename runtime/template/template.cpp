//===- template.cpp - Templates of conversations, in Jinja ----------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/template/template.h"

#include "runtime/support/printable.h"
#include "runtime/support/refuse.h"
#include "runtime/template/parser.h"
#include "runtime/template/run.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"

#include <algorithm>

namespace boa {

absl::StatusOr<Template> Template::Parse(absl::string_view text, absl::string_view name) {
  constexpr size_t kLargest = 1 << 20;
  if (text.size() > kLargest)
    return Refuse("`", name, "`: a template of more than 1 MiB");
  for (size_t at = 0; at < text.size();) {
    const size_t bytes = Utf8Length({text.data(), text.size()}, at);
    if (bytes == 0)
      return Refuse("`", name, "`: byte ", at, " is no UTF-8");
    at += bytes;
  }
  auto program = std::make_shared<jinja::Program>();
  program->source.name = std::string(name);
  program->source.text = absl::StrReplaceAll(text, {{"\r\n", "\n"}, {"\r", "\n"}});
  if (absl::EndsWith(program->source.text, "\n"))
    program->source.text.pop_back();
  auto tokens = jinja::Tokenize(program->source);
  if (!tokens.ok())
    return tokens.status();
  if (absl::Status status = jinja::Parser(*program, *std::move(tokens)).Run(); !status.ok())
    return status;
  Template out;
  out.program = std::move(program);
  return out;
}

absl::StatusOr<Rendered> Template::Render(const jinja::Value &globals,
                                          const RenderOptions &options) const {
  return jinja::Run(*program, globals, options).Execute();
}

bool Template::has_generation() const { return program->has_generation; }

bool Template::HasVariable(absl::string_view name) const {
  const std::vector<std::string> &symbols = program->symbols;
  return std::find(symbols.begin() + jinja::kOwnSymbols, symbols.end(), name) != symbols.end();
}

bool Template::Mentions(absl::string_view word) const {
  const absl::string_view all = text();
  const auto is_word = [&](size_t at) {
    return at < all.size() &&
           (absl::ascii_isalnum(static_cast<uint8_t>(all[at])) || all[at] == '_');
  };
  for (size_t at = all.find(word); at != all.npos; at = all.find(word, at + 1))
    if (!(at > 0 && is_word(at - 1)) && !is_word(at + word.size()))
      return true;
  return false;
}

const std::string &Template::name() const { return program->source.name; }

const std::string &Template::text() const { return program->source.text; }

} // namespace boa
