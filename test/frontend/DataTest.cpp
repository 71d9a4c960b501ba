//===- DataTest.cpp - What a training learns ------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "test/frontend/Fixture.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <tuple>
#include <vector>

using namespace boa;
using namespace boa::frontend;

static TrainSettings read(const std::string &settings, const std::string &file = "tiny.boa",
                          const std::vector<std::string> &overrides = {}) {
  FrontendResult result =
      compileTexts({{file, edited("  data = \"corpus.txt\"\n", settings + "\n")}}, overrides);
  EXPECT_EQ(result.diagnostics, "");
  if (!result.spec)
    return {};
  // What is printed is read back the same.
  EXPECT_EQ(compileText(result.ast).ast, result.ast);
  return result.spec->train;
}

// Patterns are relative to the spec, in whose folder's name nothing is special.
TEST(DataTest, SourcesAreTextsForTheRuntime) {
  EXPECT_EQ(read("data = tokens(\"s/*.bin\")").data, "tokens(\"s/*.bin\")");
  EXPECT_EQ(read("data = tokens(\"s/*.bin\", uint32, end = vocab - 1)").data,
            "tokens(\"s/*.bin\", uint32, end = 63)");
  EXPECT_EQ(read("data = tokens(files = \"a\", end = 0)", "x/[1]/tiny.boa").data,
            "tokens(\"x/\\[1]/a\", end = 0)");
  EXPECT_EQ(read("data = tokens(\"/a\")\n validate = tokens(\"b\")", "x/tiny.boa").validate,
            "tokens(\"x/b\")");
  for (const char *mix : {"mix(0.7 tokens(\"a\"), 0.3 tokens(\"b\", uint8))",
                          "mix(0.7 * tokens(\"a\"),\n   0.3\n   tokens(\"b\", uint8))"})
    EXPECT_EQ(read(std::string("data = ") + mix).data,
              "mix(0.7 tokens(\"a\"), 0.3 tokens(\"b\", uint8))");
  EXPECT_EQ(read("data = \"tokens(1).txt\"").data, "./tokens(1).txt");
  EXPECT_FALSE(read("data = tokens(\"s/*.bin\", end = 0)").document_mask);
  EXPECT_TRUE(read("data = tokens(\"s/*.bin\", end = 0) document_mask = true").document_mask);
  EXPECT_EQ(
      refusal("  data = \"corpus.txt\"\n", "  data = \"a\"\n  document_mask = true\n"),
      R"(tiny.boa:19:19: error: a text whose bytes are tokens has no documents: leave document_mask out
  document_mask = true
                  ^~~~
)");
}

// A tokenizer must be there. Its path is relative to the spec, too.
TEST(DataTest, TextsAndConversationsHaveATokenizer) {
  std::string folder = testing::TempDir() + "boa-data-test-XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  std::ofstream(folder + "/t.json") << "{}";
  EXPECT_EQ(read("data = mix(0.7 text(\"*.txt\", tokenizer = \"t.json\", special = true), 0.3 "
                 "chat(\"c\", \"t.json\", template = \"chatml\", packed = false))",
                 folder + "/tiny.boa")
                .data,
            "mix(0.7 text(\"" + folder + "/*.txt\", tokenizer = \"" + folder +
                "/t.json\", special = true), 0.3 chat(\"" + folder + "/c\", tokenizer = \"" +
                folder + "/t.json\", template = \"chatml\", packed = false))");
  // A template has a name, or is a file relative to the spec.
  std::ofstream(folder + "/own.jinja") << "{{ messages }}";
  EXPECT_EQ(
      read("data = chat(\"c\", \"t.json\", template = \"own.jinja\")", folder + "/tiny.boa").data,
      "chat(\"" + folder + "/c\", tokenizer = \"" + folder + "/t.json\", template = \"" + folder +
          "/own.jinja\")");
  // In --set the name needs no quotes, which a shell takes away.
  EXPECT_EQ(
      read("data = chat(\"c\", \"t.json\")", folder + "/tiny.boa", {"train.data.template=chatml"})
          .data,
      "chat(\"" + folder + "/c\", tokenizer = \"" + folder + "/t.json\", template = \"chatml\")");
  FrontendResult none = compileTexts(
      {{folder + "/tiny.boa", edited("  data = \"corpus.txt\"\n",
                                     "  data = chat(\"c\", \"t.json\", template = \"chatlm\")\n")}},
      {});
  EXPECT_NE(
      none.diagnostics.find(
          "tiny.boa:18:41: error: there is no template and no file " + folder +
          "/chatlm; the templates are chatml, smollm2, qwen2, qwen2.5, llama3, llama3.1, gemma, "
          "gemma2, mistral-v0.2, mistral-v1, mistral-nemo, mistral-v7\n"),
      std::string::npos)
      << none.diagnostics;
  // Attention is within documents where several share a sequence, unless the spec says otherwise.
  for (auto [rest, mask] : {std::pair("", true), std::pair(", packed = false", false)}) {
    const std::string data = std::string("data = chat(\"c\", \"t.json\"") + rest + ")";
    EXPECT_EQ(read(data, folder + "/tiny.boa").document_mask, mask);
    EXPECT_EQ(read(data + " document_mask = false", folder + "/tiny.boa").document_mask, false);
  }
  FrontendResult masked = compileTexts(
      {{folder + "/tiny.boa",
        edited("  data = \"corpus.txt\"\n",
               "  data = chat(\"c\", \"t.json\")\n  objective = masked(token = 2)\n")}},
      {});
  EXPECT_NE(masked.diagnostics.find("tiny.boa:18:10: error: masked tokens are chosen at random"),
            std::string::npos)
      << masked.diagnostics;
  std::filesystem::remove_all(folder);
  EXPECT_EQ(
      refusal("  data = \"corpus.txt\"\n", "  data = text(\"a\", tokenizer = \"none.json\")\n"),
      R"(tiny.boa:18:32: error: there is no file none.json, which would be a tokenizer
  data = text("a", tokenizer = "none.json")
                               ^~~~~~~~~~~
)");
  EXPECT_EQ(refusal("  data = \"corpus.txt\"\n", "  data = chat(\"a\")\n"),
            R"(tiny.boa:18:10: error: expected the argument 'tokenizer' of chat
  data = chat("a")
         ^~~~~~~~~
)");
}

