//===- tokens.cpp - Files of tokens ---------------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/data/tokens.h"

#include "runtime/data/windows.h"
#include "runtime/support/interrupt.h"
#include "runtime/support/units.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include <algorithm>
#include <filesystem>
#include <glob.h>
#include <optional>
#include <system_error>
#include <utility>

namespace boa {
namespace {

constexpr size_t kMostOpen = 256; // files
constexpr int64_t kShardHashBlocks = 256, kFewestShardHashBlocks = 3;

absl::Status Stopped() {
  return absl::CancelledError("interrupted while files of tokens were opened; nothing was changed");
}

class TokenSource : public Source {
public:
  TokenSource(DataSource source, std::vector<Shard> opened, ShardNames names,
              const SourceOptions &options)
      : source(std::move(source)), shards(std::move(opened)), names(std::move(names)),
        context(options.context), masked(options.masked) {
    begins.push_back(0);
    for (const Shard &shard : shards)
      begins.push_back(begins.back() + shard.tokens());
  }

  /// Finds the windows that have a target, if any token is none.
  absl::Status FindWindows() {
    if (masked || std::none_of(shards.begin(), shards.end(),
                               [](const Shard &shard) { return shard.targets().has_value(); }))
      return absl::OkStatus();
    const int64_t all = AllWindows();
    WindowSet set(all);
    // Token t is the target of position t - 1. The first one of all is none.
    int64_t next = 1; // tokens before it are of windows that have a target
    const auto add = [&](int64_t token) {
      const int64_t window = (token - 1) / context;
      set.Add(window);
      next = (window + 1) * context + 1;
    };
    for (size_t i = 0; i < shards.size(); ++i) {
      if (Interrupted())
        return Stopped();
      const int64_t end = begins[i + 1];
      if (!shards[i].targets()) {
        next = std::max(next, begins[i]);
        while (next < end)
          add(next);
        continue;
      }
      absl::Status status =
          shards[i].targets()->Scan([&](int64_t first, const std::vector<uint8_t> &bits) {
            const int64_t at = begins[i] + first,
                          last = std::min(at + int64_t(bits.size()) * 8, end);
            for (next = std::max(next, at); next < last;) {
              const int64_t bit = next - at;
              const auto left = uint8_t(bits[size_t(bit / 8)] >> (bit % 8));
              if (left == 0)
                next = std::min(next + 8 - bit % 8, end);
              else
                add(next + __builtin_ctz(left));
            }
          });
      if (!status.ok())
        return status;
    }
    set.Count();
    targeted = std::move(set);
    return absl::OkStatus();
  }

  std::string name() const override { return FormatSource(source); }
  const char *unit() const override { return "tokens"; }
  int64_t size() const override { return begins.back(); }
  int64_t windows() const override { return targeted ? targeted->size() : AllWindows(); }
  bool overlaps() const override { return false; }
  int64_t training_windows() const override { return windows() - windows() / 10; }
  int64_t first_validation_window() const override { return training_windows(); }
  std::string Describe() const override {
    const size_t files = names.files ? names.files : shards.size();
    std::string text = absl::StrCat(files, files == 1 ? " file of " : " files of ",
                                    FormatCount(size()), " tokens");
    int64_t targets = 0;
    for (const Shard &shard : shards)
      targets += shard.targets() ? shard.targets()->marked() : shard.tokens();
    if (targeted)
      absl::StrAppend(&text, ", ", FormatCount(targets), " of them targets");
    if (targeted && windows() < AllWindows())
      absl::StrAppend(&text, ", ", AllWindows() - windows(), " of ", AllWindows(),
                      " sequences without any left out");
    return text;
  }

