//===- lexer.cpp - The tokens of a template -------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/template/lexer.h"

#include "runtime/template/text.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

#include <algorithm>

namespace boa::jinja {
namespace {

class Lexer {
public:
  explicit Lexer(const Source &source) : source(source), text(source.text) {}

  absl::StatusOr<std::vector<Token>> Run() {
    while (status.ok() && at < text.size())
      Root();
    if (!status.ok())
      return status;
    Add(Token::Kind::end);
    return std::move(tokens);
  }

private:
  absl::string_view Rest() const { return text.substr(at); }
  void Fail(size_t where, absl::string_view message) {
    if (status.ok())
      status =
          source.Error(absl::StatusCode::kInvalidArgument, static_cast<int32_t>(where), message);
    at = text.size();
  }
  Token &Add(Token::Kind kind, absl::string_view of = "") {
    tokens.push_back({kind, static_cast<int32_t>(at), std::string(of), Value()});
    return tokens.back();
  }
  /// Goes on at `end`, behind a tag.
  void EndTag(size_t end) {
    at = end;
    is_line_start = end > 0 && text[end - 1] == '\n';
  }
  size_t SkipSpace(size_t from) const {
    return text.size() - Strip(text.substr(from), kLeft).size();
  }

  /// The text before a tag, whose sign may take white space away.
  void Data(absl::string_view data, char sign, bool is_print) {
    if (sign == '-') {
      data = Strip(data, kRight);
    } else if (sign != '+' && !is_print) {
      const size_t newline = data.rfind('\n');
      const size_t line = newline == absl::string_view::npos ? 0 : newline + 1;
      if ((line > 0 || is_line_start) && Strip(data.substr(line), kLeft).empty())
        data = data.substr(0, line);
    }
    if (!data.empty())
      Add(Token::Kind::data, data);
  }

  static char SignAt(absl::string_view text, size_t at) {
    return at < text.size() && (text[at] == '-' || text[at] == '+') ? text[at] : 0;
  }
  /// Where a tag ends that begins at `from` with its closing sign; 0: it does not.
  size_t CloseAt(size_t from, absl::string_view close, bool trims) const {
    const char sign = SignAt(text, from);
    if (!absl::StartsWith(text.substr(from + (sign != 0)), close) || (sign == '+' && !trims))
      return 0;
    const size_t end = from + (sign != 0) + close.size();
    if (sign == '-')
      return SkipSpace(end);
    return end + (trims && !sign && end < text.size() && text[end] == '\n');
  }

  void Root() {
    size_t begin = at;
    do
      begin = text.find('{', begin);
    while (begin != absl::string_view::npos &&
           (begin + 1 >= text.size() || !absl::StrContains("{%#", text[begin + 1])) && ++begin);
    if (begin == absl::string_view::npos) {
      Add(Token::Kind::data, Rest());
      at = text.size();
      return;
    }
    const char kind = text[begin + 1];
    const char sign = SignAt(text, begin + 2);
    Data(text.substr(at, begin - at), sign, kind == '{');
    at = begin;
    const size_t inside = begin + 2 + (sign != 0);
    if (kind == '#')
      return Comment(inside);
    if (kind == '%' && Raw(inside))
      return;
    Add(kind == '%' ? Token::Kind::block_begin : Token::Kind::print_begin);
    at = inside;
    Tag(begin, kind == '%');
  }

  void Comment(size_t inside) {
    const size_t close = text.find("#}", inside);
    if (close == absl::string_view::npos)
      return Fail(at, "the comment has no end; expected `#}`");
    const bool has_sign = close > inside && SignAt(text, close - 1);
    EndTag(CloseAt(close - has_sign, "#}", true));
  }

