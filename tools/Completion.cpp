//===- Completion.cpp - Completion scripts for shells ---------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "tools/Completion.h"

#include "frontend/Frontend.h"
#include "tools/CommandLine.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"

#include <algorithm>

namespace boa {
namespace {

/// What a flag's value is to a shell.
enum class Value { none, file, directory, words, setting, other };

Value valueOf(const Flag &flag) {
  if (flag.IsSwitch())
    return Value::none;
  if (flag.name == "set")
    return Value::setting;
  if (std::holds_alternative<FileValue>(flag.to))
    return Value::file;
  if (std::holds_alternative<DirectoryValue>(flag.to) ||
      std::holds_alternative<DirectoriesValue>(flag.to))
    return Value::directory;
  return std::holds_alternative<WordValue>(flag.to) ? Value::words : Value::other;
}

std::string wordsOf(const Flag &flag) {
  return absl::StrJoin(std::get<WordValue>(flag.to).words, " ");
}

/// The flags that a command takes, --help among them.
FlagTable flagsOf(Invocation &none, const DriverCommand &command) {
  static bool help;
  FlagTable table;
  for (Flag &flag : flagsOf(none))
    if (flag.IsTakenBy(command.name) && !flag.help.empty())
      table.push_back(std::move(flag));
  table.push_back({{}, "help", 'h', "", "its flags", &help});
  return table;
}

/// `train.steps=` and so on.
std::string settings(const char *separator) {
  std::vector<std::string> paths;
  for (const frontend::SettingInfo &setting : frontend::listSettings())
    if (!setting.isOfPattern &&
        std::find(paths.begin(), paths.end(), setting.path + "=") == paths.end())
      paths.push_back(setting.path + "=");
  return absl::StrJoin(paths, separator);
}

std::string commandNames() {
  std::string names;
  for (const DriverCommand &command : commands())
    absl::StrAppend(&names, command.name, " ");
  return names;
}

//===----------------------------------------------------------------------===//
// Bash
//===----------------------------------------------------------------------===//

constexpr char kBashHead[] = R"(# Completion of boa for bash: source <(boa completion bash)

_boa_reply() { mapfile -t COMPREPLY < <(compgen "$@"); }
_boa_files() { compopt -o filenames 2>/dev/null; _boa_reply "$@"; }
_boa_specs() {
  compopt -o filenames 2>/dev/null
  mapfile -t COMPREPLY < <(compgen -d -- "$1"; compgen -f -X '!*.boa' -- "$1"
                           compgen -f -X '!*.mlir' -- "$1")
}

_boa() {
  local word=${COMP_WORDS[COMP_CWORD]} flag=${COMP_WORDS[COMP_CWORD-1]}
  COMPREPLY=()
  # Bash takes --flag=value apart at the sign.
  if [[ $word == = ]]; then
    word=
  elif [[ $flag == = ]]; then
    flag=${COMP_WORDS[COMP_CWORD-2]}
  fi
)";

std::string bashScript() {
  std::string values, flags, operands;
  for (const DriverCommand &command : commands()) {
    Invocation none;
    std::string names;
    for (const Flag &flag : flagsOf(none, command)) {
      absl::StrAppend(&names, "--", flag.name, " ");
      const Value value = valueOf(flag);
      if (value == Value::none)
        continue;
      std::string pattern = absl::StrCat("'", command.name, " --", flag.name, "'");
      if (flag.letter)
        absl::StrAppend(&pattern, " | '", command.name, " -", std::string(1, flag.letter), "'");
      const std::string action =
          value == Value::file        ? "_boa_files -f -- \"$word\""
          : value == Value::directory ? "_boa_files -d -- \"$word\""
          : value == Value::words ? absl::StrCat("_boa_reply -W '", wordsOf(flag), "' -- \"$word\"")
          : value == Value::setting
              ? "compopt -o nospace 2>/dev/null; _boa_reply -W \"$settings\" -- \"$word\""
              : ":";
      absl::StrAppend(&values, "  ", pattern, ") ", action, "; return ;;\n");
    }
    absl::StrAppend(&flags, "    ", command.name, ") _boa_reply -W '", names,
                    "' -- \"$word\" ;;\n");
    const std::string action =
        command.operand == DriverCommand::Operand::spec        ? "_boa_specs \"$word\""
        : command.operand == DriverCommand::Operand::directory ? "_boa_files -d -- \"$word\""
        : command.operand == DriverCommand::Operand::text
            ? "_boa_files -f -- \"$word\""
            : absl::StrCat("_boa_reply -W '", absl::StrJoin(command.words, " "), "' -- \"$word\"");
    absl::StrAppend(&operands, "  ", command.name, ") ", action, " ;;\n");
  }
  std::string text = kBashHead;
  absl::StrAppend(&text, "  local settings='\n", settings("\n"), "'\n");
  absl::StrAppend(&text, "  if (( COMP_CWORD == 1 )); then\n    _boa_reply -W '", commandNames(),
                  "--help --version' -- \"$word\"\n    return\n  fi\n");
  absl::StrAppend(&text, "  case \"${COMP_WORDS[1]} $flag\" in\n", values, "  esac\n");
  // Behind --set PATH=
  absl::StrAppend(&text, "  case $flag in\n");
  for (const frontend::SettingInfo &setting : frontend::listSettings())
    if (!setting.words.empty())
      absl::StrAppend(&text, "  ", setting.path, ") _boa_reply -W '",
                      absl::StrJoin(setting.words, " "), "' -- \"$word\"; return ;;\n");
  absl::StrAppend(&text, "  esac\n  if [[ $word == -* ]]; then\n    case ${COMP_WORDS[1]} in\n",
                  flags, "    esac\n    return\n  fi\n  case ${COMP_WORDS[1]} in\n", operands,
                  "  esac\n}\ncomplete -F _boa boa\n");
  return text;
}

//===----------------------------------------------------------------------===//
// Zsh
//===----------------------------------------------------------------------===//

/// Inside single quotes and the brackets of _arguments.
std::string zshQuote(std::string_view text) {
  return absl::StrReplaceAll(std::string(text),
                             {{"'", "'\\''"}, {"[", "\\["}, {"]", "\\]"}, {":", "\\:"}});
}

std::string zshAction(const Flag &flag) {
  switch (valueOf(flag)) {
  case Value::none:
    return "";
  case Value::file:
    return ":_files";
  case Value::directory:
    return ":_files -/";
  case Value::words:
    return absl::StrCat(":(", wordsOf(flag), ")");
  case Value::setting:
    return ":_boa_settings";
  case Value::other:
    return ":";
  }
  return "";
}

std::string zshScript() {
  std::string text = absl::StrCat("#compdef boa\n# Completion of boa for zsh: source <(boa "
                                  "completion zsh), or a file _boa in $fpath\n\n_boa_settings() {\n"
                                  "  local -a settings\n  settings=(\n",
                                  settings("\n"),
                                  "\n  )\n  compadd -S '' -- $settings\n}\n\n"
                                  "_boa() {\n  if (( CURRENT == 2 )); then\n"
                                  "    local -a commands\n    commands=(\n");
  for (const DriverCommand &command : commands())
    absl::StrAppend(&text, "      '", command.name, ":", zshQuote(command.uses[0].second), "'\n");
  absl::StrAppend(&text, "    )\n    _describe command commands\n    return\n  fi\n"
                         "  local command=$words[2]\n  shift words\n  (( CURRENT-- ))\n"
                         "  case $command in\n");
  for (const DriverCommand &command : commands()) {
    Invocation none;
    absl::StrAppend(&text, "  ", command.name, ")\n    _arguments \\\n");
    for (const Flag &flag : flagsOf(none, command)) {
      const std::string help = absl::StrCat(
          "[", zshQuote(flag.help), "]",
          flag.IsSwitch() ? "" : absl::StrCat(":", zshQuote(flag.value), zshAction(flag)));
      absl::StrAppend(&text, "      '", flag.IsRepeated() ? "*" : "", "--", flag.name,
                      flag.IsSwitch() ? "" : "=", help, "' \\\n");
      if (flag.letter)
        absl::StrAppend(&text, "      '-", std::string(1, flag.letter), flag.IsSwitch() ? "" : "+",
                        help, "' \\\n");
    }
    absl::StrAppend(&text, "      '*:argument:",
                    command.operand == DriverCommand::Operand::spec ? "_files -g \"*.(boa|mlir)\""
                    : command.operand == DriverCommand::Operand::directory ? "_files -/"
                    : command.operand == DriverCommand::Operand::text
                        ? "_files"
                        : absl::StrCat("(", absl::StrJoin(command.words, " "), ")"),
                    "'\n    ;;\n");
  }
  return absl::StrCat(text, "  esac\n}\n\nif [[ ${funcstack[1]} == _boa ]]; then\n  _boa \"$@\"\n"
                            "else\n  compdef _boa boa\nfi\n");
}

//===----------------------------------------------------------------------===//
// Fish
//===----------------------------------------------------------------------===//

std::string fishQuote(std::string_view text) {
  return absl::StrCat("'", absl::StrReplaceAll(std::string(text), {{"\\", "\\\\"}, {"'", "\\'"}}),
                      "'");
}

std::string fishScript() {
  std::string text = "# Completion of boa for fish: boa completion fish | source\n\n"
                     "complete -c boa -f\n"
                     "complete -c boa -n __fish_use_subcommand -l help -d 'commands and flags'\n"
                     "complete -c boa -n __fish_use_subcommand -l version -d 'which boa this is'\n";
  for (const DriverCommand &command : commands()) {
    absl::StrAppend(&text, "complete -c boa -n __fish_use_subcommand -a ", command.name, " -d ",
                    fishQuote(command.uses[0].second), "\n");
    const std::string line =
        absl::StrCat("complete -c boa -n '__fish_seen_subcommand_from ", command.name, "'");
    Invocation none;
    for (const Flag &flag : flagsOf(none, command)) {
      absl::StrAppend(&text, line, flag.letter ? " -s " : "",
                      flag.letter ? std::string(1, flag.letter) : "", " -l ", flag.name, " -d ",
                      fishQuote(flag.help));
      const Value value = valueOf(flag);
      absl::StrAppend(&text,
                      value == Value::none        ? ""
                      : value == Value::file      ? " -r -F"
                      : value == Value::directory ? " -x -a '(__fish_complete_directories)'"
                      : value == Value::words     ? absl::StrCat(" -x -a '", wordsOf(flag), "'")
                      : value == Value::setting   ? absl::StrCat(" -x -a '", settings(" "), "'")
                                                  : " -x",
                      "\n");
    }
    absl::StrAppend(&text, line,
                    command.operand == DriverCommand::Operand::spec ||
                            command.operand == DriverCommand::Operand::text
                        ? " -F"
                    : command.operand == DriverCommand::Operand::directory
                        ? " -a '(__fish_complete_directories)'"
                        : absl::StrCat(" -a '", absl::StrJoin(command.words, " "), "'"),
                    "\n");
  }
  return text;
}

} // namespace

std::string completionScript(const std::string &shell) {
  return shell == "bash" ? bashScript() : shell == "zsh" ? zshScript() : fishScript();
}

} // namespace boa
