//===- token_cache.cpp - Tokens that were made of texts, kept -------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/data/token_cache.h"

#include "runtime/data/shard.h"
#include "runtime/formats/json.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>
#include <utility>

namespace boa {
namespace {

using Json = nlohmann::json;

constexpr auto kWait = std::chrono::milliseconds(100); // for the lock of another process

std::string ShardName(const std::string &prefix, size_t shard) {
  return absl::StrCat(prefix, "-", shard, ".bin");
}

/// A count in the file of an entry; -1 if it is none.
int64_t CountIn(const Json &entry, const char *key) {
  const auto found = entry.find(key);
  return found == entry.end() || !found->is_number_unsigned() ? -1 : found->get<int64_t>();
}

} // namespace

std::string KeyOf(absl::string_view description) {
  const XXH128_hash_t hash = XXH3_128bits(description.data(), description.size());
  return absl::StrFormat("%016x%016x", hash.high64, hash.low64);
}

absl::Status EntryWriter::Next() {
  absl::StatusOr<ShardWriter> next =
      ShardWriter::Create(ShardName(prefix, entry.shards.size()), vocabulary, /*with_marks=*/true);
  if (!next.ok())
    return next.status();
  entry.shards.push_back(ShardName(prefix, entry.shards.size()));
  shard = *std::move(next);
  return absl::OkStatus();
}

absl::Status EntryWriter::Append(const std::vector<int32_t> &tokens,
                                 const std::vector<bool> &targets) {
  const auto count = int64_t(tokens.size());
  if (count == 0)
    return absl::OkStatus();
  if (shard && shard->tokens() > 0 && shard->tokens() + count > shard_tokens) {
    if (absl::Status status = shard->Finish(); !status.ok())
      return status;
    shard.reset();
  }
  if (!shard)
    if (absl::Status status = Next(); !status.ok())
      return status;
  entry.tokens += count;
  entry.greatest =
      std::max<int64_t>(entry.greatest, *std::max_element(tokens.begin(), tokens.end()));
  std::vector<bool> first(tokens.size());
  first[0] = std::exchange(begins, false);
  return shard->Append(tokens, targets, first);
}

absl::Status EntryWriter::Pad(int64_t tokens) {
  const auto count = size_t(tokens);
  absl::Status status = Append(std::vector<int32_t>(count), std::vector<bool>(count));
  begins = true;
  return status;
}

absl::StatusOr<CacheEntry> EntryWriter::Finish() {
  absl::Status status = shard ? shard->Finish() : absl::OkStatus();
  if (!status.ok())
    return status;
  const Json counts = {{"shards", entry.shards.size()},
                       {"tokens", entry.tokens},
                       {"documents", entry.documents},
                       {"greatest", entry.greatest}};
  const std::filesystem::path path = prefix + ".json";
  status = ReplaceFile(SystemFiles(), path.parent_path().string(), path.filename().string(),
                       counts.dump() + "\n");
  if (!status.ok())
    return status;
  return entry;
}

/// Tokens decide what a model learns. Beside a state in a directory of all users, such as /tmp,
/// anybody may have put some.
absl::Status TokenCache::CheckOwner() const {
  struct stat link, info;
  const char *path = options.directory.c_str();
  if (options.is_named || (lstat(path, &link) != 0 && errno == ENOENT))
    return absl::OkStatus();
  if (lstat(path, &link) != 0 || stat(path, &info) != 0)
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot query `", options.directory, "`"));
  const auto is_own = [](uid_t user) { return user == geteuid() || user == 0; };
  const char *why = !is_own(link.st_uid) || !is_own(info.st_uid) ? "belongs to another user"
                    : (info.st_mode & S_IWOTH) != 0              ? "may be changed by all users"
                                                                 : nullptr;
  if (!why)
    return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("`", options.directory, "`, where tokens of texts are kept, ", why,
                   ", who then decide what is learnt; --tokens names another folder"));
}

