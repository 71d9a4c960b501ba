//===- template_values.h - Variables that users give templates --*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// `template_values` of chat(...), as text: an object of JSON on one line. The compiler and the
// trainer refuse the same texts.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_ABI_TEMPLATE_VALUES_H
#define BOA_RUNTIME_ABI_TEMPLATE_VALUES_H

#include <string>
#include <string_view>

namespace boa {

inline constexpr char kExpectedValues[] =
    "expected an object of JSON, such as {\"enable_thinking\": false}";

/// Why a text cannot be the variables of a chat template; "" if it can.
std::string FaultOfTemplateValues(std::string_view json);
/// Why users cannot give a chat template this variable; "" if they can.
std::string FaultOfVariable(std::string_view name);

} // namespace boa

#endif // BOA_RUNTIME_ABI_TEMPLATE_VALUES_H
