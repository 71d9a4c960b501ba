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

/// A command line. A long one has several lines, which a shell reads as one.
std::string wrapped(std::string command, const std::vector<std::string> &arguments) {
  constexpr size_t kColumns = 92; // 100, less `next: ` before the line and ` \` behind it
  size_t column = command.size();
  for (const std::string &argument : arguments) {
    const bool fits = column + 1 + argument.size() <= kColumns;
    absl::StrAppend(&command, fits ? " " : " \\\n    ", argument);
    column = (fits ? column + 1 : 4) + argument.size();
  }
  return command;
}

/// Whether a file can be read once more. A pipe of the shell is gone.
bool canBeReadAgain(llvm::StringRef file) {
  return file != "-" && !file.starts_with("/dev/") && !file.starts_with("/proc/");
}

/// The source that shows how the model takes a text; null where none does.
const DataSource *findText(const std::vector<DataSource> &sources) {
  const DataSource *text = nullptr;
  for (const DataSource &source : sources) {
    if (source.kind == SourceKind::chat)
      return &source;
    if (!text && (source.kind == SourceKind::bytes || !source.tokenizer.empty()))
      text = &source;
  }
  return text;
}

} // namespace

std::string nextCommand(const Invocation &training, const std::vector<std::string> &settings,
                        const Program &program) {
  for (llvm::StringRef file : training.operands)
    if (!canBeReadAgain(file) || file.ends_with(".mlir"))
      return "";
  std::string error;
  std::vector<std::string> given;
  auto add = [&](const char *flag, const std::string &value) {
    if (!value.empty())
      given.push_back(absl::StrCat(flag, value[0] == '-' ? "=" : " ", quoted(value)));
  };
  for (const std::string &file : training.operands)
    given.push_back(quoted((file[0] == '-' ? "./" : "") + file));
  for (const std::string &setting : settings)
    add("--set", setting);
  add("--target", training.compile.target);
  add("--state", training.train.state);
  add("--data", training.train.data);

  const std::string &data = training.train.data.empty() ? program.train.data : training.train.data;
  const std::vector<DataSource> sources = ParseSources(data, error);
  const DataSource *text = findText(sources);
  if (program.train.objective != Objective::next_token || !text) {
    add("--tokens", training.train.tokens);
    return wrapped("boa evaluate", given);
  }
  add("--tokenizer", text->tokenizer);
  if (!TraitsOf(program.machine.device).continues_texts)
    given.push_back("--no-cache");
  if (text->kind == SourceKind::chat) {
    given.push_back("--chat");
    add("--prompt", "Who are you?");
  }
  return wrapped("boa sample", given);
}

} // namespace boa
