//===- flags.h - Tables of flags, and their use -----------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A flag is a row of a table: its names, its value and the value's destination, its
// commands, its help. From such tables come the reader of command lines, --help,
// suggestions and shell completion. `boa` and stand-alone trainers share them.
//
// Rules for a command line:
//   - Each flag belongs to the command. If it does not, the error suggests another one.
//   - A flag with one value is given once, because one of two values would be ignored.
//     Switches may be repeated.
//   - A number is in its range. 0 is a number like others and never means "none". To say
//     "none", leave the flag out.
//
// `--name VALUE`, `--name=VALUE`, `-n VALUE` and `-nVALUE` are the same. `-` is no flag.
// No argument behind `--` is a flag.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_SUPPORT_FLAGS_H
#define BOA_RUNTIME_SUPPORT_FLAGS_H

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace boa {

/// A whole number from `least` on. `below`: advice for a user who gives a smaller one; may be
/// empty.
struct WholeValue {
  std::variant<int64_t *, std::optional<int64_t> *> to;
  int64_t least = 0;
  const char *below = "";
};
/// A number in [least, most].
struct RealValue {
  double *to;
  double least, most;
};
/// A number above 0, with k, M, B, G or T for thousands, millions and so on: 1.5T. B is G.
struct AmountValue {
  double *to;
};
/// One of a few words.
struct WordValue {
  std::string *to;
  std::vector<std::string> words;
};
/// Text, which may be empty.
struct TextValue {
  std::variant<std::string *, std::optional<std::string> *> to;
};
/// The path of a file or of a directory, which may not.
struct FileValue {
  std::string *to;
};
struct DirectoryValue {
  std::string *to;
};
/// Each time one more text, or one more path of a directory.
struct TextsValue {
  std::vector<std::string> *to;
};
struct DirectoriesValue {
  std::vector<std::string> *to;
};

/// The type of a value and its destination. A bool is a switch, which takes no value.
using Destination = std::variant<bool *, WholeValue, RealValue, AmountValue, WordValue, TextValue,
                                 FileValue, DirectoryValue, TextsValue, DirectoriesValue>;

struct Flag {
  std::vector<std::string> commands; // that take it; empty: all
  std::string name;                  // without dashes
  char letter;                       // of its short form; 0: none
  std::string value;                 // what --help calls it; empty for a switch
  std::string help;                  // empty: of use to tests alone, and listed nowhere
  Destination to;

  bool IsSwitch() const { return std::holds_alternative<bool *>(to); }
  /// Whether it may be given several times.
  bool IsRepeated() const {
    return std::holds_alternative<TextsValue>(to) || std::holds_alternative<DirectoriesValue>(to);
  }
  bool IsTakenBy(std::string_view command) const;
};
using FlagTable = std::vector<Flag>;

/// Advice about an unknown flag `--name value`. Begins with "; " or is empty.
using FlagHint = std::function<std::string(const std::string &name, const std::string &value)>;

/// Reads a command's arguments and stores the values. Returns the other arguments, in order.
/// `program`: its name in messages ("boa").
absl::StatusOr<std::vector<std::string>> ReadFlags(const FlagTable &, const std::string &program,
                                                   const std::string &command, int count,
                                                   const char *const *arguments,
                                                   const FlagHint &hint = nullptr);

/// Whether `--help` or `-h` is among them.
bool AsksForHelp(int count, const char *const *arguments);

/// The lines of --help for the flags of `command`.
std::string FlagsHelp(const FlagTable &, const std::string &command);
/// One such line.
std::string FlagHelp(std::string_view flag, std::string_view help);

} // namespace boa

#endif // BOA_RUNTIME_SUPPORT_FLAGS_H
