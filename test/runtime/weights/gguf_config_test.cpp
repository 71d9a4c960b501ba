//===- gguf_config_test.cpp - The configuration in a GGUF file ------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/weights/gguf_config.h"

#include "test/runtime/scratch.h"
#include "test/runtime/weights/gguf.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace boa {
namespace {

using testing::HasSubstr;

/// The keys that every Llama has.
Gguf Llama() {
  Gguf file("");
  file.Text("general.architecture", "llama");
  for (const char *key : {"embedding_length", "feed_forward_length", "context_length"})
    file.Number(std::string("llama.") + key, 64);
  file.Number("llama.block_count", 2).Number("llama.attention.head_count", 4);
  file.Real("llama.attention.layer_norm_rms_epsilon", 1e-5f);
  return file;
}

class GgufConfigTest : public testing::Test {
protected:
  /// `rope_scaling`, or the fault.
  std::string Scaling(const Gguf &file) {
    scratch.Write("m.gguf", file.Bytes());
    const absl::StatusOr<std::string> text = ConfigOfGguf(scratch.path("m.gguf"));
    if (!text.ok())
      return std::string(text.status().message());
    return nlohmann::json::parse(*text).value("rope_scaling", nlohmann::json()).dump();
  }

  Scratch scratch{FastDirectory()};
};

// llama.cpp takes an absent type for "linear", and an absent factor for 1.
TEST_F(GgufConfigTest, ScaledPositions) {
  const std::string type = "llama.rope.scaling.type", factor = "llama.rope.scaling.factor";
  const std::string linear = R"({"factor":4.0,"rope_type":"linear"})";
  EXPECT_EQ(Scaling(Llama()), "null");
  EXPECT_EQ(Scaling(Llama().Text(type, "none")), "null");
  EXPECT_EQ(Scaling(Llama().Text(type, "linear")), "null");
  EXPECT_EQ(Scaling(Llama().Text(type, "none").Real(factor, 1)), "null");
  EXPECT_EQ(Scaling(Llama().Real(factor, 4)), linear);
  EXPECT_EQ(Scaling(Llama().Text(type, "linear").Real(factor, 4)), linear);
}

TEST_F(GgufConfigTest, PositionsThatAreRefused) {
  const std::string type = "llama.rope.scaling.type", factor = "llama.rope.scaling.factor";
  const std::vector<float> divisors(8, 1);
  for (const auto &[file, expected] : std::vector<std::pair<Gguf, const char *>>{
           {Llama().Text(type, "none").Real(factor, 4),
            "key `llama.rope.scaling.factor`: the rotary positions none have no factor"},
           {Llama().Text(type, "yarn"), "key `llama.rope.scaling.type`: `yarn`: Boa has"},
           {Llama().Number(type, 1), "key `llama.rope.scaling.type`: expected a text"},
           {Llama().Text(factor, "4"), "key `llama.rope.scaling.factor`: expected a number"},
           {Llama().Real("llama.rope.scale_linear", 4),
            "key `llama.rope.scale_linear`: Boa does not know it"},
           {Llama().Real(factor, 4).Tensor("rope_freqs.weight", divisors),
            "key `rope_freqs.weight`: expected no divisors beside a factor of 4"}})
    EXPECT_THAT(Scaling(file), HasSubstr(expected));
}

} // namespace
} // namespace boa
