//===- chat.cpp - Conversations, and templates that make texts of them ----===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/tokenizer/chat.h"

#include "runtime/abi/sources.h"
#include "runtime/abi/template_values.h"
#include "runtime/io/input_file.h"
#include "runtime/support/refuse.h"

#include "absl/strings/match.h"
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

absl::StatusOr<TemplateValues> ReadTemplateValues(const std::string &json) {
  TemplateValues values;
  if (json.empty())
    return values;
  if (const std::string fault = FaultOfTemplateValues(json); !fault.empty())
    return Refuse(fault);
  const absl::StatusOr<jinja::Value> object = jinja::Value::FromJson(json);
  if (!object.ok())
    return object.status();
  for (const auto &[name, value] : object->dict().entries)
    values.emplace_back(name.text(), value);
  return values;
}

absl::StatusOr<std::vector<TemplateSource>> FindTemplates(const std::string &form,
                                                          const Definition::Chat &own) {
  std::vector<TemplateSource> found;
  if (!form.empty()) {
    absl::StatusOr<std::string> text = TemplateText(form);
    if (!text.ok())
      return text.status();
    found.push_back({form, *std::move(text)});
  } else if (!own.jinja.empty()) {
    const std::string name = absl::EndsWith(own.source, ".jinja")
                                 ? own.source
                                 : absl::StrCat("chat_template of ", own.source);
    found.push_back({name, own.jinja});
    if (!own.with_tools.empty())
      found.push_back({absl::StrCat("tool_use, ", name), own.with_tools});
  }
  return found;
}

} // namespace boa
