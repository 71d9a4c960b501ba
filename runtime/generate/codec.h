//===- codec.h - Texts and conversations as tokens, and back ----*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_GENERATE_CODEC_H
#define BOA_RUNTIME_GENERATE_CODEC_H

#include "runtime/abi/program.h"
#include "runtime/data/conversation.h"
#include "runtime/generate/generator.h"
#include "runtime/tokenizer/tokenizer.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace boa {

struct CodecOptions {
  std::string tokenizer;             // its file; "": bytes are tokens
  std::string form;                  // template of conversations; "": of the data, or the tokenizer
  std::optional<std::string> values; // its variables, an object of JSON; nothing: of the data
  std::vector<std::string> stop;     // a text ends before the first of them
};

/// The first byte of a text that belongs to no character; its size if there is none.
size_t FindNoCharacter(const std::string &text);

/// The tokens of a text that is continued, and the text of those that continue it.
/// Threads: one.
class Codec {
public:
  /// `converses`: it takes conversations, and a text ends at the mark of an answer, too. As in the
  /// training: by the template of its data, with the date of its state.
  static absl::StatusOr<Codec> Open(const CodecOptions &, bool converses, const Program &,
                                    const GenerationSource &);

  absl::StatusOr<std::vector<int32_t>> Encode(const std::string &text);
  /// Of a codec that converses. The beginning of an answer follows. An error names the place within
  /// a message, or in the template.
  absl::StatusOr<std::vector<int32_t>> Encode(const std::vector<ChatMessage> &);

  /// The text that a token adds behind what was encoded last.
  absl::StatusOr<std::string> Add(int32_t token);
  std::string Finish() { return tokenizer ? decoder->Finish() : ""; }
  bool Ends(int32_t token) const { return tokenizer && (tokenizer->Ends(token) || token == mark); }
  /// The texts that end a text.
  const std::vector<std::string> &Stops() const { return stops; }
  /// Lines of output: that the tokenizer is not that of the state's data, and values without
  /// effect.
  const std::vector<std::string> &notes() const { return lines; }
  /// Tokens that can be drawn.
  int64_t size() const { return count; }

private:
  void AddNote(std::string note);
  absl::Status OpenChat(const std::string &path, const ChosenTemplate &);
  absl::StatusOr<std::vector<int32_t>> Begin(absl::Status, std::vector<int32_t> tokens);

  std::shared_ptr<const Tokenizer> tokenizer;
  std::unique_ptr<StreamDecoder> decoder;
  std::optional<ConversationEncoder> chat;
  int32_t mark = -1;              // that ends an answer in the template
  std::vector<std::string> stops; // those of the user, and a mark that is no token
  int64_t count = 0;
  std::vector<std::string> lines; // notes
};

} // namespace boa

#endif // BOA_RUNTIME_GENERATE_CODEC_H
