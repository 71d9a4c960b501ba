//===- encode.cpp - Tokens of texts, for comparisons by hand --------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//   tokenizer_encode TOKENIZER < TEXTS     texts apart by zero bytes; a line of tokens for each
//   tokenizer_encode TOKENIZER FILE        how fast the file is encoded and decoded
//
// An error is a line that begins with `error`. BOA_PLAIN=1: no tokens around a text.
//
//===----------------------------------------------------------------------===//
#include "runtime/tokenizer/tokenizer.h"

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <iterator>

using namespace boa;

namespace {

using Clock = std::chrono::steady_clock;

double MegabytesPerSecond(size_t bytes, Clock::time_point since) {
  return bytes / 1e6 / std::chrono::duration<double>(Clock::now() - since).count();
}

int Measure(const std::shared_ptr<const Tokenizer> &tokenizer, const std::string &text) {
  Encoder encoder(tokenizer);
  std::vector<int32_t> tokens;
  const auto begin = Clock::now();
  if (absl::Status status = encoder.Encode(text, {false, true}, tokens); !status.ok()) {
    std::cerr << status.message() << "\n";
    return 1;
  }
  const double encoded = MegabytesPerSecond(text.size(), begin);
  const auto again = Clock::now();
  absl::StatusOr<std::string> decoded = Decode(tokenizer, tokens, true);
  std::cout << text.size() << " bytes, " << tokens.size() << " tokens, encoded at " << encoded
            << " MB/s, decoded at " << MegabytesPerSecond(text.size(), again) << " MB/s, "
            << (decoded.ok() && *decoded == text ? "the same text" : "another text") << "\n";
  return 0;
}

std::string ReadAll(std::istream &in) {
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

} // namespace

int main(int argc, char **argv) {
  if (argc != 2 && argc != 3)
    return 2;
  const auto begin = Clock::now();
  absl::StatusOr<std::shared_ptr<const Tokenizer>> tokenizer = Tokenizer::Open(argv[1]);
  if (!tokenizer.ok()) {
    std::cerr << tokenizer.status().message() << "\n";
    return 1;
  }
  std::cerr << "opened in " << std::chrono::duration<double>(Clock::now() - begin).count() << " s, "
            << (*tokenizer)->size() << " tokens\n";
  if (argc == 3) {
    std::ifstream file(argv[2], std::ios::binary);
    return Measure(*tokenizer, ReadAll(file));
  }
  Encoder encoder(*tokenizer);
  const std::string input = ReadAll(std::cin);
  for (size_t at = 0; at < input.size();) {
    const size_t end = std::min(input.find('\0', at), input.size());
    std::vector<int32_t> tokens;
    absl::Status status = encoder.Encode(absl::string_view(input).substr(at, end - at),
                                         {!std::getenv("BOA_PLAIN"), true}, tokens);
    if (!status.ok())
      std::cout << "error " << status.message();
    for (size_t i = 0; status.ok() && i < tokens.size(); ++i)
      std::cout << (i ? " " : "") << tokens[i];
    std::cout << "\n";
    at = end + 1;
  }
  return 0;
}
