//===- formats_test.cpp - GGUF files, limits of JSON ----------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/formats/gguf.h"
#include "runtime/formats/json.h"
#include "runtime/support/memory_errors.h"
#include "runtime/tokenizer/tokenizer.h"

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <unistd.h>

using namespace boa;

namespace {

/// Bytes of a file, put together by hand.
struct Bytes {
  std::string all;
  template <typename T> Bytes &Number(T value) {
    all.append(reinterpret_cast<const char *>(&value), sizeof(value));
    return *this;
  }
  Bytes &Text(const std::string &text) {
    Number<uint64_t>(text.size());
    all += text;
    return *this;
  }
};

Bytes Header(uint64_t tensors, uint64_t keys) {
  Bytes bytes;
  bytes.all = "GGUF";
  return bytes.Number<uint32_t>(3).Number(tensors).Number(keys);
}

void AddTensor(Bytes &bytes, const std::string &name, const std::vector<uint64_t> &shape,
               uint32_t type, uint64_t offset) {
  bytes.Text(name).Number<uint32_t>(static_cast<uint32_t>(shape.size()));
  for (uint64_t extent : shape)
    bytes.Number(extent);
  bytes.Number(type).Number(offset);
}

class GgufTest : public testing::Test {
protected:
  GgufTest() : path(absl::StrCat("/tmp/boa-gguf-test-", getpid())) {}
  ~GgufTest() override { std::remove(path.c_str()); }
  absl::StatusOr<GgufFile> Open(const std::string &bytes) {
    std::ofstream(path, std::ios::binary) << bytes;
    return GgufFile::Open(path);
  }
  /// The fault of a file, without its name.
  std::string Fault(const std::string &bytes) {
    const std::string message(Open(bytes).status().message());
    const std::string begin = absl::StrCat("`", path, "`: ");
    return message.compare(0, begin.size(), begin) == 0 ? message.substr(begin.size()) : message;
  }
  std::string path;
};

TEST_F(GgufTest, ElementsOfEachType) {
  Bytes bytes = Header(6, 2);
  bytes.Text("general.alignment").Number<uint32_t>(4).Number<uint32_t>(64);
  bytes.Text("list").Number<uint32_t>(9).Number<uint32_t>(8).Number<uint64_t>(2).Text("a").Text(
      "b");
  AddTensor(bytes, "f32", {2}, 0, 0);
  AddTensor(bytes, "f16", {2}, 1, 64);
  AddTensor(bytes, "bf16", {2, 1}, 30, 128);
  AddTensor(bytes, "q8_0", {32}, 8, 192);
  AddTensor(bytes, "q4_0", {32}, 2, 256);
  AddTensor(bytes, "q4_1", {32}, 3, 320);
  const auto pad = [&] { bytes.all.resize((bytes.all.size() + 63) / 64 * 64); };
  pad();
  bytes.Number(1.5f).Number(-2.0f);
  pad();
  bytes.Number<uint16_t>(0x3c00).Number<uint16_t>(0x0001); // 1, 2^-24
  pad();
  bytes.Number<uint16_t>(0x3f80).Number<uint16_t>(0xc000); // 1, -2
  pad();
  bytes.Number<uint16_t>(0x3800); // 0.5
  for (int i = 0; i < 32; ++i)
    bytes.Number<int8_t>(static_cast<int8_t>(i - 16));
  pad();
  bytes.Number<uint16_t>(0x3c00);
  for (int i = 0; i < 16; ++i)
    bytes.Number<uint8_t>(static_cast<uint8_t>(i | (15 - i) << 4));
  pad();
  bytes.Number<uint16_t>(0x4000).Number<uint16_t>(0xbc00); // 2, -1
  for (int i = 0; i < 16; ++i)
    bytes.Number<uint8_t>(static_cast<uint8_t>(i | (15 - i) << 4));
  absl::StatusOr<GgufFile> file = Open(bytes.all);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->Number("general.alignment", 0), 64);
  ASSERT_TRUE(file->Find("list"));
  EXPECT_EQ(file->Find("list")->texts, (std::vector<std::string>{"a", "b"}));
  std::vector<std::vector<float>> values;
  for (const GgufTensor &tensor : file->tensors()) {
    values.emplace_back(tensor.elements());
    ASSERT_TRUE(file->Read(tensor, 0, tensor.elements(), values.back().data()).ok());
  }
  EXPECT_EQ(values[0], (std::vector<float>{1.5f, -2}));
  EXPECT_EQ(values[1], (std::vector<float>{1, std::ldexp(1.0f, -24)}));
  EXPECT_EQ(values[2], (std::vector<float>{1, -2}));
  EXPECT_EQ(file->tensors()[2].shape, (std::vector<int64_t>{1, 2}));
  for (int i = 0; i < 32; ++i) {
    const int nibble = i < 16 ? i : 31 - i;
    EXPECT_EQ(values[3][i], 0.5f * (i - 16));
    EXPECT_EQ(values[4][i], nibble - 8);
    EXPECT_EQ(values[5][i], 2.0f * nibble - 1);
  }
}

