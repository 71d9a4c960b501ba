//===- new_adapters.h - A computation before its adapters -------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_STATE_NEW_ADAPTERS_H
#define BOA_RUNTIME_STATE_NEW_ADAPTERS_H

#include "runtime/abi/program.h"

#include "absl/strings/string_view.h"

#include <optional>
#include <string>

namespace boa {

/// The text of a program without its adapters, whose products are zero when they begin. Nothing if
/// it has none, or if `before` has them, too.
std::optional<std::string> WithoutNewAdapters(const Program &, absl::string_view before);

} // namespace boa

#endif // BOA_RUNTIME_STATE_NEW_ADAPTERS_H
