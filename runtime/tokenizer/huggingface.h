//===- huggingface.h - The parts of tokenizer.json ------------ -*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_TOKENIZER_HUGGINGFACE_H
#define BOA_RUNTIME_TOKENIZER_HUGGINGFACE_H

#include "runtime/tokenizer/definition.h"

#include "absl/status/status.h"
#include "nlohmann/json.hpp"

#include <string>

namespace boa {

/// Members of an object. `absent` counts where one is absent or null.
const nlohmann::json *JsonMember(const nlohmann::json &object, const char *key);
std::string JsonText(const nlohmann::json &object, const char *key, const std::string &absent = "");
bool JsonFlag(const nlohmann::json &object, const char *key, bool absent);

// The errors of these name the fault, but not the file.

/// "normalizer"
absl::Status ReadNormalizer(const nlohmann::json &step, Definition &definition);
/// "pre_tokenizer"
absl::Status ReadPreTokenizer(const nlohmann::json &step, Definition &definition);
/// "post_processor"
absl::Status ReadPostProcessor(const nlohmann::json &step, Definition &definition);
/// "decoder"
absl::Status ReadDecoder(const nlohmann::json &step, Definition &definition);

} // namespace boa

#endif // BOA_RUNTIME_TOKENIZER_HUGGINGFACE_H
