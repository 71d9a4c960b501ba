//===- tokenized_test.cpp - Texts and conversations as tokens -------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/data/data.h"
#include "runtime/data/tokenizer_print.h"
#include "runtime/formats/json.h"
#include "runtime/tokenizer/chat.h"
#include "test/runtime/data/tokenized.h"
#include "test/runtime/scratch.h"

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <filesystem>
#include <set>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace boa {
namespace {

using testing::HasSubstr;

// Windows that have no target are left out, and each target comes once in an epoch.
TEST_F(TokenizedTest, EachTargetComesOnceInAnEpoch) {
  std::string lines;
  for (int i = 0; i < 40; ++i)
    lines += absl::StrCat(R"({"prompt": ")", std::string(size_t(i * 7 % 200), 'x'),
                          R"(", "completion": "y"})", "\n");
  scratch.Write("a.jsonl", lines);
  options.data = options.validate = Call("chat", "a.jsonl");
  const Data data = Open();
  EXPECT_THAT(data.Describe(), HasSubstr("80 of them targets"));
  EXPECT_THAT(data.Describe(), HasSubstr("sequences without any left out"));
  const int64_t windows = Sequences(data);
  ASSERT_GT(windows, 20);
  int64_t counted = 0;
  for (int64_t step = 1; step <= windows; ++step) {
    Fill(data, step);
    const auto count =
        std::count_if(targets.begin(), targets.end(), [](int32_t target) { return target >= 0; });
    EXPECT_GT(count, 0);
    counted += count;
  }
  EXPECT_EQ(counted, 80);
}

// The last window may be without a target, wherever it ends in a byte of marks.
TEST_F(TokenizedTest, TheLastWindowMayHaveNoTarget) {
  scratch.Write("a.jsonl", std::string(kHello) + kHello);
  options.data = options.validate = Call("chat", "a.jsonl");
  for (options.context = 2; options.context < 44; ++options.context)
    EXPECT_GT(Sequences(Open()), 0);
}

// Documents that are not packed begin a window each, and padding is never learnt.
TEST_F(TokenizedTest, DocumentsBeginWindows) {
  std::string lines;
  std::multiset<std::string> wanted;
  for (int i = 0; i < 40; ++i) {
    const std::string prompt(size_t(i * 7 % 30 + 1), 'x');
    lines += absl::StrCat(R"({"prompt": ")", prompt, R"(", "completion": "y"})", "\n");
    wanted.insert(prompt);
  }
  scratch.Write("a.jsonl", lines);
  std::string call = Call("chat", "a.jsonl");
  call.insert(call.size() - 1, ", packed = false");
  options.data = options.validate = call;
  options.context = 48;
  const Data data = Open();
  EXPECT_EQ(Sequences(data), 40);
  std::multiset<std::string> prompts;
  for (int64_t step = 1; step <= 40; ++step) {
    Fill(data, step);
    const auto end = std::find(targets.begin(), targets.end(), 1); // <|end|>
    ASSERT_NE(end, targets.end());
    EXPECT_EQ(std::count_if(targets.begin(), targets.end(), [](int32_t t) { return t >= 0; }), 2);
    const std::string text =
        *Decode(Opened(), Tokens(tokens.begin(), tokens.begin() + (end - targets.begin())), false);
    prompts.insert(text);
    EXPECT_EQ(starts, Tokens(starts.size()));
  }
  EXPECT_EQ(prompts, wanted);
  // A longer document goes on in the next window, and a text is a document, too.
  options.context = 16;
  scratch.Write("b.txt", std::string(100, 'q') + " and this is the end of it");
  call = Call("text", "b.txt");
  call.insert(call.size() - 1, ", packed = false");
  options.data = options.validate = call;
  const Data text = Open();
  EXPECT_NE(data.facts(), text.facts());
  int64_t counted = 0, ends = 0;
  for (int64_t step = 1, all = Sequences(text); step <= all; ++step) {
    Fill(text, step);
    counted += std::count_if(targets.begin(), targets.end(), [](int32_t t) { return t >= 0; });
    ends += std::count(targets.begin(), targets.end(), 1);
  }
  EXPECT_EQ(ends, 1);
  EXPECT_THAT(text.Describe(), HasSubstr(absl::StrCat(counted, " of them targets")));
  options.objective = Objective::masked;
  options.mask_token = 3;
  options.mask_probability = 0.5;
  EXPECT_THAT(Error(), HasSubstr("padding would be learnt"));
}

