//===- shards_test.cpp - The forms of files of tokens ---------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/data/shard.h"

#include "test/runtime/data/shards.h"
#include "test/runtime/scratch.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <filesystem>
#include <functional>

namespace boa {
namespace {

using testing::HasSubstr;

class ShardTest : public testing::Test {
protected:
  /// The tokens of a file, or the error.
  absl::StatusOr<std::vector<int32_t>> Read(const std::string &contents,
                                            const std::string &type = "", int64_t vocab = 100000) {
    absl::StatusOr<Shard> shard =
        Shard::Open(scratch.Write("a.bin", contents), type, vocab, /*stays_open=*/false);
    if (!shard.ok())
      return shard.status();
    std::vector<int32_t> tokens(static_cast<size_t>(shard->tokens()));
    absl::Status status = shard->Read(0, shard->tokens(), tokens.data());
    if (!status.ok())
      return status;
    return tokens;
  }
  std::string Error(const std::string &contents, const std::string &type = "",
                    int64_t vocab = 100000) {
    return std::string(Read(contents, type, vocab).status().message());
  }

  Scratch scratch;
};

TEST_F(ShardTest, RecognisesEachForm) {
  const std::vector<int32_t> expected = {5, 6, 7, 8};
  EXPECT_EQ(*Read(Bytes(Range(5, 4))), expected);
  EXPECT_EQ(*Read(LlmC(Range(5, 4))), expected);
  EXPECT_EQ(*Read("\5\6\7\10", "uint8"), expected);
  EXPECT_EQ(*Read(Bytes(std::vector<uint32_t>{5, 6, 7, 8}), "uint32"), expected);
  std::vector<int32_t> head(256);
  head[0] = 20240801, head[1] = 7, head[2] = 2;
  EXPECT_EQ(*Read(Bytes(head) + Bytes(std::vector<uint32_t>{70000, 1})),
            (std::vector<int32_t>{70000, 1}));
  scratch.Write("a.idx", Index({1, 3}));
  EXPECT_EQ(*Read(Bytes(Range(5, 4))), expected);
}

/// A file of NumPy: its head, padded to 64 bytes, and the numbers.
std::string NumPy(const std::string &type, const std::string &shape, const std::string &numbers,
                  char version = 1) {
  std::string text = "{'descr': " + type + ", 'fortran_order': False, 'shape': " + shape + ", }";
  const size_t before = version == 1 ? 10 : 12;
  text.append(63 - (before + text.size()) % 64, ' ') += '\n';
  std::string length = Bytes(std::vector<uint32_t>{uint32_t(text.size())});
  return std::string("\x93NUMPY") + version + '\0' + length.substr(0, before - 8) + text + numbers;
}

// Whole numbers of any type are tokens where a file says which they are.
TEST_F(ShardTest, ReadsWholeNumbersOfAnyType) {
  const std::vector<int32_t> expected = {5, 0, 100, 7};
  const auto as = [&](auto number) {
    return Bytes(std::vector<decltype(number)>(expected.begin(), expected.end()));
  };
  const std::vector<std::tuple<const char *, std::string, char>> types = {
      {"|u1", as(uint8_t{}), 1},  {"|i1", as(int8_t{}), 2},   {"<i2", as(int16_t{}), 3},
      {"<i4", as(int32_t{}), 4},  {"<i8", as(int64_t{}), 5},  {"<u2", as(uint16_t{}), 8},
      {"<u4", as(uint32_t{}), 9}, {"<u8", as(uint64_t{}), 10}};
  for (const auto &[type, numbers, code] : types) {
    for (char version : {1, 2, 3}) {
      auto tokens = Read(NumPy("'" + std::string(type) + "'", "(4,)", numbers, version));
      ASSERT_TRUE(tokens.ok()) << type << tokens.status();
      EXPECT_EQ(*tokens, expected) << type;
    }
    std::string index = Index({4});
    index[17] = code;
    scratch.Write("a.idx", index);
    auto tokens = Read(numbers);
    ASSERT_TRUE(tokens.ok()) << type << tokens.status();
    EXPECT_EQ(*tokens, expected) << type;
    std::filesystem::remove(scratch.path("a.idx"));
  }
  EXPECT_EQ(*Read(as(int64_t{}), "int64"), expected);
  EXPECT_EQ(*Read(as(int32_t{}), "int32"), expected);
  EXPECT_EQ(Error(NumPy("'<i2'", "(4,)", as(int16_t{})), "uint16"), "");
  EXPECT_THAT(Error(NumPy("'<i8'", "(4,)", as(int64_t{})), "uint32"),
              HasSubstr("its header says that tokens are int64, but the spec says uint32"));
}

// What would be read as something else is refused, with advice that is right.
TEST_F(ShardTest, RefusesOtherNumbers) {
  const std::string bytes(40, '\1');
  EXPECT_THAT(Error(NumPy("'<f4'", "(10,)", bytes)), HasSubstr("its numbers are `'<f4'`, which are "
                                                               "no tokens"));
  EXPECT_THAT(Error(NumPy("[('a', '<i4')]", "(10,)", bytes)), HasSubstr("`[('a', '<i4')]`"));
  EXPECT_THAT(Error(NumPy("'>i4'", "(10,)", bytes)), HasSubstr("`array.astype('<i4')`"));
  EXPECT_THAT(Error(NumPy("'<i4'", "(2, 5)", bytes)), HasSubstr("its shape is (2, 5); expected one "
                                                                "axis, as `array.reshape(-1)`"));
  EXPECT_THAT(Error(NumPy("'<i4'", "()", bytes)), HasSubstr("its shape is ()"));
  EXPECT_THAT(Error(NumPy("'<i4'", "(11,)", bytes)), HasSubstr("it is truncated"));
  EXPECT_THAT(Error(NumPy("'<i4'", "(99999999999999999999,)", bytes)), HasSubstr("its shape is"));
  EXPECT_THAT(Error(NumPy("'<i4'", "(10,)", bytes).substr(0, 20)),
              HasSubstr("its head is damaged"));
  // Raw numbers of 64 bits, which as uint32 would be tokens with zeros between them.
  std::vector<int64_t> wide(200);
  for (size_t i = 0; i < wide.size(); ++i)
    wide[i] = int64_t(i * 701 % 99999);
  for (const char *type : {"", "uint32", "int32"})
    EXPECT_THAT(Error(Bytes(wide), type),
                HasSubstr("its tokens look like int64; write tokens(\"...\", int64)"));
  EXPECT_EQ(Error(Bytes(wide), "int64"), "");
  // The vocabulary of Qwen has more than twice 65,536 tokens.
  const std::vector<uint32_t> large(100, 151643);
  EXPECT_THAT(Error(Bytes(large), "", 152000), HasSubstr("its tokens look like uint32"));
  // No token is negative, and none is more than 32 bits.
  EXPECT_THAT(Error(Bytes(std::vector<int64_t>{1, -100}), "int64"),
              HasSubstr("token -100 at byte 8 is outside the vocabulary"));
  EXPECT_THAT(Error(Bytes(std::vector<int64_t>{int64_t{1} << 32}), "int64"),
              HasSubstr("token 4294967296 at byte 0 is outside"));
  scratch.Write("a.idx", "");
  for (char code : {0, 6, 7, 11}) {
    std::string index = Index({4});
    index[17] = code;
    scratch.Write("a.idx", index);
    EXPECT_THAT(Error(bytes), HasSubstr("expected whole numbers, which are 1 to 5 and 8 to 10"));
  }
  std::filesystem::remove(scratch.path("a.idx"));
  EXPECT_THAT(Error("PK\x03\x04" + bytes), HasSubstr("numpy.save("));
  EXPECT_THAT(Error("\x1f\x8b\x08" + bytes), HasSubstr("compressed by gzip; `gunzip -k "));
}

TEST_F(ShardTest, RefusesWhatIsDamagedAndNamesIt) {
  std::vector<int32_t> version(256);
  version[0] = 20240520, version[1] = 2, version[2] = 4;
  const std::string good = LlmC(Range(5, 4));
  const std::string wide = Bytes(std::vector<uint32_t>(100, 50));
  for (const auto &[contents, type, expected] :
       std::vector<std::tuple<std::string, std::string, const char *>>{
           {"", "", "a.bin`: it is empty"},
           {"abc", "", "its 3 bytes are no whole number of uint16 tokens"},
           {good.substr(0, good.size() - 1), "",
            "4 tokens, which take 1032 bytes, but it has 1031"},
           {good + "xx", "", "but it has 1034"},
           {good, "uint32", "its header says that tokens are uint16, but the spec says uint32"},
           {Bytes(version) + Bytes(Range(5, 4)), "", "of version 2, but expected version 1"},
           {"\x93NUMPY", "", "it is a NumPy file, and its head is damaged"},
           {"PAR1....", "", "it is a Parquet file"},
           {wide, "", "its tokens look like uint32"}}) {
    EXPECT_THAT(Error(contents, type), HasSubstr(expected));
    EXPECT_THAT(Error(contents, type), HasSubstr(scratch.path("a.bin")));
  }
  EXPECT_EQ(Error(wide, "uint16"), ""); // said so
  EXPECT_THAT(Error(Bytes(Range(5, 4)), "", 7),
              HasSubstr("a.bin`: token 7 at byte 4 is outside the vocabulary of 7"));
  EXPECT_THAT(Error(LlmC(Range(5, 4)), "", 8), HasSubstr("token 8 at byte 1030"));
  // In the middle, it is found when it is read.
  std::vector<uint16_t> far(20000, 1);
  far[10000] = 99;
  EXPECT_THAT(Error(Bytes(far), "", 50), HasSubstr("token 99 at byte 20000"));
}

TEST_F(ShardTest, ChecksAMegatronIndexAsAWhole) {
  const std::string tokens = Bytes(Range(5, 10));
  auto error = [&](std::string index) {
    scratch.Write("a.idx", index);
    return Error(tokens);
  };
  const std::string good = Index({4, 0, 6});
  EXPECT_EQ(error(good), "");
  auto with = [&](size_t at, char byte) {
    std::string changed = good;
    changed[at] = byte;
    return changed;
  };
  constexpr size_t kLengths = 34, kOffsets = kLengths + 3 * 4, kDocuments = kOffsets + 3 * 8;
  EXPECT_THAT(error(good.substr(0, 20)), HasSubstr("too short"));
  EXPECT_THAT(error(good.substr(0, good.size() - 1)), HasSubstr("3 sequences and 3 documents"));
  EXPECT_THAT(error(with(0, 'x')), HasSubstr("not a Megatron index"));
  EXPECT_THAT(error(with(17, 7)), HasSubstr("its tokens are of type 7, which has fractions"));
  EXPECT_THAT(error(with(25, '\xff')), HasSubstr("it is truncated"));
  EXPECT_THAT(error(with(kLengths, 5)), HasSubstr("sequence 1 does not begin where"));
  EXPECT_THAT(error(with(kOffsets + 16, 6)), HasSubstr("sequence 2 does not begin where"));
  EXPECT_THAT(error(with(kDocuments + 8, 9)), HasSubstr("document 1 does not begin behind"));
  EXPECT_THAT(error(Index({4, 5})), HasSubstr("a.bin`: its index says 9 tokens"));
}

TEST_F(ShardTest, FindsWhereDocumentsBegin) {
  const std::vector<int32_t> lengths = {4, 0, 6, 1, 1, 8};
  absl::StatusOr<Documents> documents = Documents::Open(scratch.Write("b.idx", Index(lengths)));
  ASSERT_TRUE(documents.ok()) << documents.status();
  EXPECT_EQ(documents->tokens(), 20);
  auto between = [&](int64_t begin, int64_t end) {
    std::vector<int64_t> begins;
    EXPECT_TRUE(documents->FindBegins(begin, end, begins).ok());
    return begins;
  };
  EXPECT_EQ(between(0, 20), (std::vector<int64_t>{0, 4, 10, 11, 12}));
  EXPECT_EQ(between(4, 11), (std::vector<int64_t>{4, 10}));
  EXPECT_EQ(between(5, 10), (std::vector<int64_t>{}));
  EXPECT_EQ(between(13, 21), (std::vector<int64_t>{}));
}

TEST_F(ShardTest, TellsAFileThatChangesWhileItIsRead) {
  const std::string path = scratch.Write("c.bin", Bytes(Range(0, 100)));
  absl::StatusOr<Shard> closed = Shard::Open(path, "", 1000, /*stays_open=*/false);
  absl::StatusOr<Shard> open = Shard::Open(path, "", 1000, /*stays_open=*/true);
  ASSERT_TRUE(closed.ok() && open.ok());
  scratch.Write("c.bin", Bytes(Range(0, 50)));
  std::vector<int32_t> tokens(100);
  EXPECT_THAT(std::string(closed->Read(0, 10, tokens.data()).message()),
              HasSubstr("it had 200 bytes when the run began, and has 100"));
  EXPECT_THAT(std::string(open->Read(0, 100, tokens.data()).message()), HasSubstr("c.bin"));
}

} // namespace
} // namespace boa