  absl::Status Read(int64_t place, Window &to) const override {
    const int64_t window = targeted ? targeted->At(place) : place;
    // The first token that is its own, and the first one of all.
    const int64_t own = window * context, begin = masked ? std::min(own, size() - context) : own;
    const int64_t end = std::min(begin + context + 1, size());
    to.tokens.assign(size_t(context + 1), 0);
    to.untargeted.clear();
    to.begins.clear();
    for (int64_t i = begin; masked && i < own; ++i)
      to.untargeted.push_back(i - begin);
    for (int64_t i = end; !masked && i <= begin + context; ++i)
      to.untargeted.push_back(i - begin - 1);
    int64_t at = begin;
    for (size_t i = ShardOf(begin); at < end; ++i) {
      const int64_t count = std::min(end, begins[i + 1]) - at;
      if (absl::Status status =
              shards[i].Read(at - begins[i], count, to.tokens.data() + (at - begin));
          !status.ok())
        return status;
      if (absl::Status status = FindUntargeted(i, masked ? at : std::max(at, begin + 1), at + count,
                                               begin, to.untargeted);
          !status.ok())
        return status;
      if (absl::Status status = FindBegins(i, at, at + count, begin, to.begins); !status.ok())
        return status;
      at += count;
    }
    for (int64_t i = 0; source.end >= 0 && i < std::min(context, end - begin); ++i)
      if (to.tokens[size_t(i)] == source.end)
        to.begins.push_back(i + 1);
    // Nothing of its own document stands before the first token, so it cannot be predicted from
    // there.
    for (int64_t position : to.begins)
      if (!masked && position > 0)
        to.untargeted.push_back(position - 1);
    return absl::OkStatus();
  }
  bool TellsDocuments() const override {
    return source.end >= 0 || std::any_of(shards.begin(), shards.end(), [](const Shard &shard) {
             return shard.documents() || shard.begins();
           });
  }

  absl::StatusOr<std::vector<FilePrint>> Fingerprints() const override {
    const int64_t blocks =
        std::max(kShardHashBlocks / int64_t(shards.size()), kFewestShardHashBlocks);
    std::vector<FilePrint> files;
    for (const Shard &shard : shards) {
      if (Interrupted())
        return Stopped();
      absl::StatusOr<uint64_t> hash = shard.Hash(blocks);
      if (!hash.ok())
        return hash.status();
      files.push_back({shard.path(), *hash});
    }
    for (size_t i = 0; i < names.of.size(); ++i)
      files[i].path = names.of[i];
    return files;
  }

private:
  /// Behind the last token of all there is none to predict, but padding may follow before it.
  int64_t AllWindows() const {
    if (masked)
      return size() < context ? 0 : (size() - 1) / context + 1;
    if (!source.packed)
      return size() / context;
    return size() < 2 ? 0 : (size() - 2) / context + 1;
  }
  size_t ShardOf(int64_t token) const {
    return size_t(std::upper_bound(begins.begin(), begins.end(), token) - begins.begin()) - 1;
  }

  /// Positions in a window of those tokens of a shard that begin documents.
  absl::Status FindBegins(size_t shard, int64_t first, int64_t end, int64_t window,
                          std::vector<int64_t> &begun) const {
    std::vector<int64_t> found; // in the shard
    if (const auto &marks = shards[shard].begins()) {
      std::vector<bool> bits(size_t(end - first));
      if (absl::Status status = marks->Read(first - begins[shard], bits); !status.ok())
        return status;
      for (size_t i = 0; i < bits.size(); ++i)
        if (bits[i])
          found.push_back(first - begins[shard] + int64_t(i));
    } else if (const auto &index = shards[shard].documents()) {
      if (absl::Status status =
              index->FindBegins(first - begins[shard], end - begins[shard], found);
          !status.ok())
        return status;
    }
    for (int64_t document : found)
      begun.push_back(document + begins[shard] - window);
    return absl::OkStatus();
  }

