//===- readers.h - Readers of tokenizer files ----------------- -*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each fills a Definition from the contents of a file. A step or model that is not done is
// refused by its name in the file. Errors begin with `source`.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_TOKENIZER_READERS_H
#define BOA_RUNTIME_TOKENIZER_READERS_H

#include "runtime/tokenizer/definition.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

#include <string>
#include <vector>

namespace boa {

/// tokenizer.json.
absl::StatusOr<Definition> ReadHuggingFace(absl::string_view text, const std::string &source);

/// The files beside a tokenizer.json: tokens that begin and end a text, the chat template.
absl::Status ReadConfig(const std::string &folder, Definition &definition);
/// What ReadConfig reads of conversations.
absl::StatusOr<Definition::Chat> ReadChat(const std::string &folder);
/// All that ReadConfig takes from them: the texts of files, "" for one that is absent, then what
/// others say of tokens that tokenizer_config.json does not name.
absl::StatusOr<std::vector<std::string>> PartsBeside(const std::string &folder);

/// tokenizer.model of SentencePiece.
absl::StatusOr<Definition> ReadSentencePiece(absl::string_view bytes, const std::string &source);
/// Lines of base64 and rank. `family` names the split pattern; "": by the number of tokens.
absl::StatusOr<Definition> ReadTiktoken(absl::string_view text, const std::string &family,
                                        const std::string &source);
/// The tokenizer in the metadata of a GGUF file.
absl::StatusOr<Definition> ReadGguf(const std::string &path);
bool LooksLikeTiktoken(absl::string_view text);

/// The bytes of a token that byte-level vocabularies write in printable characters; false if a
/// character stands for none.
bool BytesOfPrintable(absl::string_view token, std::string &bytes);
/// Makes the tokens of a byte-level vocabulary bytes. The contents of added tokens stay.
absl::Status MakeByteLevel(Definition &definition, const std::string &source);

template <typename... Args>
absl::Status RefuseFile(const std::string &source, const Args &...args) {
  return absl::InvalidArgumentError(absl::StrCat("`", source, "`: ", args...));
}

} // namespace boa

#endif // BOA_RUNTIME_TOKENIZER_READERS_H
