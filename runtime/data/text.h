//===- text.h - A text as tokens --------------------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A text as bytes, one token each, but for a byte order mark at its beginning. A window begins at
// each byte. The last tenth of the bytes is for validation.
//
// Refuses a text that does not exist, or that has a byte outside of the vocabulary.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_DATA_TEXT_H
#define BOA_RUNTIME_DATA_TEXT_H

#include "runtime/data/source.h"

namespace boa {

absl::StatusOr<std::unique_ptr<Source>> OpenText(const DataSource &, const SourceOptions &);

} // namespace boa

#endif // BOA_RUNTIME_DATA_TEXT_H
