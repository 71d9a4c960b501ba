//===- tokenized.h - Texts and conversations as tokens ----------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// text(...) and chat(...): a tokenizer makes tokens of the files of a pattern, once. They stay in a
// cache (token_cache.h) and are read as files of tokens are (tokens.h).
//
// Each file of text(...) is a document, with the tokens around it that its tokenizer puts there,
// and the one that ends a text behind it. With `special`, that one ends a document inside of a
// file, too. Each record of chat(...) is a document (records.h). The first token of a document is
// no target. Where documents are not packed, each is padded to a multiple of the context, so that
// it begins a window. Padding is no target, and the key has the context then.
//
// A chat template may show the date. Then it is a part of the key, and a state keeps it.
//
// Files are cached in groups of about 64 MiB, in the order of their names. The key of a group has
// the sizes, times of change and contents of its files, those of the tokenizer's files and of the
// chat template (tokenizer_print.h), and the options.
//
// Refuses faults of the tokenizer, the records and the texts, with file and line. Refuses a token
// outside of the vocabulary, and files, a tokenizer or a template that change while they are read.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_DATA_TOKENIZED_H
#define BOA_RUNTIME_DATA_TOKENIZED_H

#include "runtime/data/source.h"

#include <cstdint>
#include <functional>
#include <memory>

namespace boa {

absl::StatusOr<std::unique_ptr<Source>> OpenTokenized(const DataSource &, const SourceOptions &);

/// The number of tokens of each document, without padding. None is kept. `options.cache` is
/// followed but for its directory.
absl::Status MeasureTokenized(const DataSource &, const SourceOptions &options,
                              const std::function<void(int64_t)> &document);

} // namespace boa

#endif // BOA_RUNTIME_DATA_TOKENIZED_H
