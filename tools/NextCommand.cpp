//===- NextCommand.cpp - What to type behind a training -------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "tools/NextCommand.h"

#include "runtime/abi/sources.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringRef.h"

namespace boa {
namespace {

/// A word of a shell's command line.
std::string quoted(const std::string &word) {
  const bool isPlain = llvm::all_of(word, [](char c) {
    return absl::ascii_isalnum(uint8_t(c)) || llvm::StringRef("_./=@,:+-").contains(c);
  });
  return isPlain && !word.empty()
             ? word
             : absl::StrCat("'", absl::StrReplaceAll(word, {{"'", "'\\''"}}), "'");
}

} // namespace

std::string nextCommand(const Invocation &training, const Program &program) {
  if (llvm::any_of(training.operands,
                   [](llvm::StringRef file) { return file == "-" || file.ends_with(".mlir"); }))
    return "";
  std::string error, given;
  auto add = [&](const char *flag, const std::string &value) {
    if (!value.empty())
      absl::StrAppend(&given, " ", flag, " ", quoted(value));
  };
  for (const std::string &file : training.operands)
    absl::StrAppend(&given, " ", quoted(file));
  for (const std::string &setting : training.compile.overrides)
    add("--set", setting);
  add("--target", training.compile.target);
  add("--state", training.train.state);

  const std::string &data = training.train.data.empty() ? program.train.data : training.train.data;
  const std::vector<DataSource> sources = ParseSources(data, error);
  const bool isText =
      !sources.empty() && (sources[0].kind == SourceKind::bytes || !sources[0].tokenizer.empty());
  if (program.train.objective != Objective::next_token || !isText) {
    add("--data", training.train.data);
    return absl::StrCat("boa evaluate", given);
  }
  add("--tokenizer", sources[0].tokenizer);
  if (program.machine.device == DeviceKind::cuda)
    given += " --no-cache";
  if (sources[0].kind == SourceKind::chat)
    given += " --chat --prompt 'Who are you?'";
  return absl::StrCat("boa sample", given);
}

} // namespace boa
