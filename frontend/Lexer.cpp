//===- Lexer.cpp - Text to tokens -----------------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One pass over the bytes, without backing up. Accepts any bytes; refuses texts
// of more than 4 MiB, numbers that do not fit 64 bits, open strings and objects.
//
// A '{' where a value stands begins an object of JSON, which is one token.
//
//===----------------------------------------------------------------------===//
#include "frontend/Lexer.h"

#include "frontend/ForeignSpellings.h"
#include "runtime/abi/json_object.h"
#include "runtime/support/printable.h"

#include <charconv>
#include <cmath>

namespace boa::frontend {

namespace {

// The C functions of this name depend on the locale.
bool isDigit(char c) { return c >= '0' && c <= '9'; }
bool isLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool isSpace(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

class Lexer {
public:
  Lexer(const Sources &sources, int32_t file, Diagnostics &diagnostics, size_t begin)
      : text(sources.get(file).text), file(file), diagnostics(diagnostics), at(begin) {}

  std::vector<Token> run() {
    if (text.size() > Sources::kMaxBytes) {
      diagnostics.error(location(0), "expected a text of at most 4 MiB but found " +
                                         std::to_string(text.size()) + " bytes");
      at = text.size();
    }
    while (skipSpace(), at < text.size())
      lexToken();
    push(TokenKind::End, at);
    return std::move(tokens);
  }

private:
  Location location(size_t begin) const { return {file, uint32_t(begin), uint32_t(at)}; }
  char peek(size_t ahead = 0) const { return at + ahead < text.size() ? text[at + ahead] : '\0'; }

  void skipSpace() {
    while (at < text.size()) {
      bool slashes = text[at] == '/' && peek(1) == '/';
      if (slashes)
        diagnostics.error({file, uint32_t(at), uint32_t(at + 2)},
                          "unexpected '//'" + spellingHint(SpellingKind::Sign, "//", ": "));
      if (slashes || text[at] == '#') {
        // The lexer skips the text after the slashes, too: one mistake is one error.
        while (at < text.size() && text[at] != '\n')
          ++at;
      } else if (isSpace(text[at])) {
        newLine |= text[at] == '\n';
        ++at;
      } else {
        return;
      }
    }
  }

  Token &push(TokenKind kind, size_t begin) {
    Token token;
    token.kind = kind;
    token.location = location(begin);
    token.firstOfLine = newLine;
    newLine = false;
    tokens.push_back(std::move(token));
    return tokens.back();
  }

  void lexToken() {
    size_t begin = at;
    char c = text[at];
    if (isLetter(c)) {
      while (isLetter(peek()) || isDigit(peek()))
        ++at;
      push(TokenKind::Name, begin).text = std::string(text.substr(begin, at - begin));
      return;
    }
    if (isDigit(c) || (c == '.' && isDigit(peek(1))))
      return lexNumber();
    if (c == '"')
      return lexString();
    if (c == '{' && atObject())
      return lexObject();
    if (c == '-' && peek(1) == '>') {
      at += 2;
      push(TokenKind::Arrow, begin);
      return;
    }
    TokenKind kind = punctuation(c);
    if (kind != TokenKind::End) {
      ++at;
      push(kind, begin);
      return;
    }
    lexStray();
  }

  /// Characters that editors and web pages put where a plain one was meant, which
  /// is then taken for it: one mistake is one error.
  struct Typographic {
    std::string_view character;
    const char *meaning;
    TokenKind meant; // End: nothing
  };
  static const Typographic *findTypographic(std::string_view bytes) {
    static constexpr const char *kQuote = "a typographic quote: a string stands between two \"";
    static constexpr const char *kDash = "a dash: a minus is written -";
    static constexpr const char *kSpace = "a space of another kind: write a plain one";
    static constexpr Typographic kTable[] = {
        {"\u201c", kQuote, TokenKind::String},
        {"\u201d", kQuote, TokenKind::String},
        {"\u201e", kQuote, TokenKind::String},
        {"\u00ab", kQuote, TokenKind::String},
        {"\u00bb", kQuote, TokenKind::String},
        {"\u2018", kQuote, TokenKind::String},
        {"\u2019", kQuote, TokenKind::String},
        {"'", "a string stands between two \"", TokenKind::String},
        {"\u2013", kDash, TokenKind::Minus},
        {"\u2014", kDash, TokenKind::Minus},
        {"\u2212", kDash, TokenKind::Minus},
        {"\u00d7", "a typographic sign: write *", TokenKind::Star},
        {"\u00f7", "a typographic sign: write /", TokenKind::Slash},
        {"\u2192", "a typographic arrow: write ->", TokenKind::Arrow},
        {"\u00a0", kSpace, TokenKind::End},
        {"\u202f", kSpace, TokenKind::End},
        {"\u200b", "a space without width: delete it", TokenKind::End},
        {"\ufeff", "a byte order mark, which can stand only at the start: delete it",
         TokenKind::End},
        {";", "a statement ends with its line", TokenKind::End}};
    for (const Typographic &entry : kTable)
      if (bytes.substr(0, entry.character.size()) == entry.character)
        return &entry;
    return nullptr;
  }

  /// Bytes that begin no token.
  void lexStray() {
    size_t begin = at;
    std::string hint = findSpelling(SpellingKind::Sign, text.substr(at, 1));
    if (!hint.empty()) {
      ++at;
      diagnostics.error(location(begin),
                        "unexpected '" + std::string(text.substr(begin, 1)) + "': " + hint);
      // A product, where something follows; decorators begin a line.
      size_t next = std::min(text.find_first_not_of(" \t", at), text.size());
      char c = peek(next - at);
      if (!newLine && (isLetter(c) || isDigit(c) || c == '('))
        push(TokenKind::Star, begin);
      return;
    }
    if (const Typographic *entry = findTypographic(text.substr(at))) {
      at += entry->character.size();
      diagnostics.error(location(begin), "unexpected character '" + std::string(entry->character) +
                                             "', " + entry->meaning);
      if (entry->meant == TokenKind::String)
        lexTypographicString(begin);
      else if (entry->meant != TokenKind::End)
        push(entry->meant, begin);
      return;
    }
    while (at < text.size() && !startsToken(text[at]) &&
           (at == begin || !findTypographic(text.substr(at))))
      ++at;
    size_t length = Utf8Length(text, begin);
    diagnostics.error(
        location(begin),
        length == 0 ? "unexpected byte " + Printable(text.substr(begin, 1)) + ", which is no UTF-8"
                    : "unexpected character '" + std::string(text.substr(begin, length)) + "'");
  }

  /// The rest of what was meant to be a string, if it ends on this line.
  void lexTypographicString(size_t begin) {
    for (size_t end = at; end < text.size() && text[end] != '\n'; ++end) {
      const Typographic *entry = findTypographic(text.substr(end, 4));
      bool quote = text[end] == '"' || (entry && entry->meant == TokenKind::String);
      if (!quote)
        continue;
      std::string value(text.substr(at, end - at));
      at = end + (text[end] == '"' ? 1 : entry->character.size());
      push(TokenKind::String, begin).text = std::move(value);
      return;
    }
  }

  static TokenKind punctuation(char c) {
    switch (c) {
    case '(':
      return TokenKind::LeftParen;
    case ')':
      return TokenKind::RightParen;
    case '[':
      return TokenKind::LeftBracket;
    case ']':
      return TokenKind::RightBracket;
    case '{':
      return TokenKind::LeftBrace;
    case '}':
      return TokenKind::RightBrace;
    case ',':
      return TokenKind::Comma;
    case ':':
      return TokenKind::Colon;
    case '=':
      return TokenKind::Equals;
    case '.':
      return TokenKind::Dot;
    case '+':
      return TokenKind::Plus;
    case '-':
      return TokenKind::Minus;
    case '*':
      return TokenKind::Star;
    case '/':
      return TokenKind::Slash;
    case '%':
      return TokenKind::Percent;
    default:
      return TokenKind::End;
    }
  }
  static bool startsToken(char c) {
    return isLetter(c) || isDigit(c) || isSpace(c) || c == '"' || c == '#' ||
           punctuation(c) != TokenKind::End;
  }

  void lexNumber() {
    size_t begin = at;
    bool real = false;
    while (isDigit(peek()))
      ++at;
    if (peek() == '.' && isDigit(peek(1))) {
      real = true;
      ++at;
      while (isDigit(peek()))
        ++at;
    }
    bool sign = peek(1) == '+' || peek(1) == '-';
    if ((peek() == 'e' || peek() == 'E') && isDigit(peek(sign ? 2 : 1))) {
      real = true;
      at += sign ? 2 : 1;
      while (isDigit(peek()))
        ++at;
    }
    const char *first = text.data() + begin, *last = text.data() + at;
    Token &token = push(real ? TokenKind::Real : TokenKind::Integer, begin);
    std::errc failure = real ? std::from_chars(first, last, token.real).ec
                             : std::from_chars(first, last, token.integer).ec;
    if (!real)
      token.real = double(token.integer);
    if (failure == std::errc::result_out_of_range) {
      diagnostics.error(token.location, "the number is out of range");
      token.integer = 1;
      token.real = 1;
    }
    // 3MiB is read as 3 MiB; 3.5.2 and 1..2 fall to the parser.
  }

  void lexString() {
    size_t begin = at++;
    size_t contents = at;
    while (at < text.size() && text[at] != '"' && text[at] != '\n')
      ++at;
    std::string value(text.substr(contents, at - contents));
    if (at < text.size() && text[at] == '"') {
      ++at;
    } else {
      diagnostics.error(location(begin), "expected '\"' at the end of the string");
    }
    for (char c : value)
      if (c == '\0') {
        diagnostics.error(location(begin), "a string may hold no zero byte");
        break;
      }
    push(TokenKind::String, begin).text = std::move(value);
  }

  /// Whether an object begins here: as an argument, or as all of an option's text. Braces that end
  /// on another line may be a block behind a '=' too many, unless a string follows.
  bool atObject() const {
    if (!tokens.empty() && !tokens.back().is(TokenKind::Equals) &&
        !tokens.back().is(TokenKind::Comma) && !tokens.back().is(TokenKind::LeftParen))
      return false;
    size_t next = at + 1;
    while (next < text.size() && isSpace(text[next]))
      ++next;
    if (next < text.size() && text[next] == '"')
      return true;
    // Only up to the next brace: many braces in one line would each search all of it.
    next = text.find_first_of("{}\n", at + 1);
    return next != std::string_view::npos && text[next] == '}';
  }

  void lexObject() {
    const size_t begin = at, size = EndOfObject(text.substr(at));
    at = size == std::string_view::npos ? std::min(text.find('\n', at), text.size()) : at + size;
    if (size == std::string_view::npos)
      diagnostics.error(location(begin), "expected '}' at the end of the object of JSON, which "
                                         "stands on one line");
    push(TokenKind::Object, begin).text = std::string(text.substr(begin, at - begin));
  }

  std::string_view text;
  int32_t file;
  Diagnostics &diagnostics;
  size_t at;
  bool newLine = true;
  std::vector<Token> tokens;
};

} // namespace

std::vector<Token> lex(const Sources &sources, int32_t file, Diagnostics &diagnostics,
                       size_t begin) {
  return Lexer(sources, file, diagnostics, begin).run();
}

const char *describe(TokenKind kind) {
  switch (kind) {
  case TokenKind::End:
    return "the end of the text";
  case TokenKind::Name:
    return "a name";
  case TokenKind::Integer:
  case TokenKind::Real:
    return "a number";
  case TokenKind::String:
    return "a string";
  case TokenKind::Object:
    return "an object";
  case TokenKind::LeftParen:
    return "'('";
  case TokenKind::RightParen:
    return "')'";
  case TokenKind::LeftBracket:
    return "'['";
  case TokenKind::RightBracket:
    return "']'";
  case TokenKind::LeftBrace:
    return "'{'";
  case TokenKind::RightBrace:
    return "'}'";
  case TokenKind::Comma:
    return "','";
  case TokenKind::Colon:
    return "':'";
  case TokenKind::Equals:
    return "'='";
  case TokenKind::Arrow:
    return "'->'";
  case TokenKind::Dot:
    return "'.'";
  case TokenKind::Plus:
    return "'+'";
  case TokenKind::Minus:
    return "'-'";
  case TokenKind::Star:
    return "'*'";
  case TokenKind::Slash:
    return "'/'";
  case TokenKind::Percent:
    return "'%'";
  }
  return "a token";
}

std::string describe(const Token &token, const Sources &sources) {
  if (token.is(TokenKind::End) || token.is(TokenKind::String))
    return describe(token.kind);
  std::string text(sources.text(token.location));
  return "'" + (text.size() > 40 ? text.substr(0, 40) + "..." : text) + "'";
}

bool isReserved(std::string_view name) {
  for (std::string_view word :
       {"model", "train", "machine", "stage", "layer", "param", "let", "return", "repeat"})
    if (name == word)
      return true;
  return false;
}

} // namespace boa::frontend
