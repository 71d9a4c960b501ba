//===- json_object.h - JSON that a user writes as a value -------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_ABI_JSON_OBJECT_H
#define BOA_RUNTIME_ABI_JSON_OBJECT_H

#include <cstddef>
#include <string>
#include <string_view>

namespace boa {

/// The end of the object of JSON at the beginning of a text; npos if it has none on its line.
size_t EndOfObject(std::string_view text);
/// Why a text is no object of JSON; "" if it is one. Its numbers have at most 64 bits, its depth is
/// at most 64, and no key stands twice in one object. `fault_of_key` says why a key of the object
/// itself is refused. `expected`: the fault of any other text.
std::string FaultOfObject(std::string_view json, const std::string &expected,
                          std::string (*fault_of_key)(std::string_view));

} // namespace boa

#endif // BOA_RUNTIME_ABI_JSON_OBJECT_H
