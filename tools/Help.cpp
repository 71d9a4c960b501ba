//===- Help.cpp - What `boa --help` and `boa help` print ------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "frontend/ForeignSpellings.h"
#include "frontend/Frontend.h"
#include "tools/CommandLine.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"

namespace boa {
namespace {

std::string exampleLines(const DriverCommand &command) {
  std::string text;
  for (auto [line, does] : command.examples)
    absl::StrAppend(&text, "  ", llvm::formatv("{0,-48} {1}", line, does).str(), "\n");
  // Nothing behind the end of a line.
  return absl::StrReplaceAll(text, {{" \n", "\n"}});
}

std::string useLine(const DriverCommand &command, std::pair<const char *, const char *> use) {
  return llvm::formatv("{0,-33} {1}\n", absl::StrCat("boa ", command.name, " ", use.first),
                       use.second);
}

/// A line, or two where it has more than 80 columns.
std::string brokenLine(std::string line) {
  if (const size_t at = line.rfind(' ', 80); line.size() > 80 && at != std::string::npos)
    line[at] = '\n';
  return line + "\n";
}

/// `train, compile and sample`.
std::string listCommands(const std::vector<std::string> &names) {
  std::vector<std::string> first(names.begin(), names.end() - 1);
  return absl::StrCat(absl::StrJoin(first, ", "), first.empty() ? "" : " and ", names.back());
}

} // namespace

std::string helpText() {
  std::string text = "usage: boa COMMAND [ARGUMENTS] [FLAGS]\n\n";
  for (const DriverCommand &command : commands())
    for (const auto &use : command.uses)
      text += "  " + useLine(command, use);
  text += "\nA SPEC is a file, or - for standard input. DIR is a state, and where a command\n"
          "needs one its last commit; DIR@STEP and DIR@best name other ones. Alone:\n" +
          FlagHelp("--help", "this text; behind a command: its flags") +
          FlagHelp("--version", "which boa this is");
  Invocation none;
  FlagTable table = flagsOf(none);
  std::vector<std::vector<std::string>> groups;
  for (const Flag &flag : table)
    if (llvm::find(groups, flag.commands) == groups.end())
      groups.push_back(flag.commands);
  for (const auto &group : groups) {
    FlagTable part;
    for (const Flag &flag : table)
      if (flag.commands == group)
        part.push_back(flag);
    absl::StrAppend(&text, "\n", brokenLine(absl::StrCat("flags of ", listCommands(group), ":")),
                    FlagsHelp(part, group[0]));
  }
  return text;
}

std::string helpText(const DriverCommand &command) {
  std::string text;
  for (const auto &use : command.uses)
    text += (text.empty() ? "usage: " : "       ") + useLine(command, use);
  Invocation none;
  return absl::StrCat(text, "\n", FlagsHelp(flagsOf(none), command.name),
                      FlagHelp("--help", "this text"), "\nexamples:\n", exampleLines(command));
}

namespace {

std::string commandsText() {
  std::string text;
  for (const DriverCommand &command : commands()) {
    for (const auto &use : command.uses)
      absl::StrAppend(&text, useLine(command, use));
    absl::StrAppend(&text, exampleLines(command), "\n");
  }
  return text + "`boa COMMAND --help` lists the flags of a command.\n";
}

std::string builtinsText() {
  std::string text = "Functions of a model. Shapes are checked before anything runs.\n";
  for (const frontend::BuiltinInfo &builtin : frontend::listBuiltins())
    absl::StrAppend(&text, "\n", builtin.signature, "\n    ", builtin.help, "\n    ",
                    builtin.shapes, "\n");
  return text + "\na + b, a * b, 0.5 * x, x / 2\n    element by element; a parameter stands on "
                "the right\n\nstage.param\n    a parameter of another stage\n";
}

std::string pytorchText() {
  std::string text = "Spellings of PyTorch and its trainers, and Boa's.\n";
  const std::pair<frontend::SpellingKind, const char *> kinds[] = {
      {frontend::SpellingKind::Word, "in a model"},
      {frontend::SpellingKind::Sign, "signs"},
      {frontend::SpellingKind::Function, "functions, methods and modules"},
      {frontend::SpellingKind::Setting, "settings of a training"},
      {frontend::SpellingKind::Value, "their values"}};
  for (auto [kind, title] : kinds) {
    absl::StrAppend(&text, "\n", title, ":\n");
    std::string spelling;
    for (const frontend::ForeignSpelling &foreign : frontend::foreignSpellings())
      if (foreign.kind == kind) {
        // Names of one meaning share a line.
        if (spelling == foreign.spelling)
          absl::StrAppend(&text, ", ", foreign.written);
        else
          absl::StrAppend(&text, spelling.empty() ? "" : "\n      " + spelling + "\n", "  ",
                          foreign.written);
        spelling = foreign.spelling;
      }
    absl::StrAppend(&text, "\n      ", spelling, "\n");
  }
  return text;
}

std::string settingsText() {
  std::string text = "Settings of a spec, as --set takes them: --set train.steps=50. Arguments of "
                     "a\ncall are set where the spec makes that call. Settings of "
                     "train.parameters and\nplan.activations stand in a spec only.\n";
  for (const frontend::SettingInfo &setting : frontend::listSettings()) {
    absl::StrAppend(&text, "\n", setting.path);
    if (!setting.calls.empty())
      absl::StrAppend(&text, "  (of ", setting.calls, ")");
    absl::StrAppend(&text, "\n    ", setting.values, "; ",
                    setting.isRequired
                        ? "required"
                        : absl::StrCat("default ", setting.fallback,
                                       setting.absent.empty() ? "" : ": " + setting.absent),
                    "\n    ", setting.help, "\n");
  }
  return text + "\nmodel.NAME\n    a constant of the model\n";
}

/// frontend/REFERENCE.md.
std::string referenceText() {
  std::string text = "<!-- Written by `boa help reference`. -->\n\n# Settings, builtins and "
                     "commands\n\n## Settings\n\n`--set PATH=VALUE` takes these paths. An "
                     "argument of a call is set where the spec makes that call. Settings of "
                     "`train.parameters` and `plan.activations` stand in a spec only.\n\n"
                     "| path | values | default | |\n|---|---|---|---|\n";
  auto cell = [](const std::string &part) { return absl::StrReplaceAll(part, {{"|", "\\|"}}); };
  for (const frontend::SettingInfo &setting : frontend::listSettings())
    absl::StrAppend(&text, "| `", setting.path, "`",
                    setting.calls.empty() ? "" : absl::StrCat(" (of ", setting.calls, ")"), " | ",
                    cell(setting.values), " | ",
                    setting.isRequired
                        ? "required"
                        : absl::StrCat("`", setting.fallback, "`",
                                       setting.absent.empty() ? "" : ": ", setting.absent),
                    " | ", cell(setting.help), " |\n");
  absl::StrAppend(&text, "\n## Builtins\n\n| signature | shapes | |\n|---|---|---|\n");
  for (const frontend::BuiltinInfo &builtin : frontend::listBuiltins())
    absl::StrAppend(&text, "| `", builtin.signature, "` | `", builtin.shapes, "` | ", builtin.help,
                    " |\n");
  absl::StrAppend(&text, "\n## Commands\n");
  for (const DriverCommand &command : commands())
    absl::StrAppend(&text, "\n    ",
                    absl::StrReplaceAll(absl::StripTrailingAsciiWhitespace(helpText(command)),
                                        {{"\n", "\n    "}, {"\n\n", "\n\n    "}}),
                    "\n");
  return text;
}

} // namespace

std::string topicText(const std::string &topic) {
  return topic == "settings"    ? settingsText()
         : topic == "reference" ? referenceText()
         : topic == "builtins"  ? builtinsText()
         : topic == "commands"  ? commandsText()
                                : pytorchText();
}

} // namespace boa
