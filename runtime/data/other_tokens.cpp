//===- other_tokens.cpp - Whether tokens mean what they meant -------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/data/other_tokens.h"

#include "runtime/data/data.h"
#include "runtime/data/tokenizer_print.h"

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include <set>

namespace boa {
namespace {

using Settings = std::map<std::string, std::string>;

std::string ValueOr(const Settings &settings, const std::string &key,
                    const std::string &otherwise) {
  auto it = settings.find(key);
  return it == settings.end() ? otherwise : it->second;
}

/// The values of all keys that begin so.
std::set<std::string> ValuesOf(const Settings &settings, const char *begin) {
  std::set<std::string> values;
  for (const auto &[key, value] : settings)
    if (absl::StartsWith(key, begin))
      values.insert(value);
  return values;
}

} // namespace

std::string DescribeOtherTokens(const Settings &committed, const Settings &now) {
  const std::set<std::string> known = ValuesOf(committed, kTokenizerOf),
                              known_files = ValuesOf(committed, kFilesOf);
  for (const auto &[key, print] : now) {
    if (!absl::StartsWith(key, kTokenizerOf) || known.empty() || known.count(print) > 0)
      continue;
    // A tokenizer that makes the same tokens of the same files means the same by them.
    const std::string pattern = key.substr(sizeof kTokenizerOf - 1);
    if (known_files.count(ValueOr(now, kFilesOf + pattern, "")) > 0)
      continue;
    return absl::StrCat(ValueOr(now, kCallOf + pattern, pattern),
                        ": its tokenizer is not the one of the data that the state was trained "
                        "on, so its tokens mean other texts");
  }
  const auto special = now.find(kSpecialTokens), was = committed.find(kSpecialTokens);
  if (special == now.end() || was == committed.end() || special->second == was->second)
    return "";
  return absl::StrCat("the special tokens of the data, which masked training leaves alone, have "
                      "changed since the commit: they were ",
                      was->second, ", and are ", special->second);
}

std::string NoteOtherTokens(const Settings &committed, const Settings &now) {
  const std::string other = DescribeOtherTokens(committed, now);
  return other.empty() ? "" : absl::StrCat("note: ", other);
}

std::string NoteOtherTokenizer(const Settings &committed, const std::string &tokenizer) {
  const std::set<std::string> known = ValuesOf(committed, kTokenizerOf);
  if (known.empty())
    return "";
  const absl::StatusOr<std::string> print = PrintOfTokenizer(tokenizer);
  if (!print.ok() || known.count(*print) > 0)
    return "";
  return absl::StrCat("note: `", tokenizer,
                      "` is not the tokenizer of the data that the state was trained on, so its "
                      "tokens may mean other texts");
}

} // namespace boa
