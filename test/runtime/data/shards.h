//===- shards.h - Files of tokens for tests ---------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_TEST_RUNTIME_DATA_SHARDS_H
#define BOA_TEST_RUNTIME_DATA_SHARDS_H

#include <cstdint>
#include <string>
#include <vector>

namespace boa {

template <typename Number> std::string Bytes(const std::vector<Number> &numbers) {
  return std::string(reinterpret_cast<const char *>(numbers.data()),
                     numbers.size() * sizeof(Number));
}

/// first, first + 1, ...
inline std::vector<uint16_t> Range(uint16_t first, size_t count) {
  std::vector<uint16_t> tokens(count);
  for (size_t i = 0; i < count; ++i)
    tokens[i] = uint16_t(first + i);
  return tokens;
}

/// A file of llm.c, of uint16.
inline std::string LlmC(const std::vector<uint16_t> &tokens) {
  std::vector<int32_t> head(256);
  head[0] = 20240520, head[1] = 1, head[2] = int32_t(tokens.size());
  return Bytes(head) + Bytes(tokens);
}

/// The index of a Megatron file of uint16. Each document is one sequence.
inline std::string Index(const std::vector<int32_t> &lengths) {
  std::vector<int64_t> offsets, documents;
  int64_t at = 0;
  for (size_t i = 0; i < lengths.size(); ++i) {
    offsets.push_back(at);
    documents.push_back(int64_t(i));
    at += 2 * lengths[i];
  }
  documents.push_back(int64_t(lengths.size()));
  return std::string("MMIDIDX\0\0", 9) + Bytes(std::vector<uint64_t>{1}) + '\x08' +
         Bytes(std::vector<uint64_t>{lengths.size(), documents.size()}) + Bytes(lengths) +
         Bytes(offsets) + Bytes(documents);
}

} // namespace boa

#endif // BOA_TEST_RUNTIME_DATA_SHARDS_H
