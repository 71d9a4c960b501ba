//===- replay.cpp - The corpus, without libFuzzer -------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// replay_TARGET FOLDER: gives each file of the folder to the fuzz target. The last name that is
// printed is that of the input which ended the process.
//
//===----------------------------------------------------------------------===//
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/// Of libFuzzer, for the targets' mutators. Nothing is changed here.
extern "C" size_t LLVMFuzzerMutate(uint8_t *, size_t size, size_t) { return size; }

int main(int argc, char **argv) {
  std::vector<std::filesystem::path> inputs;
  if (argc == 2)
    for (const auto &entry : std::filesystem::directory_iterator(argv[1]))
      inputs.push_back(entry.path());
  std::sort(inputs.begin(), inputs.end());
  for (const std::filesystem::path &path : inputs) {
    std::puts(path.c_str());
    std::fflush(stdout);
    std::ifstream file(path, std::ios::binary);
    const std::string text((std::istreambuf_iterator<char>(file)), {});
    LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t *>(text.data()), text.size());
  }
  std::printf("%zu inputs\n", inputs.size());
  return inputs.empty();
}
