//===- sequence_text.cpp - A sequence as text -----------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/trainer/sequence_text.h"

#include "runtime/support/printable.h"
#include "runtime/tokenizer/added.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace boa {
namespace {

constexpr int32_t kBytes = 256;
constexpr char kLearnt[] = "\033[1;32m", kOther[] = "\033[0m";

class Writer {
public:
  Writer(const Data::Sequence &sequence, bool masked,
         const std::shared_ptr<const Tokenizer> &tokenizer, Marks marks)
      : sequence(sequence), masked(masked), tokenizer(tokenizer), marks(marks) {
    if (!tokenizer)
      return;
    decoder.emplace(tokenizer, /*show_special=*/true);
    for (const AddedToken &token : tokenizer->added_tokens())
      finder.Add(token, token.content);
  }

  std::string Write() {
    const Window &window = sequence.window;
    const auto context = int64_t(sequence.tokens.size());
    const int64_t content = std::min(window.content, context);
    for (int64_t p = 0; p < content; ++p) {
      const auto at = size_t(p);
      if (p > 0 && sequence.starts[at] == p)
        BeginDocument();
      if (masked)
        AddMasked(sequence.tokens[at], sequence.targets[at]);
      else
        Add(sequence.tokens[at], p > 0 && sequence.targets[at - 1] >= 0);
    }
    // The last target is no input.
    if (!masked && content == context && sequence.targets.back() >= 0)
      Add(sequence.targets.back(), true);
    EndDocument();
    if (content < context)
      absl::StrAppend(&text, "(padding: ", context - content, ")\n");
    return std::move(text);
  }

private:
  /// The bytes of a token; those of an incomplete character come with the next one.
  std::string TextOf(int32_t token) {
    if (decoder) {
      absl::StatusOr<std::string> decoded = decoder->Add(token);
      return decoded.ok() ? *decoded : absl::StrCat("<", token, ">");
    }
    if (is_number())
      return absl::StrCat(token);
    return token < kBytes ? std::string(1, char(token)) : absl::StrCat("<", token, ">");
  }

  void Add(int32_t token, bool is_learnt) {
    if (is_learnt != learnt)
      Flush();
    learnt = is_learnt;
    run += is_number() && !run.empty() ? " " : "";
    Append(token);
  }

  void Append(int32_t token) {
    const size_t begin = run.size();
    run += TextOf(token);
    if (tokenizer && token < tokenizer->size() && tokenizer->IsAdded(token))
      added.emplace_back(begin, run.size());
  }

  void AddMasked(int32_t shown, int32_t target) {
    if (target < 0)
      return Add(shown, false);
    Flush();
    Add(shown, true);
    if (shown != target) {
      run += "=";
      Append(target);
    }
    Flush();
    Mark(false);
  }

  /// Ends a line, too.
  void EndDocument() {
    if (decoder)
      run += decoder->Finish();
    Flush();
    Mark(false);
    text += ends_line ? "" : "\n";
    ends_line = true;
  }

  void BeginDocument() {
    EndDocument();
    text += "--- a document begins\n";
    if (tokenizer)
      decoder.emplace(tokenizer, /*show_special=*/true);
  }

  /// Writes what was collected, which is all learnt or all not.
  void Flush() {
    if (run.empty())
      return;
    if (!learnt)
      Mark(false);
    text += is_number() && !ends_line ? " " : "";
    Mark(learnt);
    ends_line = run.back() == '\n';
    size_t done = 0;
    for (size_t begin : Spelled()) {
      WriteText(std::string_view(run).substr(done, begin - done));
      text += '\\';
      done = begin;
    }
    WriteText(std::string_view(run).substr(done));
    run.clear();
    added.clear();
  }

  /// Where the run spells an added token, but has another one there, or several.
  std::vector<size_t> Spelled() const {
    std::vector<size_t> places;
    size_t done = 0;
    const auto search = [&](size_t end) {
      std::vector<Section> sections;
      finder.Split(absl::string_view(run).substr(done, end - done), /*special=*/true, {}, sections);
      for (const Section &section : sections)
        if (section.token && !absl::StripAsciiWhitespace(section.token->content).empty())
          places.push_back(size_t(section.text.data() - run.data()));
    };
    for (const auto &[begin, end] : added) {
      search(begin);
      done = end;
    }
    search(run.size());
    return places;
  }

  void WriteText(std::string_view rest) {
    while (!rest.empty()) {
      const size_t line = std::min(rest.find('\n'), rest.size());
      for (char c : PrintableName(rest.substr(0, line))) {
        if (marks == Marks::brackets && (c == '[' || c == ']'))
          text += '\\';
        text += c;
      }
      if (line < rest.size())
        text += "\\n\n";
      rest.remove_prefix(std::min(line + 1, rest.size()));
    }
  }

  void Mark(bool is_learnt) {
    if (is_learnt == marked)
      return;
    marked = is_learnt;
    if (marks == Marks::brackets)
      text += is_learnt ? "[" : "]";
    if (marks == Marks::colours)
      text += is_learnt ? kLearnt : kOther;
  }

  /// Whether tokens have no text.
  bool is_number() const { return !tokenizer && sequence.part->kind != SourceKind::bytes; }

  const Data::Sequence &sequence;
  const bool masked;
  const std::shared_ptr<const Tokenizer> &tokenizer;
  const Marks marks;
  std::optional<StreamDecoder> decoder;
  std::string text;
  AddedFinder finder;
  std::string run;                              // not in the text yet
  std::vector<std::pair<size_t, size_t>> added; // where it has added tokens
  bool learnt = false, marked = false;          // of the run; of the text until now
  bool ends_line = true;                        // of the text
};

} // namespace

std::string TextOfSequence(const Data::Sequence &sequence, bool masked,
                           const std::shared_ptr<const Tokenizer> &tokenizer, Marks marks) {
  return Writer(sequence, masked, tokenizer, marks).Write();
}

} // namespace boa
