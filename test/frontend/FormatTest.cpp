//===- FormatTest.cpp - The canonical layout ------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "test/frontend/Fixture.h"

#include <filesystem>
#include <fstream>
#include <sstream>

using namespace boa;
using namespace boa::frontend;

static std::string formatted(const std::string &text) {
  FormatResult result = formatText({"test.boa", text});
  EXPECT_EQ(result.diagnostics, "");
  return result.after.value_or("");
}

/// Every file with this ending below a folder, by path.
static std::vector<std::pair<std::string, std::string>> specsIn(const std::string &folder) {
  std::vector<std::pair<std::string, std::string>> specs;
  for (const auto &entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.path().extension() != ".boa")
      continue;
    std::ostringstream text;
    text << std::ifstream(entry.path()).rdbuf();
    specs.emplace_back(entry.path(), text.str());
  }
  EXPECT_FALSE(specs.empty());
  return specs;
}

// Columns, blank lines and indentation, whatever the author's were.
// Only one train block has a plan to which its settings can move.
TEST(FormatTest, LeavesSettingsOfTwoTrainBlocks) {
  const std::string train = "train m {\n  place = ssd\n}\n";
  EXPECT_EQ(formatted(train + "\n" + train), train + "\n" + train);
}

TEST(FormatTest, LaysOutBlocks) {
  EXPECT_EQ(formatted(R"(
# A head.


# Of the model.
model   m ( vocab=256,context = 8,
 width = 4 ) {  # sizes
stage embed(tokens:[context]token)->[context,width]{

param wte:[vocab,width]=normal(0.02)   # tied
param b : [ width ]=zeros


let q , k=split( embedding( wte,tokens ),(2 , 2) )
return q+k * -1+( b )
# The end.

} # of embed
  layer block(x: [context, width]) -> [context, width] repeat 2 { return gelu(
    x
  ) }
}
train m { data=chat("a","t",template_values={"b":1, "c": {}}) batch=1 sequences
  micro_batch = 1
  optimizer=adamw(lr=1e-3,
    betas=(0.9,0.99)) place{weights=ssd optimizer=host 40 %,ssd
    # Small.
    saved=host}

  steps=50 }
machine laptop { device cpu { }
  ssd "a" { read=200 MB / s write=1 GB/s }
  host {
    memory=1 GiB } }
)"),
            R"(# A head.

# Of the model.
model m(vocab = 256, context = 8,
        width = 4) {  # sizes
  stage embed(tokens: [context] token) -> [context, width] {
    param wte: [vocab, width] = normal(0.02)  # tied
    param b:   [width]        = zeros

    let q, k = split(embedding(wte, tokens), (2, 2))
    return q + k * -1 + (b)
    # The end.
  }  # of embed

  layer block(x: [context, width]) -> [context, width] repeat 2 {
    return gelu(
      x
    )
  }
}

train m {
  data      = chat("a", "t", template_values = {"b":1, "c": {}})
  batch     = 1 sequences
  optimizer = adamw(lr = 1e-3,
                    betas = (0.9, 0.99))
  steps     = 50
}

plan {
  micro_batch = 1
  place       { weights = ssd  optimizer = host 40%, ssd
                # Small.
                saved = host }
}

machine laptop {
  device cpu { }
  ssd "a"    { read = 200 MB/s  write = 1 GB/s }
  host {
    memory = 1 GiB
  }
}
)");
}

// A text with an error has no layout, and the error is said.
TEST(FormatTest, RefusesWhatDoesNotParse) {
  FormatResult result = formatText({"test.boa", "model m {"});
  EXPECT_FALSE(result.after);
  EXPECT_EQ(result.diagnostics,
            "test.boa:1:10: error: expected '}' at the end of the model but found the end of the "
            "text\nmodel m {\n         ^\n");
}

// A second time nothing changes, and the tree is the same.
TEST(FormatTest, IsIdempotentAndKeepsTheTree) {
  for (const char *folder : {"/examples", "/test"})
    for (const auto &[path, text] : specsIn(BOA_SOURCE_DIR + std::string(folder))) {
      FormatResult result = formatText({path, text});
      if (!result.after)
        continue;
      SCOPED_TRACE(path);
      EXPECT_EQ(formatted(*result.after), *result.after);
      EXPECT_EQ(compileTexts({{path, *result.after}}).ast, compileTexts({{path, text}}).ast);
    }
}

// The examples have the layout.
TEST(FormatTest, ExamplesAreLaidOut) {
  for (const auto &[path, text] : specsIn(BOA_SOURCE_DIR "/examples")) {
    SCOPED_TRACE(path);
    EXPECT_EQ(formatted(text), text);
  }
}
