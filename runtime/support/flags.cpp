//===- flags.cpp - Tables of flags, and what is made of them --------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/support/flags.h"

#include "runtime/support/nearest.h"
#include "runtime/support/refuse.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

#include <algorithm>
#include <map>

namespace boa {
namespace {

/// Stores a value, or names the expected form.
struct Assign {
  const std::string &flag, &what, &value;

  absl::Status operator()(bool *to) const {
    *to = true;
    return absl::OkStatus();
  }
  absl::Status operator()(const WholeValue &number) const {
    int64_t whole = 0;
    if (!absl::SimpleAtoi(value, &whole))
      return Refuse(flag, ": expected a whole number but found `", value, "`");
    if (whole < number.least)
      return Refuse(flag, ": expected at least ", number.least, " but found ", whole,
                    *number.below ? "; " : "", number.below);
    if (auto *const *to = std::get_if<int64_t *>(&number.to))
      **to = whole;
    else
      *std::get<std::optional<int64_t> *>(number.to) = whole;
    return absl::OkStatus();
  }
  absl::Status operator()(const RealValue &number) const {
    double real = 0;
    // Both comparisons are false for NaN.
    if (!absl::SimpleAtod(value, &real) || !(real >= number.least && real <= number.most))
      return Refuse(flag, ": expected a number between ", number.least, " and ", number.most,
                    " but found `", value, "`");
    *number.to = real;
    return absl::OkStatus();
  }
  absl::Status operator()(const AmountValue &amount) const {
    constexpr std::pair<char, double> kUnits[] = {
        {'k', 1e3}, {'M', 1e6}, {'B', 1e9}, {'G', 1e9}, {'T', 1e12}};
    std::string digits = value;
    double unit = 1, number = 0;
    for (const auto &[letter, size] : kUnits)
      if (!digits.empty() && digits.back() == letter) {
        unit = size;
        digits.pop_back();
        break;
      }
    // The comparison is false for NaN.
    if (!absl::SimpleAtod(digits, &number) || !(number > 0 && number * unit <= 1e18))
      return Refuse(flag, ": expected a number such as 300B or 15T, at most 1e18, but found `",
                    value, "`");
    *amount.to = number * unit;
    return absl::OkStatus();
  }
  absl::Status operator()(const WordValue &word) const {
    *word.to = value;
    if (std::find(word.words.begin(), word.words.end(), value) != word.words.end())
      return absl::OkStatus();
    const std::string closest = NearestWord(value, word.words);
    return Refuse(flag, ": expected one of ", absl::StrJoin(word.words, ", "), " but found `",
                  value, "`",
                  closest.empty() ? "" : absl::StrCat(", did you mean `", closest, "`?"));
  }
  absl::Status operator()(const TextValue &text) const {
    std::visit([&](auto *to) { *to = value; }, text.to);
    return absl::OkStatus();
  }
  absl::Status operator()(const FileValue &path) const { return NotEmpty(path.to); }
  absl::Status operator()(const DirectoryValue &path) const { return NotEmpty(path.to); }
  absl::Status operator()(const TextsValue &texts) const {
    texts.to->push_back(value);
    return absl::OkStatus();
  }
  absl::Status operator()(const DirectoriesValue &paths) const {
    return NotEmpty(&paths.to->emplace_back());
  }

private:
  absl::Status NotEmpty(std::string *to) const {
    *to = value;
    return value.empty() ? Refuse(flag, ": expected a ", what, " but found nothing")
                         : absl::OkStatus();
  }
};

/// Reads one command line.
class Reader {
public:
  Reader(const FlagTable &table, const std::string &program, const std::string &command,
         const FlagHint &hint)
      : table(table), program(program), command(command), hint(hint) {}

  absl::StatusOr<std::vector<std::string>> Read(int count, const char *const *arguments) {
    std::vector<std::string> rest;
    for (int i = 0; i < count; ++i) {
      const std::string argument = arguments[i];
      if (argument == "--") {
        rest.insert(rest.end(), arguments + i + 1, arguments + count);
        break;
      }
      if (argument.size() < 2 || argument[0] != '-') {
        rest.push_back(argument);
        continue;
      }
      const char *next = i + 1 < count ? arguments[i + 1] : nullptr;
      bool took_next = false;
      if (absl::Status status = ReadOne(argument, next, took_next); !status.ok())
        return status;
      i += took_next;
    }
    return rest;
  }

private:
  static bool Names(const Flag &flag, const std::string &argument) {
    if (argument.compare(0, 2, "--") == 0)
      return argument.substr(2, argument.find('=') - 2) == flag.name;
    return flag.letter != 0 && argument.size() >= 2 && argument[0] == '-' &&
           argument[1] == flag.letter;
  }
  /// The row of this command's flag that `argument` begins with, or null.
  const Flag *Find(const std::string &argument) const {
    for (const Flag &flag : table)
      if (flag.IsTakenBy(command) && Names(flag, argument))
        return &flag;
    return nullptr;
  }

