//===- tokenizer.cpp - Text to tokens and back ----------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/tokenizer/tokenizer.h"

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

#include <algorithm>
#include <utility>

namespace boa {
namespace {

template <typename... Args>
absl::Status RefuseSource(const std::string &source, const Args &...args) {
  return absl::InvalidArgumentError(absl::StrCat("`", source, "`: ", args...));
}

/// `<0x0A>`: the byte; -1 if the token is none.
int ByteOfToken(absl::string_view token) {
  int value = 0;
  return token.size() == 6 && token.substr(0, 3) == "<0x" && token[5] == '>' &&
                 absl::SimpleHexAtoi(token.substr(3, 2), &value)
             ? value
             : -1;
}

/// The spaces that a text of WordPiece tokens does not have.
std::string CleanUp(std::string text) {
  return absl::StrReplaceAll(text, {{" .", "."},
                                    {" ?", "?"},
                                    {" !", "!"},
                                    {" ,", ","},
                                    {" ' ", "'"},
                                    {" n't", "n't"},
                                    {" 'm", "'m"},
                                    {" 's", "'s"},
                                    {" 've", "'ve"},
                                    {" 're", "'re"}});
}

} // namespace

absl::StatusOr<std::shared_ptr<const Tokenizer>> Tokenizer::Create(Definition definition,
                                                                   const std::string &source) {
  std::shared_ptr<Tokenizer> tokenizer(new Tokenizer);
  tokenizer->definition = std::move(definition);
  if (absl::Status status = tokenizer->Prepare(source); !status.ok())
    return status;
  return tokenizer;
}

absl::Status Tokenizer::CheckIds(const std::string &source) const {
  const int64_t count = static_cast<int64_t>(definition.tokens.size());
  const auto is_token = [&](int32_t id) {
    return id >= 0 && id < count && !definition.tokens[id].empty();
  };
  for (const Merge &merge : definition.merges)
    if (!is_token(merge.left) || !is_token(merge.right) || !is_token(merge.result))
      return RefuseSource(source, "a merge of tokens ", merge.left, " and ", merge.right, " to ",
                          merge.result, ", which are not all in the vocabulary of ", count);
  if (definition.before.size() + definition.after.size() > kMostAround)
    return RefuseSource(source, "puts ", definition.before.size() + definition.after.size(),
                        " tokens around a text, where at most ", kMostAround, " are allowed");
  const auto is_any = [&](int32_t id) { return id >= 0 && id < size(); };
  for (const auto *list : {&definition.before, &definition.after})
    for (int32_t id : *list)
      if (!is_any(id))
        return RefuseSource(source, "puts token ", id, " around a text, but has ", size(),
                            " tokens");
  for (int32_t id : definition.ends)
    if (!is_any(id))
      return RefuseSource(source, "ends a text with token ", id, ", but has ", size(), " tokens");
  for (auto [name, id] : {std::pair("unknown", definition.unknown),
                          std::pair("bos", definition.bos), std::pair("eos", definition.eos)})
    if (id != -1 && !is_any(id))
      return RefuseSource(source, "its ", name, " token is ", id, ", but it has ", size(),
                          " tokens");
  return absl::OkStatus();
}

/// Steps of a file of some kilobytes could double a text again and again.
absl::Status Tokenizer::CheckGrowth(const std::string &source) const {
  double growth = 1, prepended = definition.prefix_mark ? double(kSpaceMark.size()) : 0;
  const auto grow = [&](double factor, double more) {
    growth *= factor;
    prepended = prepended * factor + more;
  };
  for (const NormalizerStep &step : definition.normalizers) {
    const auto size = double(step.content.size());
    if (step.kind == NormalizerStep::Kind::replace)
      grow(std::max(size / double(std::max<size_t>(step.pattern.size(), 1)), 1.0), 0);
    else if (step.kind == NormalizerStep::Kind::prepend)
      grow(1, size);
  }
  // The text before each piece stands before each byte, if pieces are so small. The first step
  // has one piece.
  bool is_first = true;
  for (const SplitStep &step : definition.splits) {
    const bool is_metaspace = step.kind == SplitStep::Kind::metaspace;
    const double mark = is_metaspace ? double(step.replacement.size()) : 1;
    const bool before =
        is_metaspace ? step.prepend != SplitStep::Prepend::never : step.prefix_space;
    const bool before_each = before && !is_first && step.prepend != SplitStep::Prepend::first;
    grow((is_metaspace ? std::max(mark, 1.0) : 1) + (before_each ? mark : 0), before ? mark : 0);
    is_first = false;
  }
  if (growth > kMostGrowth)
    return RefuseSource(source, "its steps make up to ", growth, " bytes of one, where at most ",
                        kMostGrowth, " are allowed");
  if (prepended > kMostPrepended)
    return RefuseSource(source, "its steps put up to ", prepended,
                        " bytes before a text, where at most ", kMostPrepended, " are allowed");
  return absl::OkStatus();
}

absl::Status Tokenizer::Prepare(const std::string &source) {
  int64_t count = static_cast<int64_t>(definition.tokens.size());
  for (const AddedToken &token : definition.added) {
    if (token.content.empty())
      return RefuseSource(source, "added token ", token.id, " is empty");
    if (token.id < 0)
      return RefuseSource(source, "added token ", Backquoted(token.content), " has the id ",
                          token.id);
    count = std::max<int64_t>(count, int64_t(token.id) + 1);
  }
  if (definition.tokens.empty())
    return RefuseSource(source, "a vocabulary without tokens");
  if (count > kMostTokens)
    return RefuseSource(source, "an id of ", count - 1, ", where a vocabulary has at most ",
                        kMostTokens, " tokens");
  const auto filled =
      static_cast<size_t>(std::count_if(definition.tokens.begin(), definition.tokens.end(),
                                        [](const std::string &token) { return !token.empty(); }));
  if (IsSparse(size_t(count), filled + definition.added.size()))
    return RefuseSource(source, "ids up to ", count - 1, " for ", filled + definition.added.size(),
                        " tokens");
  if (absl::Status status = CheckGrowth(source); !status.ok())
    return status;
  texts.resize(count);
  special.resize(count);
  is_added.resize(count);

  ids.reserve(definition.tokens.size());
  bytes.fill(-1);
  for (size_t id = 0; id < definition.tokens.size(); ++id) {
    const std::string &token = definition.tokens[id];
    if (token.empty())
      continue;
    if (static_cast<int64_t>(token.size()) > kMostTokenBytes)
      return RefuseSource(source, "token ", id, " has ", token.size(), " bytes, where at most ",
                          kMostTokenBytes, " are allowed");
    longest = std::max(longest, token.size());
    auto [it, is_new] = ids.emplace(token, static_cast<int32_t>(id));
    if (!is_new)
      return RefuseSource(source, "tokens ", it->second, " and ", id, " are both ",
                          Backquoted(token));
    const int byte = definition.byte_level      ? (token.size() == 1 ? uint8_t(token[0]) : -1)
                     : definition.byte_fallback ? ByteOfToken(token)
                                                : -1;
    if (byte >= 0)
      bytes[byte] = static_cast<int32_t>(id);
  }
  if (absl::Status status = CheckIds(source); !status.ok())
    return status;
  merger = Merger(definition.merges);
  if (absl::Status status = PrepareAdded(source); !status.ok())
    return status;
  PrepareTexts();
  PrepareWordStarts();
  return absl::OkStatus();
}

absl::Status Tokenizer::PrepareAdded(const std::string &source) {
  size_t bytes_of_added = 0;
  // Finders keep pointers to these.
  normalized_contents.reserve(definition.added.size());
  for (const AddedToken &token : definition.added) {
    special[token.id] = token.special;
    is_added[token.id] = true;
    std::string content = token.content;
    for (const NormalizerStep &step : definition.normalizers)
      if (token.normalized)
        content = ApplyNormalizer(step, content);
    bytes_of_added += content.size();
    if (bytes_of_added > kMostAddedBytes)
      return RefuseSource(source, "its added tokens have more than ", kMostAddedBytes, " bytes");
    if (!content.empty())
      (token.normalized ? normalized_added : added).Add(token, content);
  }
  return absl::OkStatus();
}

std::vector<int32_t> Tokenizer::FindAdded(absl::string_view text) const {
  std::vector<int32_t> found;
  for (const AddedToken &token : definition.added)
    if (absl::StrContains(text, token.content))
      found.push_back(token.id);
  return found;
}

bool Tokenizer::Ends(int32_t id) const {
  return id >= 0 &&
         (id == definition.eos ||
          std::find(definition.ends.begin(), definition.ends.end(), id) != definition.ends.end());
}

bool Tokenizer::NormalizesSpecial() const {
  return (definition.prefix_mark || !definition.normalizers.empty()) &&
         std::any_of(definition.added.begin(), definition.added.end(),
                     [](const AddedToken &token) { return token.special && token.normalized; });
}

void Tokenizer::PrepareTexts() {
  for (size_t id = 0; id < definition.tokens.size(); ++id) {
    std::string text = definition.tokens[id];
    switch (definition.decoding) {
    case Definition::Decoding::bytes:
      break;
    case Definition::Decoding::spaces:
      if (const int byte = definition.byte_fallback ? ByteOfToken(text) : -1; byte >= 0)
        text = std::string(1, static_cast<char>(byte));
      else
        text = absl::StrReplaceAll(text, {{kSpaceMark, " "}});
      break;
    case Definition::Decoding::wordpiece:
      if (absl::string_view(text).substr(0, definition.continuing.size()) == definition.continuing)
        text.erase(0, definition.continuing.size());
      else if (!text.empty())
        text.insert(0, " ");
      if (definition.cleanup)
        text = CleanUp(text);
      break;
    }
    texts[id] = std::move(text);
  }
  for (const AddedToken &token : definition.added)
    texts[token.id] = definition.decoding == Definition::Decoding::wordpiece
                          ? absl::StrCat(" ", token.content)
                      : definition.decoding == Definition::Decoding::spaces
                          ? absl::StrReplaceAll(token.content, {{kSpaceMark, " "}})
                          : token.content;
}

void Tokenizer::PrepareWordStarts() {
  if (definition.model != Definition::Model::bpe || definition.byte_level ||
      definition.ignore_merges || !ids.contains(kSpaceMark))
    return;
  words_begin_at_mark = true;
  for (const Merge &merge : definition.merges) {
    const absl::string_view token = definition.tokens[merge.result];
    for (size_t at = token.find(kSpaceMark, 1); at != absl::string_view::npos;
         at = token.find(kSpaceMark, at + 1)) {
      size_t before = at - 1;
      while (before > 0 && (static_cast<uint8_t>(token[before]) & 0xc0) == 0x80)
        --before;
      std::string character(token.substr(before, at - before));
      auto found =
          std::lower_bound(inside_before_mark.begin(), inside_before_mark.end(), character);
      if (found == inside_before_mark.end() || *found != character)
        inside_before_mark.insert(found, std::move(character));
      // A vocabulary of phrases: words would be as long as the text.
      if (inside_before_mark.size() > 256) {
        words_begin_at_mark = false;
        return;
      }
    }
  }
}

int32_t Tokenizer::Find(absl::string_view token) const {
  for (const AddedToken &other : definition.added)
    if (other.content == token)
      return other.id;
  auto it = ids.find(token);
  return it == ids.end() ? -1 : it->second;
}

StreamDecoder::StreamDecoder(std::shared_ptr<const Tokenizer> tokenizer, bool show_special)
    : tokenizer(std::move(tokenizer)), show_special(show_special) {}

absl::StatusOr<std::string> StreamDecoder::Add(int32_t id) {
  if (id < 0 || id >= tokenizer->size())
    return absl::InvalidArgumentError(
        absl::StrCat("token ", id, ": the tokenizer has tokens 0 to ", tokenizer->size() - 1));
  if (tokenizer->IsSpecial(id) && !show_special)
    return std::string();
  absl::string_view text = tokenizer->texts[id];
  const Definition &definition = tokenizer->definition;
  if (is_first &&
      (definition.decoding == Definition::Decoding::wordpiece ||
       (definition.decoding == Definition::Decoding::spaces && definition.strip_first_space)))
    if (!text.empty() && text[0] == ' ')
      text.remove_prefix(1);
  is_first = false;
  held.append(text.data(), text.size());
  const size_t whole = held.size() - IncompleteUtf8(held);
  std::string out = held.substr(0, whole);
  held.erase(0, whole);
  return out;
}

std::string StreamDecoder::Finish() { return std::exchange(held, std::string()); }

absl::StatusOr<std::string> Decode(const std::shared_ptr<const Tokenizer> &tokenizer,
                                   const std::vector<int32_t> &tokens, bool show_special) {
  StreamDecoder decoder(tokenizer, show_special);
  std::string out;
  for (int32_t token : tokens) {
    absl::StatusOr<std::string> text = decoder.Add(token);
    if (!text.ok())
      return text.status();
    out += *text;
  }
  return out + decoder.Finish();
}

} // namespace boa
