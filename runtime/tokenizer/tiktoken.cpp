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

#include <numeric>
#include <utility>

namespace boa {
namespace {

/// The family of a published vocabulary; "" if the size is not known.
std::string FamilyOfSize(size_t count) {
  switch (count) {
  case 50256:
    return "gpt-2";
  case 100256:
    return "cl100k";
  case 128000:
    return "llama3";
  case 151643:
    return "qwen2";
  case 199998:
    return "gpt-4o";
  default:
    return "";
  }
}

} // namespace

bool LooksLikeTiktoken(absl::string_view text) {
  const absl::string_view line = text.substr(0, std::min(text.find('\n'), text.size()));
  const size_t space = line.find(' ');
  std::string bytes;
  return space != absl::string_view::npos && line.size() < 1024 &&
         absl::Base64Unescape(line.substr(0, space), &bytes) && !bytes.empty();
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
  const std::string name = family.empty() ? FamilyOfSize(line_number) : family;
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
  std::vector<int32_t> ranks(definition.tokens.size());
  std::iota(ranks.begin(), ranks.end(), 0);
  definition.merges = MergesOfVocabulary(definition.tokens, ranks);
  return definition;
}

} // namespace boa
