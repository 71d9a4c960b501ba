//===- template_values.cpp - Variables that users give templates ----------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/abi/template_values.h"

#include "runtime/abi/json_object.h"

namespace boa {

std::string FaultOfTemplateValues(std::string_view json) {
  return FaultOfObject(json, kExpectedValues, FaultOfVariable);
}

std::string FaultOfVariable(std::string_view name) {
  constexpr std::string_view kToken = "_token"; // bos_token and so on
  const bool is_token =
      name.size() > kToken.size() && name.substr(name.size() - kToken.size()) == kToken;
  if (!is_token && name != "messages" && name != "tools" && name != "add_generation_prompt")
    return "";
  return "`" + std::string(name) +
         "` cannot be given: a template gets it from the conversation or its tokenizer";
}

} // namespace boa
