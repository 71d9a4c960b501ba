//===- ImportData.h - The data that an import writes into a spec -*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_TOOLS_MODELS_IMPORTDATA_H
#define BOA_TOOLS_MODELS_IMPORTDATA_H

#include "runtime/data/survey.h"
#include "runtime/weights/model_config.h"

#include "absl/status/statusor.h"

#include <cstdint>
#include <string>

namespace boa {

struct ImportedData {
  std::string call;    // for the spec, with the tokenizer that an import puts beside it
  std::string checked; // the same with the tokenizer of the folder, to compile before that
  bool hasEpochs = true;
  Counts lengths; // tokens of each document; none of tokens(...)
  bool conversations = false;
  /// Tokens; 95% of the documents fit, unless the model allows fewer.
  int64_t context = 0;
};

/// Reads the value of `--data`: sources as in a spec, or a path or pattern alone. The ending of a
/// path tells its kind: .jsonl and .json are conversations, .bin and .npy are tokens, all else is
/// text. `folder` is the model's, or its GGUF file. `spec` is the file that will hold the
/// result.
absl::StatusOr<ImportedData> readImportedData(const std::string &data, const std::string &folder,
                                              const std::string &spec, const ModelConfig &config);

/// "200 documents of 12 to 803 tokens; 9 (4.5%) are longer than the context, and go on in the
/// next sequence". Empty of tokens(...).
std::string describeFit(const ImportedData &data, int64_t context);

} // namespace boa

#endif // BOA_TOOLS_MODELS_IMPORTDATA_H
