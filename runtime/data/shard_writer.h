//===- shard_writer.h - Writes a file of tokens -----------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The format of llm.c (shard.h): 16 bits for each token, or 32 for vocabularies of more than
// 65,536. With marks, NAME.targets and NAME.begins stand beside NAME.bin (token_marks.h). At no
// instant do tokens stand beside marks of others, or lack the marks that they were written with.
//
// A file appears complete, or not at all. Without Finish there is none.
//
// Threads: one. Errors: each names the file.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_DATA_SHARD_WRITER_H
#define BOA_RUNTIME_DATA_SHARD_WRITER_H

#include "runtime/data/token_marks.h"
#include "runtime/io/new_file.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace boa {

/// Of a file: its header counts in 32 bits.
inline constexpr int64_t kMostShardTokens = std::numeric_limits<int32_t>::max();

class ShardWriter {
public:
  /// `vocabulary`: one more than the largest token. Marks need a path that ends in .bin.
  static absl::StatusOr<ShardWriter> Create(const std::string &path, int64_t vocabulary,
                                            bool with_marks = false);

  /// Whether each token is a target, and whether it begins a document, in a file that has marks.
  /// In another one they are not looked at.
  absl::Status Append(const std::vector<int32_t> &tokens, const std::vector<bool> &targets = {},
                      const std::vector<bool> &begins = {});
  absl::Status Finish();

  int64_t tokens() const { return count; }
  int64_t targets() const { return targeted ? targeted->marked() : count; }

private:
  absl::Status ReplaceMarks();

  std::string path;
  NewFile file;
  std::optional<TokenMarksWriter> targeted, begun;
  bool wide = false;
  int64_t count = 0;
};

} // namespace boa

#endif // BOA_RUNTIME_DATA_SHARD_WRITER_H
