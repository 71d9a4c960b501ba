//===- text.cpp - Python's methods of strings, on UTF-8 -------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/template/text.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utf8proc.h>

namespace boa::jinja {

bool IsSpace(uint32_t c) {
  return (c >= 9 && c <= 13) || (c >= 0x1c && c <= 0x20) || c == 0x85 || c == 0xa0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f || c == 0x205f ||
         c == 0x3000;
}

uint32_t CharacterAt(absl::string_view text, size_t at, size_t &bytes) {
  const uint8_t lead = static_cast<uint8_t>(text[at]);
  bytes = 1;
  if (lead < 0x80)
    return lead;
  utf8proc_int32_t code_point = -1;
  const auto count = utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t *>(text.data()) + at,
                                      static_cast<utf8proc_ssize_t>(text.size() - at), &code_point);
  if (count <= 0)
    return lead;
  bytes = static_cast<size_t>(count);
  return static_cast<uint32_t>(code_point);
}

void AppendCharacter(uint32_t code_point, std::string &out) {
  utf8proc_uint8_t bytes[4];
  const auto count = utf8proc_encode_char(static_cast<utf8proc_int32_t>(code_point), bytes);
  out.append(reinterpret_cast<const char *>(bytes), static_cast<size_t>(count));
}

int64_t Length(absl::string_view text) {
  int64_t count = 0;
  for (size_t at = 0, bytes = 0; at < text.size(); at += bytes, ++count)
    CharacterAt(text, at, bytes);
  return count;
}

size_t ByteOf(absl::string_view text, int64_t index) {
  size_t at = 0;
  for (size_t bytes = 0; index > 0 && at < text.size(); --index, at += bytes)
    CharacterAt(text, at, bytes);
  return at;
}

std::vector<absl::string_view> Characters(absl::string_view text) {
  std::vector<absl::string_view> out;
  for (size_t at = 0, bytes = 0; at < text.size(); at += bytes) {
    CharacterAt(text, at, bytes);
    out.push_back(text.substr(at, bytes));
  }
  return out;
}

namespace {

/// Where the character begins that ends before `end`.
size_t Before(absl::string_view text, size_t end) {
  size_t at = end - 1;
  while (at > 0 && end - at < 4 && (static_cast<uint8_t>(text[at]) & 0xc0) == 0x80)
    --at;
  size_t bytes = 0;
  CharacterAt(text, at, bytes);
  return at + bytes == end ? at : end - 1;
}

} // namespace

absl::string_view Strip(absl::string_view text, int sides,
                        std::optional<absl::string_view> characters) {
  const auto goes = [&](size_t at, size_t bytes, uint32_t code_point) {
    return characters ? absl::StrContains(*characters, text.substr(at, bytes))
                      : IsSpace(code_point);
  };
  size_t begin = 0, end = text.size(), bytes = 0;
  for (; (sides & kLeft) && begin < end; begin += bytes)
    if (const uint32_t c = CharacterAt(text, begin, bytes); !goes(begin, bytes, c))
      break;
  while ((sides & kRight) && begin < end) {
    const size_t at = Before(text, end);
    if (const uint32_t c = CharacterAt(text, at, bytes); !goes(at, end - at, c))
      break;
    end = at;
  }
  return text.substr(begin, end - begin);
}

namespace {

std::vector<absl::string_view> SplitBySpace(absl::string_view text, int64_t most, bool from_right) {
  std::vector<absl::string_view> out;
  while (!(text = Strip(text, from_right ? kRight : kLeft)).empty()) {
    if (most >= 0 && static_cast<int64_t>(out.size()) == most) {
      out.push_back(text);
      break;
    }
    size_t bytes = 0;
    if (from_right) {
      size_t begin = text.size();
      while (begin > 0 && !IsSpace(CharacterAt(text, Before(text, begin), bytes)))
        begin = Before(text, begin);
      out.push_back(text.substr(begin));
      text = text.substr(0, begin);
    } else {
      size_t end = 0;
      for (; end < text.size() && !IsSpace(CharacterAt(text, end, bytes)); end += bytes) {
      }
      out.push_back(text.substr(0, end));
      text = text.substr(end);
    }
  }
  if (from_right)
    std::reverse(out.begin(), out.end());
  return out;
}

} // namespace

