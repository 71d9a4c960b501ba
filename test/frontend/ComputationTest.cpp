//===- ComputationTest.cpp - Which edits change the computation -----------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Random edits of the example models. An edit of the computation changes the hash of the
// canonical text; any other keeps it. test/e2e/run-edits resumes a training with them.
//
//===----------------------------------------------------------------------===//
#include "frontend/Frontend.h"
#include "frontend/IRGen.h"
#include "passes/model/CanonicalText.h"
#include "test/frontend/Edits.h"

#include "mlir/IR/MLIRContext.h"

#include <gtest/gtest.h>

#include <fstream>
#include <random>
#include <set>

namespace boa::frontend {
namespace {

using edits::Kind;

constexpr unsigned kEdits = 100; // of each kind
const char *const kExamples[] = {"gpt", "bert", "llama"};

/// Of a specification; empty where it is refused.
std::string hashOf(const std::string &text, mlir::MLIRContext &context) {
  FrontendResult result = compileTexts({{"edited.boa", text}}, {});
  if (!result.spec)
    return "";
  return hashCanonicalText(printCanonicalText(*generateModel(*result.spec, context)));
}

/// Edits examples until so many specifications were accepted, and every row of the table was in
/// one of them; names the seed of each that fails.
void edit(Kind kind) {
  mlir::MLIRContext context;
  const size_t count = edits::CountRows(kind);
  unsigned accepted = 0, seed = 0;
  std::set<size_t> accepted_rows;
  for (; (accepted < kEdits || accepted_rows.size() < count) && seed < 20 * kEdits; ++seed) {
    std::mt19937 random(seed);
    const std::string name = kExamples[random() % std::size(kExamples)];
    std::ifstream file(BOA_SOURCE_DIR "/examples/" + name + ".boa");
    const std::string original{std::istreambuf_iterator<char>(file), {}};
    const edits::Edited edited = edits::EditSpec(original, kind, random);
    const std::string hash = hashOf(edited.text, context);
    if (edited.rows.empty() || hash.empty())
      continue;
    ++accepted;
    accepted_rows.insert(edited.rows.begin(), edited.rows.end());
    EXPECT_EQ(hash != hashOf(original, context), kind == Kind::changing)
        << "seed " << seed << ", " << name << ":\n"
        << edited.text;
  }
  EXPECT_GE(accepted, kEdits) << "of " << seed << " that were tried";
  for (size_t row = 0; row < count; ++row)
    EXPECT_TRUE(accepted_rows.count(row)) << "always refused: " << edits::PatternOf(kind, row);
}

} // namespace

TEST(Computation, EditsOfTheModelChangeIt) { edit(Kind::changing); }

TEST(Computation, EditsOfNamesOrderAndSettingsKeepIt) { edit(Kind::preserving); }

} // namespace boa::frontend
