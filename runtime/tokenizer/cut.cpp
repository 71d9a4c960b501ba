//===- cut.cpp - Where a long text can be cut -----------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A cut is before a space or behind a newline, between letters. Every split pattern of a family has
// a boundary there, whatever is around: none looks further. Models without patterns are cut only
// where no token goes across.
//
//===----------------------------------------------------------------------===//
#include "runtime/tokenizer/tokenizer.h"

#include <algorithm>

namespace boa {
namespace {

/// Whether each piece of the step is a piece of the cut text, too.
bool KeepsBoundaries(const SplitStep &step) {
  return step.kind == SplitStep::Kind::metaspace ||
         (step.kind == SplitStep::Kind::split &&
          (step.matcher.kind != Matcher::Kind::literal || step.matcher.literal == " ") &&
          !step.prefix_space);
}

/// Whether parts of a text are normalised as the whole.
bool KeepsParts(const NormalizerStep &step) {
  return step.kind != NormalizerStep::Kind::strip &&
         (step.kind != NormalizerStep::Kind::replace || step.pattern == " ");
}

} // namespace

bool Tokenizer::MayCut() const {
  const bool has_rules =
      definition.model == Definition::Model::wordpiece ||
      std::any_of(definition.splits.begin(), definition.splits.end(), [](const SplitStep &step) {
        return step.matches && step.kind == SplitStep::Kind::split &&
               step.matcher.kind == Matcher::Kind::rules;
      });
  return (has_rules || words_begin_at_mark) &&
         std::all_of(definition.splits.begin(), definition.splits.end(), KeepsBoundaries) &&
         std::all_of(definition.normalizers.begin(), definition.normalizers.end(), KeepsParts);
}

size_t Tokenizer::FindCut(absl::string_view text) const {
  if (!MayCut())
    return 0;
  const auto is_letter = [](char c) { return c >= 'a' && c <= 'z'; };
  for (size_t at = text.size(); at-- > 2;) {
    size_t cut = 0;
    if (text[at - 1] == ' ' && is_letter(text[at]) && is_letter(text[at - 2]))
      cut = at - 1;
    else if (!words_begin_at_mark && text[at - 1] == '\n' && is_letter(text[at - 2]) &&
             is_letter(text[at]))
      cut = at;
    if (cut == 0)
      continue;
    // A phrase that is a token may go across.
    if (words_begin_at_mark &&
        std::binary_search(inside_before_mark.begin(), inside_before_mark.end(),
                           std::string(1, text[at - 2])))
      continue;
    const bool within =
        std::any_of(definition.added.begin(), definition.added.end(), [&](const AddedToken &token) {
          const size_t length = token.content.size();
          const size_t begin = cut > length ? cut - length : 0;
          const size_t found = text.substr(begin, 2 * length).find(token.content);
          return found != absl::string_view::npos && begin + found < cut &&
                 begin + found + length > cut;
        });
    if (!within)
      return cut;
  }
  return 0;
}

} // namespace boa
