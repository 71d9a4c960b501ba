//===- tiktoken.cpp - Files of tiktoken -----------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A line for each token: its bytes in base64, a space, its rank, which is its id. The file does not
// say by which pattern texts are split. Known vocabularies show it by their size.
//
//===----------------------------------------------------------------------===//
#include "runtime/tokenizer/bpe.h"
#include "runtime/tokenizer/readers.h"

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace boa {
namespace {

/// A published vocabulary, by the number of tokens in its file. Special tokens are not in there.
struct Published {
  size_t count;
  const char *family;
  std::vector<std::pair<int32_t, const char *>> special; // the last ends a text
};
const Published *FindPublished(size_t count) {
  static const std::vector<Published> all = {
      {50256, "gpt-2", {{50256, "<|endoftext|>"}}},
      {50280, "gpt-2", {{50256, "<|endoftext|>"}}},
      {100256, "cl100k", {{100257, "<|endoftext|>"}}},
      {128000, "llama3", {{128000, "<|begin_of_text|>"}, {128001, "<|end_of_text|>"}}},
      {151643,
       "qwen2",
       {{151644, "<|im_start|>"}, {151645, "<|im_end|>"}, {151643, "<|endoftext|>"}}},
      {199998, "gpt-4o", {{200018, "<|endofprompt|>"}, {199999, "<|endoftext|>"}}},
  };
  for (const Published &known : all)
    if (known.count == count)
      return &known;
  return nullptr;
}

} // namespace

bool LooksLikeTiktoken(absl::string_view text) {
  const absl::string_view line = text.substr(0, std::min(text.find('\n'), text.size()));
  const size_t space = line.find(' ');
  std::string bytes;
  int64_t rank = 0;
  return space != absl::string_view::npos && line.size() < 1024 &&
         absl::Base64Unescape(line.substr(0, space), &bytes) && !bytes.empty() &&
         absl::SimpleAtoi(line.substr(space + 1), &rank);
}

absl::StatusOr<Definition> ReadTiktoken(absl::string_view text, const std::string &family,
                                        const std::string &source) {
  Definition definition;
  definition.byte_level = true;
  definition.ignore_merges = true; // a word that is a token is not merged
  size_t line_number = 0;
  while (!text.empty()) {
    ++line_number;
    const size_t end = std::min(text.find('\n'), text.size());
    const absl::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const size_t space = line.find(' ');
    std::string bytes;
    int64_t rank = 0;
    if (space == absl::string_view::npos || !absl::Base64Unescape(line.substr(0, space), &bytes) ||
        bytes.empty() || !absl::SimpleAtoi(line.substr(space + 1), &rank))
      return RefuseFile(source, "line ", line_number, " is no token in base64 with its rank");
    if (rank < 0 || rank >= kMostTokens)
      return RefuseFile(source, "line ", line_number, " has the rank ", rank);
    if (static_cast<int64_t>(bytes.size()) > kMostMergedBytes)
      return RefuseFile(source, "line ", line_number, " has a token of ", bytes.size(), " bytes");
    if (static_cast<size_t>(rank) >= definition.tokens.size())
      definition.tokens.resize(rank + 1);
    if (!definition.tokens[rank].empty())
      return RefuseFile(source, "line ", line_number, " has the rank of another token, ", rank);
    definition.tokens[rank] = std::move(bytes);
  }
  if (IsSparse(definition.tokens.size(), line_number))
    return RefuseFile(source, "ids up to ", definition.tokens.size() - 1, " for ", line_number,
                      " tokens");
  const Published *published = family.empty() ? FindPublished(line_number) : nullptr;
  const std::string name = published ? published->family : family;
  std::vector<Matcher> matchers;
  if (!MatchersForFamily(name, matchers))
    return name.empty()
               ? RefuseFile(source, "a tiktoken file of ", line_number,
                            " tokens, which is none of the known ones: how it splits texts is not "
                            "in the file")
               : RefuseFile(source, "the family `", name, "` is unknown");
  for (Matcher &matcher : matchers) {
    definition.splits.emplace_back();
    definition.splits.back().matcher = std::move(matcher);
  }
  if (published)
    for (auto [id, content] : published->special) {
      if (static_cast<size_t>(id) < definition.tokens.size() && !definition.tokens[id].empty())
        return RefuseFile(source, "token ", id, " is not ", content, ", as its size suggests");
      AddedToken token;
      token.id = definition.eos = id;
      token.content = content;
      token.special = true;
      definition.added.push_back(std::move(token));
    }
  std::vector<int32_t> ranks(definition.tokens.size());
  std::iota(ranks.begin(), ranks.end(), 0);
  definition.merges = MergesOfVocabulary(definition.tokens, ranks);
  return definition;
}

} // namespace boa
