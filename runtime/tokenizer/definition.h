//===- definition.h - What a tokenizer file says -------------- -*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The readers of the file formats fill a Definition. Tokenizer::Create checks it.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_TOKENIZER_DEFINITION_H
#define BOA_RUNTIME_TOKENIZER_DEFINITION_H

#include "runtime/tokenizer/split.h"
#include "runtime/tokenizer/unicode.h"

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace boa {

/// Limits. The largest published vocabulary has 262,144 tokens.
constexpr int64_t kMostTokens = 4 << 20;
constexpr int64_t kMostTokenBytes = 2048;
/// Where merges are those of any two tokens that together are a third, each place is tried.
constexpr int64_t kMostMergedBytes = 512;

/// What the steps may make of a text: bytes for each byte, and bytes more. Of published tokenizers
/// none makes more than nine of one (a space twice becomes U+2581), or puts more than nine before a
/// text. Normal forms do not count.
constexpr double kMostGrowth = 16, kMostPrepended = 64;
constexpr size_t kMostAround = 64; // tokens that stand before and behind a text
/// Of added tokens together, as they are in a file and as they are looked for. The largest
/// published vocabulary has 77 KB of them.
constexpr size_t kMostAddedBytes = 4 << 20;

/// Whether a few large ids would take the memory of all below them.
inline bool IsSparse(size_t ids, size_t tokens) { return ids > 65536 && ids / 4 > tokens; }

/// U+2581 stands for a space.
constexpr absl::string_view kSpaceMark = "\xe2\x96\x81";

/// The text between backquotes, for messages. Bytes other than printable ASCII are escaped.
inline std::string Backquoted(absl::string_view text) {
  return absl::StrCat("`", absl::CHexEscape(text), "`");
}

/// A text that is one token, wherever it stands. It is found before the model sees the text.
struct AddedToken {
  int32_t id = 0;
  std::string content;
  bool special = false;     // a mark for the model, no text
  bool normalized = false;  // is looked for in the normalised text
  bool left_strip = false;  // takes the white space before it
  bool right_strip = false; // takes the white space behind it
  bool single_word = false; // only between word boundaries
};

struct NormalizerStep {
  enum class Kind { form, lowercase, strip_accents, bert, prepend, replace, strip };
  Kind kind = Kind::form;
  NormalForm form = NormalForm::nfc;
  std::string pattern, content; // replace; prepend: content
  // bert
  bool clean_text = false, separate_cjk = false, accents = false, lowercase = false;
  bool left = false, right = false; // strip
};

/// The parts that a split makes of matches, and of the text between matches.
enum class SplitBehavior { isolated, removed, with_previous, with_next, contiguous };

struct SplitStep {
  enum class Kind { split, metaspace };
  Kind kind = Kind::split;
  Matcher matcher;
  SplitBehavior behavior = SplitBehavior::isolated;
  bool invert = false;       // what is between matches counts as the match
  bool prefix_space = false; // a space before a piece that has none, before it is split
  bool matches = true;       // false: only the space
  // metaspace
  std::string replacement;
  enum class Prepend { always, first, never } prepend = Prepend::never;
  bool separate = true;
};

/// A pair of tokens that becomes one. The lowest rank goes first.
struct Merge {
  int32_t left = 0, right = 0, rank = 0, result = 0;
};

struct Definition {
  enum class Model { bpe, wordpiece };
  Model model = Model::bpe;
  /// By id. Of byte-level models bytes, otherwise text. An id that no token has: "" .
  std::vector<std::string> tokens;
  std::vector<AddedToken> added;
  std::vector<NormalizerStep> normalizers;
  std::vector<SplitStep> splits;
  /// U+2581 before the whole text, as SentencePiece does; not before each section.
  bool prefix_mark = false;

  // bpe
  bool byte_level = false;    // symbols are bytes; otherwise characters
  bool byte_fallback = false; // <0x0A> for what is not in the vocabulary
  bool fuse_unknown = false, ignore_merges = false;
  std::vector<Merge> merges;
  // wordpiece
  std::string continuing = "##";
  int64_t most_word_characters = 100;

  int32_t unknown = -1, bos = -1, eos = -1;
  /// Tokens that end a text which a model writes, beside `eos`.
  std::vector<int32_t> ends;
  /// Tokens around a text, if special tokens are asked for.
  std::vector<int32_t> before, after;

  /// How tokens become text again.
  enum class Decoding { bytes, spaces, wordpiece };
  Decoding decoding = Decoding::bytes;
  bool strip_first_space = false; // spaces
  bool cleanup = false;           // wordpiece: no space before punctuation

  /// What the files beside it, or its metadata, say of conversations.
  struct Chat {
    std::string jinja, source; // the template, and the file that has it; "": none
    std::string with_tools;    // another one, for conversations with tools; "": none
    /// The texts of special tokens by the names that templates use, such as pad_token, but for
    /// those of bos and eos.
    std::vector<std::pair<std::string, std::string>> tokens;
  } chat;
  /// Where files disagree, for the user.
  std::vector<std::string> notes;
};

} // namespace boa

#endif // BOA_RUNTIME_TOKENIZER_DEFINITION_H
