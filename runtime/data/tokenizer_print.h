//===- tokenizer_print.h - Fingerprints of tokenizers and templates -*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Tokens depend on the files of a tokenizer, and those of conversations on a chat template. These
// hashes tell whether they changed. They read the files, and make no tokenizer of them.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_DATA_TOKENIZER_PRINT_H
#define BOA_RUNTIME_DATA_TOKENIZER_PRINT_H

#include "runtime/abi/sources.h"
#include "runtime/data/token_cache.h"

#include "absl/status/statusor.h"

#include <string>

namespace boa {

/// A hash of the tokenizer's file and of those beside it that it reads.
absl::StatusOr<std::string> PrintOfTokenizer(const std::string &path);

struct TemplatePrint {
  std::string text; // hashes of the templates, of whatever origin; "": there is none
  std::string date; // "": they show none
};
/// Of the templates of chat(...).
absl::StatusOr<TemplatePrint> PrintOfTemplate(const DataSource &, const CacheOptions &);

} // namespace boa

#endif // BOA_RUNTIME_DATA_TOKENIZER_PRINT_H
