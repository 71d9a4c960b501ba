//===- records_test.cpp - Records, and files that hold none ---------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/data/records.h"
#include "runtime/data/file_kinds.h"

#include "test/runtime/scratch.h"

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace boa {
namespace {

using testing::HasSubstr;

// What a record says beside its messages is read, refused, or named.
TEST(RecordsTest, ColumnsAreReadOrRefused) {
  const auto parsed = [](const std::string &columns, const std::string &of_answer = "") {
    return ParseRecord(R"({"conversations": [{"from": "human", "value": "q"},
        {"from": "gpt", "value": "a")" +
                       of_answer + "}]" + columns + "}");
  };
  const auto error = [&](const std::string &columns, const std::string &of_answer = "") {
    return std::string(parsed(columns, of_answer).status().message());
  };
  for (const char *key : {"system", "system_prompt", "system_message"}) {
    const auto record = parsed(absl::StrCat(", \"", key, "\": \"You are a pirate.\""));
    ASSERT_TRUE(record.ok()) << record.status();
    ASSERT_EQ(record->conversation.messages.size(), 3u);
    EXPECT_EQ(record->conversation.messages[0].Find("role")->text(), "system");
    EXPECT_EQ(record->conversation.messages[0].Find("content")->text(), "You are a pirate.");
  }
  EXPECT_EQ(parsed(R"(, "system": "p", "system_prompt": "p")")->conversation.messages.size(), 3u);
  EXPECT_THAT(error(R"(, "system": "p", "system_prompt": "r")"),
              HasSubstr("`system_prompt` differs from the system prompt that the messages have"));
  EXPECT_THAT(error(R"(, "system": ["p"])"), HasSubstr("expected `system` to be a text"));
  EXPECT_THAT(
      std::string(
          ParseRecord(R"({"prompt": "a", "completion": "b", "system": "c"})").status().message()),
      HasSubstr("a prompt has no place for it"));
  // Null, empty, and what repeats a message or says no: all of these are as absent.
  for (const char *column :
       {R"("system": null)", R"("system": "")", R"("tools": [])", R"("tools": "[]")",
        R"("text": " ")", R"("messages": null)", R"("messages": [])",
        R"("prompt": null, "completion": null)", R"("prompt": "q")", R"("answer": "a")",
        R"("tools": false)", R"("weight": 1.0)", R"("train": true, "label": true)"}) {
    const auto record = parsed(absl::StrCat(", ", column));
    ASSERT_TRUE(record.ok()) << column << record.status();
    EXPECT_EQ(record->conversation.messages.size(), 2u) << column;
    EXPECT_TRUE(record->unread.empty()) << column;
  }
  for (const char *key : {"tools", "chosen", "rejected", "instruction", "text", "images", "labels",
                          "chat_template_kwargs", "solution"})
    EXPECT_THAT(error(absl::StrCat(", \"", key, "\": \"something else\"")),
                HasSubstr(absl::StrCat("`", key,
                                       "` changes what the model reads or learns, and is "
                                       "not done; where it should not count, remove it")));
  for (const char *key : {"weight", "sample_weight", "loss_weight"}) {
    EXPECT_TRUE(parsed(absl::StrCat(", \"", key, "\": 1")).ok()) << key;
    for (const char *weight : {"0", "0.5"})
      EXPECT_THAT(error(absl::StrCat(", \"", key, "\": ", weight)),
                  HasSubstr(absl::StrCat("`", key, "` changes")));
  }
  EXPECT_THAT(error(R"(, "train": false)"), HasSubstr("`train` changes"));
  EXPECT_THAT(error(R"(, "kto_tag": false)"), HasSubstr("`kto_tag` changes"));
  EXPECT_THAT(error(R"(, "completion": "c")"), HasSubstr("expected only one of `messages`"));
  EXPECT_THAT(error(R"(, "messages": [{"role": "user", "content": "q"}])"),
              HasSubstr("expected only one of"));
  // Of a message: whether it is learnt, as several programs write it.
  const auto is_learnt = [](const std::string &keys) {
    const auto record =
        ParseRecord(R"({"messages": [{"role": "user", "content": "q", "train": false},
        {"role": "assistant", "content": "a"},
        {"role": "assistant", "content": "b", )" +
                    keys + "}]}");
    EXPECT_TRUE(record.ok()) << keys << record.status();
    return !record.ok() || record->conversation.learnt[2];
  };
  for (const char *no : {R"("train": false)", R"("training": false)", R"("loss": false)",
                         R"("weight": 0)", R"("weight": 0.0)", R"("weight": 1, "train": false)"})
    EXPECT_FALSE(is_learnt(no)) << no;
  for (const char *yes : {R"("train": true)", R"("weight": 1.0)", R"("train": null)",
                          R"("name": "")", R"("reasoning_content": null, "tool_calls": [])"})
    EXPECT_TRUE(is_learnt(yes)) << yes;
  EXPECT_THAT(error("", R"(, "train": "no")"), HasSubstr("expected `train` to be true or false"));
  EXPECT_THAT(error("", R"(, "train_detail": [1])"), HasSubstr("`train_detail` changes"));
  EXPECT_THAT(error("", R"(, "thinking": "hm")"), HasSubstr("message 2: `thinking`"));
  EXPECT_THAT(
      std::string(ParseRecord(R"({"messages": [{"role": "user", "content": "q", "train": true},
        {"role": "assistant", "content": "a"}]})")
                      .status()
                      .message()),
      HasSubstr("`train` is true, but only messages of the assistant are learnt"));
  const auto described = ParseRecord(
      R"({"id": 1, "source": "web", "score": 0.5, "messages": [{"role": "user", "content": "q", "lang": "en"}, {"role": "assistant", "content": "a"}]})");
  ASSERT_TRUE(described.ok()) << described.status();
  EXPECT_EQ(described->unread, (std::vector<std::string>{"lang", "id", "source", "score"}));
}