  /// {% raw %} up to {% endraw %}.
  bool Raw(size_t inside) {
    size_t next = SkipSpace(inside);
    if (!absl::StartsWith(text.substr(next), "raw"))
      return false;
    next = SkipSpace(next + 3);
    const bool strips = absl::StartsWith(text.substr(next), "-%}");
    if (!strips && !absl::StartsWith(text.substr(next), "%}"))
      return false;
    const size_t begin = at;
    EndTag(strips ? SkipSpace(next + 3) : next + 2);
    for (size_t tag = text.find("{%", at); tag != absl::string_view::npos;
         tag = text.find("{%", tag + 1)) {
      const char sign = SignAt(text, tag + 2);
      size_t name = SkipSpace(tag + 2 + (sign != 0));
      if (!absl::StartsWith(text.substr(name), "endraw"))
        continue;
      const size_t end = CloseAt(SkipSpace(name + 6), "%}", true);
      if (!end)
        continue;
      Data(text.substr(at, tag - at), sign, false);
      EndTag(end);
      return true;
    }
    Fail(begin, "`raw` has no end; expected `{% endraw %}`");
    return true;
  }

  /// What stands within {{ }} or {% %}.
  void Tag(size_t begin, bool is_block) {
    const absl::string_view close = is_block ? "%}" : "}}";
    std::string open; // brackets
    while (status.ok()) {
      at = SkipSpace(at);
      if (at >= text.size())
        return Fail(begin, absl::StrCat("the tag has no end; expected `", close, "`"));
      if (open.empty())
        if (const size_t end = CloseAt(at, close, is_block)) {
          Add(is_block ? Token::Kind::block_end : Token::Kind::print_end);
          return EndTag(end);
        }
      size_t bytes = 0;
      const uint32_t c = CharacterAt(text, at, bytes);
      if (absl::ascii_isdigit(text[at]))
        Number();
      else if (c == '"' || c == '\'')
        String(text[at]);
      else if (c == '_' || IsLetter(c))
        Name();
      else
        Operator(open);
    }
  }

  void Name() {
    size_t end = at, bytes = 0;
    for (; end < text.size(); end += bytes) {
      const uint32_t c = CharacterAt(text, end, bytes);
      if (c != '_' && !IsLetter(c) && !(c >= '0' && c <= '9'))
        break;
    }
    // Work on a name is charged as one step.
    constexpr size_t kLongest = 1000;
    if (end - at > kLongest)
      return Fail(at, absl::StrCat("a name of more than ", kLongest, " bytes"));
    Add(Token::Kind::name, text.substr(at, end - at));
    at = end;
  }

  void Operator(std::string &open) {
    static const char *const pairs[] = {"//", "**", "==", "!=", ">=", "<="};
    absl::string_view found = text.substr(at, 1);
    for (const char *pair : pairs)
      if (absl::StartsWith(Rest(), pair))
        found = text.substr(at, 2);
    if (found.size() == 1 && !absl::StrContains("+-/*%~[](){}><=.:|,;", found))
      return Fail(at, absl::StrCat("a character that no expression has"));
    if (const size_t which = absl::string_view("([{").find(found); which != absl::string_view::npos)
      open.push_back(")]}"[which]);
    if (absl::StrContains(")]}", found)) {
      if (open.empty() || open.back() != found[0])
        return Fail(at, open.empty() ? absl::StrCat("`", found, "` closes nothing")
                                     : absl::StrCat("expected `", open.substr(open.size() - 1),
                                                    "`, found `", found, "`"));
      open.pop_back();
    }
    Add(Token::Kind::op, found);
    at += found.size();
  }

  /// The end of digits, which may have single underscores between them; `from` if there are none.
  template <typename Is> size_t Digits(size_t from, Is is_digit) const {
    size_t end = from;
    while (end < text.size() &&
           (is_digit(text[end]) ||
            (text[end] == '_' && end > from && end + 1 < text.size() && is_digit(text[end + 1]))))
      ++end;
    return end;
  }

