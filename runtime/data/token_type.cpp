//===- token_type.cpp - How tokens are stored -----------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/data/token_type.h"

#include "runtime/support/refuse.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

#include <algorithm>
#include <cstring>
#include <limits>

namespace boa {
namespace {

constexpr absl::string_view kNumpyMagic = "\x93NUMPY";
constexpr int64_t kLongestHead = 64 << 10;

template <typename Number>
std::optional<WrongToken> WidenFrom(const std::vector<char> &bytes, int64_t vocab, int32_t *to) {
  const size_t count = bytes.size() / sizeof(Number);
  for (size_t i = 0; i < count; ++i) {
    Number number;
    std::memcpy(&number, bytes.data() + i * sizeof(Number), sizeof(Number));
    if (number < 0 || uint64_t(number) >= uint64_t(vocab))
      return WrongToken{int64_t(i), std::to_string(number)};
    to[i] = int32_t(number);
  }
  return std::nullopt;
}

/// The text behind a key of a Python dictionary, up to the next comma outside of parentheses.
absl::string_view ValueOf(absl::string_view dictionary, absl::string_view key) {
  const size_t at = dictionary.find(absl::StrCat("'", key, "'"));
  if (at == dictionary.npos)
    return "";
  absl::string_view value =
      absl::StripLeadingAsciiWhitespace(dictionary.substr(at + key.size() + 2));
  if (!absl::ConsumePrefix(&value, ":"))
    return "";
  int open = 0;
  size_t end = 0;
  for (; end < value.size(); ++end) {
    const char c = value[end];
    if (open == 0 && (c == ',' || c == '}'))
      break;
    open += (c == '(' || c == '[') - (c == ')' || c == ']');
  }
  return absl::StripAsciiWhitespace(value.substr(0, end));
}

} // namespace

std::string TokenType::name() const { return absl::StrCat(is_signed ? "int" : "uint", width * 8); }

TokenType TokenType::Named(const std::string &name) {
  for (int64_t width : {1, 2, 4, 8})
    for (bool is_signed : {false, true})
      if (const TokenType type = {width, is_signed}; type.name() == name)
        return type;
  return {};
}

std::optional<TokenType> TokenType::OfIndex(uint8_t code) {
  switch (code) {
  case 1:
    return TokenType{1, false};
  case 2:
    return TokenType{1, true};
  case 3:
    return TokenType{2, true};
  case 4:
    return TokenType{4, true};
  case 5:
    return TokenType{8, true};
  case 8:
    return TokenType{2, false};
  case 9:
    return TokenType{4, false};
  case 10:
    return TokenType{8, false};
  default:
    return std::nullopt;
  }
}

std::optional<WrongToken> Widen(const std::vector<char> &bytes, TokenType type, int64_t vocab,
                                int32_t *to) {
  const bool is_signed = type.is_signed;
  switch (type.width) {
  case 1:
    return is_signed ? WidenFrom<int8_t>(bytes, vocab, to) : WidenFrom<uint8_t>(bytes, vocab, to);
  case 2:
    return is_signed ? WidenFrom<int16_t>(bytes, vocab, to) : WidenFrom<uint16_t>(bytes, vocab, to);
  case 4:
    return is_signed ? WidenFrom<int32_t>(bytes, vocab, to) : WidenFrom<uint32_t>(bytes, vocab, to);
  default:
    return is_signed ? WidenFrom<int64_t>(bytes, vocab, to) : WidenFrom<uint64_t>(bytes, vocab, to);
  }
}

absl::StatusOr<std::optional<NumpyHead>> ReadNumpyHead(const InputFile &file) {
  // The magic, u8 major and minor version, u16 or from version 2 on u32 length of the text.
  char begin[12] = {};
  const int64_t there = std::min<int64_t>(file.size(), sizeof begin);
  if (absl::Status status = file.Read(0, begin, there); !status.ok())
    return status;
  if (!absl::StartsWith(absl::string_view(begin, size_t(there)), kNumpyMagic))
    return std::nullopt;
  const auto refuse = [&](const auto &...what) {
    return Refuse("`", file.path(), "`: it is a NumPy file, and ", what...);
  };
  const bool is_short = begin[6] == 1;
  uint32_t length = 0;
  std::memcpy(&length, begin + 8, is_short ? 2 : 4);
  NumpyHead head;
  head.bytes = (is_short ? 10 : 12) + int64_t(length);
  if (begin[6] < 1 || begin[6] > 3 || length > kLongestHead || head.bytes > file.size())
    return refuse("its head is damaged");
  std::string text(length, '\0');
  if (absl::Status status = file.Read(head.bytes - length, text.data(), length); !status.ok())
    return status;
  // '<i8' is little-endian, '|u1' has one byte.
  absl::string_view type = ValueOf(text, "descr");
  if (!absl::ConsumePrefix(&type, "'") || !absl::ConsumeSuffix(&type, "'"))
    type = "";
  const bool is_whole = type.size() == 3 && (type[1] == 'i' || type[1] == 'u') &&
                        absl::StrContains("1248", type.substr(2));
  if (!is_whole)
    return refuse("its numbers are `", ValueOf(text, "descr"),
                  "`, which are no tokens; expected whole numbers, as "
                  "`array.astype('uint32')` makes them");
  if (type[0] == '>')
    return refuse("its numbers are big-endian; `array.astype('<", type.substr(1),
                  "')` makes them little-endian");
  head.type = {type[2] - '0', type[1] == 'i'};
  absl::string_view shape = ValueOf(text, "shape");
  const absl::string_view said = shape;
  uint64_t count = 0;
  if (!absl::ConsumePrefix(&shape, "(") || !absl::ConsumeSuffix(&shape, ",)") ||
      !absl::SimpleAtoi(shape, &count))
    return refuse("its shape is ", said.empty() ? "not there" : said,
                  "; expected one axis, as `array.reshape(-1)` makes it");
  if (count > uint64_t(file.size()) || head.bytes + int64_t(count) * head.type.width != file.size())
    return absl::DataLossError(absl::StrCat("`", file.path(), "`: its head says ", count,
                                            " tokens of ", head.type.width, " bytes behind ",
                                            head.bytes, " bytes, but it has ", file.size(),
                                            "; it is truncated, or damaged"));
  head.count = int64_t(count);
  return head;
}

} // namespace boa