std::vector<absl::string_view> Split(absl::string_view text,
                                     std::optional<absl::string_view> separator, int64_t most,
                                     bool from_right) {
  if (!separator)
    return SplitBySpace(text, most, from_right);
  std::vector<absl::string_view> out;
  while (most < 0 || static_cast<int64_t>(out.size()) < most) {
    const size_t at = from_right ? text.rfind(*separator) : text.find(*separator);
    if (at == absl::string_view::npos)
      break;
    out.push_back(from_right ? text.substr(at + separator->size()) : text.substr(0, at));
    text = from_right ? text.substr(0, at) : text.substr(at + separator->size());
  }
  out.push_back(text);
  if (from_right)
    std::reverse(out.begin(), out.end());
  return out;
}

std::vector<absl::string_view> SplitLines(absl::string_view text, bool keep_ends, int64_t most) {
  std::vector<absl::string_view> out;
  size_t begin = 0;
  for (size_t at = 0, bytes = 0; at < text.size() && static_cast<int64_t>(out.size()) < most;) {
    const uint32_t c = CharacterAt(text, at, bytes);
    if (!((c >= 10 && c <= 13) || (c >= 0x1c && c <= 0x1e) || c == 0x85 || c == 0x2028 ||
          c == 0x2029)) {
      at += bytes;
      continue;
    }
    size_t next = at + bytes;
    if (c == '\r' && next < text.size() && text[next] == '\n')
      ++next;
    out.push_back(text.substr(begin, (keep_ends ? next : at) - begin));
    at = begin = next;
  }
  if (begin < text.size())
    out.push_back(text.substr(begin));
  return out;
}

std::string Repeated(absl::string_view text, int64_t times) {
  const size_t size = text.size() * static_cast<size_t>(times);
  std::string out;
  out.reserve(size);
  if (size > 0)
    out.append(text.data(), text.size());
  while (out.size() < size)
    out.append(out, 0, size - out.size());
  return out;
}

void AppendHex(absl::string_view prefix, uint32_t number, int digits, std::string &out) {
  out.append(prefix.data(), prefix.size());
  for (int shift = 4 * (digits - 1); shift >= 0; shift -= 4)
    out.push_back("0123456789abcdef"[number >> shift & 15]);
}

std::string EscapeHtml(absl::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    constexpr absl::string_view from = "&<>'\"";
    static const char *const to[] = {"&amp;", "&lt;", "&gt;", "&#39;", "&#34;"};
    if (const size_t which = from.find(c); which != absl::string_view::npos)
      out += to[which];
    else
      out.push_back(c);
  }
  return out;
}

std::string Quote(absl::string_view text) {
  const char quote = absl::StrContains(text, '\'') && !absl::StrContains(text, '"') ? '"' : '\'';
  std::string out(1, quote);
  for (size_t at = 0, bytes = 0; at < text.size(); at += bytes) {
    const uint32_t c = CharacterAt(text, at, bytes);
    if (c == static_cast<uint32_t>(quote) || c == '\\')
      absl::StrAppend(&out, "\\", text.substr(at, 1));
    else if (c == '\n' || c == '\r' || c == '\t')
      out += c == '\n' ? "\\n" : c == '\r' ? "\\r" : "\\t";
    else if (c >= ' ' && c < 127)
      out.push_back(static_cast<char>(c));
    else {
      const auto category = utf8proc_category(static_cast<utf8proc_int32_t>(c));
      const bool is_hidden =
          c < 128 || category == UTF8PROC_CATEGORY_CN || category >= UTF8PROC_CATEGORY_ZS;
      if (!is_hidden)
        absl::StrAppend(&out, text.substr(at, bytes));
      else if (c < 0x100)
        AppendHex("\\x", c, 2, out);
      else if (c < 0x10000)
        AppendHex("\\u", c, 4, out);
      else
        AppendHex("\\U", c, 8, out);
    }
  }
  out.push_back(quote);
  return out;
}