// An empty list in a text is absent where a list is meant, and a text everywhere else.
TEST(RecordsTest, EmptyListsInTexts) {
  for (const char *text : {"[]", "{}", " [] "}) {
    const auto record = ParseRecord(absl::StrCat(
        R"({"instruction": "How long is this list?", "input": ")", text, R"(", "output": "0"})"));
    ASSERT_TRUE(record.ok()) << record.status();
    EXPECT_EQ(record->conversation.messages[0].Find("content")->text(),
              absl::StrCat("How long is this list?\n", text));
    const auto calls = ParseRecord(
        absl::StrCat(R"({"messages": [{"role": "assistant", "content": "a", "tool_calls": ")", text,
                     R"(", "function_call": ")", text, R"("}], "tools": ")", text, R"("})"));
    ASSERT_TRUE(calls.ok()) << calls.status();
    EXPECT_EQ(calls->conversation.messages[0].dict().entries.size(), 2u);
    EXPECT_FALSE(calls->conversation.has_tools());
  }
  EXPECT_THAT(std::string(ParseRecord(R"({"messages": [{"role": "assistant", "content": "a"}],
                                         "solution": "[]"})")
                              .status()
                              .message()),
              HasSubstr("`solution` changes"));
}

// Tools are objects, and so are calls. A text is JSON of one.
TEST(RecordsTest, ToolsAreObjects) {
  const Template chat = *Template::Parse("{{ tools }}", "chat.jinja");
  const auto parsed = [&](const std::string &columns, const std::string &of_answer = "") {
    return ParseRecord(R"({"messages": [{"role": "assistant", "content": "a")" + of_answer + "}]" +
                           columns + "}",
                       [&](bool) { return &chat; });
  };
  const auto error = [&](const std::string &columns, const std::string &of_answer = "") {
    return std::string(parsed(columns, of_answer).status().message());
  };
  const auto record = parsed(R"(, "tools": ["{\"n\": 1}", {"n": 2}])");
  ASSERT_TRUE(record.ok()) << record.status();
  const auto &[name, tools] = record->conversation.variables.at(0);
  EXPECT_EQ(name, "tools");
  for (size_t i = 0; i < 2; ++i)
    EXPECT_EQ(tools.list().items.at(i).Find("n")->integer(), int64_t(i + 1));
  EXPECT_EQ(error(R"(, "tools": ["{\"n\": 1}", 5])"),
            "expected item 2 of `tools` to be an object, or JSON of one, but found number");
  EXPECT_EQ(error(R"(, "tools": ["[]"])"),
            "expected item 1 of `tools` to be an object, or JSON of one, but found array");
  EXPECT_THAT(error(R"(, "functions": ["search"])"),
              HasSubstr("expected item 1 of `functions` to be an object, or JSON of one, but "));
  EXPECT_EQ(error(R"(, "tools": {"n": 1})"),
            "expected `tools` to be a list of objects, or JSON of one, but found object");
  EXPECT_EQ(error("", R"(, "tool_calls": [{}, null])"),
            "message 1 of `messages`: expected item 2 of `tool_calls` to be an object, or JSON of "
            "one, but found null");
  EXPECT_THAT(error("", R"(, "tool_calls": "none")"),
              HasSubstr("message 1 of `messages`: expected `tool_calls` to be a list of objects"));
  for (const char *nothing : {"\"\"", "\"[]\""})
    EXPECT_THAT(
        std::string(
            ParseRecord(absl::StrCat(R"({"conversations": [{"from": "function_call", "value": )",
                                     nothing, "}]}"))
                .status()
                .message()),
        HasSubstr("expected the call of a function to be an object with `name`"));
}