// Files are documents: no target crosses from one to the next, and the tokens behind an end begin
// where they stand.
TEST_F(TokenizedTest, FilesOfTextsAreDocuments) {
  std::filesystem::create_directory(scratch.path("t"));
  for (char name : {'a', 'b', 'c'})
    scratch.Write(absl::StrCat("t/", std::string(1, name), ".txt"),
                  std::string(50, name) + " <|end|> it is text\n");
  options.data = options.validate = Call("text", "t/*.txt");
  const Data data = Open();
  EXPECT_THAT(data.Describe(), HasSubstr("3 files of"));
  int64_t boundaries = 0;
  for (int64_t step = 1; step <= 40; ++step) {
    Fill(data, step);
    EXPECT_EQ(starts[0], 0);
    size_t end = tokens.size(); // of what is no padding
    while (end > 0 && tokens[end - 1] == 0)
      --end;
    EXPECT_EQ(std::count(targets.begin() + ptrdiff_t(end), targets.end(), -1),
              int64_t(tokens.size() - end));
    for (size_t i = 0; i + 1 < end; ++i) {
      boundaries += targets[i] < 0;
      EXPECT_EQ(targets[i] < 0, tokens[i] == 1) << i; // <|end|> only stands at ends
      EXPECT_EQ(starts[i + 1], tokens[i] == 1 ? int32_t(i + 1) : starts[i]);
      if (targets[i] >= 0)
        EXPECT_EQ(targets[i], tokens[i + 1]);
    }
  }
  EXPECT_GT(boundaries, 0);
}

// Another file may name the token that ends a document. Where files disagree, that is said.
TEST_F(TokenizedTest, AnyFileNamesTheEndOfADocument) {
  std::filesystem::create_directory(scratch.path("t"));
  for (char name : {'a', 'b', 'c'})
    scratch.Write(absl::StrCat("t/", std::string(1, name), ".txt"),
                  "\xef\xbb\xbf" + std::string(40, name));
  options.data = options.validate = Call("text", "t/*.txt");
  const std::string before = Open().Describe();
  EXPECT_THAT(said, testing::Not(HasSubstr("note: ")));
  scratch.Write("tokenizer_config.json", "{}");
  const std::string without = Open().Describe();
  EXPECT_NE(without, before);
  scratch.Write("config.json", R"({"eos_token_id": 1})");
  EXPECT_EQ(Open().Describe(), before);
  EXPECT_THAT(said, HasSubstr("made "));
  scratch.Write("tokenizer_config.json", R"({"eos_token": "<|im_end|>"})");
  EXPECT_EQ(Open().Describe(), before);
  EXPECT_THAT(said, HasSubstr("tokenizer_config.json` ends a document with `<|im_end|>`, `"));
  EXPECT_THAT(said, HasSubstr("config.json` with `<|end|>`: the former holds"));
}

TEST_F(TokenizedTest, TokensAreMadeOnce) {
  std::string lines;
  for (int i = 0; i < 20; ++i)
    lines += kHello;
  scratch.Write("a.jsonl", lines);
  options.data = Call("chat", "a.jsonl");
  const Data first = Open();
  EXPECT_THAT(said, HasSubstr("made "));
  EXPECT_EQ(first.facts(), Open().facts());
  EXPECT_EQ(said, "");
  // Elsewhere, the same contents have the same fingerprint.
  options.cache.directory = scratch.path("other");
  EXPECT_EQ(first.facts(), Open().facts());
  EXPECT_THAT(said, HasSubstr("made "));
  // Another file, another tokenizer or a lost bit makes them again.
  scratch.Write("a.jsonl", lines + kHello);
  EXPECT_NE(first.facts(), Open().facts());
  EXPECT_THAT(said, HasSubstr("made "));
  scratch.Write("tokenizer_config.json", R"({"eos_token": "<s>"})");
  Open();
  EXPECT_THAT(said, HasSubstr("made "));
  for (const auto &file : std::filesystem::directory_iterator(options.cache.directory))
    if (file.path().extension() == ".targets") {
      std::string bits = ReadWhole(file.path().string());
      bits[41] ^= 4;
      std::ofstream(file.path(), std::ios::binary) << bits;
    }
  Open();
  EXPECT_THAT(said, HasSubstr("its bits do not fit their checksum"));
  EXPECT_THAT(said, HasSubstr("made "));
}

