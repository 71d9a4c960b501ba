//===- file_kinds.cpp - Files that are no data yet ------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/data/file_kinds.h"

#include "runtime/formats/json.h"
#include "runtime/support/refuse.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"

#include <algorithm>
#include <string>

namespace boa {
namespace {

constexpr int64_t kLooked = 64 << 10; // bytes of a file

/// How files of a kind begin, and the command that makes data of one. In it, @ is the file.
struct OtherKind {
  absl::string_view begin;
  const char *what, *command;
  const char *tokens = nullptr; // the command for tokens, if it is another one
  bool is_text = false;         // tokens may begin so, too
};
constexpr OtherKind kOtherKinds[] = {
    {"\x1f\x8b\x08", "compressed by gzip", "gunzip -k @"},
    {"\x28\xb5\x2f\xfd", "compressed by zstd", "zstd -d @"},
    {"\xfd"
     "7zXZ",
     "compressed by xz", "unxz -k @"},
    {"BZh", "compressed by bzip2", "bunzip2 -k @", nullptr, true},
    {"\x04\x22\x4d\x18", "compressed by lz4", "lz4 -d @"},
    {"PK\x03\x04", "a zip archive", "unzip @",
     "python3 -c \"import numpy; f = numpy.load('@'); numpy.save('@.npy', f[f.files[0]])\""},
    {"PAR1", "a Parquet file",
     "python3 -c \"import pandas; pandas.read_parquet('@').to_json('@.jsonl', orient='records', "
     "lines=True)\"",
     "python3 -c \"import numpy, pandas; numpy.concatenate(pandas.read_parquet('@')['input_ids'])"
     ".astype('uint32').tofile('@.bin')\""},
    {"ARROW1", "an Arrow file",
     "python3 -c \"import pandas; pandas.read_feather('@').to_json('@.jsonl', orient='records', "
     "lines=True)\"",
     "python3 -c \"import numpy, pandas; numpy.concatenate(pandas.read_feather('@')['input_ids'])"
     ".astype('uint32').tofile('@.bin')\""},
    {"\xff\xff\xff\xff", "an Arrow stream, as Hugging Face's datasets writes it",
     "python3 -c \"import datasets; datasets.Dataset.from_file('@').to_json('@.jsonl')\"", nullptr,
     true},
    {"\xff\xfe", "a text in UTF-16", "iconv -f UTF-16 -t UTF-8 @ > @.utf8", nullptr, true},
    {"\xfe\xff", "a text in UTF-16", "iconv -f UTF-16 -t UTF-8 @ > @.utf8", nullptr, true},
    {"\x93NUMPY", "a NumPy file of tokens", "tokens(\"@\")", ""},
};

constexpr const char *kWanted[] = {"tokens", "a text", "a text", "one JSON object a line",
                                   "a text"};
constexpr const char *kKeys[] = {"messages", "conversations", "prompt",  "completion",
                                 "text",     "instruction",   "content", "question"};

std::string Command(const char *command, const std::string &path) {
  return absl::StrCat("`", absl::StrReplaceAll(command, {{"@", path}}), "`");
}

/// Whether a text has a key of records.
bool HasRecordKey(absl::string_view text) {
  return std::any_of(std::begin(kKeys), std::end(kKeys), [&](const char *key) {
    const std::string quoted = absl::StrCat("\"", key, "\"");
    for (size_t at = 0; (at = text.find(quoted, at)) != text.npos;)
      if (absl::StartsWith(absl::StripLeadingAsciiWhitespace(text.substr(at += quoted.size())),
                           ":"))
        return true;
    return false;
  });
}

bool IsObject(absl::string_view text) {
  const absl::StatusOr<nlohmann::json> read = ParseJson(text);
  return read.ok() && read->is_object();
}

/// Whether the beginning of a text is that of a list of records, or of one record a line. JSON of
/// another kind is a text as others are.
bool HoldsRecords(absl::string_view text) {
  if (absl::ConsumePrefix(&text, "["))
    return absl::StartsWith(absl::StripLeadingAsciiWhitespace(text), "{") && HasRecordKey(text);
  if (!absl::StartsWith(text, "{"))
    return false;
  const size_t end = std::min(text.find('\n'), text.size());
  const absl::string_view first = text.substr(0, end),
                          rest = absl::StripLeadingAsciiWhitespace(text.substr(end));
  if (end < text.size() && !IsObject(first))
    return false;
  const size_t second = rest.find('\n');
  const bool are_two =
      second == rest.npos ? absl::StartsWith(rest, "{") : IsObject(rest.substr(0, second));
  return are_two || HasRecordKey(first);
}

/// `[`: a list of records over one or several lines. `{`: a document over several lines.
absl::Status CheckRecords(const std::string &path, absl::string_view text) {
  if (absl::StartsWith(text, "["))
    return Refuse("`", path, "`: expected one JSON object a line, but it is one JSON array; ",
                  Command("python3 -c \"import json; [print(json.dumps(r)) for r in "
                          "json.load(open('@'))]\" > @.jsonl",
                          path),
                  " writes its objects so");
  const size_t end = text.find('\n');
  const absl::string_view first = absl::StripAsciiWhitespace(text.substr(0, end));
  if (absl::StartsWith(text, "{") && end != text.npos && !absl::EndsWith(first, "}") &&
      !absl::StripAsciiWhitespace(text.substr(end)).empty())
    return Refuse("`", path,
                  "`: expected one JSON object a line, but its first one goes over several lines; ",
                  Command("python3 -m json.tool --compact @ > @.jsonl", path), " writes it in one");
  if (absl::EndsWith(path, ".csv") || absl::EndsWith(path, ".tsv"))
    return Refuse("`", path, "`: expected one JSON object a line, but it is a table; ",
                  Command(absl::EndsWith(path, ".csv")
                              ? "python3 -c \"import csv, json; [print(json.dumps(r)) for r in "
                                "csv.DictReader(open('@'))]\" > @.jsonl"
                              : "python3 -c \"import csv, json; [print(json.dumps(r)) for r in "
                                "csv.DictReader(open('@'), delimiter='\\t')]\" > @.jsonl",
                          path),
                  " writes its rows so");
  return absl::OkStatus();
}

} // namespace

absl::Status CheckKind(const InputFile &file, Wanted wanted) {
  std::string begin(size_t(std::min(file.size(), kLooked)), '\0');
  if (absl::Status status = file.Read(0, begin.data(), int64_t(begin.size())); !status.ok())
    return status;
  const std::string &path = file.path();
  for (const OtherKind &kind : kOtherKinds) {
    const bool is_tokens = wanted == Wanted::tokens;
    const char *command = is_tokens && kind.tokens ? kind.tokens : kind.command;
    if (!absl::StartsWith(begin, kind.begin) || !*command || (is_tokens && kind.is_text))
      continue;
    return Refuse("`", path, "`: expected ", kWanted[int(wanted)], ", but it is ", kind.what, "; ",
                  Command(command, path),
                  absl::StartsWith(command, "tokens(") ? " reads it" : " converts it",
                  wanted == Wanted::bytes && kind.is_text
                      ? absl::StrCat("; tokens(\"", path, "\", uint8) learns its bytes as they are")
                      : "");
  }
  if (wanted == Wanted::tokens || wanted == Wanted::any_text)
    return absl::OkStatus();
  absl::string_view text = begin;
  absl::ConsumePrefix(&text, kByteOrderMark);
  text = absl::StripLeadingAsciiWhitespace(text);
  if (wanted == Wanted::records)
    return CheckRecords(path, text);
  const bool is_named = absl::EndsWith(path, ".jsonl") || absl::EndsWith(path, ".ndjson");
  if (!is_named && !HoldsRecords(text))
    return absl::OkStatus();
  return Refuse(
      "`", path,
      "`: it holds JSON records, whose syntax would be learnt; chat(...) reads "
      "conversations. ",
      Command("python3 -c \"import json; [print(json.loads(line)['text']) for line in open('@')]\" "
              "> @.txt",
              path),
      " writes texts alone. To learn the syntax, ",
      wanted == Wanted::bytes ? absl::StrCat("write tokens(\"", path, "\", uint8)")
                              : "make tokens of it by `boa tokenize`");
}

} // namespace boa