// What is no form of a record, and what is wrong in one.
TEST(RecordsTest, FormsThatAreWrong) {
  const auto error = [](const std::string &line) {
    return std::string(ParseRecord(line).status().message());
  };
  EXPECT_EQ(error(R"({"id": 1})"),
            "expected `messages`, `conversations`, `prompt` and `completion`, `instruction` and "
            "`output`, or `text`");
  for (const char *line : {R"({"chosen": [1], "rejected": [2]})",
                           R"({"prompt": "a", "chosen": "b", "rejected": "c"})"})
    EXPECT_EQ(error(line),
              "`chosen` and `rejected` are preferences, which are not done; with `prompt` and "
              "`completion`, an answer is learnt");
  EXPECT_EQ(error(R"({"instruction": "a", "input": ""})"), "expected the key `output`");
  EXPECT_EQ(error(R"({"instruction": "a", "output": ""})"), "`output` is empty");
  EXPECT_EQ(error(R"({"instruction": "a", "input": 1, "output": "b"})"),
            "expected `input` to be a text but found number");
  EXPECT_EQ(error(R"({"instruction": "a", "output": "b", "text": "another"})"),
            "`text` changes what the model reads or learns, and is not done; where it should not "
            "count, remove it");
  EXPECT_EQ(error(R"({"text": ""})"), "`text` is empty");
  EXPECT_EQ(error(R"({"prompt": [{"role": "user", "content": "a"}], "completion":
                      [{"role": "user", "content": "b"}]})"),
            "no message of the assistant is to be learnt");
  EXPECT_EQ(error(R"({"prompt": "a", "completion": [{"content": "b"}]})"),
            "message 1 of `completion`: expected the key `role`");
  EXPECT_EQ(error(R"({"messages": [{"role": "user", "content": ["a"]}]})"),
            "message 1 of `messages`: expected `content` to be a text, or a list of {\"type\": "
            "\"text\", \"text\": \"...\"}, but found a list of string");
  EXPECT_EQ(error(R"({"conversations": [{"from": "function_call", "value": "now"}]})"),
            "message 1 of `conversations`: expected the call of a function to be an object with "
            "`name` and `arguments`");
}

// Files that are no records or texts yet are named, with the command that makes them so.
TEST(RecordsTest, FilesOfOtherKindsAreNamed) {
  const Scratch scratch;
  const auto error_of = [&](Wanted wanted, const std::string &name, const std::string &contents) {
    return std::string(
        CheckKind(*InputFile::Open(scratch.Write(name, contents)), wanted).message());
  };
  const std::string filler(100, 'x'), record = R"({"text": "It is."})";
  for (const auto &[name, begin, expected] :
       std::vector<std::tuple<const char *, std::string, const char *>>{
           {"a.gz", "\x1f\x8b\x08", "compressed by gzip; `gunzip -k "},
           {"a.zst", "\x28\xb5\x2f\xfd", "compressed by zstd; `zstd -d "},
           {"a.xz",
            "\xfd"
            "7zXZ",
            "compressed by xz; `unxz -k "},
           {"a.parquet", "PAR1", "a Parquet file; `python3 -c \"import pandas; "},
           {"a.feather", "ARROW1", "an Arrow file; `python3 -c \"import pandas; "},
           {"a.arrow", "\xff\xff\xff\xff", "an Arrow stream, as Hugging Face's datasets writes it"},
           {"a.utf16", "\xff\xfe", "a text in UTF-16; `iconv -f UTF-16 -t UTF-8 "},
           {"a.npy", "\x93NUMPY", "a NumPy file of tokens; `tokens("}})
    for (Wanted wanted : {Wanted::records, Wanted::text, Wanted::bytes}) {
      EXPECT_THAT(error_of(wanted, name, begin + filler), HasSubstr(expected));
      EXPECT_THAT(error_of(wanted, name, begin + filler), HasSubstr(scratch.path(name)));
    }
  EXPECT_THAT(error_of(Wanted::records, "a.json", "\xef\xbb\xbf[\n  {\n"),
              HasSubstr("expected one JSON object a line, but it is one JSON array; `python3 -c "));
  EXPECT_THAT(error_of(Wanted::records, "a.json", "[{\"messages\": []}, {}]"),
              HasSubstr("one JSON array"));
  EXPECT_THAT(error_of(Wanted::records, "a.json", "{\n  \"messages\": []\n}\n"),
              HasSubstr("its first one goes over several lines; `python3 -m json.tool --compact "));
  EXPECT_THAT(error_of(Wanted::records, "a.csv", "prompt,completion\na,b\n"),
              HasSubstr("csv.DictReader"));
  EXPECT_THAT(error_of(Wanted::text, "a.jsonl", filler),
              HasSubstr("it holds JSON records, whose syntax would be learnt; chat(...) reads"));
  EXPECT_THAT(error_of(Wanted::text, "b.txt", record + "\n" + record + "\n"),
              HasSubstr("`boa tokenize`"));
  EXPECT_THAT(error_of(Wanted::text, "c.txt", record), HasSubstr("it holds JSON records"));
  EXPECT_EQ(error_of(Wanted::any_text, "a.jsonl", record), "");
  EXPECT_EQ(error_of(Wanted::text, "d.txt", "{ a }\n{ b }\n" + filler), ""); // it only looks so
  EXPECT_EQ(error_of(Wanted::records, "d.jsonl", record + "\n" + record), "");
}

} // namespace
} // namespace boa
