//===- sources.cpp - What `train.data` names ------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/abi/sources.h"

#include "runtime/abi/json_object.h"
#include "runtime/abi/template_values.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstring>
#include <iterator>
#include <numeric>
#include <set>
#include <string>
#include <utility>

namespace boa {
namespace {

constexpr char kMix[] = "mix";
constexpr SourceKind kCalls[] = {SourceKind::tokens, SourceKind::text, SourceKind::chat};
constexpr char kBlanks[] = " \t\r\n";

std::string PrintShare(double share) {
  char digits[32];
  return std::string(digits, std::to_chars(digits, digits + sizeof digits, share).ptr);
}

/// Reads calls from the left. The first error stays, and all reads after it do nothing.
class Reader {
public:
  explicit Reader(std::string_view text) : text(text) {}

  std::vector<DataSource> Read() {
    std::vector<DataSource> sources;
    if (TakeWord(kMix)) {
      Expect("(");
      do {
        double share = ReadShare();
        sources.push_back(ReadSource());
        sources.back().share = share;
      } while (ok() && Take(",") && sources.size() <= kMostSources);
      if (ok() && sources.size() > kMostSources)
        Fail("more than " + std::to_string(kMostSources) + " sources in a mix");
      Expect(")");
      if (ok() && WholeShares(sources).empty())
        Fail("expected shares above 0 with at most six decimals");
    } else {
      sources.push_back(ReadSource());
    }
    Skip();
    if (ok() && !rest().empty())
      Fail("expected nothing behind the call but found `" + std::string(rest()) + "`");
    if (!ok())
      sources.clear();
    return sources;
  }
  const std::string &error() const { return message; }

private:
  bool ok() const { return message.empty(); }
  void Fail(std::string text) {
    if (ok())
      message = std::move(text);
  }
  std::string_view rest() const { return text.substr(at); }
  void Skip() { at = std::min(text.find_first_not_of(kBlanks, at), text.size()); }

  bool Take(std::string_view sign) {
    Skip();
    if (!ok() || rest().substr(0, sign.size()) != sign)
      return false;
    at += sign.size();
    return true;
  }
  void Expect(std::string_view sign) {
    if (!Take(sign))
      Fail("expected `" + std::string(sign) + "` at `" + std::string(rest()) + "`");
  }
  std::string ReadName() {
    Skip();
    const size_t begin = at;
    while (at < text.size() &&
           (std::isalnum(static_cast<unsigned char>(text[at])) || text[at] == '_'))
      ++at;
    return std::string(text.substr(begin, at - begin));
  }
  bool TakeWord(std::string_view word) {
    const size_t begin = at;
    if (ReadName() == word)
      return true;
    at = begin;
    return false;
  }
  template <typename Number> Number ReadNumber(const char *what) {
    Skip();
    Number number = 0;
    const auto read = std::from_chars(text.data() + at, text.data() + text.size(), number);
    if (read.ec != std::errc())
      Fail(std::string("expected ") + what + " at `" + std::string(rest()) + "`");
    at = size_t(read.ptr - text.data());
    return number;
  }
  double ReadShare() {
    const double share = ReadNumber<double>("a share, as in 0.7 tokens(\"FILES\"),");
    Take("*");
    return share;
  }
  std::string ReadString() {
    Expect("\"");
    const size_t end = std::min(text.find('"', at), text.size());
    std::string string(text.substr(at, end - at));
    at = end;
    Expect("\"");
    if (ok() && string.empty())
      Fail("expected a file or a pattern in the quotes");
    return string;
  }

  std::string ReadObject() {
    Skip();
    const size_t end = EndOfObject(rest());
    if (end == std::string_view::npos)
      Fail("expected an object of JSON at `" + std::string(rest()) + "`");
    const std::string object(rest().substr(0, end));
    at += object.size();
    if (const std::string fault = ok() ? FaultOfTemplateValues(object) : ""; !fault.empty())
      Fail("template_values: " + fault);
    return object;
  }

  DataSource ReadSource() {
    DataSource source;
    flags.clear();
    for (SourceKind kind : kCalls)
      if (source.kind == SourceKind::bytes && TakeWord(CallOf(kind)))
        source.kind = kind;
    if (source.kind == SourceKind::bytes)
      Fail("expected tokens(\"FILES\"), text(...) or chat(...) at `" + std::string(rest()) + "`");
    Expect("(");
    if (TakeWord("files"))
      Expect("=");
    source.files = ReadString();
    while (ok() && Take(","))
      source.kind == SourceKind::tokens ? ReadArgument(source) : ReadTokenizedArgument(source);
    if (ok() && source.is_tokenized() && source.tokenizer.empty())
      Fail(std::string("expected tokenizer = \"FILE\" in ") + CallOf(source.kind) + "(...)");
    Expect(")");
    return source;
  }