  void Number() {
    const auto is_digit = [](char c) { return absl::ascii_isdigit(c); };
    size_t end = Digits(at, is_digit);
    bool is_real = false;
    // Behind a dot it is an index: a.0.1
    if (at == 0 || text[at - 1] != '.') {
      if (end < text.size() && text[end] == '.')
        if (const size_t more = Digits(end + 1, is_digit); more > end + 1) {
          end = more;
          is_real = true;
        }
      if (end < text.size() && (text[end] == 'e' || text[end] == 'E')) {
        const size_t digits = end + 1 + (SignAt(text, end + 1) != 0);
        if (const size_t more = Digits(digits, is_digit); more > digits) {
          end = more;
          is_real = true;
        }
      }
    }
    if (is_real) {
      const std::optional<double> value = ParseReal(text.substr(at, end - at));
      Add(Token::Kind::literal).value = Value(value.value_or(0));
    } else {
      const absl::string_view rest = Rest();
      const size_t prefixed = Digits(at + 2, [](char c) { return absl::ascii_isalnum(c); });
      if (rest.size() > 2 && rest[0] == '0' && absl::StrContains("xXoObB", rest[1]))
        end = prefixed;
      const std::optional<int64_t> value = ParseInteger(text.substr(at, end - at), 0);
      if (!value)
        return Fail(at, "a number that is no integer of 64 bits");
      Add(Token::Kind::literal).value = Value(*value);
    }
    at = end;
  }

  void String(char quote) {
    std::string out;
    size_t next = at + 1;
    for (;; ++next) {
      if (next >= text.size())
        return Fail(at,
                    absl::StrCat("the string has no end; expected `", std::string(1, quote), "`"));
      if (text[next] == quote)
        break;
      if (text[next] != '\\')
        out.push_back(text[next]);
      else if (++next >= text.size() || !Escape(next, out))
        return Fail(std::min(next, text.size()) - 1, "an escape that no string has");
    }
    Add(Token::Kind::literal).value = Value(std::move(out));
    at = next + 1;
  }

  /// `next` is at the character behind the backslash, and then at the last one of the escape.
  bool Escape(size_t &next, std::string &out) {
    static const char from[] = "abfnrtv\\'\"", to[] = "\a\b\f\n\r\t\v\\'\"";
    const char c = text[next];
    if (const char *found = std::find(from, from + sizeof from - 1, c);
        found != from + sizeof from - 1) {
      out.push_back(to[found - from]);
      return true;
    }
    const bool is_octal = c >= '0' && c <= '7';
    const size_t digits = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : is_octal ? 3 : 0;
    if (digits == 0) {
      if (c == 'N')
        return false;
      if (c != '\n') { // a backslash at the end of a line joins lines; any other stays
        out.push_back('\\');
        out.push_back(c);
      }
      return true;
    }
    uint32_t code_point = 0;
    size_t count = 0;
    for (size_t i = next + !is_octal; count < digits && i < text.size(); ++i, ++count) {
      const int base = is_octal ? 8 : 16;
      const char d = absl::ascii_tolower(text[i]);
      const int digit = absl::ascii_isdigit(d) ? d - '0' : d >= 'a' && d <= 'f' ? d - 'a' + 10 : 99;
      if (digit >= base)
        break;
      code_point = code_point * static_cast<uint32_t>(base) + static_cast<uint32_t>(digit);
    }
    next += is_octal ? count - 1 : count;
    if ((!is_octal && count < digits) || code_point > 0x10ffff ||
        (code_point >= 0xd800 && code_point < 0xe000))
      return false;
    AppendCharacter(code_point, out);
    return true;
  }

  const Source &source;
  absl::string_view text;
  size_t at = 0;
  bool is_line_start = true; // nothing stands before it in its line
  std::vector<Token> tokens;
  absl::Status status;
};

} // namespace

absl::StatusOr<std::vector<Token>> Tokenize(const Source &source) { return Lexer(source).Run(); }

} // namespace boa::jinja