// A key has the template's text, wherever it is, and the date if the template in force shows it.
TEST_F(TokenizedTest, TheTemplateIsAPartOfTheKey) {
  std::string tokenizer = scratch.path("tokenizer.json");
  const auto print = [&](const std::string &form) {
    DataSource source;
    source.kind = SourceKind::chat;
    source.tokenizer = tokenizer;
    source.form = form;
    CacheOptions cache;
    cache.date = "2026-11-29";
    const absl::StatusOr<TemplatePrint> found = PrintOfTemplate(source, cache);
    EXPECT_TRUE(found.ok()) << found.status();
    return found.ok() ? *found : TemplatePrint();
  };
  EXPECT_EQ(print("").text, "");
  const std::string chatml = *TemplateText("chatml"), dated = chatml + "{{ strftime_now('%Y') }}";
  scratch.Write("form.jinja", chatml);
  EXPECT_NE(print("chatml").text, "");
  EXPECT_EQ(print("chatml").text, print(scratch.path("form.jinja")).text);
  EXPECT_NE(print("chatml").text, print("qwen2").text);
  EXPECT_EQ(print("chatml").date, "");
  scratch.Write("form.jinja", dated);
  EXPECT_NE(print("chatml").text, print(scratch.path("form.jinja")).text);
  EXPECT_EQ(print(scratch.path("form.jinja")).date, "2026-11-29");
  // One of two that stand beside the tokenizer.
  scratch.Write("tokenizer_config.json", nlohmann::json{{"chat_template", dated}}.dump());
  EXPECT_EQ(print("").date, "2026-11-29");
  EXPECT_EQ(print("chatml").date, "");
  scratch.Write("chat_template.jinja", chatml);
  EXPECT_EQ(print("").date, "");
  EXPECT_EQ(print("").text, print("chatml").text);
  scratch.Write("chat_template.jinja", dated);
  scratch.Write("tokenizer_config.json", "{}");
  EXPECT_EQ(print("").date, "2026-11-29");
  // One in the metadata of a GGUF file, as the first of them.
  std::string gguf = ReadWhole(std::string(BOA_CORPUS) + "/gpt2.gguf");
  ++gguf[16]; // their number
  const auto number = [](uint64_t of, int bytes) {
    return std::string(reinterpret_cast<const char *>(&of), size_t(bytes));
  };
  const std::string key = "tokenizer.chat_template";
  gguf.insert(
      24, absl::StrCat(number(key.size(), 8), key, number(8, 4), number(dated.size(), 8), dated));
  tokenizer = scratch.Write("t.gguf", gguf);
  EXPECT_EQ(print("").date, "2026-11-29");
  EXPECT_EQ(print("").text, print(scratch.path("chat_template.jinja")).text);
}

// Tokens of a template that is saved meanwhile are not kept under the key of the one before.
TEST_F(TokenizedTest, FilesThatChangeMeanwhile) {
  const std::string chatml = *TemplateText("chatml");
  scratch.Write("a.jsonl", kHello);
  for (const char *name : {"chat_template.jinja", "tokenizer_config.json", "a.jsonl"}) {
    SCOPED_TRACE(name);
    scratch.Write("chat_template.jinja", chatml);
    options.data = options.validate =
        absl::StrCat("chat(\"", scratch.path("a.jsonl"), "\", tokenizer = \"",
                     scratch.path("tokenizer.json"), "\")");
    options.cache.directory = scratch.path(absl::StrCat("cache of ", name));
    options.cache.show = [&](int64_t, int64_t) {
      scratch.Write(name, name == absl::string_view("a.jsonl") ? std::string(kHello) + kHello
                          : name[0] == 'c'                     ? chatml + "{# saved #}"
                                                               : R"({"eos_token": "<s>"})");
    };
    EXPECT_THAT(Error(),
                HasSubstr(name[0] == 'a' ? "a.jsonl`: it changed while it was read; begin again"
                                         : "tokenizer.json`: it or the chat template changed while "
                                           "tokens were made; begin again"));
    options.cache.show = [](int64_t, int64_t) {};
    Open();
    EXPECT_THAT(said, HasSubstr("made "));
  }
}

