//===- token_cache.h - Tokens that were made of texts, kept -----*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A directory of entries. An entry is the tokens of some files, made by one tokenizer in one way:
// KEY-0.bin, KEY-0.targets, KEY-0.begins and so on (shard.h), and KEY.json, which counts them and
// comes last. Without KEY.json there is no entry. KEY is a hash of all that the tokens depend on.
//
// An entry that is whole is never changed, so several runs may read one directory. Who makes
// entries holds the lock of the directory, and removes what killed runs have left. To delete the
// directory is always right: the entries are made again.
//
// Threads: one. Errors: each names the file or the directory.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_DATA_TOKEN_CACHE_H
#define BOA_RUNTIME_DATA_TOKEN_CACHE_H

#include "runtime/data/shard_writer.h"
#include "runtime/io/file_system.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace boa {

/// Where entries are, and how a run follows the making of one.
struct CacheOptions {
  std::string directory;
  bool is_named = true;           // by the user; otherwise others may have made it
  bool makes = true;              // entries that lack; else the error is kFailedPrecondition
  int64_t shard_tokens = 1 << 30; // of a file, at most about so many
  std::string date;               // that chat templates show, 2026-11-29; "": today
  /// A line for the user.
  std::function<void(const std::string &)> say = [](const std::string &) {};
  /// How many bytes of the files are done, often.
  std::function<void(int64_t, int64_t)> show = [](int64_t, int64_t) {};
  /// Whether to stop: then the error is kCancelled.
  std::function<bool()> stops = [] { return false; };
};

struct CacheEntry {
  std::vector<std::string> shards; // paths
  int64_t tokens = 0, documents = 0;
  int64_t greatest = 0; // token
};

/// Writes an entry. It appears with Finish.
class EntryWriter {
public:
  EntryWriter(std::string prefix, int64_t vocabulary, int64_t shard_tokens)
      : prefix(std::move(prefix)), vocabulary(vocabulary), shard_tokens(shard_tokens) {}

  /// `targets`: of each token. Pieces of one document may come one after another.
  absl::Status Append(const std::vector<int32_t> &tokens, const std::vector<bool> &targets);
  void EndDocument() {
    ++entry.documents;
    begins = true;
  }
  /// Padding behind a document, whose first token has a mark as if it began one.
  absl::Status Pad(int64_t tokens);
  /// Of PREFIX.json. Refuses an entry without tokens.
  absl::StatusOr<CacheEntry> Finish();

private:
  absl::Status Next();

  const std::string prefix;
  const int64_t vocabulary, shard_tokens;
  std::optional<ShardWriter> shard;
  bool begins = true; // the next token begins a document
  CacheEntry entry;
};

class TokenCache {
public:
  explicit TokenCache(CacheOptions options) : options(std::move(options)) {}

  /// The entry of a key; nothing if there is none, or if it is damaged. FailedPrecondition if the
  /// directory was not named, and another user has made it or may change it.
  absl::StatusOr<std::optional<CacheEntry>> Find(const std::string &key) const;
  /// Makes the directory, takes its lock and removes remains. Waits while another process has it.
  absl::Status Lock();
  /// With the lock. `vocabulary`: one more than the largest token.
  EntryWriter Begin(const std::string &key, int64_t vocabulary) const;
  void Unlock() { lock.reset(); }

private:
  absl::Status CheckOwner() const;
  absl::Status RemoveRemains() const;

  const CacheOptions options;
  std::unique_ptr<OpenFile> lock;
};

/// 32 hexadecimal digits.
std::string KeyOf(absl::string_view description);

} // namespace boa

#endif // BOA_RUNTIME_DATA_TOKEN_CACHE_H