TEST_F(GgufTest, HostileHeaders) {
  EXPECT_EQ(Fault("GG"), "the file ends within its first bytes");
  EXPECT_EQ(Fault("GGML____"), "it is no GGUF file");
  EXPECT_EQ(Fault(Header(0, uint64_t(1) << 60).all),
            "a header of 1152921504606846976 keys and 0 tensors, where at most 65536 and 1048576 "
            "are allowed");
  EXPECT_EQ(Fault(Header(0, 1).Number(uint64_t(1) << 62).all),
            "key 0 has 4611686018427387904 bytes, more than the file");
  Bytes list = Header(0, 1);
  list.Text("a").Number<uint32_t>(9).Number<uint32_t>(4).Number(uint64_t(1) << 60);
  EXPECT_EQ(Fault(list.all), "`a` has 1152921504606846976 values, more than the file");
  Bytes nested = Header(0, 1);
  nested.Text("a").Number<uint32_t>(9).Number<uint32_t>(9).Number<uint64_t>(1);
  EXPECT_EQ(Fault(nested.all), "`a` is a list of lists");
  Bytes twice = Header(0, 2);
  for (int i = 0; i < 2; ++i)
    twice.Text("a").Number<uint32_t>(0).Number<uint8_t>(0);
  EXPECT_EQ(Fault(twice.all), "the key `a` stands twice");

  const auto tensors = [](std::vector<std::vector<uint64_t>> shapes, uint32_t type,
                          std::vector<uint64_t> offsets, size_t data) {
    Bytes bytes = Header(shapes.size(), 0);
    for (size_t i = 0; i < shapes.size(); ++i)
      AddTensor(bytes, std::string(1, static_cast<char>('a' + i)), shapes[i], type, offsets[i]);
    bytes.all.resize((bytes.all.size() + 31) / 32 * 32 + data);
    return bytes.all;
  };
  EXPECT_EQ(Fault(tensors({{1ull << 40, 1ull << 40}}, 0, {0}, 0)), "tensor `a` is too large");
  EXPECT_EQ(Fault(tensors({{1ull << 20}}, 0, {0}, 64)),
            "tensor `a` of 4194304 bytes at 64 leaves the file of 128");
  EXPECT_EQ(Fault(tensors({{4}}, 0, {3}, 64)),
            "tensor `a` begins at 3, which is not in the file or not aligned to 32");
  EXPECT_EQ(Fault(tensors({{33}}, 8, {0}, 64)),
            "tensor `a` has rows of 33 elements in blocks of 32");
  EXPECT_EQ(Fault(tensors({{16}, {16}}, 0, {0, 32}, 128)), "tensors `a` and `b` overlap");
  absl::StatusOr<GgufFile> other = Open(tensors({{256}}, 12, {0}, 144));
  ASSERT_TRUE(other.ok()) << other.status();
  float value = 0;
  EXPECT_EQ(other->Read(other->tensors()[0], 0, 1, &value).message(),
            absl::StrCat("`", path,
                         "`: tensor `a` is Q4_K, but only F32, F16, BF16, Q8_0, Q4_0 and Q4_1 can "
                         "be read"));
}

