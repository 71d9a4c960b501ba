//===- chat.h - Conversations, and templates that make texts of them  -*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A template is a program of Jinja that came with a model (runtime/template). Some of our own have
// a name. Any file may hold another.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_TOKENIZER_CHAT_H
#define BOA_RUNTIME_TOKENIZER_CHAT_H

#include "runtime/template/template.h"
#include "runtime/template/value.h"
#include "runtime/tokenizer/definition.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include <string>
#include <utility>
#include <vector>

namespace boa {

/// Variables of a template by their names. Of two with one name, the last counts.
using TemplateValues = std::vector<std::pair<std::string, jinja::Value>>;

/// What templates take. A message is a mapping with `role`, and all else that the user gave it.
struct Conversation {
  std::vector<jinja::Value> messages;
  std::vector<bool> learnt;     // by message: whether it is an answer from which the model learns
  std::vector<size_t> left_out; // messages that are no answers, and are not to be learnt either
  TemplateValues variables;     // its own, beside the messages: tools, enable_thinking and so on
  TemplateValues values;        // those of all conversations, where it has none of the name
  bool has_tools() const;
};

struct KnownTemplate {
  const char *name, *text;
};
/// Those of templates/.
const std::vector<KnownTemplate> &KnownTemplates();

/// The template of this name, or that of a file.
absl::StatusOr<std::string> TemplateText(const std::string &form);
absl::StatusOr<Template> OpenTemplate(const std::string &form);

/// Of an object of JSON (FaultOfTemplateValues). "" has none.
absl::StatusOr<TemplateValues> ReadTemplateValues(const std::string &json);

struct TemplateSource {
  std::string name, text; // `name` is how errors name it
};
/// The templates of conversations: `form` as above; "": those of the tokenizer, which may have
/// none. A second one is for conversations with tools.
absl::StatusOr<std::vector<TemplateSource>> FindTemplates(const std::string &form,
                                                          const Definition::Chat &own);

} // namespace boa

#endif // BOA_RUNTIME_TOKENIZER_CHAT_H
