//===- gguf_config.h - The configuration in a GGUF file ---------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_WEIGHTS_GGUF_CONFIG_H
#define BOA_RUNTIME_WEIGHTS_GGUF_CONFIG_H

#include "absl/status/statusor.h"

#include <string>

namespace boa {

/// The config.json that the model of a GGUF file has at Hugging Face, for transformers 4 and 5.
/// Refuses, by name, an architecture that Boa does not have and a key that it does not know:
/// either might change the computation.
absl::StatusOr<std::string> ConfigOfGguf(const std::string &path);

} // namespace boa

#endif // BOA_RUNTIME_WEIGHTS_GGUF_CONFIG_H
