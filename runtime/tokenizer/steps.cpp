//===- steps.cpp - Normalisers and pre-tokenizers -------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/tokenizer/steps.h"

#include "runtime/tokenizer/unicode.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

#include <algorithm>
#include <utility>

namespace boa {
namespace {

bool IsCjk(uint32_t c) {
  constexpr std::pair<uint32_t, uint32_t> kBlocks[] = {
      {0x3400, 0x4dbf},   {0x4e00, 0x9fff},   {0xf900, 0xfaff},   {0x20000, 0x2a6df},
      {0x2a700, 0x2b73f}, {0x2b740, 0x2b81f}, {0x2b920, 0x2ceaf}, {0x2f800, 0x2fa1f}};
  return std::any_of(std::begin(kBlocks), std::end(kBlocks),
                     [c](auto block) { return c >= block.first && c <= block.second; });
}

/// White space becomes a space; control characters and U+FFFD go.
std::string CleanText(absl::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const CodePoint point = DecodeAt(text, at);
    const uint16_t classes = ClassOf(point.value);
    const bool plain = point.value == '\t' || point.value == '\n' || point.value == '\r';
    if (plain || (classes & kSpace && !(classes & kOther)))
      out.push_back(' ');
    else if (!(classes & kOther) && point.value != 0xfffd)
      out.append(text.data() + at, point.bytes);
    at += point.bytes;
  }
  return out;
}

std::string SeparateCjk(absl::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const CodePoint point = DecodeAt(text, at);
    if (IsCjk(point.value))
      absl::StrAppend(&out, " ", text.substr(at, point.bytes), " ");
    else
      out.append(text.data() + at, point.bytes);
    at += point.bytes;
  }
  return out;
}

std::string Strip(absl::string_view text, bool left, bool right) {
  size_t begin = 0, end = 0;
  bool any = false;
  for (size_t at = 0; at < text.size();) {
    const ClassAt here = ClassifyAt(text, at);
    at += here.bytes;
    if (here.classes & kSpace)
      continue;
    if (!any)
      begin = at - here.bytes;
    any = true;
    end = at;
  }
  if (!any)
    return left || right ? "" : std::string(text);
  begin = left ? begin : 0;
  return std::string(text.substr(begin, (right ? end : text.size()) - begin));
}

/// Appends the parts of a piece, according to what becomes of matches.
class Parts {
public:
  Parts(absl::string_view piece, const SplitStep &step, std::vector<absl::string_view> &out)
      : piece(piece), step(step), out(out), behavior(step.behavior), first(out.size()) {}

  void Append(size_t begin, size_t end, bool is_match) {
    if (begin == end)
      return;
    is_match ^= step.invert;
    const absl::string_view part = piece.substr(begin, end - begin);
    switch (behavior) {
    case SplitBehavior::isolated:
      out.push_back(part);
      break;
    case SplitBehavior::removed:
      if (!is_match)
        out.push_back(part);
      break;
    case SplitBehavior::with_previous:
      Join(part, is_match && !was_match);
      break;
    case SplitBehavior::with_next:
      Join(part, was_match && !is_match);
      break;
    case SplitBehavior::contiguous:
      Join(part, was_match == is_match);
      break;
    }
    was_match = is_match;
  }

private:
  /// Lengthens the last part, or begins a new one.
  void Join(absl::string_view part, bool together) {
    if (together && out.size() > first)
      out.back() = absl::string_view(out.back().data(), out.back().size() + part.size());
    else
      out.push_back(part);
  }

  absl::string_view piece;
  const SplitStep &step;
  std::vector<absl::string_view> &out;
  SplitBehavior behavior;
  size_t first;
  bool was_match = false;
};

void SplitPiece(absl::string_view piece, const SplitStep &step,
                std::vector<absl::string_view> &out) {
  Parts parts(piece, step, out);
  size_t done = 0, begin = 0, end = 0;
  while (FindMatch(step.matcher, piece, done, begin, end)) {
    parts.Append(done, begin, false);
    parts.Append(begin, end, true);
    done = end;
  }
  parts.Append(done, piece.size(), false);
}

/// Spaces become the replacement, which begins each piece.
void ApplyMetaspace(const SplitStep &step, bool is_first, Pieces &pieces) {
  SplitStep separate;
  separate.matcher.kind = Matcher::Kind::literal;
  separate.matcher.literal = step.replacement;
  separate.behavior = SplitBehavior::with_next;
  std::vector<absl::string_view> out;
  for (size_t i = 0; i < pieces.list.size(); ++i) {
    std::string text = absl::StrReplaceAll(pieces.list[i], {{" ", step.replacement}});
    const bool prepend = step.prepend == SplitStep::Prepend::always ||
                         (step.prepend == SplitStep::Prepend::first && is_first && i == 0);
    if (prepend && text.compare(0, step.replacement.size(), step.replacement) != 0)
      text.insert(0, step.replacement);
    pieces.owned.push_back(std::move(text));
    if (step.separate)
      SplitPiece(pieces.owned.back(), separate, out);
    else
      out.push_back(pieces.owned.back());
  }
  pieces.list = std::move(out);
}

} // namespace

std::string ApplyNormalizer(const NormalizerStep &step, absl::string_view text) {
  switch (step.kind) {
  case NormalizerStep::Kind::form:
    return Normalize(text, step.form);
  case NormalizerStep::Kind::lowercase:
    return Lowercase(text);
  case NormalizerStep::Kind::strip_accents:
    return Without(text, kMark);
  case NormalizerStep::Kind::prepend:
    return text.empty() ? "" : absl::StrCat(step.content, text);
  case NormalizerStep::Kind::replace:
    return absl::StrReplaceAll(text, {{step.pattern, step.content}});
  case NormalizerStep::Kind::strip:
    return Strip(text, step.left, step.right);
  case NormalizerStep::Kind::bert:
    break;
  }
  std::string out(text);
  if (step.clean_text)
    out = CleanText(out);
  if (step.separate_cjk)
    out = SeparateCjk(out);
  if (step.accents)
    out = Without(Normalize(out, NormalForm::nfd), kNonspacing);
  if (step.lowercase)
    out = Lowercase(out);
  return out;
}

void ApplySplit(const SplitStep &step, bool is_first, Pieces &pieces) {
  if (step.kind == SplitStep::Kind::metaspace)
    return ApplyMetaspace(step, is_first, pieces);
  if (step.prefix_space)
    for (absl::string_view &piece : pieces.list)
      if (piece[0] != ' ') {
        pieces.owned.push_back(absl::StrCat(" ", piece));
        piece = pieces.owned.back();
      }
  if (!step.matches)
    return;
  std::vector<absl::string_view> out;
  for (absl::string_view piece : pieces.list)
    SplitPiece(piece, step, out);
  pieces.list = std::move(out);
}

} // namespace boa
