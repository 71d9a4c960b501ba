//===- safetensors_test.cpp - Files of named tensors ----------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/weights/safetensors.h"

#include "runtime/weights/weight_files.h"

#include "test/runtime/scratch.h"

#include "gtest/gtest.h"

#include <cmath>
#include <cstring>
#include <sys/resource.h>

namespace boa {
namespace {

Tensor Named(const std::string &name, std::vector<int64_t> shape) {
  Tensor tensor;
  tensor.name = name;
  tensor.shape = std::move(shape);
  return tensor;
}

/// A file with this header and `bytes` bytes of tensors.
std::string Assemble(const std::string &header, size_t bytes) {
  const uint64_t length = header.size();
  std::string file(8, '\0');
  std::memcpy(file.data(), &length, 8);
  return file + header + std::string(bytes, '\1');
}

class SafetensorsTest : public testing::Test {
protected:
  std::string Error(const std::string &contents) {
    const std::string path = scratch.Write("bad.safetensors", contents);
    std::string message(SafetensorsReader::Open(path).status().message());
    const std::string prefix = "`" + path + "` is not a safetensors file: ";
    EXPECT_EQ(message.substr(0, prefix.size()), prefix) << message;
    return message.substr(std::min(prefix.size(), message.size()));
  }

  Scratch scratch;
};

TEST_F(SafetensorsTest, ReadsWhatItWrote) {
  const std::string path = scratch.path("model.safetensors");
  auto writer = SafetensorsWriter::Create(
      path, {Named("block.3.qkv_w", {2, 3}), Named("embed.wte", {4})}, {{"format", "boa"}});
  ASSERT_TRUE(writer.ok()) << writer.status();
  std::vector<float> values = {1, -2, 3.5, 4, 5, 6, 7, 8, 9, -0.0f};
  // In pieces that do not end where tensors end.
  ASSERT_TRUE(writer->Append(values.data(), 4).ok());
  ASSERT_TRUE(writer->Append(values.data() + 4, 6).ok());
  EXPECT_FALSE(std::filesystem::exists(path));
  ASSERT_TRUE(writer->Finish().ok());

  auto reader = SafetensorsReader::Open(path);
  ASSERT_TRUE(reader.ok()) << reader.status();
  const Tensor *qkv = reader->Find("block.3.qkv_w");
  ASSERT_NE(qkv, nullptr);
  EXPECT_EQ(qkv->shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(reader->Find("block.4.qkv_w"), nullptr);
  std::vector<float> back(4);
  ASSERT_TRUE(reader->Read(*qkv, 1, 4, back.data()).ok());
  EXPECT_EQ(back, (std::vector<float>{-2, 3.5, 4, 5}));
  ASSERT_TRUE(reader->Read(*reader->Find("embed.wte"), 0, 4, back.data()).ok());
  EXPECT_TRUE(std::signbit(back[3]));
}

// A file that was begun and not finished leaves nothing behind, and what stood
// under the name stays.
TEST_F(SafetensorsTest, AnUnfinishedFileIsNoFile) {
  const std::string path = scratch.Write("model.safetensors", "before");
  {
    auto writer = SafetensorsWriter::Create(path, {Named("a", {1000})}, {});
    ASSERT_TRUE(writer.ok());
    EXPECT_FALSE(writer->Finish().ok());
  }
  EXPECT_EQ(ReadWhole(path), "before");
  EXPECT_FALSE(std::filesystem::exists(path + ".tmp"));
}

TEST_F(SafetensorsTest, WidensHalves) {
  const std::string header = R"({"b":{"dtype":"BF16","shape":[3],"data_offsets":[0,6]},)"
                             R"("h":{"dtype":"F16","shape":[5],"data_offsets":[6,16]}})";
  const uint16_t data[] = {0x3f80, 0xc000, 0x7f80,                  // 1 -2 inf
                           0x3c00, 0xc000, 0x0001, 0x7bff, 0x8000}; // 1 -2 ...
  std::string file = Assemble(header, 0);
  file.append(reinterpret_cast<const char *>(data), sizeof(data));
  auto reader = SafetensorsReader::Open(scratch.Write("halves", file));
  ASSERT_TRUE(reader.ok()) << reader.status();
  std::vector<float> b(3), h(5);
  ASSERT_TRUE(reader->Read(*reader->Find("b"), 0, 3, b.data()).ok());
  EXPECT_EQ(b, (std::vector<float>{1, -2, INFINITY}));
  ASSERT_TRUE(reader->Read(*reader->Find("h"), 0, 5, h.data()).ok());
  EXPECT_EQ(h, (std::vector<float>{1, -2, 0x1p-24f, 65504, -0.0f}));
}

TEST_F(SafetensorsTest, RefusesTypesOnlyWhenAskedForThem) {
  auto reader = SafetensorsReader::Open(scratch.Write(
      "integers", Assemble(R"({"i":{"dtype":"I64","shape":[1],"data_offsets":[0,8]}})", 8)));
  ASSERT_TRUE(reader.ok()) << reader.status();
  float value;
  EXPECT_NE(std::string(reader->Read(*reader->Find("i"), 0, 1, &value).message())
                .find("tensor `i` is I64"),
            std::string::npos);
}

TEST_F(SafetensorsTest, RefusesMalformedHeaders) {
  EXPECT_EQ(Error("short"), "it has 5 bytes");
  EXPECT_EQ(Error(std::string(8, '\x7f')),
            "a header of 9187201950435737471 bytes, where at most 100000000 are "
            "allowed");
  EXPECT_EQ(Error(Assemble("{}", 0).substr(0, 9)), "a header of 2 bytes in a file of 9");
  EXPECT_EQ(Error(Assemble("{\"a\":", 0)), "its header: no JSON at byte 6");
  EXPECT_EQ(Error(Assemble("[]", 0)), "the header is not a JSON object");
  EXPECT_EQ(Error(Assemble(R"({"a":{"dtype":"F32","shape":[1]}})", 4)),
            "tensor `a`: expected dtype, shape and data_offsets");
  EXPECT_EQ(Error(Assemble(R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})", 4)),
            "tensor `a`: shape is not a list of sizes");
  EXPECT_EQ(Error(Assemble(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 4)),
            "tensor `a`: data_offsets [0, 8) leave the file, which holds 4 bytes "
            "of tensors");
  EXPECT_EQ(Error(Assemble(R"({"a":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}})", 8)),
            "tensor `a`: shape [3] of F32 takes 12 bytes but data_offsets span 8");
  EXPECT_EQ(Error(Assemble(R"({"a":{"dtype":"F32","shape":[4611686018427387904,)"
                           R"(4],"data_offsets":[0,8]}})",
                           8)),
            "tensor `a`: shape is too large");
  EXPECT_EQ(Error(Assemble(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
                           R"("b":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
                           8)),
            "tensors `a` and `b` overlap");
}

// Readers disagree on which of two tensors of one name counts. Values within values take memory.
TEST_F(SafetensorsTest, RefusesWhatAReaderMayTakeInTwoWays) {
  const std::string tensor = R"({"dtype":"F32","shape":[1],"data_offsets":[0,4]})";
  EXPECT_EQ(Error(Assemble(absl::StrCat("{\"a\":", tensor, ",\"a\":", tensor, "}"), 4)),
            "its header: the key `a` stands twice in one object");
  EXPECT_EQ(Error(Assemble(R"({"__metadata__":{"format":"pt","format":"boa"}})", 0)),
            "its header: the key `format` stands twice in one object");
  EXPECT_EQ(Error(Assemble(std::string(1 << 20, '['), 0)), "its header: nested deeper than 64");
}

TEST_F(SafetensorsTest, MissingFileIsSaid) {
  EXPECT_EQ(SafetensorsReader::Open("nowhere.safetensors").status().message(),
            "cannot open nowhere.safetensors: No such file or directory");
}

// Each shard of a folder is an open file. The error names the limit before one is missing.
TEST_F(SafetensorsTest, MoreShardsThanFilesThatMayBeOpen) {
  std::string index = "{\"weight_map\": {";
  for (int i = 0; i < 100; ++i)
    index +=
        (i ? ", \"" : "\"") + std::to_string(i) + "\": \"" + std::to_string(i) + ".safetensors\"";
  const std::string path = scratch.Write("model.safetensors.index.json", index + "}}");
  rlimit limit;
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  const rlimit few = {150, limit.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
  const std::string error(WeightFiles::Open(scratch.path()).status().message());
  setrlimit(RLIMIT_NOFILE, &limit);
  EXPECT_EQ(error, "`" + path +
                       "`: its 100 files are open at once, so the process needs 164 open "
                       "files, but may have 150; `ulimit -n 164` allows them");
}

} // namespace
} // namespace boa