std::string RealToString(double value) {
  if (std::isnan(value))
    return "nan";
  if (std::isinf(value))
    return value < 0 ? "-inf" : "inf";
  char buffer[32];
  // The shortest digits that read back the same: d.ddde+xx.
  const auto end =
      std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::scientific).ptr;
  const absl::string_view all(buffer, static_cast<size_t>(end - buffer));
  const size_t e = all.find('e');
  int exponent = 0;
  (void)absl::SimpleAtoi(all.substr(e + 1), &exponent);
  absl::string_view mantissa = all.substr(0, e);
  std::string out;
  if (absl::ConsumePrefix(&mantissa, "-"))
    out = "-";
  if (exponent < -4 || exponent >= 16)
    return absl::StrCat(out, mantissa, exponent < 0 ? "e-" : "e+",
                        absl::Dec(std::abs(exponent), absl::kZeroPad2));
  std::string digits =
      absl::StrCat(mantissa.substr(0, 1), mantissa.size() > 1 ? mantissa.substr(2) : "");
  if (exponent < 0)
    return absl::StrCat(out, "0.", std::string(static_cast<size_t>(-exponent - 1), '0'), digits);
  const size_t whole = static_cast<size_t>(exponent) + 1;
  if (digits.size() < whole + 1)
    digits.append(whole + 1 - digits.size(), '0');
  return absl::StrCat(out, digits.substr(0, whole), ".", digits.substr(whole));
}

namespace {

/// In ASCII, without the underscores between digits; nothing if one stands elsewhere.
std::optional<std::string> PlainNumber(absl::string_view text) {
  text = Strip(text, kLeft | kRight);
  std::string digits, out;
  for (size_t at = 0, bytes = 0; at < text.size(); at += bytes)
    if (const int digit = DecimalOf(CharacterAt(text, at, bytes)); digit >= 0)
      digits.push_back(static_cast<char>('0' + digit));
    else
      absl::StrAppend(&digits, text.substr(at, bytes));
  for (size_t i = 0; i < digits.size(); ++i) {
    if (digits[i] != '_')
      out.push_back(digits[i]);
    else if (i == 0 || i + 1 == digits.size() || !absl::ascii_isalnum(digits[i - 1]) ||
             !absl::ascii_isalnum(digits[i + 1]))
      return std::nullopt;
  }
  return out;
}

} // namespace

std::optional<int64_t> ParseInteger(absl::string_view text, int base) {
  const std::optional<std::string> plain = PlainNumber(text);
  if (!plain)
    return std::nullopt;
  absl::string_view digits = *plain;
  const bool is_negative = absl::ConsumePrefix(&digits, "-");
  if (!is_negative)
    absl::ConsumePrefix(&digits, "+");
  for (const auto &[prefix, of] : {std::pair("0x", 16), std::pair("0o", 8), std::pair("0b", 2)})
    if ((base == of || base == 0) && absl::StartsWithIgnoreCase(digits, prefix)) {
      digits.remove_prefix(2);
      base = of;
    }
  if (base == 0) {
    if (digits.size() > 1 && digits[0] == '0' && digits.find_first_not_of('0') != std::string::npos)
      return std::nullopt;
    base = 10;
  }
  const std::string number = absl::StrCat(is_negative ? "-" : "", digits);
  int64_t value = 0;
  const auto [end, error] =
      std::from_chars(number.data(), number.data() + number.size(), value, base);
  if (digits.empty() || !absl::ascii_isalnum(digits[0]) || error != std::errc() ||
      end != number.data() + number.size())
    return std::nullopt;
  return value;
}

std::optional<double> ParseReal(absl::string_view text) {
  const std::optional<std::string> plain = PlainNumber(text);
  double value = 0;
  if (!plain || !absl::SimpleAtod(*plain, &value))
    return std::nullopt;
  return value;
}

} // namespace boa::jinja
