//===- content_marks.h - Contents of messages stay text ------- -*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A user may write <|im_end|> in a message. There it is text, and only the template's own counts as
// a token. So a noncharacter is put behind the first character of each such text, also of one that
// might go on in what the template writes behind a content. The template carries it along. Behind
// the rendering it is taken out, and no special token is found where it stood.
//
// What a model thinks stands in its answers between tokens such as <think> and </think>. Templates
// look for them, and the model writes them as tokens. So in messages of the assistant these keep
// their meaning.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_TOKENIZER_CONTENT_MARKS_H
#define BOA_RUNTIME_TOKENIZER_CONTENT_MARKS_H

#include "runtime/tokenizer/added.h"
#include "runtime/tokenizer/chat.h"
#include "runtime/tokenizer/tokenizer.h"

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace boa {

/// A text without its marks.
struct Unmarked {
  std::string text;
  /// The bytes before each mark: where a text begins that is no token.
  std::vector<std::pair<size_t, size_t>> plain;
  /// Where marks of the marked text were, by their bytes there.
  std::vector<std::pair<size_t, size_t>> removed;
  /// The place in `text` of one in the marked text.
  size_t PlaceOf(size_t marked) const;
};

class ContentMarks {
public:
  /// Marks special tokens, and those of `structure`; in messages of the assistant not `of_answers`.
  ContentMarks(const Tokenizer &, const std::vector<int32_t> &structure,
               const std::vector<int32_t> &of_answers = {});
  ContentMarks(const ContentMarks &) = delete;
  ContentMarks &operator=(const ContentMarks &) = delete;

  /// The mark that the conversation and the template do not have themselves; "" if no content needs
  /// one. Refuses a conversation that has all of them.
  absl::StatusOr<std::string> Mark(Conversation &, absl::string_view jinja) const;
  static Unmarked Unmark(absl::string_view text, absl::string_view mark);

private:
  std::vector<AddedToken> tokens;
  AddedFinder finder, answer_finder;
};

} // namespace boa

#endif // BOA_RUNTIME_TOKENIZER_CONTENT_MARKS_H