absl::StatusOr<std::optional<CacheEntry>> TokenCache::Find(const std::string &key) const {
  if (absl::Status status = CheckOwner(); !status.ok())
    return status;
  const std::string prefix = absl::StrCat(options.directory, "/", key);
  const absl::StatusOr<std::string> text = ReadSmallFile(SystemFiles(), prefix + ".json");
  std::optional<CacheEntry> none;
  if (absl::IsNotFound(text.status()))
    return none;
  if (!text.ok())
    return text.status();
  CacheEntry entry;
  const absl::StatusOr<Json> counts = ParseJson(*text);
  const int64_t shards = counts.ok() && counts->is_object() ? CountIn(*counts, "shards") : -1;
  std::string damage = shards < 0 ? "its file is damaged" : "";
  int64_t tokens = 0;
  for (int64_t i = 0; i < shards && damage.empty(); ++i) {
    entry.shards.push_back(ShardName(prefix, size_t(i)));
    absl::StatusOr<Shard> shard =
        Shard::Open(entry.shards.back(), "", std::numeric_limits<int32_t>::max(), false);
    if (!shard.ok())
      damage = std::string(shard.status().message());
    else if (!shard->targets())
      damage = "it has lost its targets";
    else if (!shard->begins())
      damage = "it has lost where its documents begin";
    else
      tokens += shard->tokens();
  }
  if (damage.empty()) {
    entry.tokens = CountIn(*counts, "tokens");
    entry.documents = CountIn(*counts, "documents");
    entry.greatest = CountIn(*counts, "greatest");
    if (entry.tokens != tokens || entry.documents < 0 || entry.greatest < 0)
      damage = "it has other tokens than its file says";
  }
  if (damage.empty())
    return entry;
  options.say(absl::StrCat("note: tokens in `", options.directory, "` are made again: ", damage));
  return none;
}

absl::Status TokenCache::Lock() {
  std::error_code error;
  if (const auto parent = std::filesystem::path(options.directory).parent_path(); !parent.empty())
    std::filesystem::create_directories(parent, error);
  const auto advise = [&](const absl::Status &status) {
    return absl::Status(status.code(),
                        absl::StrCat("cannot keep tokens of texts in `", options.directory,
                                     "`: ", status.message(), "; --tokens names another folder"));
  };
  if (error)
    return advise(absl::FailedPreconditionError(error.message()));
  if (absl::Status status = SystemFiles().MakeDirectory(options.directory);
      !status.ok() && !absl::IsAlreadyExists(status))
    return advise(status);
  if (absl::Status status = CheckOwner(); !status.ok()) // it may have come since Find
    return status;
  for (bool waits = false;; waits = true) {
    absl::StatusOr<std::unique_ptr<OpenFile>> got = SystemFiles().Lock(options.directory + "/lock");
    if (got.ok()) {
      lock = *std::move(got);
      return RemoveRemains();
    }
    if (!absl::IsUnavailable(got.status()))
      return advise(got.status());
    if (!waits)
      options.say(
          absl::StrCat("waits for another run, which makes tokens in `", options.directory, "`"));
    if (options.stops())
      return absl::CancelledError("interrupted while another run makes tokens");
    SystemFiles().Wait(kWait);
  }
}

/// Files of entries that are not whole. Nobody else makes any, and nobody reads them.
absl::Status TokenCache::RemoveRemains() const {
  std::error_code error;
  std::vector<std::filesystem::path> remains;
  for (const auto &file : std::filesystem::directory_iterator(options.directory, error)) {
    const std::string name = file.path().filename().string();
    constexpr size_t kKey = 32;
    const bool is_of_key = name.size() > kKey && name.find_first_not_of("0123456789abcdef") == kKey;
    std::error_code missing;
    if (is_of_key &&
        (absl::EndsWith(name, ".tmp") ||
         !std::filesystem::exists(
             absl::StrCat(options.directory, "/", name.substr(0, kKey), ".json"), missing)))
      remains.push_back(file.path());
  }
  for (const std::filesystem::path &file : remains)
    if (absl::Status status = SystemFiles().Unlink(file.string());
        !status.ok() && !absl::IsNotFound(status))
      return status;
  return absl::OkStatus();
}

EntryWriter TokenCache::Begin(const std::string &key, int64_t vocabulary) const {
  return EntryWriter(absl::StrCat(options.directory, "/", key), vocabulary, options.shard_tokens);
}

} // namespace boa
