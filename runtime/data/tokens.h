//===- tokens.h - Files of tokens -------------------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The files of a pattern, in the order of their names, one behind the other as if they were one.
// Window w has the tokens w * context to (w + 1) * context. So each token is predicted once, but
// for the first one and for those behind the last whole window. The last tenth of the windows is
// for validation, unless that has files of its own.
//
// Documents end where an index says so, and behind each token `end`.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_DATA_TOKENS_H
#define BOA_RUNTIME_DATA_TOKENS_H

#include "runtime/data/source.h"

#include <string>
#include <vector>

namespace boa {

absl::StatusOr<std::unique_ptr<Source>> OpenTokens(const DataSource &, const SourceOptions &);

/// The files of a pattern, sorted by name. An index beside a file of tokens is none of them.
std::vector<std::string> FindShards(const std::string &pattern);

} // namespace boa

#endif // BOA_RUNTIME_DATA_TOKENS_H
