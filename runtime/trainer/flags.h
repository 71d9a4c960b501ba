//===- flags.h - Tables of flags, and what is made of them ------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A flag is a row of a table: its names, what its value is and where that goes,
// which commands take it, its help. Reading a command line, --help, suggestions
// and shell completion are functions of such tables; `boa` and stand-alone
// trainers share them.
//
// What holds of a command line that was read:
//   - Every flag on it is one of its command. Another command's, and one that does
//     not exist, is an error that says what was meant.
//   - A flag that takes one value is given once: of two values one would be
//     ignored. Switches may be repeated.
//   - A number is in its range. 0 is a number like others; it never means "none",
//     which is said by leaving the flag out.
//
// `--name VALUE`, `--name=VALUE`, `-n VALUE` and `-nVALUE` are the same. `-` is no
// flag, and behind `--` nothing is.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_TRAINER_FLAGS_H
#define BOA_RUNTIME_TRAINER_FLAGS_H

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

/// A whole number from `least` on. `below`: what to do instead, in words, where a
/// smaller one is likely to be meant.
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
/// One of a few words.
struct WordValue {
  std::string *to;
  std::vector<std::string> words;
};
/// Text, which may be empty.
struct TextValue {
  std::string *to;
};
/// The path of a file or of a directory, which may not.
struct FileValue {
  std::string *to;
};
struct DirectoryValue {
  std::string *to;
};
/// Each time one more text.
struct TextsValue {
  std::vector<std::string> *to;
};

/// What a value is and where it goes; a bool is a switch, which has none.
using Destination = std::variant<bool *, WholeValue, RealValue, WordValue, TextValue, FileValue,
                                 DirectoryValue, TextsValue>;

struct Flag {
  std::vector<std::string> commands; // that take it; empty: every one
  std::string name;                  // without dashes
  char letter;                       // of its short form; 0: none
  std::string value;                 // what --help calls it; empty for a switch
  std::string help;                  // empty: of use to tests alone, and listed nowhere
  Destination to;

  bool IsSwitch() const { return std::holds_alternative<bool *>(to); }
  bool IsTakenBy(std::string_view command) const;
};
using FlagTable = std::vector<Flag>;

/// What else to say of an unknown flag `--name value`, beginning with "; ", or "".
using FlagHint = std::function<std::string(const std::string &name, const std::string &value)>;

/// Reads a command's arguments, puts each value in its place and returns what is
/// no flag, in order. `program` is how messages name the program ("boa").
absl::StatusOr<std::vector<std::string>> ReadFlags(const FlagTable &, const std::string &program,
                                                   const std::string &command, int count,
                                                   const char *const *arguments,
                                                   const FlagHint &hint = nullptr);

/// Whether `--help` or `-h` is among them.
bool AsksForHelp(int count, const char *const *arguments);

/// What --help says of the flags that `command` takes: a line each.
std::string FlagsHelp(const FlagTable &, const std::string &command);
/// One such line.
std::string FlagHelp(std::string_view flag, std::string_view help);

} // namespace boa

#endif // BOA_RUNTIME_TRAINER_FLAGS_H
