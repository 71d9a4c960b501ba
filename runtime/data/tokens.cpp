//===- tokens.cpp - Files of tokens ---------------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/data/tokens.h"

#include "runtime/data/shard.h"
#include "runtime/support/units.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include <algorithm>
#include <filesystem>
#include <glob.h>
#include <system_error>
#include <utility>

namespace boa {
namespace {

constexpr size_t kMostOpen = 256; // files
constexpr int64_t kHashBlocks = 256, kFewestHashBlocks = 3;

class Tokens : public Source {
public:
  Tokens(DataSource source, std::vector<Shard> opened, int64_t context)
      : source(std::move(source)), shards(std::move(opened)), context(context) {
    begins.push_back(0);
    for (const Shard &shard : shards)
      begins.push_back(begins.back() + shard.tokens());
  }

  std::string name() const override { return FormatSource(source); }
  const char *unit() const override { return "tokens"; }
  int64_t size() const override { return begins.back(); }
  int64_t windows() const override { return (size() - 1) / context; }
  bool overlaps() const override { return false; }
  int64_t training_windows() const override { return windows() - windows() / 10; }
  int64_t first_validation_window() const override { return training_windows(); }
  std::string Describe() const override {
    return absl::StrCat(shards.size(), shards.size() == 1 ? " file of " : " files of ",
                        FormatCount(size()), " tokens");
  }

  absl::Status Read(int64_t window, Window &to) const override {
    to.tokens.resize(size_t(context + 1));
    to.last.clear();
    const int64_t begin = window * context, end = begin + context + 1;
    int64_t at = begin;
    for (size_t i = ShardOf(begin); at < end; ++i) {
      const int64_t count = std::min(end, begins[i + 1]) - at;
      if (absl::Status status =
              shards[i].Read(at - begins[i], count, to.tokens.data() + (at - begin));
          !status.ok())
        return status;
      if (absl::Status status = FindEnds(i, std::max(at, begin + 1), at + count, begin, to.last);
          !status.ok())
        return status;
      at += count;
    }
    if (source.end < 0)
      return absl::OkStatus();
    for (int64_t i = 0; i < context; ++i)
      if (to.tokens[size_t(i)] == source.end)
        to.last.push_back(i);
    return absl::OkStatus();
  }

  absl::StatusOr<std::vector<FilePrint>> Fingerprints() const override {
    const int64_t blocks = std::max(kHashBlocks / int64_t(shards.size()), kFewestHashBlocks);
    std::vector<FilePrint> files;
    for (const Shard &shard : shards) {
      absl::StatusOr<uint64_t> hash = shard.Hash(blocks);
      if (!hash.ok())
        return hash.status();
      files.push_back({shard.path(), *hash});
    }
    return files;
  }

private:
  size_t ShardOf(int64_t token) const {
    return size_t(std::upper_bound(begins.begin(), begins.end(), token) - begins.begin()) - 1;
  }

  /// Positions in a window before those tokens of a shard that begin documents.
  absl::Status FindEnds(size_t shard, int64_t first, int64_t end, int64_t window,
                        std::vector<int64_t> &last) const {
    if (!shards[shard].documents() || first >= end)
      return absl::OkStatus();
    std::vector<int64_t> found;
    if (absl::Status status = shards[shard].documents()->FindBegins(first - begins[shard],
                                                                    end - begins[shard], found);
        !status.ok())
      return status;
    for (int64_t document : found)
      last.push_back(document + begins[shard] - window - 1);
    return absl::OkStatus();
  }

  const DataSource source;
  const std::vector<Shard> shards;
  const int64_t context;
  std::vector<int64_t> begins; // of each shard in the whole, and the end
};

} // namespace

std::vector<std::string> FindShards(const std::string &pattern) {
  std::vector<std::string> files;
  glob_t found = {};
  if (glob(pattern.c_str(), GLOB_NOSORT, nullptr, &found) == 0)
    files.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  globfree(&found);
  std::sort(files.begin(), files.end());
  const std::vector<std::string> all = files;
  files.erase(std::remove_if(files.begin(), files.end(),
                             [&](const std::string &file) {
                               return absl::EndsWith(file, ".idx") &&
                                      std::binary_search(all.begin(), all.end(),
                                                         file.substr(0, file.size() - 4) + ".bin");
                             }),
              files.end());
  return files;
}

absl::StatusOr<std::unique_ptr<Source>> OpenTokens(const DataSource &source,
                                                   const SourceOptions &options) {
  const std::vector<std::string> files = FindShards(source.files);
  if (files.empty()) {
    std::error_code error;
    const std::string whole = std::filesystem::absolute(source.files, error).string();
    return absl::NotFoundError(absl::StrCat("no file matches `", source.files,
                                            "`\n  looked for: ", error ? source.files : whole));
  }
  if (source.end >= options.vocab)
    return absl::InvalidArgumentError(absl::StrCat(FormatSource(source), ": token ", source.end,
                                                   " is outside the vocabulary of ",
                                                   options.vocab));
  std::vector<Shard> shards;
  for (const std::string &file : files) {
    absl::StatusOr<Shard> shard =
        Shard::Open(file, source.type, options.vocab, /*stays_open=*/shards.size() < kMostOpen);
    if (!shard.ok())
      return shard.status();
    shards.push_back(*std::move(shard));
  }
  return std::make_unique<Tokens>(source, std::move(shards), options.context);
}

} // namespace boa
