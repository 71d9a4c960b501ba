//===- sentencepiece.cpp - SentencePiece models ---------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// tokenizer.model is a protocol buffer: pieces with scores and types, how the text is normalised,
// how the model was trained. The few fields are read by hand.
//
//===----------------------------------------------------------------------===//
#include "runtime/tokenizer/readers.h"
#include "runtime/tokenizer/scored.h"

#include <cstring>
#include <utility>

namespace boa {
namespace {

/// One field of a message.
struct Field {
  uint32_t number = 0;
  uint64_t value = 0;      // a number, or the bits of a float
  absl::string_view bytes; // of a text or a message
};

/// The fields of a message, one after the other.
class Message {
public:
  explicit Message(absl::string_view bytes) : rest(bytes) {}

  /// False at the end, or where the bytes are no message.
  bool Next(Field &field) {
    uint64_t tag = 0, length = 0;
    if (rest.empty() || !Number(tag))
      return false;
    field = Field();
    field.number = static_cast<uint32_t>(tag >> 3);
    switch (tag & 7) {
    case 0:
      return Number(field.value);
    case 1:
      return Fixed(8, field.value);
    case 5:
      return Fixed(4, field.value);
    case 2:
      if (!Number(length) || length > rest.size())
        return Fail();
      field.bytes = rest.substr(0, length);
      rest.remove_prefix(length);
      return true;
    default:
      return Fail();
    }
  }
  bool is_broken() const { return broken; }

private:
  bool Fail() {
    broken = true;
    return false;
  }
  bool Number(uint64_t &value) {
    value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (rest.empty())
        return Fail();
      const uint8_t byte = static_cast<uint8_t>(rest[0]);
      rest.remove_prefix(1);
      value |= static_cast<uint64_t>(byte & 127) << shift;
      if (byte < 128)
        return true;
    }
    return Fail();
  }
  bool Fixed(size_t bytes, uint64_t &value) {
    if (rest.size() < bytes)
      return Fail();
    value = 0;
    std::memcpy(&value, rest.data(), bytes);
    rest.remove_prefix(bytes);
    return true;
  }

  absl::string_view rest;
  bool broken = false;
};

absl::Status Broken(const std::string &source) {
  return RefuseFile(source, "it is no SentencePiece model, or only a part of one");
}

absl::Status ReadPiece(absl::string_view bytes, const std::string &source, ScoredTokens &out) {
  Message message(bytes);
  Field field;
  std::string text;
  float score = 0;
  uint64_t type = static_cast<uint64_t>(TokenType::normal);
  while (message.Next(field)) {
    if (field.number == 1)
      text = std::string(field.bytes);
    else if (field.number == 2)
      std::memcpy(&score, &field.value, 4);
    else if (field.number == 3)
      type = field.value;
  }
  if (message.is_broken())
    return Broken(source);
  if (static_cast<int64_t>(out.texts.size()) >= kMostTokens)
    return RefuseFile(source, "more than ", kMostTokens, " pieces");
  if (type < 1 || type > 6)
    return RefuseFile(source, "piece ", out.texts.size(), " has the unknown type ", type);
  out.texts.push_back(std::move(text));
  out.scores.push_back(score);
  out.types.push_back(static_cast<TokenType>(type));
  return absl::OkStatus();
}

absl::Status ReadTrainer(absl::string_view bytes, const std::string &source, ScoredTokens &out) {
  Message message(bytes);
  Field field;
  uint64_t model = 1;
  while (message.Next(field)) {
    if (field.number == 3)
      model = field.value;
    else if (field.number == 24 && field.value)
      return RefuseFile(source, "it treats white space as a suffix, which is not done");
    else if (field.number == 41)
      out.bos = static_cast<int32_t>(field.value);
    else if (field.number == 42)
      out.eos = static_cast<int32_t>(field.value);
  }
  if (message.is_broken())
    return Broken(source);
  constexpr const char *kModels[] = {"?", "unigram", "bpe", "word", "char"};
  if (model != 2)
    return RefuseFile(source, "the model is `", model <= 4 ? kModels[model] : "?",
                      "`; SentencePiece models of type `bpe` can be read");
  return absl::OkStatus();
}

absl::Status ReadNormalizerSpec(absl::string_view bytes, const std::string &source,
                                ScoredTokens &out) {
  Message message(bytes);
  Field field;
  std::string name = "?";
  bool has_map = false;
  bool escape = true;
  out.remove_extra_spaces = true; // the default of the format
  while (message.Next(field)) {
    if (field.number == 1)
      name = std::string(field.bytes);
    else if (field.number == 2)
      has_map = !field.bytes.empty();
    else if (field.number == 3)
      out.prefix_space = field.value != 0;
    else if (field.number == 4)
      out.remove_extra_spaces = field.value != 0;
    else if (field.number == 5)
      escape = field.value != 0;
  }
  if (message.is_broken())
    return Broken(source);
  if (has_map)
    return RefuseFile(source, "the normalizer `", name,
                      "` maps characters; `identity` can be read");
  if (!escape)
    return RefuseFile(source, "spaces are not escaped, which is not done");
  return absl::OkStatus();
}

} // namespace

absl::StatusOr<Definition> ReadSentencePiece(absl::string_view bytes, const std::string &source) {
  ScoredTokens tokens;
  Message message(bytes);
  Field field;
  absl::Status status;
  bool has_trainer = false;
  while (status.ok() && message.Next(field)) {
    if (field.number == 1)
      status = ReadPiece(field.bytes, source, tokens);
    else if (field.number == 2)
      status = ReadTrainer(field.bytes, source, tokens);
    else if (field.number == 3)
      status = ReadNormalizerSpec(field.bytes, source, tokens);
    has_trainer |= field.number == 2;
  }
  if (!status.ok())
    return status;
  if (message.is_broken() || tokens.texts.empty() || !has_trainer)
    return Broken(source);
  const int32_t count = static_cast<int32_t>(tokens.texts.size());
  // SentencePiece puts no token around a text by itself; models of this kind are given <s>.
  if (tokens.bos >= 0 && tokens.bos < count)
    tokens.add_bos = true;
  return ToDefinition(std::move(tokens), source);
}

} // namespace boa
