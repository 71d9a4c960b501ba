//===- tokens.h - Files of tokens -------------------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The files of a pattern, in the order of their names, one behind the other as if they were one.
// Window w has the tokens w * context to (w + 1) * context. So each token but the first one is
// predicted once. In the last window padding follows the last token, and is no target. The last
// tenth of the windows is for validation, unless that has files of its own.
//
// Masked tokens see what follows them, so their windows have no padding. The last one begins
// earlier, and only those tokens of it are predicted that no other window has. There must be as
// many tokens as a window has.
//
// Documents that are not packed were padded to multiples of the context (tokenized.h), so that each
// begins a window.
//
// Documents end where an index or NAME.begins says so, and behind each token `end`. Where a file
// says which of its tokens are targets (token_marks.h), windows without a target are left out, but
// not those of masked tokens.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_DATA_TOKENS_H
#define BOA_RUNTIME_DATA_TOKENS_H

#include "runtime/data/shard.h"
#include "runtime/data/source.h"

#include <string>
#include <vector>

namespace boa {

absl::StatusOr<std::unique_ptr<Source>> OpenTokens(const DataSource &, const SourceOptions &);

/// Names of the files from which files of tokens were made.
struct ShardNames {
  size_t files = 0;            // of which they were made; 0: they are the user's own
  std::vector<std::string> of; // of each
};
absl::StatusOr<std::unique_ptr<Source>> OpenShards(const DataSource &,
                                                   const std::vector<std::string> &files,
                                                   ShardNames, const SourceOptions &);

/// The files of a pattern, sorted by name, and the error if there is none. A file whose name is the
/// pattern itself is the only one.
std::vector<std::string> FindFiles(const std::string &pattern);
absl::Status NoFile(const std::string &pattern);
/// The same without what belongs to another file of the pattern: an index or marks.
std::vector<std::string> FindShards(const std::string &pattern);

} // namespace boa

#endif // BOA_RUNTIME_DATA_TOKENS_H
