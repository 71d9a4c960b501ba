//===- tokenizer.h - Text to tokens and back ------------------ -*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A tokenizer of a published model, read from the file that came with it. It gives the same tokens
// as the library that the file was made for, or it refuses the file or the text.
//
// A Tokenizer does not change, and threads may share it. An Encoder and a StreamDecoder belong to
// one thread.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_TOKENIZER_TOKENIZER_H
#define BOA_RUNTIME_TOKENIZER_TOKENIZER_H

#include "runtime/tokenizer/added.h"
#include "runtime/tokenizer/bpe.h"
#include "runtime/tokenizer/definition.h"
#include "runtime/tokenizer/steps.h"

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace boa {

class Tokenizer {
public:
  /// `source` names the file in errors.
  static absl::StatusOr<std::shared_ptr<const Tokenizer>> Create(Definition definition,
                                                                 const std::string &source);
  /// Reads a tokenizer.json, a SentencePiece model, a tiktoken file or a GGUF file. The format
  /// follows from the contents.
  /// `family`: how texts are split, for a tiktoken file of no published model.
  static absl::StatusOr<std::shared_ptr<const Tokenizer>> Open(const std::string &path,
                                                               const std::string &family = "");

  /// One more than the largest id.
  int64_t size() const { return static_cast<int64_t>(texts.size()); }
  /// The id of the special or added token with this text, or of the token of the model; -1.
  int32_t Find(absl::string_view token) const;
  bool IsSpecial(int32_t id) const { return special[id]; }
  /// Whether it is found in a text as a whole, and is not made by merging.
  bool IsAdded(int32_t id) const { return is_added[id]; }
  /// The ids of the added tokens that stand somewhere in a text.
  std::vector<int32_t> FindAdded(absl::string_view text) const;
  /// Those of the file, in its order.
  const std::vector<AddedToken> &added_tokens() const { return definition.added; }
  /// What an id is in a text.
  const std::string &TextOf(int32_t id) const { return texts[id]; }
  int32_t bos() const { return definition.bos; }
  int32_t eos() const { return definition.eos; }
  /// Whether it ends a text that a model writes: the end of a document, or of a turn.
  bool Ends(int32_t id) const;
  /// Where files of the tokenizer disagree, for the user.
  const std::vector<std::string> &notes() const { return definition.notes; }
  /// Whether special tokens are looked for in a text that was changed before.
  bool NormalizesSpecial() const;
  const Definition::Chat &chat() const { return definition.chat; }
  /// The Jinja text of the file; "" if there is none.
  const std::string &chat_template() const { return definition.chat.jinja; }
  /// Where a long text can be cut so that both parts together have the tokens of the whole: the
  /// last such place before the end, 0 if there is none.
  size_t FindCut(absl::string_view text) const;

private:
  friend class Encoder;
  friend class StreamDecoder;
  Tokenizer() = default;
  absl::Status Prepare(const std::string &source);
  absl::Status CheckIds(const std::string &source) const;
  absl::Status CheckGrowth(const std::string &source) const;
  absl::Status PrepareAdded(const std::string &source);
  void PrepareTexts();
  void PrepareWordStarts();
  bool MayCut() const;

  Definition definition;
  Merger merger;
  absl::flat_hash_map<absl::string_view, int32_t> ids; // of definition.tokens
  std::array<int32_t, 256> bytes = {};                 // the token of a byte; -1
  AddedFinder added, normalized_added;
  std::vector<std::string> normalized_contents;
  std::vector<std::string> texts; // what an id is in a text, by id
  std::vector<bool> special, is_added;
  size_t longest = 0; // bytes of a token
  /// Whether a mark of a space (U+2581) begins a word, except behind these code points: no token
  /// goes across that place. So words can be merged one by one.
  bool words_begin_at_mark = false;
  std::vector<std::string> inside_before_mark;
};

struct EncodeOptions {
  bool surround = true; // with the tokens that the file puts around a text, such as <s>
  bool special = true;  // the text's special tokens, such as <|endoftext|>, count as such
  bool closes = true;   // false: without those behind the text
  bool begins = true;   // false: the text goes on where another, cut by FindCut, ended
  bool follows = false; // with `begins` false: behind a token, as the text behind <|user|> does
  /// What somebody wrote. Where a tokenizer changes a text before it looks for special tokens
  /// (NormalizesSpecial), none is found around that, either.
  PlainText plain = {};
};

class Encoder {
public:
  explicit Encoder(std::shared_ptr<const Tokenizer> tokenizer);

  /// Appends the tokens of a text. Refuses text that is no UTF-8, and characters for which there
  /// is no token.
  absl::Status Encode(absl::string_view text, const EncodeOptions &options,
                      std::vector<int32_t> &out);

private:
  absl::Status EncodeSection(absl::string_view text, bool is_first, bool goes_on,
                             const EncodeOptions &options, const PlainText &plain,
                             std::vector<int32_t> &out);
  absl::Status EncodeNormal(absl::string_view text, bool is_first, std::vector<int32_t> &out);
  absl::Status EncodePiece(absl::string_view piece, std::vector<int32_t> &out);
  absl::Status EncodeWord(absl::string_view word, std::vector<int32_t> &out);
  absl::Status MergeWord(absl::string_view word);
  absl::Status AppendCharacter(absl::string_view character, bool &was_unknown);
  void LongestFirst(absl::string_view word);
  size_t WordEnd(absl::string_view piece, size_t from) const;

  std::shared_ptr<const Tokenizer> tokenizer;
  std::vector<int32_t> symbols; // of the word
  // Words seen before, and their tokens as a part of `cached`.
  absl::flat_hash_map<std::string, std::pair<uint32_t, uint32_t>> cache;
  std::vector<int32_t> cached;
};

/// Tokens to text, one by one. The text is given as whole characters: the bytes of an incomplete
/// one are held back. Bytes that belong to no character come unchanged.
class StreamDecoder {
public:
  explicit StreamDecoder(std::shared_ptr<const Tokenizer> tokenizer, bool show_special = false);

  /// The text that this token completes. Refuses an id that the tokenizer does not have.
  absl::StatusOr<std::string> Add(int32_t id);
  /// The bytes still held back.
  std::string Finish();

private:
  std::shared_ptr<const Tokenizer> tokenizer;
  std::string held;
  bool show_special;
  bool is_first = true;
};

/// The text of all tokens.
absl::StatusOr<std::string> Decode(const std::shared_ptr<const Tokenizer> &tokenizer,
                                   const std::vector<int32_t> &tokens, bool show_special = false);

} // namespace boa

#endif // BOA_RUNTIME_TOKENIZER_TOKENIZER_H