  /// Of tokens(...), behind the files.
  void ReadArgument(DataSource &source) {
    std::string name = ReadName();
    if (Take("=")) {
      if (name == "end" && source.end < 0) {
        source.end = ReadNumber<int64_t>("a token");
        if (source.end < 0)
          Fail("expected a token of at least 0");
        return;
      }
      if (name == "tokenizer" && source.tokenizer.empty()) {
        source.tokenizer = ReadString();
        return;
      }
      if (name != "type")
        Fail("tokens(...) takes the arguments files, type, end and tokenizer once, but found `" +
             name + "`");
      name = ReadName();
    }
    bool known = false;
    for (const char *type : kTokenTypes)
      known |= name == type;
    if (!known || !source.type.empty())
      Fail("expected one type, uint8, uint16, uint32, int32 or int64, but found `" + name + "`");
    source.type = name;
  }

  /// Of text(...) or chat(...), behind the files.
  void ReadTokenizedArgument(DataSource &source) {
    const std::string name = ReadName();
    if (!name.empty())
      Expect("=");
    const bool is_text = source.kind == SourceKind::text;
    const auto read_flag = [&] {
      const std::string word = ReadName();
      if (word != "true" && word != "false")
        Fail("expected " + name + " to be true or false but found `" + word + "`");
      return word == "true";
    };
    if ((name.empty() || name == "tokenizer") && source.tokenizer.empty()) {
      source.tokenizer = ReadString();
    } else if (name == "template" && !is_text && source.form.empty()) {
      source.form = ReadString();
    } else if (name == "template_values" && !is_text && source.values.empty()) {
      source.values = ReadObject();
    } else if ((name == "packed" || (name == "special" && is_text)) && flags.insert(name).second) {
      (name == "packed" ? source.packed : source.special) = read_flag();
    } else {
      Fail(std::string(CallOf(source.kind)) + "(...) takes the arguments files, tokenizer, packed" +
           (is_text ? " and special" : ", template and template_values") + " once, but found `" +
           name + "`");
    }
  }

  const std::string_view text;
  size_t at = 0;
  std::string message;
  std::set<std::string> flags; // that the source gave, until now
};

} // namespace

bool IsSourceCall(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(kBlanks), text.size()));
  for (std::string_view name : {std::string_view(kMix), std::string_view("tokens"),
                                std::string_view("text"), std::string_view("chat")})
    if (text.substr(0, name.size()) == name) {
      const size_t next = text.find_first_not_of(kBlanks, name.size());
      if (next != std::string_view::npos && text[next] == '(')
        return true;
    }
  return false;
}

bool DataSource::has_template_file() const {
  return !form.empty() && std::find(std::begin(kTemplateNames), std::end(kTemplateNames), form) ==
                              std::end(kTemplateNames);
}

DataSource ChatOf(std::string_view data) {
  std::string error;
  for (DataSource &source : ParseSources(data, error))
    if (source.kind == SourceKind::chat)
      return std::move(source);
  return {};
}

const char *CallOf(SourceKind kind) {
  switch (kind) {
  case SourceKind::bytes:
    break;
  case SourceKind::tokens:
    return "tokens";
  case SourceKind::text:
    return "text";
  case SourceKind::chat:
    return "chat";
  }
  return "";
}

std::string FormatSource(const DataSource &source) {
  if (source.kind == SourceKind::bytes)
    return (IsSourceCall(source.files) ? "./" : "") + source.files;
  std::string text = std::string(CallOf(source.kind)) + "(\"" + source.files + '"';
  const std::string tokenizer =
      source.tokenizer.empty() ? "" : ", tokenizer = \"" + source.tokenizer + '"';
  if (source.is_tokenized())
    text += tokenizer;
  if (!source.form.empty())
    text += ", template = \"" + source.form + '"';
  if (!source.values.empty())
    text += ", template_values = " + source.values;
  if (source.special)
    text += ", special = true";
  if (!source.packed)
    text += ", packed = false";
  if (!source.type.empty())
    text += ", " + source.type;
  if (source.end >= 0)
    text += ", end = " + std::to_string(source.end);
  return text + (source.is_tokenized() ? "" : tokenizer) + ")";
}

std::string FormatSources(const std::vector<DataSource> &sources) {
  if (sources.size() == 1)
    return FormatSource(sources[0]);
  std::string text;
  for (const DataSource &source : sources)
    text += (text.empty() ? std::string(kMix) + "(" : ", ") + PrintShare(source.share) + " " +
            FormatSource(source);
  return text + ")";
}

std::vector<DataSource> ParseSources(std::string_view text, std::string &error) {
  if (!IsSourceCall(text)) {
    DataSource source;
    source.files = text;
    return {source};
  }
  Reader reader(text);
  std::vector<DataSource> sources = reader.Read();
  error = reader.error();
  return sources;
}

std::vector<int64_t> WholeShares(const std::vector<DataSource> &sources) {
  constexpr double kParts = 1e6, kMost = 1e6;
  std::vector<int64_t> shares;
  int64_t common = 0;
  for (const DataSource &source : sources) {
    const double parts = source.share * kParts;
    if (!(source.share > 0 && source.share <= kMost) ||
        std::abs(parts - std::round(parts)) > 1e-3 || std::round(parts) < 1)
      return {};
    shares.push_back(std::llround(parts));
    common = std::gcd(common, shares.back());
  }
  for (int64_t &share : shares)
    share /= common;
  return shares;
}

} // namespace boa