// Variables of a template are an object of JSON, which an option sets, too.
TEST(DataTest, TemplatesHaveValues) {
  std::string folder = testing::TempDir() + "boa-data-test-XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  std::ofstream(folder + "/t.json") << "{}";
  const std::string with_values =
      "data = chat(\"c\", \"t.json\", template_values = {\"a\": \"}\", \"b\": [{}]})";
  const std::string call = "chat(\"" + folder + "/c\", tokenizer = \"" + folder + "/t.json\"";
  EXPECT_EQ(read(with_values, folder + "/tiny.boa").data,
            call + ", template_values = {\"a\": \"}\", \"b\": [{}]})");
  for (const std::string &data : {with_values, std::string("data = chat(\"c\", \"t.json\")")})
    EXPECT_EQ(read(data, folder + "/tiny.boa", {"train.data.template_values={\"c\": null}"}).data,
              call + ", template_values = {\"c\": null})");
  for (auto [values, error] :
       {std::pair("\"x\"", "template_values: expected an object of JSON, such as "
                           "{\"enable_thinking\": false}, but found \"x\""),
        std::pair("({})", "template_values: expected an object of JSON, such as "
                          "{\"enable_thinking\": false}, but found ({})"),
        std::pair("{\"a\": x}", "template_values: expected an object of JSON, such as "
                                "{\"enable_thinking\": false}: no JSON at byte 7"),
        std::pair("{'a': 1}", "template_values: expected an object of JSON, such as "
                              "{\"enable_thinking\": false}: no JSON at byte 2"),
        std::pair("{\"a\": 1, \"a\": 2}",
                  "template_values: the key `a` stands twice in one object"),
        std::pair("{\"bos_token\": 1}", "template_values: `bos_token` cannot be given: a template "
                                        "gets it from the conversation or its tokenizer"),
        std::pair("{\"a\":\n1}",
                  "expected '}' at the end of the object of JSON, which stands on one line")}) {
    FrontendResult wrong =
        compileTexts({{folder + "/tiny.boa", edited("  data = \"corpus.txt\"\n",
                                                    std::string("  data = chat(\"c\", \"t.json\", "
                                                                "template_values = ") +
                                                        values + ")\n")}},
                     {});
    EXPECT_NE(wrong.diagnostics.find(std::string("tiny.boa:18:48: error: ") + error),
              std::string::npos)
        << wrong.diagnostics;
  }
  std::filesystem::remove_all(folder);
}

TEST(DataTest, OptionsSetSources) {
  const std::string tokens = "data = tokens(\"a\", end = 3)";
  EXPECT_EQ(read(tokens, "x/tiny.boa", {"train.data.end=4", "train.data.files=b *.bin"}).data,
            "tokens(\"b *.bin\", end = 4)");
  EXPECT_EQ(read(tokens, "x/tiny.boa", {"train.data=mix(1 tokens(\"c\"), 2 tokens(\"d\"))"}).data,
            "mix(1 tokens(\"c\"), 2 tokens(\"d\"))");
  EXPECT_EQ(read(tokens, "x/tiny.boa", {"train.data=my text.txt"}).data, "my text.txt");
}

