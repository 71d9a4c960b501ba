//===- source.cpp - Where sequences come from -----------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/data/source.h"

#include "runtime/data/text.h"
#include "runtime/data/tokenized.h"
#include "runtime/data/tokens.h"
#include "runtime/support/random.h"

#include <algorithm>

namespace boa {

absl::StatusOr<std::unique_ptr<Source>> OpenSource(const DataSource &source,
                                                   const SourceOptions &options) {
  if (source.is_tokenized())
    return OpenTokenized(source, options);
  return source.kind == SourceKind::bytes ? OpenText(source, options) : OpenTokens(source, options);
}

std::vector<std::string> FilesOf(const std::vector<DataSource> &sources) {
  std::vector<std::string> files;
  for (const DataSource &source : sources) {
    std::vector<std::string> found;
    if (source.kind == SourceKind::bytes)
      found = {source.files};
    else if (source.is_tokenized())
      found = FindFiles(source.files);
    else
      found = FindShards(source.files);
    if (!source.tokenizer.empty())
      found.push_back(source.tokenizer);
    if (source.has_template_file())
      found.push_back(source.form);
    files.insert(files.end(), found.begin(), found.end());
  }
  return files;
}

uint64_t Combine(const std::vector<FilePrint> &files) {
  if (files.size() == 1)
    return files[0].hash;
  uint64_t hash = Hash({uint64_t(files.size())});
  for (const FilePrint &file : files)
    hash = Mix(hash ^ file.hash);
  return hash;
}

absl::StatusOr<uint64_t> HashOfFile(const InputFile &file, int64_t block_bytes, int64_t blocks) {
  const int64_t size = file.size();
  const int64_t found = std::min((size + block_bytes - 1) / block_bytes, blocks);
  uint64_t hash = Hash({static_cast<uint64_t>(size)});
  std::vector<uint64_t> words(block_bytes / 8);
  for (int64_t block = 0; block < found; ++block) {
    const int64_t begin =
        found < blocks ? block * block_bytes : block * (size - block_bytes) / (blocks - 1);
    const int64_t count = std::min(block_bytes, size - begin);
    words.assign(words.size(), 0);
    if (absl::Status status = file.Read(begin, words.data(), count); !status.ok())
      return status;
    for (uint64_t word : words)
      hash = Mix(hash ^ word);
  }
  return hash;
}

} // namespace boa
