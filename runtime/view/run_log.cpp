//===- run_log.cpp - The log of a training's runs -------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/view/run_log.h"

#include "runtime/support/units.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"

#include <ctime>
#include <utility>

namespace boa {

absl::StatusOr<RunLog> RunLog::Open(const std::string &path) {
  absl::StatusOr<OutputFile> opened = OutputFile::Open(path);
  if (!opened.ok())
    return opened.status();
  RunLog log;
  log.file = *std::move(opened);
  if (absl::Status status = log.file.AddToEnd(); !status.ok())
    return status;
  return log;
}

absl::Status RunLog::Begin(const std::string &identity, int64_t after,
                           const std::map<std::string, std::string> &settings,
                           const std::map<std::string, std::string> &environment) {
  std::string text = absl::StrCat("run of state ", identity, ", after step ", after);
  for (const std::map<std::string, std::string> *facts : {&environment, &settings})
    for (const auto &[name, value] : *facts)
      absl::StrAppend(&text, "\n  ", name, " = ", absl::StrReplaceAll(value, {{"\n", " "}}));
  return Say(text);
}

absl::Status RunLog::Say(absl::string_view text) {
  const std::string date = FormatDate(std::time(nullptr));
  std::string lines;
  for (absl::string_view line : absl::StrSplit(text, '\n'))
    if (line = absl::StripTrailingAsciiWhitespace(line); !line.empty())
      absl::StrAppend(&lines, date, " ", line, "\n");
  return file.Append(lines.data(), int64_t(lines.size()));
}

absl::Status RunLog::End(const absl::Status &status, int64_t step) {
  return Say(status.ok() ? absl::StrCat("the run ended after step ", step)
                         : absl::StrCat("the run ended: ", status.message()));
}

} // namespace boa