TEST(DataTest, ErrorsPointAtTheirPlace) {
  auto refused = [](const std::string &data) {
    return refusal("  data = \"corpus.txt\"\n", "  " + data + "\n");
  };
  EXPECT_EQ(
      refused("data = tokens(\"a\", int8)"),
      R"(tiny.boa:18:22: error: expected type to be uint8, uint16, uint32, int32 or int64 but found int8, did you mean 'uint8'?
  data = tokens("a", int8)
                     ^~~~
)");
  EXPECT_EQ(refused("data = tokens(\"a\", end = 64)"),
            R"(tiny.boa:18:28: error: expected end between 0 and 63 but found 64
  data = tokens("a", end = 64)
                           ^~
)");
  EXPECT_EQ(
      refused("data = tokens(\"a\", ends = 1)"),
      R"(tiny.boa:18:22: error: expected files, type, end or tokenizer in tokens(...) but found 'ends', did you mean 'end'?
  data = tokens("a", ends = 1)
                     ^~~~
)");
  EXPECT_EQ(refused("data = tokens()"),
            R"(tiny.boa:18:10: error: expected the argument 'files' of tokens
  data = tokens()
         ^~~~~~~~
)");
  EXPECT_EQ(
      refused("data = mix(tokens(\"a\"), 0.3 tokens(\"b\"))"),
      R"(tiny.boa:18:14: error: expected a share and its source, 0.7 tokens(...), but found tokens("a")
  data = mix(tokens("a"), 0.3 tokens("b"))
             ^~~~~~~~~~~
)");
  EXPECT_EQ(refused("data = mix(0 tokens(\"a\"))"),
            R"(tiny.boa:18:14: error: expected a share above 0 with at most six decimals but found 0
  data = mix(0 tokens("a"))
             ^
)");
  EXPECT_EQ(refused("data = tokens(\"a\")\n  validate = \"b\""),
            R"(tiny.boa:19:14: error: data is tokens: expected validate to be tokens, too
  validate = "b"
             ^~~
)");
  EXPECT_EQ(
      refused("data = tokens(\"a\", end = 1)\n  objective = masked(token = 2)"),
      R"(tiny.boa:18:28: error: masked tokens are predicted where they stand: leave end out, or add document_mask = true
  data = tokens("a", end = 1)
                           ^
)");
  // Only in a mix is a number before a call a share.
  EXPECT_NE(refused("data = 0.7 tokens(\"a\")"), "");
}

// Steps may be said in epochs, of which there may be a part.
TEST(DataTest, StepsOfEpochs) {
  for (auto [text, steps, epochs] : {std::tuple("3 epochs", 0, 3.0),
                                     {"1 epoch", 0, 1.0},
                                     {"0.5 epochs", 0, 0.5},
                                     {"200 steps", 200, 0.0},
                                     {"2 * 100", 200, 0.0}}) {
    const FrontendResult result = compileText(edited("steps = 10", std::string("steps = ") + text));
    ASSERT_TRUE(result.spec) << result.diagnostics;
    EXPECT_EQ(result.spec->train.steps, steps) << text;
    EXPECT_EQ(result.spec->train.epochs, epochs) << text;
    EXPECT_EQ(compileText(result.ast).ast, result.ast);
    EXPECT_EQ(compileText(kSpec, {std::string("train.steps=") + text}).spec->train.epochs, epochs);
  }
  EXPECT_EQ(
      refusal("steps = 10", "steps = -3 epochs"),
      R"(tiny.boa:21:11: error: expected steps above 0 epochs and at most 1000000 epochs but found -3 epochs
  steps = -3 epochs
          ^~~~~~~~~
)");
  EXPECT_EQ(
      refusal("steps = 10", "steps = 3 epocs"),
      R"(tiny.boa:21:13: error: expected steps to be a number, such as 400, or epochs, such as 3 epochs, but found the unit 'epocs', did you mean 'epochs'?
  steps = 3 epocs
            ^~~~~
)");
  const std::string mix = "mix(0.7 tokens(\"a\"), 0.3 tokens(\"b\"))";
  // Of a mix, a command may give a number of steps: the trainer looks.
  EXPECT_TRUE(compileText(edited("steps = 10", "steps = 3 epochs"), {"train.data=" + mix})
                  .spec.has_value());
}