  absl::Status ReadOne(const std::string &argument, const char *next, bool &took_next) {
    const bool is_long = argument.compare(0, 2, "--") == 0;
    const size_t equals = argument.find('=');
    const Flag *flag = Find(argument);
    if (!flag)
      return Unknown(argument, next);
    const std::string name = is_long ? "--" + flag->name : argument.substr(0, 2);
    std::optional<std::string> value;
    if (is_long && equals != std::string::npos)
      value = argument.substr(equals + 1);
    else if (!is_long && argument.size() > 2)
      value = argument.substr(argument[2] == '=' ? 3 : 2);
    if (flag->IsSwitch() && value)
      return Refuse(name, " takes no value");
    if (!flag->IsSwitch() && !value) {
      if (!next)
        return Refuse(name, ": expected a ", flag->value);
      // `--state --resume`: a value was forgotten.
      if (const Flag *other = Find(next))
        return Refuse(name, ": expected a ", flag->value, " but found the flag --", other->name,
                      "; where that is the value, write ", name, "=", next);
      value = next;
      took_next = true;
    }
    if (!flag->IsSwitch() && !flag->IsRepeated()) {
      auto [first, is_new] = given.try_emplace(flag->name, *value);
      if (!is_new)
        return Refuse("--", flag->name, " is given twice, as `", first->second, "` and as `",
                      *value, "`: it takes one value");
    }
    const std::string text = value.value_or("");
    return std::visit(Assign{name, flag->value, text}, flag->to);
  }

  absl::Status Unknown(const std::string &argument, const char *next) const {
    const size_t equals = argument.find('=');
    const std::string name = argument.substr(0, equals);
    const std::string value = equals != std::string::npos ? argument.substr(equals + 1)
                              : next && next[0] != '-'    ? next
                                                          : "";
    const std::string who = command.empty() ? program : absl::StrCat(program, " ", command);
    const std::string more =
        hint && name.compare(0, 2, "--") == 0 ? hint(name.substr(2), value) : "";
    for (const Flag &flag : table)
      if (Names(flag, argument))
        return Refuse(name, " is a flag of ", program, " ",
                      absl::StrJoin(flag.commands, absl::StrCat(" and ", program, " ")),
                      ", not of ", who, more);
    std::vector<std::string> names{"--help"};
    for (const Flag &flag : table)
      if (flag.IsTakenBy(command))
        names.push_back("--" + flag.name);
    const std::string closest = NearestWord(name, names);
    return Refuse(who, " has no flag `", name, "`",
                  !more.empty()     ? more
                  : closest.empty() ? absl::StrCat("; ", who, " --help lists its flags")
                                    : absl::StrCat(", did you mean `", closest, "`?"));
  }

  const FlagTable &table;
  const std::string &program, &command;
  const FlagHint &hint;
  std::map<std::string, std::string> given;
};

} // namespace

bool Flag::IsTakenBy(std::string_view command) const {
  return commands.empty() || std::find(commands.begin(), commands.end(), command) != commands.end();
}

absl::StatusOr<std::vector<std::string>>
ReadFlags(const FlagTable &table, const std::string &program, const std::string &command, int count,
          const char *const *arguments, const FlagHint &hint) {
  return Reader(table, program, command, hint).Read(count, arguments);
}

bool AsksForHelp(int count, const char *const *arguments) {
  for (int i = 0; i < count && std::string_view(arguments[i]) != "--"; ++i)
    if (std::string_view(arguments[i]) == "--help" || std::string_view(arguments[i]) == "-h")
      return true;
  return false;
}

std::string FlagHelp(std::string_view flag, std::string_view help) {
  return absl::StrFormat("  %-22s %s\n", flag, help);
}

std::string FlagsHelp(const FlagTable &table, const std::string &command) {
  std::string help;
  for (const Flag &flag : table)
    if (flag.IsTakenBy(command) && !flag.help.empty())
      help += FlagHelp(
          absl::StrCat(flag.letter ? absl::StrCat("-", std::string(1, flag.letter), ", ") : "",
                       "--", flag.name, flag.IsSwitch() ? "" : " ", flag.value),
          flag.help);
  return help;
}

} // namespace boa
