//===- fuzz.cpp - Any bytes as a specification ----------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A libFuzzer entry. The input is a spec; what follows a zero byte is an
// override. Checks besides the sanitizers: there is a spec or a diagnostic and
// never both, and what the printer writes parses and prints the same again.
//
//===----------------------------------------------------------------------===//
#include "frontend/Frontend.h"

#include <cstdlib>

using namespace boa::frontend;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::string text(reinterpret_cast<const char *>(data), size);
  std::vector<std::string> overrides;
  if (size_t zero = text.find('\0'); zero != std::string::npos) {
    overrides.push_back(text.substr(zero + 1));
    text.resize(zero);
  }
  FrontendResult result = compileTexts({{"fuzz.boa", text}}, overrides);
  if (result.spec.has_value() != result.diagnostics.empty())
    std::abort();
  if (result.ast.empty())
    return 0;
  FrontendResult again = compileTexts({{"fuzz.boa", result.ast}});
  if (again.ast != result.ast)
    std::abort();
  return 0;
}
