//===- encoder.cpp - Text to tokens ---------------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/tokenizer/tokenizer.h"

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include <algorithm>
#include <utility>

namespace boa {
namespace {

// Words that are worth remembering, and how many.
constexpr size_t kLongestCached = 48;
constexpr size_t kMostCached = 1 << 17;

/// An error about one line of a text.
std::string PlaceOf(absl::string_view text, size_t at) {
  return absl::StrCat("byte ", at, " (line ", std::count(text.begin(), text.begin() + at, '\n') + 1,
                      ")");
}

/// The ranges of a section, from its beginning.
PlainText PartOf(const PlainText &plain, size_t begin, size_t size) {
  PlainText part = {{}, plain.marks};
  for (const auto &[first, last] : plain.ranges)
    if (last > begin && first < begin + size)
      part.ranges.push_back({std::max(first, begin) - begin, std::min(last, begin + size) - begin});
  return part;
}

} // namespace

Encoder::Encoder(std::shared_ptr<const Tokenizer> tokenizer) : tokenizer(std::move(tokenizer)) {}

absl::Status Encoder::Encode(absl::string_view text, const EncodeOptions &options,
                             std::vector<int32_t> &out) {
  if (const size_t at = FindInvalidUtf8(text); at != absl::string_view::npos)
    return absl::InvalidArgumentError(
        absl::StrFormat("%s is 0x%02x, which is not UTF-8 there: convert the text to UTF-8",
                        PlaceOf(text, at), static_cast<int>(static_cast<uint8_t>(text[at]))));
  const Definition &definition = tokenizer->definition;
  if (options.surround && options.begins)
    out.insert(out.end(), definition.before.begin(), definition.before.end());
  std::vector<Section> sections;
  tokenizer->added.Split(text, options.special, options.plain, sections);
  // A text that begins with a token has the mark before that.
  if (definition.prefix_mark && options.begins && !sections.empty() && sections[0].token &&
      !sections[0].token->special)
    if (absl::Status status = EncodeNormal(kSpaceMark, true, out); !status.ok())
      return status;
  for (const Section &section : sections) {
    if (section.token) {
      out.push_back(section.token->id);
      continue;
    }
    const bool is_first = section.text.data() == text.data();
    if (absl::Status status = EncodeSection(
            section.text, is_first && options.begins,
            is_first && !options.begins && !options.follows, options,
            PartOf(options.plain, size_t(section.text.data() - text.data()), section.text.size()),
            out);
        !status.ok())
      return status;
  }
  if (options.surround && options.closes)
    out.insert(out.end(), definition.after.begin(), definition.after.end());
  return absl::OkStatus();
}

absl::Status Encoder::EncodeSection(absl::string_view text, bool is_first, bool goes_on,
                                    const EncodeOptions &options, const PlainText &plain,
                                    std::vector<int32_t> &out) {
  std::string normal;
  if (tokenizer->definition.prefix_mark && is_first) {
    normal = absl::StrCat(kSpaceMark, text);
    text = normal;
  }
  for (const NormalizerStep &step : tokenizer->definition.normalizers) {
    if (goes_on && step.kind == NormalizerStep::Kind::prepend)
      continue;
    normal = ApplyNormalizer(step, text);
    text = normal;
  }
  if (tokenizer->normalized_added.empty())
    return EncodeNormal(text, is_first, out);
  std::vector<Section> sections;
  // In a text that was changed, the ranges are elsewhere: then no special token is found.
  const bool changed = !plain.ranges.empty() && normal.data() == text.data();
  tokenizer->normalized_added.Split(text, options.special && !changed,
                                    changed ? PlainText() : plain, sections);
  for (const Section &section : sections) {
    if (section.token) {
      out.push_back(section.token->id);
      continue;
    }
    if (absl::Status status =
            EncodeNormal(section.text, is_first && section.text.data() == text.data(), out);
        !status.ok())
      return status;
  }
  return absl::OkStatus();
}

absl::Status Encoder::EncodeNormal(absl::string_view text, bool is_first,
                                   std::vector<int32_t> &out) {
  if (text.empty())
    return absl::OkStatus();
  Pieces pieces;
  pieces.list = {text};
  for (const SplitStep &step : tokenizer->definition.splits)
    ApplySplit(step, is_first, pieces);
  for (absl::string_view piece : pieces.list)
    if (absl::Status status = EncodePiece(piece, out); !status.ok())
      return status;
  return absl::OkStatus();
}

size_t Encoder::WordEnd(absl::string_view piece, size_t from) const {
  const std::vector<std::string> &inside = tokenizer->inside_before_mark;
  // A token may begin with marks: the first boundary is behind them.
  for (size_t at = piece.find(kSpaceMark, from + 1); at != absl::string_view::npos;
       at = piece.find(kSpaceMark, at + kSpaceMark.size())) {
    size_t before = at - 1;
    while (before > from && (static_cast<uint8_t>(piece[before]) & 0xc0) == 0x80)
      --before;
    const absl::string_view character = piece.substr(before, at - before);
    if (!std::binary_search(inside.begin(), inside.end(), character))
      return at;
  }
  return piece.size();
}

absl::Status Encoder::EncodePiece(absl::string_view piece, std::vector<int32_t> &out) {
  if (!tokenizer->words_begin_at_mark)
    return EncodeWord(piece, out);
  for (size_t at = 0; at < piece.size();) {
    const size_t end = WordEnd(piece, at);
    if (absl::Status status = EncodeWord(piece.substr(at, end - at), out); !status.ok())
      return status;
    at = end;
  }
  return absl::OkStatus();
}

absl::Status Encoder::EncodeWord(absl::string_view word, std::vector<int32_t> &out) {
  const bool remember = word.size() <= kLongestCached;
  if (remember)
    if (auto it = cache.find(word); it != cache.end()) {
      const auto first = cached.begin() + it->second.first;
      out.insert(out.end(), first, first + it->second.second);
      return absl::OkStatus();
    }
  symbols.clear();
  if (tokenizer->definition.model == Definition::Model::wordpiece)
    LongestFirst(word);
  else if (absl::Status status = MergeWord(word); !status.ok())
    return status;
  out.insert(out.end(), symbols.begin(), symbols.end());
  if (!remember)
    return absl::OkStatus();
  if (cache.size() >= kMostCached) {
    cache.clear();
    cached.clear();
  }
  cache.emplace(std::string(word), std::pair<uint32_t, uint32_t>(cached.size(), symbols.size()));
  cached.insert(cached.end(), symbols.begin(), symbols.end());
  return absl::OkStatus();
}

absl::Status Encoder::MergeWord(absl::string_view word) {
  const Definition &definition = tokenizer->definition;
  if (definition.ignore_merges)
    if (auto it = tokenizer->ids.find(word); it != tokenizer->ids.end()) {
      symbols.push_back(it->second);
      return absl::OkStatus();
    }
  bool was_unknown = false;
  for (size_t at = 0; at < word.size();) {
    const size_t bytes = definition.byte_level ? 1 : DecodeAt(word, at).bytes;
    if (absl::Status status = AppendCharacter(word.substr(at, bytes), was_unknown); !status.ok())
      return status;
    at += bytes;
  }
  tokenizer->merger.Apply(symbols);
  return absl::OkStatus();
}

/// One symbol to begin with: a byte or a code point.
absl::Status Encoder::AppendCharacter(absl::string_view character, bool &was_unknown) {
  const Definition &definition = tokenizer->definition;
  int32_t id = -1;
  if (definition.byte_level)
    id = tokenizer->bytes[static_cast<uint8_t>(character[0])];
  else if (auto it = tokenizer->ids.find(character); it != tokenizer->ids.end())
    id = it->second;
  if (id >= 0) {
    was_unknown = false;
    symbols.push_back(id);
    return absl::OkStatus();
  }
  if (definition.byte_fallback && std::all_of(character.begin(), character.end(), [&](char byte) {
        return tokenizer->bytes[static_cast<uint8_t>(byte)] >= 0;
      })) {
    was_unknown = false;
    for (char byte : character)
      symbols.push_back(tokenizer->bytes[static_cast<uint8_t>(byte)]);
    return absl::OkStatus();
  }
  if (definition.unknown < 0)
    return absl::InvalidArgumentError(
        absl::StrCat("the tokenizer has no token for `", absl::CHexEscape(character),
                     "`, and none for the unknown: the text cannot be made of its tokens"));
  if (!(was_unknown && definition.fuse_unknown))
    symbols.push_back(definition.unknown);
  was_unknown = true;
  return absl::OkStatus();
}

/// WordPiece: the longest token that begins the rest of the word, again and again.
void Encoder::LongestFirst(absl::string_view word) {
  const Definition &definition = tokenizer->definition;
  const int64_t characters = std::count_if(word.begin(), word.end(), [](char byte) {
    return (static_cast<uint8_t>(byte) & 0xc0) != 0x80;
  });
  if (characters > definition.most_word_characters) {
    symbols.push_back(definition.unknown);
    return;
  }
  std::string candidate;
  for (size_t at = 0; at < word.size();) {
    candidate = at > 0 ? definition.continuing : "";
    const size_t prefix = candidate.size();
    absl::StrAppend(&candidate, word.substr(at, tokenizer->longest));
    auto found = tokenizer->ids.end();
    while (candidate.size() > prefix &&
           (found = tokenizer->ids.find(candidate)) == tokenizer->ids.end())
      candidate.pop_back();
    if (found == tokenizer->ids.end()) {
      symbols.assign(1, definition.unknown);
      return;
    }
    symbols.push_back(found->second);
    at += candidate.size() - prefix;
  }
}

} // namespace boa
