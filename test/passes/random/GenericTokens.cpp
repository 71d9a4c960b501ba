//===- GenericTokens.cpp --------------------------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "test/passes/random/GenericTokens.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <cstring>

using llvm::StringRef;

namespace boa::random {

bool isNumber(StringRef text) {
  text.consume_front("-");
  return !text.empty() && llvm::isDigit(text[0]);
}

std::vector<Token> tokenize(StringRef text) {
  std::vector<Token> tokens;
  std::vector<int> open;
  size_t at = 0;
  auto isWord = [](char c) { return llvm::isAlnum(c) || c == '_' || c == '.' || c == '$'; };
  while (at < text.size()) {
    size_t begin = at;
    while (at < text.size() && isspace(static_cast<unsigned char>(text[at])))
      ++at;
    Token token;
    token.space = text.slice(begin, at).str();
    begin = at;
    if (at == text.size()) {
      tokens.push_back(token);
      break;
    }
    const char c = text[at];
    const bool glued = token.space.empty() && !tokens.empty() && isNumber(tokens.back().text);
    if (c == '"') {
      for (++at; at < text.size() && text[at] != '"'; ++at)
        at += text[at] == '\\';
      at = std::min(at + 1, text.size());
    } else if (c == 'x' && glued) { // 2x4xf32
      ++at;
    } else if (text.substr(at).starts_with("0x") && text.size() > at + 10 &&
               llvm::all_of(text.substr(at + 2, 8), llvm::isHexDigit)) {
      at += 2;
      while (at < text.size() && llvm::isHexDigit(text[at]))
        ++at;
    } else if (llvm::isDigit(c) ||
               (c == '-' && at + 1 < text.size() && llvm::isDigit(text[at + 1]))) {
      ++at;
      while (at < text.size() &&
             (llvm::isDigit(text[at]) || text[at] == '.' ||
              (text[at] == 'e' && at + 1 < text.size() && strchr("+-", text[at + 1]))))
        at += text[at] == 'e' ? 2 : 1;
    } else if (text.substr(at).starts_with("->")) {
      at += 2;
    } else if (isWord(c) || strchr("%@^#!", c)) {
      ++at;
      while (at < text.size() && (isWord(text[at]) || (c == '%' && text[at] == '#')))
        ++at;
      if (c == '@' && at == begin + 1 && text.substr(at).starts_with("\"")) {
        at = text.find('"', at + 1);
        at = at == StringRef::npos ? text.size() : at + 1;
      }
    } else {
      ++at;
    }
    token.text = text.slice(begin, at).str();
    const int here = int(tokens.size());
    if (token.text.size() == 1 && strchr("([{<", token.text[0])) {
      open.push_back(here);
    } else if (token.text.size() == 1 && strchr(")]}>", token.text[0]) && !open.empty()) {
      token.partner = open.back();
      tokens[size_t(open.back())].partner = here;
      open.pop_back();
    }
    tokens.push_back(token);
  }
  return tokens;
}

/// Ops of upstream's other dialects are left alone: only what is boa's of their attributes
/// changes.
static bool isOwn(StringRef op) {
  op.consume_front("\"");
  return op.starts_with("boa.") || op.starts_with("kernel.") || op.starts_with("func.") ||
         op.starts_with("arith.") || op.starts_with("builtin.");
}

Parts::Parts(StringRef text) : tokens(tokenize(text)) {
  for (int i = 0; i + 1 < int(tokens.size()); ++i)
    if (at(i).starts_with("\"") && at(i + 1) == "(" && partner(i + 1) > 0)
      findOp(i);
  foreign.resize(tokens.size());
  for (const Op &op : ops)
    if (!isOwn(at(op.name))) {
      std::fill(foreign.begin() + op.statement.begin, foreign.begin() + op.statement.end, true);
      if (at(op.name) == "\"llvm.func\"")
        std::fill(foreign.begin() + op.attributes.begin, foreign.begin() + op.attributes.end,
                  false);
    }
  llvm::erase_if(ops, [&](const Op &op) { return foreign[size_t(op.name)]; });
  for (int i = 0; i + 1 < int(tokens.size()); ++i) {
    if (foreign[size_t(i)])
      continue;
    if (at(i) == "{" && partner(i) > 0 && isDictionary(i))
      dictionaries.push_back({i + 1, partner(i)});
    if ((at(i) == "tensor" || at(i) == "memref" || at(i) == "!boa.buffer") && at(i + 1) == "<" &&
        partner(i + 1) > 0)
      types.push_back({i, partner(i + 1) + 1});
  }
}

bool Parts::isDictionary(int i) const {
  if (at(i + 1) == "}")
    return at(i - 1) != "(" && at(i - 1) != ","; // a region
  return at(i + 2) == "=" || at(i + 2) == "," || at(i + 2) == "}";
}

void Parts::findOp(int name) {
  Op op;
  op.name = name;
  int begin = name;
  while (begin > 0 && !startsLine(begin))
    --begin;
  int i = partner(name + 1);
  op.operands = {name + 2, i};
  ++i;
  if (at(i) == "[" && partner(i) > 0)
    i = partner(i) + 1;
  if (at(i) == "<" && partner(i) > 0) {
    op.properties = {i + 2, partner(i) - 1};
    i = partner(i) + 1;
  }
  if (at(i) == "(" && at(i + 1) == "{" && partner(i) > 0) {
    op.regions = {i + 1, partner(i)};
    i = partner(i) + 1;
  }
  if (at(i) == "{" && partner(i) > 0) {
    op.attributes = {i + 1, partner(i)};
    i = partner(i) + 1;
  }
  if (at(i) != ":" || at(i + 1) != "(" || partner(i + 1) < 0)
    return;
  op.operandTypes = {i + 2, partner(i + 1)};
  i = partner(i + 1) + 2;
  op.resultTypes.begin = i;
  while (i < int(tokens.size()) && (i == op.resultTypes.begin || !startsLine(i)) && !at(i).empty())
    ++i;
  op.resultTypes.end = i;
  op.statement = {begin, i};
  ops.push_back(op);
}

std::vector<Range> Parts::items(Range list) const {
  std::vector<Range> all;
  int begin = list.begin;
  for (int i = list.begin; i < list.end; ++i) {
    if (partner(i) > i)
      i = std::min(partner(i), list.end - 1);
    else if (at(i) == ",") {
      all.push_back({begin, i});
      begin = i + 1;
    }
  }
  if (begin < list.end)
    all.push_back({begin, list.end});
  return all;
}

std::string Parts::textOf(Range range) const {
  std::string text;
  for (int i = range.begin; i < range.end; ++i)
    text += (i == range.begin ? "" : tokens[size_t(i)].space) + tokens[size_t(i)].text;
  return text;
}

} // namespace boa::random