// A file of some kilobytes may say that it has terabytes: it has holes.
TEST_F(GgufTest, SparseFiles) {
  const auto sparse = [&](const Bytes &begin, uint64_t size) {
    std::ofstream(path, std::ios::binary) << begin.all;
    std::filesystem::resize_file(path, size);
    return std::string(GgufFile::Open(path).status().message()).substr(path.size() + 4);
  };
  for (uint32_t type : {0, 6, 8}) { // bytes, floats, texts
    Bytes list = Header(0, 1);
    list.Text("a").Number<uint32_t>(9).Number<uint32_t>(type).Number(uint64_t(1) << 36);
    EXPECT_EQ(sparse(list, uint64_t(1) << 40),
              "`a` has 68719476736 values, with which the header has more than 8388608");
  }
  Bytes text = Header(0, 1);
  text.Text("a").Number<uint32_t>(8).Number(uint64_t(1) << 36);
  EXPECT_EQ(sparse(text, uint64_t(1) << 40), "`a` has 68719476736 bytes, more than the file");
  Bytes tokens = Header(0, 2);
  tokens.Text("tokenizer.ggml.model").Number<uint32_t>(8).Text("llama");
  tokens.Text("tokenizer.ggml.tokens").Number<uint32_t>(9).Number<uint32_t>(8);
  tokens.Number<uint64_t>(100000).Text("one");
  std::ofstream(path, std::ios::binary) << tokens.all;
  std::filesystem::resize_file(path, 1 << 20);
  EXPECT_EQ(Tokenizer::Open(path).status().message(),
            absl::StrCat("`", path, "`: ids up to 99999 for 1 tokens"));
}

TEST(Json, LimitsOfDepthValuesAndMemory) {
  const auto fault = [](const std::string &text, const JsonLimits &limits = {}) {
    return std::string(ParseJson(text, limits).status().message());
  };
  EXPECT_EQ(fault(std::string(64, '[') + std::string(64, ']')), "");
  EXPECT_EQ(fault(std::string(65, '[') + std::string(65, ']')), "nested deeper than 64");
  EXPECT_EQ(fault("[1,2,3]", {64, 3, 1 << 20}), "more than 3 values");
  EXPECT_EQ(fault(absl::StrCat("[\"", std::string(1 << 20, 'a'), "\"]"), {64, 3, 1 << 20}),
            "it would take more than 1 MiB of memory");
  EXPECT_EQ(fault(absl::StrCat("{\"", std::string(1 << 20, 'a'), "\":1}"), {64, 3, 1 << 20}),
            "it would take more than 1 MiB of memory");
  EXPECT_EQ(fault(R"([{"a":1,"b":{"a":2,"a":3}}])"), "the key `a` stands twice in one object");
}

TEST(Memory, AFailedAllocationIsAnError) {
  const absl::Status status =
      WithinMemory("some.file", []() -> absl::Status { throw std::bad_alloc(); });
  EXPECT_EQ(status.message(),
            "cannot read `some.file`: there is not enough memory for its contents");
  const absl::StatusOr<int> value = WithinMemory("some.file", []() -> absl::StatusOr<int> {
    std::vector<char> bytes(size_t(1) << 63);
    return int(bytes[0]);
  });
  EXPECT_EQ(value.status(), status);
}

TEST_F(GgufTest, TokenizersThatAreNotDone) {
  const auto fault = [&](const std::string &model, const std::string &family) {
    Bytes bytes = Header(0, 3);
    bytes.Text("tokenizer.ggml.model").Number<uint32_t>(8).Text(model);
    bytes.Text("tokenizer.ggml.pre").Number<uint32_t>(8).Text(family);
    bytes.Text("tokenizer.ggml.tokens").Number<uint32_t>(9).Number<uint32_t>(8).Number<uint64_t>(1);
    bytes.Text("a");
    std::ofstream(path, std::ios::binary) << bytes.all;
    return std::string(Tokenizer::Open(path).status().message()).substr(path.size() + 4);
  };
  EXPECT_EQ(fault("t5", ""),
            "the tokenizer model `t5` is not done; gpt2, llama and bert can be read");
  EXPECT_EQ(fault("gpt2", "viking"), "the pre-tokenizer `viking` is not done");
  EXPECT_EQ(fault("llama", ""), "no score for each token");
}

} // namespace