  /// Positions in a window before those tokens of a shard that are no targets. Of masked tokens,
  /// their own positions, but of none that is no target only because it begins a document.
  absl::Status FindUntargeted(size_t shard, int64_t first, int64_t end, int64_t window,
                              std::vector<int64_t> &untargeted) const {
    if (!shards[shard].targets() || first >= end)
      return absl::OkStatus();
    std::vector<bool> targets(size_t(end - first));
    if (absl::Status status = shards[shard].targets()->Read(first - begins[shard], targets);
        !status.ok())
      return status;
    std::vector<bool> begun(masked && shards[shard].begins() ? targets.size() : 0);
    if (absl::Status status = begun.empty()
                                  ? absl::OkStatus()
                                  : shards[shard].begins()->Read(first - begins[shard], begun);
        !status.ok())
      return status;
    for (size_t i = 0; i < targets.size(); ++i)
      if (!targets[i] && (begun.empty() || !begun[i]))
        untargeted.push_back(first + int64_t(i) - window - !masked);
    return absl::OkStatus();
  }

  const DataSource source;
  const std::vector<Shard> shards;
  const ShardNames names;
  const int64_t context;
  const bool masked;
  std::optional<WindowSet> targeted; // nothing: all windows
  std::vector<int64_t> begins;       // of each shard in the whole, and the end
};

} // namespace

/// A pattern without the \ before characters that stand for themselves.
static std::string WithoutEscapes(const std::string &pattern) {
  std::string name;
  for (size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] == '\\' && i + 1 < pattern.size())
      ++i;
    name += pattern[i];
  }
  return name;
}

std::vector<std::string> FindFiles(const std::string &pattern) {
  // A file of that very name is meant, whatever its characters mean in a pattern.
  std::error_code error;
  for (const std::string &name : {pattern, WithoutEscapes(pattern)})
    if (std::filesystem::is_regular_file(name, error))
      return {name};
  std::vector<std::string> files;
  glob_t found = {};
  if (glob(pattern.c_str(), GLOB_NOSORT, nullptr, &found) == 0)
    files.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  globfree(&found);
  std::sort(files.begin(), files.end());
  return files;
}

absl::Status NoFile(const std::string &pattern) {
  std::error_code error;
  const std::string whole = std::filesystem::absolute(pattern, error).string();
  return absl::NotFoundError(
      absl::StrCat("no file matches `", pattern, "`\n  looked for: ", error ? pattern : whole));
}

std::vector<std::string> FindShards(const std::string &pattern) {
  std::vector<std::string> files = FindFiles(pattern);
  const std::vector<std::string> all = files;
  const auto is_beside = [&](const std::string &file) {
    for (absl::string_view ending : {".idx", ".targets", ".begins"})
      if (absl::EndsWith(file, ending))
        return std::binary_search(all.begin(), all.end(),
                                  file.substr(0, file.size() - ending.size()) + ".bin");
    return false;
  };
  files.erase(std::remove_if(files.begin(), files.end(), is_beside), files.end());
  return files;
}

absl::StatusOr<std::unique_ptr<Source>> OpenTokens(const DataSource &source,
                                                   const SourceOptions &options) {
  const std::vector<std::string> files = FindShards(source.files);
  if (files.empty())
    return NoFile(source.files);
  if (source.end >= options.vocab)
    return absl::InvalidArgumentError(absl::StrCat(FormatSource(source), ": token ", source.end,
                                                   " is outside the vocabulary of ",
                                                   options.vocab));
  return OpenShards(source, files, {}, options);
}

absl::StatusOr<std::unique_ptr<Source>> OpenShards(const DataSource &source,
                                                   const std::vector<std::string> &files,
                                                   ShardNames names, const SourceOptions &options) {
  std::vector<Shard> shards;
  for (const std::string &file : files) {
    if (Interrupted())
      return Stopped();
    absl::StatusOr<Shard> shard =
        Shard::Open(file, source.type, options.vocab, /*stays_open=*/shards.size() < kMostOpen);
    if (!shard.ok())
      return shard.status();
    shards.push_back(*std::move(shard));
  }
  auto tokens = std::make_unique<TokenSource>(source, std::move(shards), std::move(names), options);
  if (absl::Status status = tokens->FindWindows(); !status.ok())
    return status;
  return tokens;
}

} // namespace boa