// Killed at any write, the next run makes the same tokens, and leaves nothing of the killed one.
TEST_F(TokenizedTest, KilledWhileTokensAreMade) {
  std::string lines;
  for (int i = 0; i < 300; ++i)
    lines += kHello;
  scratch.Write("a.jsonl", lines);
  options.data = Call("chat", "a.jsonl");
  options.cache.shard_tokens = 1500;
  const std::map<std::string, std::string> facts = Open().facts();
  int killed = 0;
  for (int at = 1; at < 300; at += 61) {
    options.cache.directory = scratch.path(absl::StrCat("killed", at));
    const pid_t child = fork();
    if (child == 0) {
      int left = at;
      options.cache.show = [&](int64_t, int64_t) {
        if (--left == 0)
          raise(SIGKILL);
      };
      (void)Data::Open(options);
      _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    killed += WIFSIGNALED(status);
    options.cache.show = [](int64_t, int64_t) {};
    // Remains of another entry, which nobody will make again.
    const std::string other = options.cache.directory + "/" + std::string(32, 'a') + "-0.bin";
    std::ofstream(other) << "a";
    EXPECT_EQ(facts, Open().facts()) << at;
    EXPECT_FALSE(std::filesystem::exists(other));
    for (const auto &file : std::filesystem::directory_iterator(options.cache.directory))
      EXPECT_NE(file.path().extension(), ".tmp");
  }
  EXPECT_EQ(killed, 5);
}

TEST_F(TokenizedTest, AFullDiskIsAnError) {
  std::string lines;
  for (int i = 0; i < 3000; ++i)
    lines += kHello;
  scratch.Write("a.jsonl", lines);
  options.data = Call("chat", "a.jsonl");
  struct rlimit old;
  getrlimit(RLIMIT_FSIZE, &old);
  signal(SIGXFSZ, SIG_IGN);
  const struct rlimit small = {20000, old.rlim_max};
  setrlimit(RLIMIT_FSIZE, &small);
  const std::string error = Error();
  setrlimit(RLIMIT_FSIZE, &old);
  EXPECT_THAT(error, HasSubstr("cache/"));
  EXPECT_THAT(error, HasSubstr("File too large"));
  Open();
}

// Columns that only describe are named once, and not again for tokens that are kept.
TEST_F(TokenizedTest, ColumnsThatDescribeAreNamed) {
  std::string lines;
  for (int i = 0; i < 30; ++i)
    lines += absl::StrCat(R"({"id": )", i,
                          R"(, "source": "web", "prompt": "a", "completion": "b"})", "\n");
  scratch.Write("a.jsonl", lines);
  options.data = Call("chat", "a.jsonl");
  Open();
  EXPECT_THAT(said, HasSubstr("a.jsonl`: not read: `id`, `source`\n"));
  Open();
  EXPECT_EQ(said, "");
}

// A model learns nothing from masking [CLS]: its place tells it.
TEST_F(TokenizedTest, SpecialTokensAreNotMasked) {
  const std::string golden = std::string(BOA_GOLDEN) + "/wordpiece.json";
  const auto tokenizer = *Tokenizer::Open(golden);
  std::set<int32_t> special;
  for (int32_t id = 0; id < tokenizer->size(); ++id)
    if (tokenizer->IsSpecial(id))
      special.insert(id);
  const int32_t cls = tokenizer->Find("[CLS]"), sep = tokenizer->Find("[SEP]");
  ASSERT_TRUE(special.count(cls) && special.count(sep));
  std::filesystem::create_directory(scratch.path("t"));
  for (int i = 0; i < 9; ++i)
    scratch.Write(absl::StrCat("t/", i, ".txt"), "in the beginning god created the heaven");
  options.vocab = tokenizer->size();
  options.objective = Objective::masked;
  options.mask_token = tokenizer->Find("[MASK]");
  options.mask_probability = 0.9;
  Tokens raw;
  for (const bool as_text : {true, false}) {
    options.data = absl::StrCat(as_text ? "text" : "tokens", "(\"",
                                scratch.path(as_text ? "t/*.txt" : "raw.bin"), "\", tokenizer = \"",
                                golden, "\")");
    const Data data = Open();
    EXPECT_EQ(data.Describe().find("are masked as others are"), std::string::npos);
    std::set<int32_t> seen;
    for (int64_t step = 1; step <= 40; ++step) {
      Fill(data, step);
      for (size_t i = 0; i < tokens.size(); ++i) {
        seen.insert(tokens[i]);
        EXPECT_EQ(special.count(targets[i]), 0u);
        if (as_text && step <= 5)
          raw.push_back(targets[i] < 0 ? tokens[i] : targets[i]);
      }
      EXPECT_GT(std::count_if(targets.begin(), targets.end(), [](int32_t t) { return t >= 0; }), 0);
    }
    EXPECT_TRUE(seen.count(cls) && seen.count(sep));
    const std::vector<uint16_t> numbers(raw.begin(), raw.end());
    scratch.Write("raw.bin",
                  std::string(reinterpret_cast<const char *>(numbers.data()), numbers.size() * 2));
  }
  // Some files do not mark as special what they put around a text.
  auto unmarked = *ParseJson(ReadWhole(golden));
  for (auto &token : unmarked["added_tokens"])
    token["special"] = false;
  options.data = absl::StrCat("tokens(\"", scratch.path("raw.bin"), "\", tokenizer = \"",
                              scratch.Write("unmarked.json", unmarked.dump()), "\")");
  const Data data = Open();
  for (int64_t step = 1; step <= 5; ++step) {
    Fill(data, step);
    EXPECT_EQ(std::count(targets.begin(), targets.end(), cls), 0);
    EXPECT_EQ(std::count(targets.begin(), targets.end(), sep), 0);
  }
  // A sequence of padding alone has nothing to learn, and does not end the run.
  const std::vector<uint16_t> numbers(64, uint16_t(tokenizer->Find("[PAD]")));
  options.data =
      absl::StrCat("tokens(\"", scratch.path("raw.bin"), "\", tokenizer = \"", golden, "\")");
  scratch.Write("raw.bin", std::string(reinterpret_cast<const char *>(numbers.data()), 128));
  Fill(Open(), 1);
  EXPECT_EQ(targets, Tokens(targets.size(), -1));
}

TEST_F(TokenizedTest, WrongLinesAreNamed) {
  const std::string good = kHello;
  EXPECT_THAT(ErrorOf(good + "{\n"), HasSubstr("bad.jsonl`, line 2: no JSON at byte"));
  EXPECT_THAT(ErrorOf(good + "\n[1]\n"),
              HasSubstr("line 3: expected one JSON object a line but found array"));
  EXPECT_THAT(ErrorOf("{\"messages\": []}"), HasSubstr("line 1: `messages` is empty"));
  EXPECT_THAT(ErrorOf("{\"id\": 1}"), HasSubstr("line 1: expected `messages`, `conversations`"));
  EXPECT_THAT(ErrorOf(R"({"messages": [{"role": "user"}]})"),
              HasSubstr("line 1: message 1 of `messages`: expected the key `content`"));
  EXPECT_THAT(ErrorOf(R"({"messages": [{"role": "user", "content": null}]})"),
              HasSubstr("expected `content` to be a text but found null"));
  EXPECT_THAT(ErrorOf(R"({"messages": [{"role": "", "content": "a"}]})"),
              HasSubstr("message 1 of `messages`: `role` is empty"));
  EXPECT_THAT(ErrorOf(R"({"messages": [{"role": "user", "content": "a"}]})"),
              HasSubstr("line 1: no message of the assistant is to be learnt"));
  EXPECT_THAT(ErrorOf(R"({"prompt": "a"})"), HasSubstr("expected the key `completion`"));
  EXPECT_THAT(ErrorOf(R"({"tools": [1], "prompt": "a", "completion": "b"})"),
              HasSubstr("`tools` changes what the model reads"));
  EXPECT_THAT(ErrorOf(R"({"prompt": "a", "prompt": "c", "completion": "b"})"),
              HasSubstr("stands twice"));
  EXPECT_THAT(ErrorOf(good + "{\"prompt\": \"\xff\"}"), HasSubstr("line 2: byte 12 of it is 0xff"));
  options.vocab = kEnd;
  EXPECT_THAT(ErrorOf(good), HasSubstr("line 1: token 421 is outside the vocabulary of 421"));
  options.vocab = 422;
  scratch.Write("bad.jsonl", absl::StrCat(good, good, good, good));
  Open();
  options.vocab = kEnd; // of what is kept already
  EXPECT_THAT(Error(), HasSubstr("line 1: token 421 is outside the vocabulary of 421"));
  options.vocab = 300;
  scratch.Write("a.txt", "a\nb\nIn the beginning God created the heaven\n");
  options.data = Call("text", "a.txt");
  EXPECT_THAT(Error(), HasSubstr("a.txt`, line 3: token "));
}

TEST_F(TokenizedTest, WhatDoesNotFitTogetherIsRefused) {
  scratch.Write("a.jsonl", kHello);
  options.data = Call("chat", "a.jsonl");
  options.objective = Objective::masked;
  EXPECT_THAT(Error(), HasSubstr("conversations say themselves what is learnt"));
  options.objective = Objective::next_token;
  scratch.Write("other.json", ReadWhole(std::string(BOA_GOLDEN) + "/gpt2.json"));
  scratch.Write("a.txt", "In the beginning");
  options.data =
      absl::StrCat("mix(1 ", Call("chat", "a.jsonl"), ", 1 text(\"", scratch.path("a.txt"),
                   "\", tokenizer = \"", scratch.path("other.json"), "\"))");
  EXPECT_THAT(Error(), HasSubstr("are different tokenizers"));
  options.data = absl::StrCat("chat(\"", scratch.path("a.jsonl"), "\", tokenizer = \"",
                              scratch.path("tokenizer.json"), "\")");
  EXPECT_THAT(Error(), HasSubstr("a.jsonl`, line 1: `"));
  EXPECT_THAT(Error(), HasSubstr("it has no chat template; template = \"NAME\" in chat(...) names "
                                 "one of chatml, smollm2, "));
  EXPECT_THAT(Error(), HasSubstr("mistral-v7, or a file of Jinja"));
  options.data = Call("chat", "none*.jsonl");
  EXPECT_THAT(Error(), HasSubstr("no file matches"));
}

// Beside a state, anybody may have made the folder, and tokens decide what is learnt.
TEST_F(TokenizedTest, AFolderOfOthersIsNotTaken) {
  namespace fs = std::filesystem;
  scratch.Write("a.txt", std::string(2000, 'a'));
  options.data = Call("text", "a.txt");
  options.cache.is_named = false;
  Open();
  const std::string folder = options.cache.directory, wide = scratch.path("wide");
  fs::permissions(folder, fs::perms::others_write, fs::perm_options::add);
  EXPECT_EQ(Error(), "`" + folder +
                         "`, where tokens of texts are kept, may be changed by all users, who then "
                         "decide what is learnt; --tokens names another folder");
  fs::rename(folder, wide);
  fs::create_directory_symlink(wide, folder);
  EXPECT_THAT(Error(), HasSubstr("may be changed by all users"));
  fs::permissions(wide, fs::perms::others_write, fs::perm_options::remove);
  Open(); // a link of one's own
  fs::remove(folder);
  fs::rename(wide, folder);
  if (geteuid() == 0) {
    ASSERT_EQ(chown(folder.c_str(), 12345, gid_t(-1)), 0);
    EXPECT_THAT(Error(), HasSubstr("belongs to another user"));
  }
  options.cache.is_named = true; // as --tokens does
  fs::permissions(folder, fs::perms::others_write, fs::perm_options::add);
  Open();
}

} // namespace
} // namespace boa
