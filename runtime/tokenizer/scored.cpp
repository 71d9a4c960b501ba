//===- scored.cpp - Vocabularies whose tokens have scores -----------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/tokenizer/scored.h"

#include "runtime/tokenizer/bpe.h"
#include "runtime/tokenizer/readers.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace boa {
namespace {

/// Equal scores have equal ranks: then the place decides.
std::vector<int32_t> RanksOf(const ScoredTokens &tokens) {
  std::vector<float> scores;
  const auto merges = [&](size_t id) {
    return tokens.types[id] == TokenType::normal || tokens.types[id] == TokenType::user_defined;
  };
  for (size_t id = 0; id < tokens.texts.size(); ++id)
    if (merges(id))
      scores.push_back(tokens.scores[id]);
  std::sort(scores.begin(), scores.end(), std::greater<float>());
  scores.erase(std::unique(scores.begin(), scores.end()), scores.end());
  std::vector<int32_t> ranks(tokens.texts.size(), -1);
  for (size_t id = 0; id < ranks.size(); ++id)
    if (merges(id))
      ranks[id] = static_cast<int32_t>(
          std::lower_bound(scores.begin(), scores.end(), tokens.scores[id], std::greater<float>()) -
          scores.begin());
  return ranks;
}

} // namespace

absl::StatusOr<Definition> ToDefinition(ScoredTokens tokens, const std::string &source) {
  if (tokens.remove_extra_spaces)
    return RefuseFile(source, "it removes extra white space, which is not done");
  Definition definition;
  definition.fuse_unknown = true;
  definition.decoding = Definition::Decoding::spaces;
  definition.strip_first_space = tokens.prefix_space;
  for (size_t id = 0; id < tokens.texts.size(); ++id) {
    if (static_cast<int64_t>(tokens.texts[id].size()) > kMostMergedBytes)
      return RefuseFile(source, "token ", id, " has ", tokens.texts[id].size(),
                        " bytes, where at most ", kMostMergedBytes, " are allowed");
    if (!std::isfinite(tokens.scores[id]))
      return RefuseFile(source, "the score of token ", id, " is not finite");
    if (FindInvalidUtf8(tokens.texts[id]) != absl::string_view::npos)
      return RefuseFile(source, "token ", id, " is no UTF-8");
    const TokenType type = tokens.types[id];
    if (type == TokenType::unused)
      tokens.texts[id].clear(); // no text gives it
    if (type == TokenType::byte)
      definition.byte_fallback = true;
    if (type == TokenType::unknown)
      definition.unknown = static_cast<int32_t>(id);
    if (type != TokenType::control && type != TokenType::user_defined)
      continue;
    if (tokens.texts[id].empty())
      return RefuseFile(source, "token ", id, " is empty");
    AddedToken added;
    added.id = static_cast<int32_t>(id);
    added.content = tokens.texts[id];
    added.special = type == TokenType::control;
    definition.added.push_back(std::move(added));
  }
  definition.merges = MergesOfVocabulary(tokens.texts, RanksOf(tokens));
  definition.tokens = std::move(tokens.texts);
  const auto mark = [](const char *from, const char *to) {
    NormalizerStep step;
    step.kind = from ? NormalizerStep::Kind::replace : NormalizerStep::Kind::prepend;
    step.pattern = from ? from : "";
    step.content = to;
    return step;
  };
  definition.normalizers.push_back(mark(" ", "\xe2\x96\x81"));
  definition.prefix_mark = tokens.prefix_space;
  definition.bos = tokens.bos;
  definition.eos = tokens.eos;
  if (tokens.add_bos)
    definition.before = {tokens.bos};
  if (tokens.add_eos)
    definition.after = {tokens.eos};
  return definition;
}

} // namespace boa
