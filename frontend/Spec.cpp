//===- Spec.cpp - Printing of shapes --------------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "frontend/Spec.h"

namespace boa::frontend {

std::vector<int64_t> Shape::values() const {
  std::vector<int64_t> result;
  for (const Dim &dim : dims)
    result.push_back(dim.value);
  return result;
}

std::string Shape::print() const {
  if (kind == Kind::Loss)
    return "loss";
  std::string symbolic = "[", numeric = "[";
  for (size_t i = 0; i < dims.size(); ++i) {
    symbolic += (i ? ", " : "") + dims[i].text;
    numeric += (i ? ", " : "") + std::to_string(dims[i].value);
  }
  symbolic += "]";
  numeric += "]";
  std::string suffix = kind == Kind::Tokens ? " token" : "";
  return symbolic == numeric ? symbolic + suffix : symbolic + suffix + " = " + numeric;
}

} // namespace boa::frontend
