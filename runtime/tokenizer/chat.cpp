//===- chat.cpp - Conversations, and templates that make texts of them ----===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/tokenizer/chat.h"

#include "runtime/abi/sources.h"
#include "runtime/io/input_file.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include <algorithm>

namespace boa {

bool Conversation::has_tools() const {
  return std::any_of(variables.begin(), variables.end(),
                     [](const auto &variable) { return variable.first == "tools"; });
}

absl::StatusOr<std::string> TemplateText(const std::string &form) {
  for (const KnownTemplate &known : KnownTemplates())
    if (form == known.name)
      return known.text;
  absl::StatusOr<std::string> text = ReadInput(form);
  if (absl::IsNotFound(text.status()))
    return absl::NotFoundError(absl::StrCat("there is no template and no file `", form,
                                            "`; the templates are ",
                                            absl::StrJoin(kTemplateNames, ", ")));
  return text;
}

absl::StatusOr<Template> OpenTemplate(const std::string &form) {
  absl::StatusOr<std::string> text = TemplateText(form);
  if (!text.ok())
    return text.status();
  return Template::Parse(*text, form);
}

} // namespace boa
