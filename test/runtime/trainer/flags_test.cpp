//===- flags_test.cpp - Tables of flags -----------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/support/flags.h"
#include "runtime/support/nearest.h"
#include "runtime/support/printable.h"
#include "runtime/support/printable_stream.h"
#include "runtime/trainer/main.h"

#include "gtest/gtest.h"

#include <new>
#include <cmath>
#include <sstream>
#include <thread>

namespace boa {
namespace {

/// A program with two commands, and what was read of it.
struct Tool {
  bool loud = false;
  std::string colour, size, name, file;
  int64_t count = -1;
  std::optional<int64_t> limit;
  double share = -1;
  std::vector<std::string> rest, tags;

  std::string Read(const std::string &command, std::vector<const char *> arguments,
                   const FlagHint &hint = nullptr) {
    *this = Tool();
    const FlagTable table = {
        {{}, "loud", 'l', "", "say more", &loud},
        {{"paint"}, "colour", 'c', "NAME", "of the wall", WordValue{&colour, {"red", "green"}}},
        {{"paint"}, "name", 0, "TEXT", "of the painter", TextValue{&name}},
        {{"paint"}, "file", 'f', "FILE", "to read", FileValue{&file}},
        {{"paint"}, "count", 0, "N", "of walls", WholeValue{&count}},
        {{"paint"},
         "limit",
         0,
         "N",
         "of paint",
         WholeValue{&limit, 1, "leave --limit out for none"}},
        {{"paint"}, "share", 0, "S", "of paint", RealValue{&share, 0, 1}},
        {{"paint"}, "tag", 't', "TAG", "repeats", TextsValue{&tags}},
        {{"build"}, "size", 0, "N", "of the wall", TextValue{&size}},
    };
    auto read = ReadFlags(table, "tool", command, int(arguments.size()), arguments.data(), hint);
    if (!read.ok())
      return std::string(read.status().message());
    rest = *read;
    return "";
  }
};

using Strings = std::vector<std::string>;

TEST(Flags, AreReadInEveryForm) {
  Tool tool;
  EXPECT_EQ(tool.Read("paint", {"a", "--count", "12", "-c", "red", "--limit=3", "-fx", "b", "-l"}),
            "");
  EXPECT_EQ(tool.count, 12);
  EXPECT_EQ(tool.colour, "red");
  EXPECT_EQ(tool.limit, 3);
  EXPECT_EQ(tool.file, "x");
  EXPECT_TRUE(tool.loud);
  EXPECT_EQ(tool.rest, (Strings{"a", "b"}));
}

TEST(Flags, OnlyTextsAndSwitchesAreRepeated) {
  Tool tool;
  EXPECT_EQ(tool.Read("paint", {"--tag", "a", "-t", "b", "--loud", "-l"}), "");
  EXPECT_EQ(tool.tags, (Strings{"a", "b"}));
  EXPECT_EQ(tool.Read("paint", {"--count=1", "--count", "2"}),
            "--count is given twice, as `1` and as `2`: it takes one value");
  EXPECT_EQ(tool.Read("paint", {"-c", "red", "--colour=red"}),
            "--colour is given twice, as `red` and as `red`: it takes one value");
}

TEST(Flags, ADashIsNoFlagAndNothingIsBehindTwo) {
  Tool tool;
  EXPECT_EQ(tool.Read("paint", {"-", "--", "--loud", "-x"}), "");
  EXPECT_EQ(tool.rest, (Strings{"-", "--loud", "-x"}));
  EXPECT_FALSE(tool.loud);
}

TEST(Flags, WantTheirValue) {
  Tool tool;
  EXPECT_EQ(tool.Read("paint", {"--file"}), "--file: expected a FILE");
  EXPECT_EQ(tool.Read("paint", {"--file="}), "--file: expected a FILE but found nothing");
  EXPECT_EQ(tool.Read("paint", {"--file", "--loud"}),
            "--file: expected a FILE but found the flag --loud; where that is the value, write "
            "--file=--loud");
  EXPECT_EQ(tool.Read("paint", {"--file=--loud", "--name", "--"}), "");
  EXPECT_EQ(tool.file, "--loud");
  EXPECT_EQ(tool.name, "--");
  EXPECT_EQ(tool.Read("paint", {"--loud=yes"}), "--loud takes no value");
  EXPECT_EQ(tool.Read("paint", {"--name="}), "");
}

TEST(Flags, HaveValuesOfTheirKindAndRange) {
  Tool tool;
  EXPECT_EQ(tool.Read("paint", {"--count", "many"}),
            "--count: expected a whole number but found `many`");
  EXPECT_EQ(tool.Read("paint", {"--count", "99999999999999999999"}),
            "--count: expected a whole number but found `99999999999999999999`");
  EXPECT_EQ(tool.Read("paint", {"--count", "-1"}), "--count: expected at least 0 but found -1");
  EXPECT_EQ(tool.Read("paint", {"--count", "0"}), "");
  EXPECT_EQ(tool.Read("paint", {"--limit", "0"}),
            "--limit: expected at least 1 but found 0; leave --limit out for none");
  EXPECT_FALSE(tool.limit);
  for (const char *share : {"nan", "inf", "-0.1", "1.1", "x", ""})
    EXPECT_EQ(tool.Read("paint", {"--share", share}),
              "--share: expected a number between 0 and 1 but found `" + std::string(share) + "`");
  EXPECT_EQ(tool.Read("paint", {"-c", "gren"}),
            "-c: expected one of red, green but found `gren`, did you mean `green`?");
}

// A flag that would be ignored is refused.
TEST(Flags, BelongToTheirCommand) {
  Tool tool;
  EXPECT_EQ(tool.Read("paint", {"--size", "3"}),
            "--size is a flag of tool build, not of tool paint");
  EXPECT_EQ(tool.Read("build", {"-c", "red"}), "-c is a flag of tool paint, not of tool build");
  EXPECT_EQ(tool.Read("paint", {"--colur", "red"}),
            "tool paint has no flag `--colur`, did you mean `--colour`?");
  // Of another command's flags none is suggested.
  EXPECT_EQ(tool.Read("paint", {"--sizes=3"}),
            "tool paint has no flag `--sizes`; tool paint --help lists its flags");
  EXPECT_EQ(tool.Read("paint", {"-x"}),
            "tool paint has no flag `-x`; tool paint --help lists its flags");
  EXPECT_EQ(tool.Read("paint", {"-lx"}), "-l takes no value");
}

TEST(Flags, TakeAHint) {
  Tool tool;
  const FlagHint hint = [](const std::string &name, const std::string &value) {
    return "; or " + name + "=" + value;
  };
  EXPECT_EQ(tool.Read("paint", {"--size", "3"}, hint),
            "--size is a flag of tool build, not of tool paint; or size=3");
  EXPECT_EQ(tool.Read("paint", {"--weight=4"}, hint),
            "tool paint has no flag `--weight`; or weight=4");
}

TEST(Flags, AskForHelpBeforeAnythingElse) {
  const char *arguments[] = {"--nonsense", "-h"}, *behind[] = {"--", "--help"};
  EXPECT_TRUE(AsksForHelp(2, arguments));
  EXPECT_FALSE(AsksForHelp(1, arguments));
  EXPECT_FALSE(AsksForHelp(2, behind));
}

TEST(Flags, OfTrainingGoWhereTheyBelong) {
  TrainerOptions options;
  const char *arguments[] = {"--steps", "12", "--state=there", "--resume", "--at=7"};
  auto rest = ReadFlags(TrainerFlags(options), "boa", "train", 5, arguments);
  ASSERT_TRUE(rest.ok()) << rest.status();
  EXPECT_EQ(options.steps, 12);
  EXPECT_EQ(options.state, "there");
  EXPECT_TRUE(options.resume);
  EXPECT_EQ(options.at, 7);
  EXPECT_TRUE(CheckTrainerOptions(options).ok());
  options.resume = false;
  EXPECT_EQ(CheckTrainerOptions(options).message(),
            "--at names the commit to resume from: give it together with --resume");
}

TEST(Nearest, LettersThatChangedPlacesAreOneMistake) {
  EXPECT_EQ(NearestWord("tarin", {"compile", "train", "sample"}), "train");
  EXPECT_EQ(NearestWord("tran", {"compile", "train", "sample"}), "train");
  EXPECT_EQ(NearestWord("--colour", {"--state", "--resume"}), "");
}

// Wherever in a command it was.
TEST(Process, AFailedAllocationIsAnErrorOfTheCommand) {
  EXPECT_EQ(RunWithinMemory([] { return 7; }), 7);
  testing::internal::CaptureStderr();
  // Sanitizers end the process where an allocation fails.
  EXPECT_EQ(RunWithinMemory([]() -> int { throw std::bad_alloc(); }), 1);
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "error: there is not enough memory: end other programs, or raise the limit of this "
            "process (`ulimit -v`, its cgroup)\n");
  // On a thread nobody can catch it.
  EXPECT_EXIT(RunWithinMemory([] {
                std::thread([] { throw std::bad_alloc(); }).join();
                return 0;
              }),
              testing::ExitedWithCode(1), "^error: there is not enough memory: end other programs");
}

// What a terminal would obey, it is shown.
TEST(Printable, EscapesControlCharacters) {
  EXPECT_EQ(Printable("a\tb\nc \xc3\xa4 \xe2\x82\xac"), "a\tb\nc \xc3\xa4 \xe2\x82\xac");
  EXPECT_EQ(Printable("\x1b[31mred\x1b[0m\r\x7f"), "\\x1b[31mred\\x1b[0m\\x0d\\x7f");
  EXPECT_EQ(Printable(std::string_view("\0", 1)), "\\x00");
  // U+009B is CSI too; so is its lone byte to old terminals.
  EXPECT_EQ(Printable("\xc2\x9b"
                      "31m \x9b"
                      "31m"),
            "\\xc2\\x9b31m \\x9b31m");
}

// Longer forms of ESC, half of a pair, a character beyond the last.
TEST(Printable, EscapesWhatIsNoCharacter) {
  EXPECT_EQ(Printable("\xc0\x9b \xe0\x80\x9b \xf0\x80\x80\x9b"),
            "\\xc0\\x9b \\xe0\\x80\\x9b \\xf0\\x80\\x80\\x9b");
  EXPECT_EQ(Printable("\xed\xa0\x80 \xf4\x90\x80\x80"), "\\xed\\xa0\\x80 \\xf4\\x90\\x80\\x80");
  EXPECT_EQ(Printable("\xed\x9f\xbf\xf4\x8f\xbf\xbf\xe0\xa0\x80"),
            "\xed\x9f\xbf\xf4\x8f\xbf\xbf\xe0\xa0\x80");
}

// A name is within a line.
TEST(Printable, NamesHaveNoLines) {
  EXPECT_EQ(PrintableName("a\nb\tc\x1b \xc3\xa4"), "a\\x0ab\\x09c\\x1b \xc3\xa4");
}

TEST(Printable, TextsInPieces) {
  const std::string text = "a \xc3\xa4 \xe2\x82\xac \xf0\x9f\x99\x82\x1b[2J\x9b \xc3";
  for (size_t bytes = 1; bytes <= text.size(); ++bytes) {
    PrintableText pieces;
    std::string shown;
    for (size_t at = 0; at < text.size(); at += bytes)
      shown += pieces.Add(std::string_view(text).substr(at, bytes));
    EXPECT_EQ(shown + pieces.Finish(), Printable(text)) << bytes;
  }
}

TEST(Printable, AStreamEndsItsLine) {
  for (const char *text : {"", "a", "a\n"}) {
    std::ostringstream to;
    PrintableStream stream(to);
    stream << text << std::flush << '\r';
    stream.Finish();
    EXPECT_EQ(to.str(), absl::StrCat(text, "\\x0d\n"));
  }
  std::ostringstream nothing;
  PrintableStream(nothing).Finish();
  EXPECT_EQ(nothing.str(), "");
}

} // namespace
} // namespace boa
