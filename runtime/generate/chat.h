//===- chat.h - A conversation of several turns -----------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each turn renders the whole conversation by its template, as training does, and encodes it. The
// generator computes what is new: the tokens behind those that the last turn had, too. A template
// that leaves out parts of earlier messages, or an answer whose text has other tokens than the
// model drew, costs what stands behind that place.
//
// Nothing of a conversation is left out silently. What the context has no room for is refused.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_GENERATE_CHAT_H
#define BOA_RUNTIME_GENERATE_CHAT_H

#include "runtime/abi/program.h"
#include "runtime/generate/continuation.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include <cstdint>
#include <limits>
#include <memory>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

namespace boa {

struct ChatOptions : CodecOptions, DrawOptions {
  std::string system;                                   // "": none, or the template's own
  int64_t length = std::numeric_limits<int64_t>::max(); // of an answer, in tokens
};

struct ChatAnswer : ContinuedText {
  bool is_kept = true;       // false: a signal came before its first token, or it was refused
  absl::Status refusal;      // of the template, which cannot write it into the next question
  bool is_full = false;      // it ends because the context is full
  int64_t tokens_before = 0; // of the conversation
  int64_t computed = 0;      // of these; keys and values of the others were cached
};

/// Ownership: the program outlives it.
/// Threads: one.
class Chat {
public:
  static absl::StatusOr<std::unique_ptr<Chat>> Create(const Program &, const Kernels &,
                                                      const GenerationEntries &,
                                                      const GenerationSource &,
                                                      const ChatOptions &);

  const std::vector<std::string> &notes() const { return codec->notes(); }

  /// Adds a message of the user. ResourceExhausted if the context has no room for it. After an
  /// error the conversation is as it was.
  absl::Status Ask(const std::string &message);

  /// Writes the answer to the last message, and adds it (Continue). A signal stops it: the
  /// conversation has the part that was written. An answer that is not kept takes the message
  /// along. The first one draws as `boa sample` does. Each later one draws anew, also behind Reset.
  absl::StatusOr<ChatAnswer> Answer(std::ostream &out);

  /// Begins anew, with the system message.
  void Reset();

private:
  Chat(const Program &program, ChatOptions options)
      : program(program), options(std::move(options)) {}

  absl::Status CheckSystem();

  const Program &program;
  const ChatOptions options;
  absl::StatusOr<Codec> codec = absl::UnknownError("");
  std::unique_ptr<Generator> generator;
  std::vector<ChatMessage> messages;
  int64_t turns = 0;         // answers up to here
  std::vector<int32_t> text; // of the messages, and what stands before an answer
};

} // namespace boa

#endif // BOA_RUNTIME_GENERATE_CHAT_H
