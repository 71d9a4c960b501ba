//===- huggingface_steps.cpp - The steps of tokenizer.json around its model ===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/tokenizer/huggingface.h"

#include "runtime/support/refuse.h"
#include "runtime/tokenizer/unicode.h"

#include "absl/strings/str_cat.h"

#include <utility>

namespace boa {
namespace {

using Json = nlohmann::json;

/// Reads each member of a list by `read`.
absl::Status ReadAll(const Json &step, const char *key, Definition &definition,
                     absl::Status (*read)(const Json &, Definition &)) {
  const Json *list = JsonMember(step, key);
  if (!list || !list->is_array())
    return Refuse("a Sequence without the list `", key, "`");
  for (const Json &member : *list)
    if (absl::Status status = read(member, definition); !status.ok())
      return status;
  return absl::OkStatus();
}

/// `{"String": ...}` or `{"Regex": ...}`.
absl::Status ReadPattern(const Json &step, std::string &text, bool &is_regex) {
  const Json *pattern = JsonMember(step, "pattern");
  is_regex = pattern && JsonMember(*pattern, "Regex");
  text = pattern ? JsonText(*pattern, is_regex ? "Regex" : "String") : "";
  return text.empty() ? Refuse("a ", JsonText(step, "type"), " without a pattern")
                      : absl::OkStatus();
}

absl::Status ReadBehavior(const Json &step, const char *absent, SplitBehavior &behavior) {
  constexpr std::pair<const char *, SplitBehavior> kNames[] = {
      {"Isolated", SplitBehavior::isolated},
      {"Removed", SplitBehavior::removed},
      {"MergedWithPrevious", SplitBehavior::with_previous},
      {"MergedWithNext", SplitBehavior::with_next},
      {"Contiguous", SplitBehavior::contiguous}};
  const std::string name = JsonText(step, "behavior", absent);
  for (auto [known, value] : kNames)
    if (name == known) {
      behavior = value;
      return absl::OkStatus();
    }
  return Refuse("the split behavior ", Backquoted(name), " is unknown");
}

/// Metaspace, of pre-tokenizers and decoders. Older files say `add_prefix_space`.
absl::Status ReadMetaspace(const Json &step, SplitStep &split) {
  split.kind = SplitStep::Kind::metaspace;
  split.replacement = JsonText(step, "replacement", "\xe2\x96\x81");
  split.separate = JsonFlag(step, "split", true);
  const std::string scheme = JsonText(
      step, "prepend_scheme", JsonFlag(step, "add_prefix_space", true) ? "always" : "never");
  if (scheme != "always" && scheme != "first" && scheme != "never")
    return Refuse("the Metaspace prepend_scheme ", Backquoted(scheme), " is unknown");
  split.prepend = scheme == "always"  ? SplitStep::Prepend::always
                  : scheme == "first" ? SplitStep::Prepend::first
                                      : SplitStep::Prepend::never;
  return split.replacement.empty() ? Refuse("a Metaspace without a replacement") : absl::OkStatus();
}

absl::Status ReadSplit(const Json &step, SplitStep &split) {
  std::string pattern;
  bool is_regex = false;
  if (absl::Status status = ReadPattern(step, pattern, is_regex); !status.ok())
    return status;
  if (is_regex && !MatcherForPattern(pattern, split.matcher))
    return Refuse("the split pattern ", Backquoted(pattern), " is none of those that are known");
  if (!is_regex) {
    split.matcher.kind = Matcher::Kind::literal;
    split.matcher.literal = pattern;
  }
  split.invert = JsonFlag(step, "invert", false);
  return ReadBehavior(step, "", split.behavior);
}

/// An id of the file, checked later.
absl::Status ReadSpecialId(const Json &value, std::vector<int32_t> &ids) {
  if (!value.is_number_unsigned() || value.get<uint64_t>() >= static_cast<uint64_t>(kMostTokens))
    return Refuse("the post-processor names the token ", value.dump().substr(0, 40));
  ids.push_back(value.get<int32_t>());
  return absl::OkStatus();
}

absl::Status ReadTemplate(const Json &step, Definition &definition) {
  const Json *single = JsonMember(step, "single"), *specials = JsonMember(step, "special_tokens");
  if (!single || !single->is_array())
    return Refuse("a TemplateProcessing without the list `single`");
  bool behind = false;
  for (const Json &part : *single) {
    if (JsonMember(part, "Sequence")) {
      if (behind)
        return Refuse("a TemplateProcessing that has its text twice");
      behind = true;
      continue;
    }
    const Json *special = JsonMember(part, "SpecialToken");
    const std::string name = special ? JsonText(*special, "id") : "";
    const Json *entry = specials ? JsonMember(*specials, name.c_str()) : nullptr;
    const Json *ids = entry ? JsonMember(*entry, "ids") : nullptr;
    if (!ids || !ids->is_array())
      return Refuse("a TemplateProcessing without the ids of ", Backquoted(name));
    for (const Json &id : *ids)
      if (absl::Status status = ReadSpecialId(id, behind ? definition.after : definition.before);
          !status.ok())
        return status;
  }
  return behind ? absl::OkStatus() : Refuse("a TemplateProcessing without its text");
}

/// `["[SEP]", 102]`
absl::Status ReadPair(const Json &step, const char *key, std::vector<int32_t> &ids) {
  const Json *pair = JsonMember(step, key);
  if (!pair || !pair->is_array() || pair->size() != 2)
    return Refuse("a ", JsonText(step, "type"), " without `", key, "`");
  return ReadSpecialId((*pair)[1], ids);
}

} // namespace

absl::Status ReadNormalizer(const Json &step, Definition &definition) {
  const std::string type = JsonText(step, "type");
  if (type == "Sequence")
    return ReadAll(step, "normalizers", definition, ReadNormalizer);
  constexpr std::pair<const char *, NormalForm> kForms[] = {{"NFC", NormalForm::nfc},
                                                            {"NFD", NormalForm::nfd},
                                                            {"NFKC", NormalForm::nfkc},
                                                            {"NFKD", NormalForm::nfkd}};
  NormalizerStep out;
  bool known = false;
  for (auto [name, form] : kForms)
    if (type == name) {
      out.form = form;
      known = true;
    }
  if (known) {
    out.kind = NormalizerStep::Kind::form;
  } else if (type == "Lowercase") {
    out.kind = NormalizerStep::Kind::lowercase;
  } else if (type == "StripAccents") {
    out.kind = NormalizerStep::Kind::strip_accents;
  } else if (type == "Strip") {
    out.kind = NormalizerStep::Kind::strip;
    out.left = JsonFlag(step, "strip_left", true);
    out.right = JsonFlag(step, "strip_right", true);
  } else if (type == "Prepend") {
    out.kind = NormalizerStep::Kind::prepend;
    out.content = JsonText(step, "prepend");
  } else if (type == "Replace") {
    out.kind = NormalizerStep::Kind::replace;
    bool is_regex = false;
    if (absl::Status status = ReadPattern(step, out.pattern, is_regex); !status.ok())
      return status;
    if (is_regex)
      return Refuse("the normalizer replaces the regular expression ", Backquoted(out.pattern),
                    "; only plain texts can be replaced");
    out.content = JsonText(step, "content");
  } else if (type == "BertNormalizer") {
    out.kind = NormalizerStep::Kind::bert;
    out.clean_text = JsonFlag(step, "clean_text", true);
    out.separate_cjk = JsonFlag(step, "handle_chinese_chars", true);
    out.lowercase = JsonFlag(step, "lowercase", true);
    out.accents = JsonFlag(step, "strip_accents", out.lowercase);
  } else {
    return Refuse("the normalizer ", Backquoted(type), " is not done");
  }
  definition.normalizers.push_back(std::move(out));
  return absl::OkStatus();
}

absl::Status ReadPreTokenizer(const Json &step, Definition &definition) {
  const std::string type = JsonText(step, "type");
  if (type == "Sequence")
    return ReadAll(step, "pretokenizers", definition, ReadPreTokenizer);
  SplitStep out;
  absl::Status status;
  if (type == "ByteLevel") {
    definition.byte_level = true;
    out.prefix_space = JsonFlag(step, "add_prefix_space", true);
    out.matches = JsonFlag(step, "use_regex", true);
  } else if (type == "Split") {
    status = ReadSplit(step, out);
  } else if (type == "Digits") {
    out.matcher.kind = Matcher::Kind::digits;
    out.matcher.most = JsonFlag(step, "individual_digits", false) ? 1 : 0;
  } else if (type == "Punctuation") {
    out.matcher.kind = Matcher::Kind::punctuation;
    status = ReadBehavior(step, "Isolated", out.behavior);
  } else if (type == "Whitespace") {
    out.matcher.kind = Matcher::Kind::words;
    out.behavior = SplitBehavior::removed;
    out.invert = true;
  } else if (type == "WhitespaceSplit" || type == "BertPreTokenizer") {
    out.matcher.kind = Matcher::Kind::space;
    out.behavior = SplitBehavior::removed;
  } else if (type == "Metaspace") {
    status = ReadMetaspace(step, out);
  } else {
    status = Refuse("the pre-tokenizer ", Backquoted(type), " is not done");
  }
  if (!status.ok())
    return status;
  definition.splits.push_back(out);
  if (type == "BertPreTokenizer") {
    SplitStep punctuation;
    punctuation.matcher.kind = Matcher::Kind::punctuation;
    definition.splits.push_back(punctuation);
  }
  return absl::OkStatus();
}

absl::Status ReadPostProcessor(const Json &step, Definition &definition) {
  const std::string type = JsonText(step, "type");
  if (type == "Sequence")
    return ReadAll(step, "processors", definition, ReadPostProcessor);
  if (type == "ByteLevel") // about offsets
    return absl::OkStatus();
  if (type == "TemplateProcessing")
    return ReadTemplate(step, definition);
  if (type != "BertProcessing" && type != "RobertaProcessing")
    return Refuse("the post-processor ", Backquoted(type), " is not done");
  absl::Status status = ReadPair(step, "cls", definition.before);
  return status.ok() ? ReadPair(step, "sep", definition.after) : status;
}

absl::Status ReadDecoder(const Json &step, Definition &definition) {
  const std::string type = JsonText(step, "type");
  if (type == "Sequence")
    return ReadAll(step, "decoders", definition, ReadDecoder);
  if (type == "ByteFallback" || type == "Fuse") // the bytes of a token are what they are
    return absl::OkStatus();
  if (type == "ByteLevel") {
    if (!definition.byte_level)
      return Refuse("the decoder ByteLevel without that pre-tokenizer");
    definition.decoding = Definition::Decoding::bytes;
  } else if (type == "WordPiece") {
    if (JsonText(step, "prefix", "##") != definition.continuing)
      return Refuse("the decoder WordPiece has another prefix than the model");
    definition.decoding = Definition::Decoding::wordpiece;
    definition.cleanup = JsonFlag(step, "cleanup", true);
  } else if (type == "Metaspace") {
    SplitStep split;
    if (absl::Status status = ReadMetaspace(step, split); !status.ok())
      return status;
    if (split.replacement != "\xe2\x96\x81")
      return Refuse("the Metaspace decoder replaces ", Backquoted(split.replacement));
    definition.decoding = Definition::Decoding::spaces;
    definition.strip_first_space = split.prepend != SplitStep::Prepend::never;
  } else if (type == "Replace") {
    std::string pattern;
    bool is_regex = false;
    if (absl::Status status = ReadPattern(step, pattern, is_regex); !status.ok())
      return status;
    if (is_regex || pattern != "\xe2\x96\x81" || JsonText(step, "content") != " ")
      return Refuse("the decoder replaces ", Backquoted(pattern), " by ",
                    Backquoted(JsonText(step, "content")), ", which is not done");
    definition.decoding = Definition::Decoding::spaces;
  } else if (type == "Strip") {
    const Json *start = JsonMember(step, "start"), *stop = JsonMember(step, "stop");
    if (JsonText(step, "content") != " " || !start || *start != 1 || (stop && *stop != 0))
      return Refuse("the decoder Strip takes away something else than one space in front");
    definition.strip_first_space = true;
  } else {
    return Refuse("the decoder ", Backquoted(type), " is not done");
  }
  return absl::OkStatus();
}

} // namespace boa
